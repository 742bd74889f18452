"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

A claim of ε alone bounds the ratio of two probabilities: there are sharp bounds on that ratio
(`pytest_dp.evidence.ratio`, `pytest_dp.evidence.paired`) and the tests of the papers. For any other
claim, what two probabilities p1 and p2 show of its parameter rises with p1 and falls with p2, and
the confidence regions of the same two modules hold for both probabilities at once. So the least
that any point of such a region shows is a bound, and the largest p-value of the points that the
claim allows is a p-value: docs/proofs/bounds-on-any-claim.md. The weights then follow the boundary
of what the claim allows, and pairs also need the probability that any of both outputs is in the
event, which gets a small share of alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from pytest_dp.arrays import Floats
from pytest_dp.bisection import MAX_EXCESS, smallest, smallest_loss
from pytest_dp.evidence import (
    clopper_pearson,
    combined,
    likelihood_ratio,
    paired,
    ratio,
    region,
    statdp,
)
from pytest_dp.evidence.boundary import boundary
from pytest_dp.evidence.probability_region import (
    ANY_SHARE,
    ProbabilityRegion,
    independent_region,
    largest_p_value,
    paired_region,
    probabilities,
)
from pytest_dp.evidence.validation import check_level
from pytest_dp.privacy import Guarantee

