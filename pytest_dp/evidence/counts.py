"""Counts of an event on held-out samples: what they prove, and what they would have shown.

The pair of inputs, the event, and which input is to make it likelier were chosen on other samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_dp.evidence import clopper_pearson
from pytest_dp.evidence.event_test import (
    SPREAD,
    Apart,
    EventTest,
    InPairs,
    event_test,
    unlucky,
)
from pytest_dp.limits import SHOWN_AT
from pytest_dp.privacy import Guarantee

ATTAINED = 0.95
"""Share of the mechanism's true loss that the attack found by a search is taken to have, where
outputs are counted in pairs with the same random numbers. Such pairs leave the test so little doubt
that what the search misses counts; elsewhere the doubt is larger, and the share is taken to be 1.
Larger: the reported resolution is missed more often; smaller: it says less than the audit can do.
By hand."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Held-out outputs in an event: on the likelier input and on the other.

    `equal` are those among the first `common` runs of either. `both` counts pairs with both outputs
    in the event; None if outputs did not come in pairs.
    """

    c1: int
    n1: int
    c2: int
    n2: int
    equal: tuple[int, int]
    common: int
    both: int | None = None

    @property
    def four(self) -> tuple[int, int, int, int]:
        """Outputs in the event, and in all, on the likelier input and on the other."""
        return self.c1, self.n1, self.c2, self.n2

    @property
    def seen(self) -> Apart | InPairs:
        """What tests go by."""
        if self.both is None:
            return Apart(*self.four)
        return InPairs(self.both, self.c1 - self.both, self.c2 - self.both, self.n1)

    @property
    def apart(self) -> tuple[float, float, float, float]:
        """As a row of `resolution.told_apart`; of independent outputs what is to be expected."""
        runs = min(self.n1, self.n2)
        p1, p2 = self.c1 / self.n1, self.c2 / self.n2
        together = p1 * p2 if self.both is None else self.both / runs
        both, only1, only2 = together * runs, (p1 - together) * runs, (p2 - together) * runs
        return both, only1, only2, runs - both - only1 - only2

    def swapped(self) -> Counts:
        """The same, with the other input as the likelier one."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.equal[::-1], self.common, self.both)


