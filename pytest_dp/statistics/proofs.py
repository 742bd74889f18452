"""Proofs by counts on held-out samples: their bounds, p-values and detection limits.

The pair of inputs, the event, and which input is to make it likelier were chosen on other samples.
What would have been shown is asked of the proof itself, with counts as unlucky as they seldom are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_dp.basics.bisection import MAX_EXCESS, smallest
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics import clopper_pearson, statdp_test
from pytest_dp.statistics.event_test import Counts, EventTest

LOSS_ERROR = 1e-3
"""Relative error of a detection limit. Larger: limits are less exact; smaller: they take longer."""

SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is taken to be off: by chance, less than 1 % of
all counts show less. It is the normal quantile of 99 %, shared by two errors."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that one set of counts proves at its share of alpha."""

    counts: Counts
    guarantee: Guarantee
    alpha: float
    """Level of the bound, and of the intervals."""
    lower: float = -math.inf
    """On the parameter of the claim, by this event; minus infinity where nothing was counted."""
    p_value: float = 1.0

    @property
    def eps_clopper_pearson(self) -> float:
        """The lower bound of the DP-Sniper paper on ε, in nats; `-inf` for claims without an ε."""
        counts, guarantee = self.counts, self.guarantee
        if guarantee.eps is None or not counts.n1:
            return -math.inf
        return clopper_pearson.eps_lower(*counts.four, self.alpha, guarantee.delta)

    @property
    def delta_lower(self) -> float | None:
        """Lower bound on δ at the claimed ε; None for claims without an ε."""
        eps = self.guarantee.eps
        if eps is None:
            return None
        if not self.counts.n1:
            return 0.0
        return clopper_pearson.delta_lower(*self.counts.four, eps, self.alpha)

    @property
    def loss(self) -> tuple[float, float]:
        """Two-sided confidence interval of what the event shows of the parameter."""
        return EventTest(self.guarantee).interval(self.counts, self.alpha)

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Clopper-Pearson intervals of both probabilities."""
        c1, n1, c2, n2 = self.counts.four
        if not n1:
            return (0.0, 1.0), (0.0, 1.0)
        one, other = (clopper_pearson.interval(*c, self.alpha) for c in ((c1, n1), (c2, n2)))
        return one, other

    def counterexample_fields(self) -> dict[str, Any]:
        """Return what a counterexample says of the counts: runs, intervals and bounds, by name."""
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
        """Return StatDP's p-value for claims of ε alone, else the sharp one; 1.0 without counts."""
        counts, guarantee = self.counts, self.guarantee
        if not counts.n1:
            return 1.0
        if guarantee.largest_ratio is not None:
            return statdp_test.p_value(*counts.four, guarantee.claimed)
        return EventTest(guarantee).p_value(counts)


