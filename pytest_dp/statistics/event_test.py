"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

What two probabilities p1 and p2 show of a claim's parameter rises with p1 and falls with p2, and
the confidence regions of `pytest_dp.statistics.region` hold for both at once. So the least that any
point of a region shows is a bound, and the largest p-value of the points that the claim allows is a
p-value: docs/proofs/bounds-on-any-claim.md. Weights follow the boundary of what the claim allows.

A claim of ε alone is the simplest case: it bounds the ratio of the probabilities, of which bounds
may be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics import clopper_pearson, region
from pytest_dp.statistics.counts import Counts
from pytest_dp.statistics.region import BETA, LOG_MARGIN, MIN_LEVEL
from pytest_dp.statistics.validation import check_level

ASYMPTOTIC_N = 1e6
"""Runs at which probabilities are compared with 0 and 1 where errors are compared: any large number
would do."""


_INNER = expit(np.linspace(-35, 30, 3_001))
"""The places between 0 and 1, evenly spaced in log odds."""
PLACES: Floats = np.concatenate([[0.0], _INNER, [1.0]])
"""Probabilities on the rarer side at which the boundary of a claim is known; in between it is
interpolated. More cost time once for each claim; fewer weigh errors less exactly. By hand."""
MAX_VARIANCE = 1e300
"""What stands for an infinite variance, so that ratios of variances stay numbers."""


@lru_cache(maxsize=16)
def _boundary(guarantee: Guarantee) -> tuple[float, Floats]:
    """How errors of both probabilities compare along the boundary of what a claim allows.

    The probabilities that it allows form a convex set: how fast the largest one on the likelier
    input rises with that on the other says how much the errors of either matter. Nothing is proved
    by it. With the largest p1 beside p2 = 0 comes, at the inner places, the logarithm of the
    variance of the term of p2 by one run, which falls with p2.
    """
    p1 = np.maximum.accumulate(np.minimum(guarantee.largest_probability(PLACES), 1.0))
    slope = np.diff(p1) / np.diff(PLACES)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(_INNER * (1 - _INNER)) + 2 * np.log(slope[1:] / (p1[1:-1] - p1[0]))
    finite = np.clip(np.nan_to_num(spread, nan=-600.0), -600.0, 600.0)
    return float(p1[0]), np.maximum.accumulate(finite[::-1])[::-1]


def event_test(guarantee: Guarantee) -> EventTest:
    """How counts of an event are held against a claim; only this asks which kind of claim it is."""
    return (EventTest if guarantee.largest_ratio is None else RatioTest)(guarantee)