NO_COUNTS = Counts(0, 0, 0, 0, (0, 0), 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """What one set of counts proves at its share of alpha."""

    kind: str
    """A name for what was counted."""
    counts: Counts
    guarantee: Guarantee
    alpha: float
    """Level of the bound, and of the intervals; of each test where two are combined."""
    lower: float = -math.inf
    """On the parameter of the claim, by this event; minus infinity where nothing was counted."""
    p_value: float = 1.0

    @property
    def eps_clopper_pearson(self) -> float:
        """The lower bound of the DP-Sniper paper on ε, in nats; `-inf` for claims without an ε."""
        counts, guarantee = self.counts, self.guarantee
        if guarantee.eps is None or not counts.common:
            return -math.inf
        return clopper_pearson.eps_lower(*counts.four, self.alpha, guarantee.delta)

    @property
    def delta_lower(self) -> float | None:
        """Lower bound on δ at the claimed ε; None for claims without an ε."""
        eps = self.guarantee.eps
        if eps is None:
            return None
        if not self.counts.common:
            return 0.0
        return clopper_pearson.delta_lower(*self.counts.four, eps, self.alpha)

    @property
    def loss(self) -> tuple[float, float]:
        """Two-sided confidence interval of what the event shows of the parameter."""
        return event_test(self.guarantee).interval(self.counts.seen, self.alpha)

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Clopper-Pearson intervals of both probabilities."""
        c1, n1, c2, n2 = self.counts.four
        if not self.counts.common:
            return (0.0, 1.0), (0.0, 1.0)
        interval1, interval2 = (
            clopper_pearson.interval(*c, self.alpha) for c in ((c1, n1), (c2, n2))
        )
        return interval1, interval2

    def shown_p_value(self) -> float:
        """StatDP's p-value of the claim; for information.

        Of pairs, and of claims of more than ε, one that is sharpest around `SHOWN_AT`.
        """
        counts, test = self.counts, event_test(self.guarantee)
        if not counts.common:
            return 1.0
        seen = counts.seen
        if isinstance(seen, InPairs):
            return test.p_value(seen, SHOWN_AT)
        return test.informal_p_value(seen, counts.equal, counts.common)


def sharp(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """What the bound on both probabilities at once proves, for paired or independent outputs."""
    test, seen = event_test(guarantee), counts.seen
    bound, p = test.lower(seen, alpha), test.p_value(seen, alpha)
    return Bound(kind, counts, guarantee, alpha, bound, p)


def as_published(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """What two Clopper-Pearson bounds prove, as in the DP-Sniper paper."""
    bound = clopper_pearson.claim_lower(*counts.four, guarantee, alpha)
    p = clopper_pearson.claim_p_value(*counts.four, guarantee)
    return Bound(kind, counts, guarantee, alpha, bound, p)


def classical(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """What StatDP's test and DP-Sniper's bound prove, with half of alpha each; for equal runs.

    For other claims than ε alone by what `EventTest.classical` has in their place.
    """
    bound, p = event_test(guarantee).classical(*counts.equal, counts.common, alpha)
    return Bound(kind, counts, guarantee, alpha / 2, bound, p)


def resolution(counts: Counts, guarantee: Guarantee, alpha: float, c: float | None = None) -> float:
    """The smallest parameter that an event with these counts would have shown, with 95 % power.

    Approximate. With a fixed `c` the rarer side has that probability, and no loss above ``-ln c``
    can be shown; as that may not be where most of a loss shows, a tenth of it is taken to be
    missed.

    Of an attack that has nearly the mechanism's full loss, the likelier side is seldom above one
    half. The test gets 99 %, which leaves a share for the search to fail.
    """
    test, claimed = event_test(guarantee), guarantee.claimed
    if c is not None:
        return test.smallest(
            lambda loss: (min(c * math.exp(loss), 1.0), c),
            lambda loss: _expected_as_published(c, loss, counts, guarantee, alpha) > claimed,
        )
    p1, n1, n2 = min(counts.c1 / counts.n1, 0.5), counts.n1, counts.n2

    def expected(loss: float) -> float:
        if counts.both is None:
            return test.expected(p1, n1, p1 * math.exp(-loss), n2, alpha)
        return _expected_in_pairs(p1, p1 * math.exp(-ATTAINED * loss), counts, test, alpha)

    return test.smallest(
        lambda loss: (p1, p1 * math.exp(-loss)), lambda loss: expected(loss) > claimed
    )


def _expected_as_published(
    c: float, loss: float, counts: Counts, guarantee: Guarantee, alpha: float
) -> float:
    n1, n2 = counts.n1, counts.n2
    low, high = unlucky(min(c * math.exp(0.9 * loss), 1.0), n1, c, n2)
    hits = max(int(low * n1), 0), min(math.ceil(high * n2), n2)
    return clopper_pearson.claim_lower(hits[0], n1, hits[1], n2, guarantee, alpha)


def _expected_in_pairs(
    p1: float, p2: float, counts: Counts, test: EventTest, alpha: float
) -> float:
    """For outputs that are in the event together as far as those that were counted."""
    seen1, seen2, common = (c / counts.n1 for c in (counts.c1, counts.c2, counts.both or 0))
    independent = seen1 * seen2
    together = (common - independent) / max(min(seen1, seen2) - independent, 1e-12)
    both = min(max(p1 * p2 + together * (p2 - p1 * p2), 0.0), p2)
    either = p1 + p2 - both
    if p1 <= 0:
        return -math.inf
    q, b = (p1 - both) / p1, (p2 - both) / either  # as in `PairsGrid`
    q = max(q - SPREAD * math.sqrt(q * (1 - q) / (counts.n1 * p1)), 0.0)
    b = min(b + SPREAD * math.sqrt(b * (1 - b) / (counts.n1 * either)), 1.0)
    p1 = either * (1 - b)
    both = (1 - q) * p1
    p2 = both + either * b
    return float(test.paired_predicted(p1, p2, both, counts.n1, alpha))