@dataclass(frozen=True, slots=True)
class Proof:
    """How a bound on a claim's parameter follows from counts."""

    proved: Callable[[Counts, Guarantee, float], tuple[float, float]]
    """Returns the lower bound at a level, and the p-value of the claim."""
    refutes: Callable[[Counts, Guarantee, float], bool]
    """Returns whether the claim is refuted, which takes less time than its bound."""
    attained: float = 1.0
    """Share of the mechanism's true loss that what is counted is taken to have."""

    def bound(self, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
        """Return the bound and the p-value that counts prove, with the counts."""
        return Bound(counts, guarantee, alpha, *self.proved(counts, guarantee, alpha))

    def runs(
        self, p1: float, p2: float, guarantee: Guarantee, alpha: float, limit: int
    ) -> int | None:
        """Return the runs on each input that nearly always refute a claim; None above `limit`.

        They refute by an event with these probabilities. Their number is exact to 2 %.
        """

        def enough(runs: float) -> bool:
            n = math.ceil(runs)
            return self.refutes(unlucky(p1, n, p2, n), guarantee, alpha)

        runs = smallest(enough, 0.0, 100.0, float(limit), relative=0.02)
        return math.ceil(runs) if runs <= limit else None

    def resolution(
        self, counts: Counts, guarantee: Guarantee, alpha: float, c: float | None = None
    ) -> float:
        """Return the smallest parameter that would have been shown, with 95 % power (approximate).

        By so many runs, and an event that has nearly the mechanism's full loss; its likelier side
        is seldom above one half. With a fixed `c` the rarer side has that probability, and the
        likelier one that of Laplace noise, which is less than the full loss where it is above one
        half. The test gets 99 %, which leaves a share for the search to fail.
        """
        half = min(counts.c1 / counts.n1, 0.5)

        def chances(loss: float) -> tuple[float, float]:
            full = half, half * math.exp(-loss)
            return full if c is None else (likelier_under_laplace(c, loss), c)

        def is_caught(loss: float) -> bool:
            p1, p2 = chances(self.attained * loss)
            return self.refutes(unlucky(p1, counts.n1, p2, counts.n2), guarantee, alpha)

        limit = MAX_EXCESS + (guarantee.largest_ratio or 0.0)
        loss = smallest(is_caught, 0.0, 1.0, limit, relative=LOSS_ERROR)
        if math.isinf(loss):
            return loss
        likelier = half if c is None else min(c * math.exp(loss), 1.0)
        return float(EventTest(guarantee).shows(likelier, likelier * math.exp(-loss)))


def likelier_under_laplace(c: float, loss: float) -> float:
    """Return how likely an event of Laplace noise is on one input, with probability `c` on another.

    The event is the one that tells the two best apart, where noise loses `loss`.
    """
    factor = math.exp(min(loss, MAX_EXCESS))
    if c >= 0.5:
        return 1 - (1 - c) / factor
    return c * factor if c * factor < 0.5 else 1 - 1 / (4 * c * factor)


def unlucky(p1: float, n1: int, p2: float, n2: int) -> Counts:
    """Return counts of an event with these probabilities that show less than nearly all others."""
    low, high = _off(p1, n1, -1), _off(p2, n2, 1)
    return Counts(math.floor(low * n1), n1, math.ceil(high * n2), n2, (p1, p2))


def _off(p: float, runs: float, sign: int) -> float:
    return min(max(p + sign * SPREAD * math.sqrt(p * (1 - p) / runs), 0.0), 1.0)


def _prove_sharply(counts: Counts, guarantee: Guarantee, alpha: float) -> tuple[float, float]:
    test = EventTest(guarantee)
    return test.lower(counts, alpha), test.p_value(counts)


def _refutes_sharply(counts: Counts, guarantee: Guarantee, alpha: float) -> bool:
    return EventTest(guarantee).refutes(counts, alpha)


def _prove_as_published(counts: Counts, guarantee: Guarantee, alpha: float) -> tuple[float, float]:
    bound = clopper_pearson.claim_lower(*counts.four, guarantee, alpha)
    return bound, clopper_pearson.claim_p_value(*counts.four, guarantee)


def _refutes_as_published(counts: Counts, guarantee: Guarantee, alpha: float) -> bool:
    return clopper_pearson.claim_lower(*counts.four, guarantee, alpha) > guarantee.claimed


def _prove_classically(counts: Counts, guarantee: Guarantee, alpha: float) -> tuple[float, float]:
    if guarantee.largest_ratio is None:
        return _prove_sharply(counts, guarantee, alpha)
    four = counts.four
    return statdp_test.largest_rejected_eps(*four, alpha), statdp_test.p_value(
        *four, guarantee.claimed
    )


def _refutes_classically(counts: Counts, guarantee: Guarantee, alpha: float) -> bool:
    if guarantee.largest_ratio is None:
        return _refutes_sharply(counts, guarantee, alpha)
    return statdp_test.log_p_value(*counts.four, guarantee.claimed) <= math.log(alpha)


SHARP = Proof(_prove_sharply, _refutes_sharply)
"""The bound on both probabilities at once."""
PUBLISHED = Proof(_prove_as_published, _refutes_as_published, attained=0.9)
"""Two Clopper-Pearson bounds, as in the DP-Sniper paper. An event of a fixed probability may not be
where most of a loss shows: a tenth of it is taken to be missed."""
CLASSICAL = Proof(_prove_classically, _refutes_classically)
"""StatDP's test; it knows no δ, and is the sharp one for other claims than ε alone."""