@dataclass(frozen=True)
class EventTest:
    """A test of a claim by counts of one event: bounds, p-values and predictions of both."""

    guarantee: Guarantee
    """The claim, with what it fixes, such as δ."""
    follows: ClassVar[bool] = False
    """Whether the weights follow what is bounded wherever it is looked at."""

    def lower(self, counts: Counts, alpha: float) -> float:
        """Lower confidence bound on the parameter; `-inf` if the event was not seen.

        It exceeds the claim if its `p_value` is at most `alpha`; the claim matters elsewhere too,
        as the bound is made to be sharp there. It may be negative, which says nothing but how far
        it is from showing anything.
        """
        grid = self._grid(counts, alpha)
        if grid is None:
            return -math.inf
        return float(self._proved(*grid.corner(*grid.frontier())).min(initial=math.inf))

    def p_value(self, counts: Counts, alpha: float) -> float:
        """A valid p-value of the claim: the largest over all probabilities that it allows.

        It is sharpest around `alpha`, which must be fixed before the counts are seen, and 1.0
        instead of anything above 0.5.
        """
        grid = self._grid(counts, alpha)
        score = 0.0 if grid is None else grid.smallest_score(self._allows)
        if not score > 0:
            return 1.0
        return float(BETA * alpha + ndtr(-score))

    def interval(self, counts: Counts, alpha: float) -> tuple[float, float]:
        """Two-sided confidence interval of what the event shows of the parameter."""
        share = alpha / 4
        c1, n1, c2, n2 = counts.four
        ends = clopper_pearson.upper(c1, n1, share), clopper_pearson.lower(c2, n2, share)
        return self.lower(counts, alpha / 2), float(self.shows(*ends))

    def _grid(self, counts: Counts, alpha: float) -> region.Grid | None:
        """The region of both probabilities; None if nothing can be proved."""
        check_level(alpha)
        counts.check()
        if counts.c1 == 0 or alpha < MIN_LEVEL:
            return None
        return region.Grid(*counts.four, self.variances, alpha)

    def predicted(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        """Predict the median of `lower` over samples: to choose between events; proves nothing.

        Probabilities, or estimates of them, and runs are broadcast. The
        distance to what the event shows is about right to a few percent if 10 outputs of the first
        input are expected, and to 15 percent if 3 are.
        """
        check_level(alpha)
        chance1, runs1, chance2, runs2 = _broadcast(p1, n1, p2, n2)
        z = region.critical(alpha)

        def odds(at1: Floats, at2: Floats) -> Floats:
            variance1, variance2 = self.variances(at1, runs1, at2, runs2)
            plain = region.variance(at1, runs1) + region.variance(at2, runs2)
            squared: Floats = variance2 / variance1 * region.tilt(z, plain)
            return squared

        estimates, runs = (chance1, chance2), (runs1, runs2)
        found = region.predict_bound(estimates, runs, alpha, self.shows, odds, not self.follows)
        return np.where(chance1 > 0, found, -np.inf)

    def errors(self, p1: Floats, p2: Floats) -> tuple[Floats, Floats]:
        """Return what one run of each input adds to the standard error of the proved parameter."""
        n, least = ASYMPTOTIC_N, 1e-12
        v1, v2 = self.variances(np.maximum(p1, least), n, np.maximum(p2, least), n)
        return np.sqrt(n * v1) + least, np.sqrt(n * v2) + least

    def variances(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        """How much frequencies, of so many runs, add to the error of what an event shows.

        As a claim of ε beside a δ compares ``ln(p1 - δ)`` with ``ln p2``, a claim compares the
        first, δ being what it allows beside p2 = 0, with what it would be on the boundary. Falls
        with either probability; as if half a run at least were in the event, and half a run not.
        """
        runs1, runs2 = np.asarray(n1, dtype=np.float64), np.asarray(n2, dtype=np.float64)
        likelier, rarer = np.clip(p1, 0.5 / runs1, 1 - 0.5 / runs1), np.maximum(p2, 0.5 / runs2)
        least, spread = _boundary(self.guarantee)
        above = likelier - least
        with np.errstate(divide="ignore", over="ignore"):
            variance1 = np.where(above > 0, likelier * (1 - likelier) / above**2, np.inf) / runs1
        variance2 = np.exp(np.interp(np.log(rarer), np.log(_INNER), spread)) / runs2
        return np.minimum(variance1, MAX_VARIANCE), np.minimum(variance2, MAX_VARIANCE)

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        """Return the parameter that these probabilities of an event prove, rounded down.

        Where that is nothing, the log ratio of ``p1 - delta`` and p2: negative, and no more than
        the distance from showing anything.
        """
        chance1, chance2 = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
        ratios = _log_ratio(np.maximum(chance1 - self.guarantee.delta, 0.0), chance2)
        proved = self.guarantee.shown_by(np.maximum(chance1, chance2), chance2)
        return np.where(proved > 0, proved, np.fmin(ratios, 0.0))

    def _proved(self, p1: Floats, p2: Floats) -> Floats:
        """Return what the corners of cells prove, rounded down."""
        return self.shows(p1, p2)

    def _allows(self, p1: Floats, p2: Floats) -> Bools:
        """Return whether the claim allows these corners of cells."""
        allowed: Bools = p1 <= self.guarantee.largest_probability(p2)
        return allowed


class RatioTest(EventTest):
    """For claims of ε alone: the log ratio of both probabilities."""

    follows = True

    @property
    def eps(self) -> float:
        return self.guarantee.claimed

    def interval(self, counts: Counts, alpha: float) -> tuple[float, float]:
        return self.lower(counts, alpha / 2), -self.lower(counts.swapped, alpha / 2)

    def variances(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        return region.variance(np.asarray(p1), n1), region.variance(np.asarray(p2), n2)

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        return _log_ratio(np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64))

    def _proved(self, p1: Floats, p2: Floats) -> Floats:
        return self.shows(p1, p2) - LOG_MARGIN

    def _allows(self, p1: Floats, p2: Floats) -> Bools:
        allowed: Bools = self._proved(p1, p2) <= self.eps
        return allowed


def _log_ratio(p1: Floats, p2: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.log(p1) - np.log(p2)
    return ratio


def _broadcast(*values: ArrayLike) -> tuple[Floats, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in values)))
