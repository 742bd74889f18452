"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

Given independent ``c1 ~ Bin(n1, p1)`` and ``c2 ~ Bin(n2, p2)``, the tails of both counts become
normal scores Z1 and Z2. The points (p1, p2) with small Z1, Z2 and ``w1 Z1 + w2 Z2`` are a
confidence region, whatever the weights, as long as the counts had no part in them: they are how
much errors of either frequency cost, by what was expected beforehand. What an event shows of a
claim's parameter rises with p1 and falls with p2, so its least value on the edge of the region is a
bound. Two Clopper-Pearson bounds at half of alpha let both frequencies err at their worst at the
same time; here their errors are added as independent ones are. Proof: docs/proofs/ratio-bound.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from pytest_dp.basics.arrays import Floats
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics import clopper_pearson


@dataclass(frozen=True, slots=True)
class Counts:
    """Outputs in an event, of so many independent ones on either input."""

    c1: int
    """Outputs in the event on the likelier input."""
    n1: int
    c2: int
    """The same on the other one."""
    n2: int
    planned: tuple[float, float] = (0.5, 0.25)
    """Probabilities of the event that were expected before anything was counted: by these, errors
    of either count are weighed. They must not depend on the counts."""

    @property
    def four(self) -> tuple[int, int, int, int]:
        """Outputs in the event, and in all, on the likelier input and on the other."""
        return self.c1, self.n1, self.c2, self.n2

    @property
    def hits(self) -> tuple[int, int]:
        """Outputs in the event, on the likelier input and on the other."""
        return self.c1, self.c2

    @property
    def runs(self) -> tuple[int, int]:
        """All outputs, on either."""
        return self.n1, self.n2

    @property
    def swapped(self) -> Counts:
        """These counts with D and D' exchanged."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.planned[::-1])


NO_COUNTS = Counts(0, 0, 0, 0)


BETA = 0.01
"""Share of alpha that pays for points that are left out as too far off. Larger: less for the
others; smaller: points farther off count. By hand."""
CELLS = 128
"""Parts of the edge, each of which counts with the corner that shows least. More take longer; fewer
make the bound less sharp, but never invalid."""
PLANNED_CELLS = 2
"""The same where a bound is predicted, by the places between them."""
PLANNED_SCORE = 3.0
"""Normal score at which the cost of an error is looked at. Larger and smaller: weights that are
worse for rare events, where few are drawn, or many."""
ROUNDING = 1e-9
"""Relative error of a quantile, to the safe side. Larger makes bounds lower by as much, and never
invalid."""
MIN_LEVEL = 1e-250
"""Nothing is proved below this level, where probabilities become too small for a float."""


@dataclass(frozen=True, slots=True)
class EventTest:
    """A test of a claim by counts of one event: bounds, p-values and predictions of both."""

    guarantee: Guarantee
    """The claim, with what it fixes, such as δ."""

    def lower(self, counts: Counts, alpha: float) -> float:
        """Return the lower confidence bound on the parameter; `-inf` if the event was not seen.

        It may be negative, which says nothing but how far it is from showing anything.
        """
        corners = self._corners(counts, alpha)
        return -math.inf if corners is None else float(self.shows(*corners).min())

    def refutes(self, counts: Counts, alpha: float) -> bool:
        """Return whether the claim allows no point of the region: then `lower` is above it."""
        corners = self._corners(counts, alpha)
        if corners is None:
            return False
        if self.guarantee.largest_ratio is not None:
            return bool(self.shows(*corners).min() > self.guarantee.claimed)
        return bool((corners[0] > self.guarantee.largest_probability(corners[1])).all())

    def p_value(self, counts: Counts) -> float:
        """Return the smallest level at which the claim is refuted, rounded up."""
        return clopper_pearson.smallest_level(lambda alpha: self.refutes(counts, alpha))

    def interval(self, counts: Counts, alpha: float) -> tuple[float, float]:
        """Return two-sided confidence interval of what the event shows of the parameter."""
        rarer = self._corners(counts, alpha / 2, turned=True)
        upper = math.inf if rarer is None else float(self.shows(*rarer[::-1]).max())
        return self.lower(counts, alpha / 2), upper

    def predict(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        """Return about the median of `lower` over samples: to choose between events.

        Probabilities, or estimates of them, and runs are broadcast. It proves nothing.
        """
        every = np.broadcast_arrays(p1, n1, p2, n2)
        chance1, n1, chance2, n2 = (np.asarray(part, np.float64)[..., None] for part in every)
        costs = self.costs(chance1, n1, chance2, n2)
        edge = _edge(chance1 * n1, n1, chance2 * n2, n2, costs, alpha, PLANNED_CELLS)
        return np.where(chance1[..., 0] > 0, self.shows(*edge).min(axis=-1), -np.inf)

    def costs(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return by how much less an event shows if either frequency errs, in so many runs."""
        chance1, runs1, chance2, runs2 = (np.asarray(x, np.float64) for x in (p1, n1, p2, n2))
        likelier = [_least(chance1 * runs1, runs1, z) for z in (0.0, PLANNED_SCORE)]
        rarer = [_most(chance2 * runs2, runs2, z) for z in (0.0, PLANNED_SCORE)]
        with np.errstate(invalid="ignore"):
            at = self.shows(likelier[0], rarer[0])
            costs = at - self.shows(likelier[1], rarer[0]), at - self.shows(likelier[0], rarer[1])
        one, other = (np.clip(np.nan_to_num(c, nan=1.0, posinf=1e6), 1e-9, 1e6) for c in costs)
        return one, other

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        """Return the parameter that these probabilities of an event prove, rounded down.

        Of ε alone, and where that is nothing, the log ratio of ``p1 - delta`` and p2: where it is
        negative, no more than the distance from showing anything.
        """
        chance1, chance2 = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.maximum(chance1 - self.guarantee.delta, 0.0)
            ratios: Floats = np.log(excess) - np.log(chance2)
        if self.guarantee.largest_ratio is not None:
            return ratios  # of the event, not of its complement
        proved = self.guarantee.shown_by(np.maximum(chance1, chance2), chance2)
        return np.where(proved > 0, proved, np.fmin(ratios, 0.0))

    def _corners(
        self, counts: Counts, alpha: float, *, turned: bool = False
    ) -> tuple[Floats, Floats] | None:
        """Return corners of cells that cover the edge; None if nothing can be proved.

        They are the least p1 and the most p2; of a region for the other end, if `turned`, the least
        p2 and the most p1.
        """
        costs = _planned_costs(self.guarantee, *counts.planned, *counts.runs)
        if turned:
            counts, costs = counts.swapped, costs[::-1]
        if counts.c1 == 0 or alpha < MIN_LEVEL:
            return None
        low, high = _edge(*counts.four, costs, alpha, CELLS)
        return low[:-1] * (1 - ROUNDING), np.minimum(high[1:] * (1 + ROUNDING), 1.0)


