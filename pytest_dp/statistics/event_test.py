"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

Given independent ``c1 ~ Bin(n1, p1)`` and ``c2 ~ Bin(n2, p2)``, the tails of both counts become
normal scores Z1 and Z2. The points (p1, p2) with small Z1, Z2 and ``w1 Z1 + w2 Z2`` are a
confidence region, whatever the weights, as long as the counts had no part in them: they are how
much errors of either frequency cost, by what was expected beforehand. What an event shows of a
claim's parameter rises with p1 and falls with p2, so its least value on the edge of the region is a
bound. Two Clopper-Pearson bounds at half of alpha let both frequencies err at their worst at the
same time; here their errors are added as independent ones are. Proof: docs/proofs/ratio-bound.md.

The pair of inputs, the event, and which input is to make it likelier were chosen on other samples.
What would have been shown is asked of a test with counts as unlucky as they seldom are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.bisection import MAX_EXCESS, smallest
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics import clopper_pearson, count_tests

BETA = 0.01
"""Share of alpha that pays for points left out as too far off. Larger: less for the others;
smaller: farther points count. By hand."""
CELLS = 128
"""Parts of the edge, each counted at the corner that shows least. More take longer; fewer make the
bound less sharp, never invalid."""
PLANNED_CELLS = 2
"""Parts of the edge where a bound is predicted."""
PLANNED_SCORE = 3.0
"""Normal score at which the cost of an error is taken. Others give worse weights for rare events,
of few runs, or of many."""
ROUNDING = 1e-9
"""Relative error of a quantile, to the safe side. Larger makes bounds lower by as much, and never
invalid."""
MIN_LEVEL = 1e-250
"""Nothing is proved below this level, where probabilities become too small for a float."""
LOSS_ERROR = 1e-3
"""Relative error of a detection limit. Larger: limits are less exact; smaller: they take longer."""
SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is taken to be off: by chance, less than 1 % of
all counts show less. It is the normal quantile of 99 %, shared by two errors."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one event in independent outputs on two inputs, the likelier input first."""

    c1: int
    """Outputs in the event on the likelier input."""
    n1: int
    c2: int
    """Outputs in the event on the other input."""
    n2: int
    planned: tuple[float, float] = (0.5, 0.25)
    """Probabilities of the event that were expected before counting: they weigh the errors of both
    counts, and must not depend on the counts."""

    @property
    def four(self) -> tuple[int, int, int, int]:
        """``(c1, n1, c2, n2)``."""
        return self.c1, self.n1, self.c2, self.n2

    @property
    def hits(self) -> tuple[int, int]:
        """The counts of the event, on the likelier input and on the other."""
        return self.c1, self.c2

    @property
    def runs(self) -> tuple[int, int]:
        """The counts of all outputs, on the likelier input and on the other."""
        return self.n1, self.n2

    @property
    def inputs_swapped(self) -> Counts:
        """The counts with the two inputs exchanged."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.planned[::-1])


NO_COUNTS = Counts(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class EventTest:
    """A test of a claim by the counts of one event: bounds, p-values and predictions of both."""

    guarantee: Guarantee
    """The claim, with what it fixes, such as δ."""
    attained: ClassVar[float] = 1.0
    """Share of the mechanism's true loss that an event is assumed to show."""

    def bound(self, counts: Counts, alpha: float) -> Bound:
        """Return the lower bound at level `alpha`, and the p-value, that counts prove."""
        return Bound(counts, self.guarantee, alpha, self.lower(counts, alpha), self.p_value(counts))

    def lower(self, counts: Counts, alpha: float) -> float:
        """Return the lower confidence bound on the parameter; `-inf` if the event never came on D.

        A bound of at most 0 proves nothing; its size is the distance from a proof.
        """
        corners = self._cells_of_edge(counts, alpha)
        return -math.inf if corners is None else float(self.parameter_shown(*corners).min())

    def refutes(self, counts: Counts, alpha: float) -> bool:
        """Return whether the claim excludes the whole confidence region at level `alpha`."""
        corners = self._cells_of_edge(counts, alpha)
        if corners is None:
            return False
        if self.guarantee.largest_ratio is not None:
            return bool(self.parameter_shown(*corners).min() > self.guarantee.claimed)
        return bool((corners[0] > self.guarantee.largest_probability(corners[1])).all())

    def p_value(self, counts: Counts) -> float:
        """Return the smallest level at which the claim is refuted, rounded up; 1.0 without one."""
        return clopper_pearson.smallest_level(lambda alpha: self.refutes(counts, alpha))

    def interval(self, counts: Counts, alpha: float) -> tuple[float, float]:
        """Return the two-sided interval of the parameter that the event shows; may be infinite."""
        rarer = self._cells_of_edge(counts, alpha / 2, turned=True)
        upper = math.inf if rarer is None else float(self.parameter_shown(*rarer[::-1]).max())
        return self.lower(counts, alpha / 2), upper

    def predict(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        """Return about the median of `lower` over samples, to choose between events (a heuristic).

        For probabilities and runs on the two inputs, broadcast; `-inf` where `p1` is 0.
        """
        every = np.broadcast_arrays(p1, n1, p2, n2)
        chance1, n1, chance2, n2 = (np.asarray(part, np.float64)[..., None] for part in every)
        costs = self.costs(chance1, n1, chance2, n2)
        edge = _edge_of_region(chance1 * n1, n1, chance2 * n2, n2, costs, alpha, PLANNED_CELLS)
        return np.where(chance1[..., 0] > 0, self.parameter_shown(*edge).min(axis=-1), -np.inf)

    def costs(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return by how much less an event shows if its first, or its second, frequency errs.

        The error is `PLANNED_SCORE` normal scores, in `n1` and `n2` runs; costs are in [1e-9, 1e6].
        """
        chance1, runs1, chance2, runs2 = (np.asarray(x, np.float64) for x in (p1, n1, p2, n2))
        likelier = [_lower_quantile(chance1 * runs1, runs1, z) for z in (0.0, PLANNED_SCORE)]
        rarer = [_upper_quantile(chance2 * runs2, runs2, z) for z in (0.0, PLANNED_SCORE)]
        with np.errstate(invalid="ignore"):
            at = self.parameter_shown(likelier[0], rarer[0])
            costs = (
                at - self.parameter_shown(likelier[1], rarer[0]),
                at - self.parameter_shown(likelier[0], rarer[1]),
            )
        one, other = (np.clip(np.nan_to_num(c, nan=1.0, posinf=1e6), 1e-9, 1e6) for c in costs)
        return one, other

    def parameter_shown(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        """Return the parameter that probabilities of an event prove, rounded down; broadcast.

        For claims of ε alone, the log ratio of `p1` and `p2`, which may be negative. For other
        claims, if nothing is proved, the log ratio of ``p1 - delta`` and `p2`, at most 0.
        """
        chance1, chance2 = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.maximum(chance1 - self.guarantee.delta, 0.0)
            ratios: Floats = np.log(excess) - np.log(chance2)
        if self.guarantee.largest_ratio is not None:
            return ratios  # of the event, not of its complement
        proved = self.guarantee.shown_by(np.maximum(chance1, chance2), chance2)
        return np.where(proved > 0, proved, np.fmin(ratios, 0.0))

    def runs_needed(self, p1: float, p2: float, alpha: float, limit: int) -> int | None:
        """Return how many runs on each input refute the claim in nearly all cases, to 2 %.

        `p1` and `p2` are the probabilities of the event. None if `limit` runs are not enough.
        """

        def enough(runs: float) -> bool:
            n = math.ceil(runs)
            return self.refutes(unlucky_counts(p1, n, p2, n), alpha)

        runs = smallest(enough, 0.0, 100.0, float(limit), relative=0.02)
        return math.ceil(runs) if runs <= limit else None

    def resolution(self, counts: Counts, alpha: float, c: float | None = None) -> float:
        """Return the smallest parameter that these runs show with 95 % power (approximate).

        The event shows `attained` of the loss; its likelier side has the counted frequency, at most
        one half. With `c`, the rarer side has probability `c`, the likelier one follows from
        Laplace noise. Infinite beyond the largest loss that is tried.
        """
        half = min(counts.c1 / counts.n1, 0.5)

        def chances(loss: float) -> tuple[float, float]:
            full = half, half * math.exp(-loss)
            return full if c is None else (likelier_under_laplace(c, loss), c)

        def is_caught(loss: float) -> bool:
            p1, p2 = chances(self.attained * loss)
            return self.refutes(unlucky_counts(p1, counts.n1, p2, counts.n2), alpha)

        limit = MAX_EXCESS + (self.guarantee.largest_ratio or 0.0)
        loss = smallest(is_caught, 0.0, 1.0, limit, relative=LOSS_ERROR)
        if math.isinf(loss):
            return loss
        likelier = half if c is None else min(c * math.exp(loss), 1.0)
        return float(self.parameter_shown(likelier, likelier * math.exp(-loss)))

    def _cells_of_edge(
        self, counts: Counts, alpha: float, *, turned: bool = False
    ) -> tuple[Floats, Floats] | None:
        """Return the least p1 and the most p2 of cells that cover the edge of the region.

        If `turned`, the least p2 and the most p1. None if the probability to be bounded from below
        had no hits, or `alpha` is below `MIN_LEVEL`.
        """
        costs = _planned_costs(self.guarantee, *counts.planned, *counts.runs)
        if turned:
            counts, costs = counts.inputs_swapped, costs[::-1]
        if counts.c1 == 0 or alpha < MIN_LEVEL:
            return None
        low, high = _edge_of_region(*counts.four, costs, alpha, CELLS)
        return low[:-1] * (1 - ROUNDING), np.minimum(high[1:] * (1 + ROUNDING), 1.0)


@dataclass(frozen=True, slots=True)
class PublishedTest(EventTest):
    """The test of the DP-Sniper paper, by two Clopper-Pearson bounds; misses a tenth of a loss."""

    attained: ClassVar[float] = 0.9

    def lower(self, counts: Counts, alpha: float) -> float:
        """Return the lower confidence bound on the parameter; 0.0 if nothing is shown."""
        guarantee = self.guarantee
        if guarantee.eps is not None:
            return clopper_pearson.eps_lower(*counts.four, alpha, guarantee.delta)
        p1 = clopper_pearson.lower(counts.c1, counts.n1, alpha / 2)
        p2 = clopper_pearson.upper(counts.c2, counts.n2, alpha / 2)
        return float(guarantee.shown_by(p1, p2)) if p1 > p2 else 0.0

    def refutes(self, counts: Counts, alpha: float) -> bool:
        """Return whether `lower` is above the claim."""
        return self.lower(counts, alpha) > self.guarantee.claimed


@dataclass(frozen=True, slots=True)
class StatDPTest(EventTest):
    """A test of claims of ε alone by StatDP's p-value; of other claims, as `EventTest`."""

    def lower(self, counts: Counts, alpha: float) -> float:
        """Return the lower confidence bound on ε in nats, rounded down by up to 1e-6."""
        if self.guarantee.largest_ratio is None:
            return EventTest.lower(self, counts, alpha)
        return count_tests.largest_rejected_eps(*counts.four, alpha)

    def refutes(self, counts: Counts, alpha: float) -> bool:
        """Return whether the p-value is at most `alpha`."""
        if self.guarantee.largest_ratio is None:
            return EventTest.refutes(self, counts, alpha)
        log_p = count_tests.log_statdp_p_value(*counts.four, self.guarantee.claimed)
        return log_p <= math.log(alpha)

    def p_value(self, counts: Counts) -> float:
        """Return the p-value of StatDP's test, above 0."""
        if self.guarantee.largest_ratio is None:
            return EventTest.p_value(self, counts)
        return count_tests.statdp_p_value(*counts.four, self.guarantee.claimed)


@dataclass(frozen=True, slots=True)
class Bound:
    """The result of a test: what one set of counts proves about a claim at a level."""

    counts: Counts
    guarantee: Guarantee
    alpha: float
    """Level of the bound, and of the intervals."""
    lower: float = -math.inf
    """On the parameter of the claim, by this event; `-inf` without runs."""
    p_value: float = 1.0

    @property
    def eps_clopper_pearson(self) -> float:
        """The DP-Sniper paper's lower bound on ε, in nats; `-inf` without ε, or without runs."""
        counts, guarantee = self.counts, self.guarantee
        if guarantee.eps is None or not counts.n1:
            return -math.inf
        return clopper_pearson.eps_lower(*counts.four, self.alpha, guarantee.delta)

    @property
    def delta_lower(self) -> float | None:
        """The lower bound on δ at the claimed ε; None for claims without ε, 0.0 without runs."""
        eps = self.guarantee.eps
        if eps is None:
            return None
        if not self.counts.n1:
            return 0.0
        return clopper_pearson.delta_lower(*self.counts.four, eps, self.alpha)

    @property
    def loss(self) -> tuple[float, float]:
        """The two-sided confidence interval of the parameter that the event shows."""
        return EventTest(self.guarantee).interval(self.counts, self.alpha)

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The Clopper-Pearson intervals of both probabilities; (0, 1) each without runs."""
        c1, n1, c2, n2 = self.counts.four
        if not n1:
            return (0.0, 1.0), (0.0, 1.0)
        one, other = (clopper_pearson.interval(*c, self.alpha) for c in ((c1, n1), (c2, n2)))
        return one, other

    def counterexample_fields(self) -> dict[str, Any]:
        """Return the fields of a `Counterexample` that follow from the counts, by name."""
        return {
            "counts": self.counts.hits,
            "runs": self.counts.runs,
            "intervals": self.intervals,
            "p_value": self.shown_p_value(),
            "lower": self.lower,
            "eps_clopper_pearson": self.eps_clopper_pearson,
            "delta_lower": self.delta_lower,
        }

    def shown_p_value(self) -> float:
        """Return StatDP's p-value for claims of ε alone, else `EventTest`'s; 1.0 without runs."""
        counts, guarantee = self.counts, self.guarantee
        if not counts.n1:
            return 1.0
        return StatDPTest(guarantee).p_value(counts)


@lru_cache(maxsize=64)
def _planned_costs(
    guarantee: Guarantee, p1: float, p2: float, n1: int, n2: int
) -> tuple[Floats, Floats]:
    """Return `EventTest.costs` for expected probabilities and numbers of runs, from a cache."""
    return EventTest(guarantee).costs(p1, n1, p2, n2)


def _edge_of_region(
    c1: ArrayLike,
    n1: ArrayLike,
    c2: ArrayLike,
    n2: ArrayLike,
    costs: tuple[Floats, Floats],
    alpha: float,
    cells: int,
) -> tuple[Floats, Floats]:
    """Return `cells + 1` points on the edge of the confidence region: p1 and p2, both rising."""
    z, m = -float(ndtri((1 - BETA) * alpha)), -float(ndtri(BETA * alpha / 4))
    length = np.hypot(*costs)
    w1, w2 = costs[0] / length, costs[1] / length
    first = np.maximum((z * w1 - m) / w2, -(m + z * w2) / w1)
    last = np.minimum((z * w1 + m) / w2, (m - z * w2) / w1)
    along = first + (last - first) * np.linspace(0, 1, cells + 1)
    low = _lower_quantile(c1, n1, z * w1 - along * w2)
    return low, _upper_quantile(c2, n2, z * w2 + along * w1)


def _lower_quantile(count: ArrayLike, runs: ArrayLike, z: ArrayLike) -> Floats:
    """Return the p at which a count, or a larger one, has normal score `z`; 0 without hits."""
    c, n = np.asarray(count, np.float64), np.asarray(runs, np.float64)
    p = betaincinv(c, n - c + 1, ndtr(-np.asarray(z, np.float64)))
    return np.where((c > 0) & ~np.isnan(p), p, 0.0)


def _upper_quantile(count: ArrayLike, runs: ArrayLike, z: ArrayLike) -> Floats:
    """Return the p at which a count, or a smaller one, has normal score `z`; 1 if all hit."""
    c, n = np.asarray(count, np.float64), np.asarray(runs, np.float64)
    p = betainccinv(c + 1, n - c, ndtr(-np.asarray(z, np.float64)))
    return np.where((c < n) & ~np.isnan(p), p, 1.0)


def likelier_under_laplace(c: float, loss: float) -> float:
    """Return the largest probability, on one input, of an event of probability `c` on the other.

    The outputs have Laplace noise that loses `loss` nats.
    """
    factor = math.exp(min(loss, MAX_EXCESS))
    if c >= 0.5:
        return 1 - (1 - c) / factor
    return c * factor if c * factor < 0.5 else 1 - 1 / (4 * c * factor)


def unlucky_counts(p1: float, n1: int, p2: float, n2: int) -> Counts:
    """Return counts of an event with these probabilities that show less than 99 % of samples do."""
    errors = (SPREAD * math.sqrt(p * (1 - p) / n) for p, n in ((p1, n1), (p2, n2)))
    low, high = max(p1 - next(errors), 0.0), min(p2 + next(errors), 1.0)
    return Counts(math.floor(low * n1), n1, math.ceil(high * n2), n2, (p1, p2))