MANY = 1e6
"""Runs at which probabilities are compared with 0 and 1 where errors are compared: any large number
would do."""
SHOWN_AT = 1e-9
"""A p-value that is only shown is computed with a level; it is sharpest for p-values around this:
small, as those of violations are. By hand."""
SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is taken to be off: by chance, less than 1 % of
all bounds are lower than what is then expected. It is the normal quantile of 99 %, shared by two
errors."""


def event_test(guarantee: Guarantee) -> EventTest:
    """How counts of an event are held against a claim; only this asks which kind of claim it is."""
    eps = guarantee.largest_ratio
    return EventTest(guarantee) if eps is None else RatioTest(guarantee, eps)


@dataclass(frozen=True)
class EventTest:
    """What counts of one event prove of a claim."""

    guarantee: Guarantee
    """The claim, with what it fixes, such as δ."""

    def lower(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
        """Lower confidence bound on the parameter of the guarantee; `-inf` if `c1` is 0.

        It exceeds the claim if its `p_value` is at most `alpha`; the claim matters elsewhere too,
        as the bound is made to be sharp there. It may be negative, which says nothing but how far
        it is from showing anything.
        """
        return self._least(independent_region(c1, n1, c2, n2, self.guarantee, alpha))

    def p_value(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
        """A valid p-value of the claim: the largest over all probabilities that it allows.

        It is sharpest around `alpha`, which must be fixed before the counts are seen.
        """
        known = independent_region(c1, n1, c2, n2, self.guarantee, alpha)
        return largest_p_value(known, self.guarantee, alpha)

    def interval(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> tuple[float, float]:
        """Two-sided confidence interval of what the event shows of the parameter."""
        return self.lower(c1, n1, c2, n2, alpha / 2), self._highest(c1, n1, c2, n2, alpha)

    def predicted(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        """About the median of `lower` over samples: for choosing between events, proves nothing."""
        check_level("alpha", alpha)
        arrays = (np.asarray(x, dtype=np.float64) for x in (p1, n1, p2, n2))
        chance1, runs1, chance2, runs2 = np.broadcast_arrays(*arrays)
        edge, z = boundary(self.guarantee), region.critical(alpha)

        def odds(at1: Floats, at2: Floats) -> Floats:
            variance1, variance2 = edge.variances(at1, runs1, at2, runs2)
            plain = ratio.variance(at1, runs1) + ratio.variance(at2, runs2)
            squared: Floats = variance2 / variance1 * ratio.tilt(z, plain)
            return squared

        smallest = region.predicted(
            (chance1, chance2), (runs1, runs2), alpha, self.shows, odds, True
        )
        return np.where(chance1 > 0, smallest, -np.inf)

    def paired_lower(self, both: int, only1: int, only2: int, pairs: int, alpha: float) -> float:
        """`lower` for outputs that come in pairs, which are independent of each other.

        `only1` counts pairs with only the output on the first input in the event.
        """
        return self._least(paired_region(both, only1, only2, pairs, alpha))

    def paired_p_value(self, both: int, only1: int, only2: int, pairs: int, alpha: float) -> float:
        known = paired_region(both, only1, only2, pairs, alpha)
        p = largest_p_value(known, self.guarantee, (1 - ANY_SHARE) * alpha)
        return p + ANY_SHARE * alpha if p < 1 else 1.0

    def paired_interval(
        self, both: int, only1: int, only2: int, pairs: int, alpha: float
    ) -> tuple[float, float]:
        highest = self._highest(both + only1, pairs, both + only2, pairs, alpha)
        return self.paired_lower(both, only1, only2, pairs, alpha / 2), highest

    def paired_predicted(
        self, p1: ArrayLike, p2: ArrayLike, both: ArrayLike, pairs: ArrayLike, alpha: float
    ) -> Floats:
        check_level("alpha", alpha)
        arrays = (np.asarray(x, dtype=np.float64) for x in (p1, p2, both, pairs))
        chance1, chance2, common, runs = np.broadcast_arrays(*arrays)
        alone, known, any_of_both = paired.shares(chance1, chance2, common, runs)
        hits = runs * np.minimum(any_of_both, 1.0)
        least = betaincinv(np.maximum(hits, 1e-300), runs - hits + 1, ANY_SHARE * alpha)

        def loss(q: Floats, b: Floats) -> Floats:
            return self.shows(*probabilities(least, q, b))

        smallest = region.predicted(alone, known, (1 - ANY_SHARE) * alpha, loss, paired.odds, True)
        return np.where(chance1 > 0, smallest, -np.inf)

    def classical(self, c1: int, c2: int, runs: int, alpha: float) -> tuple[float, float]:
        """The bound and the p-value by which StatDP decides, at half of alpha each.

        StatDP's test looks in both directions. It knows no δ: for other claims than ε alone, both
        directions are tested with the bound on both probabilities, which is at least as good.
        """
        counts = max(c1, c2), runs, min(c1, c2), runs, alpha / 2
        return self.lower(*counts), min(1.0, 2 * self.p_value(*counts))

    def informal_p_value(
        self, four: tuple[int, int, int, int], equal: tuple[int, int], common: int
    ) -> float:
        """A p-value to show beside a bound, of counts as in `Counts`."""
        del equal, common
        return self.p_value(*four, SHOWN_AT)

    def classical_runs(self, p1: float, p2: float, alpha: float, limit: int) -> int | None:
        """Runs on each input by which `classical` nearly always refutes the claim; None: too many.

        p1 and p2 are the probabilities of the event; `alpha` is the level of each of the tests that
        `classical` combines.
        """
        runs = 100
        while runs <= limit:
            if self.expected(p1, runs, p2, runs, alpha) > self.guarantee.claimed:
                return runs
            runs = 3 * runs // 2
        return None

    def classical_resolution(self, p1: float, runs: int, alpha: float) -> float:
        """The smallest parameter that `classical` would have caught; `alpha` is that of each test.

        By an event that has the probability p1 on the likelier input.
        """
        return self.smallest(
            lambda loss: (p1, p1 * math.exp(-loss)),
            lambda loss: self.expected(p1, runs, p1 * math.exp(-loss), runs, alpha),
        )

    def smallest(
        self,
        probabilities: Callable[[float], tuple[float, float]],
        expected: Callable[[float], float],
    ) -> float:
        """What an event shows at the smallest loss at which more than the claim is expected."""
        claimed = self.guarantee.claimed
        loss = smallest(lambda loss: expected(loss) > claimed, 0.0, 1.0, MAX_EXCESS)
        return math.inf if math.isinf(loss) else float(self.shows(*probabilities(loss)))

    def score(self, c1: ArrayLike, c2: ArrayLike, runs: int) -> Floats:
        """Rank many events at once by their evidence against the claim (`likelihood_ratio`)."""
        return likelihood_ratio.score(c1, c2, runs, self.guarantee)

    def errors(self, p1: Floats, p2: Floats) -> tuple[Floats, Floats]:
        """What either frequency adds, by one run, to the standard error of what an event shows."""
        v1, v2 = boundary(self.guarantee).variances(p1, MANY, p2, MANY)
        return np.sqrt(MANY * v1), np.sqrt(MANY * v2)

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        """What probabilities show of the parameter, rounded down.

        Where that is nothing, the log ratio of ``p1 - delta`` and p2: negative, and no more than
        the distance from showing anything.
        """
        chance1, chance2 = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(np.maximum(chance1 - self.guarantee.delta, 0.0)) - np.log(chance2)
        proved = self.guarantee.shown_by(np.maximum(chance1, chance2), chance2)
        return np.where(proved > 0, proved, np.fmin(ratios, 0.0))

    def expected(self, p1: float, n1: int, p2: float, n2: int, alpha: float) -> float:
        """A bound that independent samples exceed nearly always."""
        low = p1 - SPREAD * math.sqrt(p1 * (1 - p1) / n1)
        high = p2 + SPREAD * math.sqrt(p2 * (1 - p2) / n2)
        if low <= 0 or high >= 1:
            return -math.inf
        return float(self.predicted(low, n1, high, n2, alpha))

    def _highest(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
        share = alpha / 4
        ends = clopper_pearson.upper(c1, n1, share), clopper_pearson.lower(c2, n2, share)
        return float(self.shows(*ends))

    def _least(self, known: ProbabilityRegion | None) -> float:
        """What any point of the region shows at least; `-inf` if there is no region."""
        if known is None:
            return -math.inf
        return float(self.shows(*known.corner(*known.grid.frontier())).min(initial=math.inf))


@dataclass(frozen=True)
class RatioTest(EventTest):
    """For claims of ε alone, the same by sharper bounds on the log ratio of both probabilities."""

    eps: float

    def lower(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
        return ratio.eps_lower(c1, n1, c2, n2, alpha)

    def p_value(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
        return ratio.p_value(c1, n1, c2, n2, self.eps, alpha)

    def interval(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> tuple[float, float]:
        return ratio.interval(c1, n1, c2, n2, alpha)

    def predicted(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        return ratio.predicted(p1, n1, p2, n2, alpha)

    def paired_lower(self, both: int, only1: int, only2: int, pairs: int, alpha: float) -> float:
        del pairs  # those with neither output in the event say nothing about a ratio
        return paired.eps_lower(both, only1, only2, alpha)

    def paired_p_value(self, both: int, only1: int, only2: int, pairs: int, alpha: float) -> float:
        del pairs
        return paired.p_value(both, only1, only2, self.eps, alpha)

    def paired_interval(
        self, both: int, only1: int, only2: int, pairs: int, alpha: float
    ) -> tuple[float, float]:
        del pairs
        return paired.interval(both, only1, only2, alpha)

    def paired_predicted(
        self, p1: ArrayLike, p2: ArrayLike, both: ArrayLike, pairs: ArrayLike, alpha: float
    ) -> Floats:
        return paired.predicted(p1, p2, both, pairs, alpha)

    def classical(self, c1: int, c2: int, runs: int, alpha: float) -> tuple[float, float]:
        p_value = combined.p_value(c1, c2, runs, self.eps)
        return combined.eps_lower(c1, c2, runs, alpha), p_value

    def informal_p_value(
        self, four: tuple[int, int, int, int], equal: tuple[int, int], common: int
    ) -> float:
        del four
        return statdp.p_value_both(*equal, common, self.eps)

    def classical_runs(self, p1: float, p2: float, alpha: float, limit: int) -> int | None:
        limit = max(limit, 1)
        return statdp.runs_for_power(p1, p2, self.eps, alpha, power=0.999, limit=limit)

    def classical_resolution(self, p1: float, runs: int, alpha: float) -> float:
        return statdp.smallest_eps(p1, runs, self.eps, alpha, power=0.99)

    def smallest(
        self,
        probabilities: Callable[[float], tuple[float, float]],
        expected: Callable[[float], float],
    ) -> float:
        del probabilities  # whose log ratio is the loss itself
        return smallest_loss(lambda loss: expected(loss) > self.eps, self.eps)

    def score(self, c1: ArrayLike, c2: ArrayLike, runs: int) -> Floats:
        return statdp.score(c1, c2, runs, self.eps)

    def errors(self, p1: Floats, p2: Floats) -> tuple[Floats, Floats]:
        s1, s2 = (np.sqrt((1 - p) / np.maximum(p, 1e-12)) + 1e-12 for p in (p1, p2))
        return s1, s2

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Floats = np.log(np.asarray(p1, float)) - np.log(np.asarray(p2, float))
        return ratios