@lru_cache(maxsize=64)
def _planned_costs(
    guarantee: Guarantee, p1: float, p2: float, n1: int, n2: int
) -> tuple[Floats, Floats]:
    return EventTest(guarantee).costs(p1, n1, p2, n2)


def _edge(
    c1: ArrayLike,
    n1: ArrayLike,
    c2: ArrayLike,
    n2: ArrayLike,
    costs: tuple[Floats, Floats],
    alpha: float,
    cells: int,
) -> tuple[Floats, Floats]:
    """Return places on the edge of the region: p1 and p2, which rise along it."""
    z, m = -float(ndtri((1 - BETA) * alpha)), -float(ndtri(BETA * alpha / 4))
    length = np.hypot(*costs)
    w1, w2 = costs[0] / length, costs[1] / length
    first = np.maximum((z * w1 - m) / w2, -(m + z * w2) / w1)
    last = np.minimum((z * w1 + m) / w2, (m - z * w2) / w1)
    along = first + (last - first) * np.linspace(0, 1, cells + 1)
    low = _least(c1, n1, z * w1 - along * w2)
    return low, _most(c2, n2, z * w2 + along * w1)


def _least(count: ArrayLike, runs: ArrayLike, z: ArrayLike) -> Floats:
    """Return the probability at which so large a count has this normal score."""
    c, n = np.asarray(count, np.float64), np.asarray(runs, np.float64)
    p = betaincinv(c, n - c + 1, ndtr(-np.asarray(z, np.float64)))
    return np.where((c > 0) & ~np.isnan(p), p, 0.0)


def _most(count: ArrayLike, runs: ArrayLike, z: ArrayLike) -> Floats:
    """Return the probability at which so small a count has this normal score."""
    c, n = np.asarray(count, np.float64), np.asarray(runs, np.float64)
    p = betainccinv(c + 1, n - c, ndtr(-np.asarray(z, np.float64)))
    return np.where((c < n) & ~np.isnan(p), p, 1.0)
