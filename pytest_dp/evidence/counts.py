"""Counts of an event on held-out samples: what they prove, and what they would have shown.

The pair of inputs, the event, and which input is to make it likelier were chosen on other samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pytest_dp.evidence import clopper_pearson, combined, paired, ratio, shown, statdp
from pytest_dp.evidence._search import MAX_EXCESS, smallest, smallest_loss
from pytest_dp.privacy import Guarantee

ATTAINED = 0.95
"""Share of the mechanism's true loss that the attack found by a search is taken to have, where
outputs are counted in pairs with the same random numbers. Such pairs leave the test so little doubt
that what the search misses counts; elsewhere the doubt is larger, and the share is taken to be
1."""
SHOWN_AT = 1e-9
"""The p-value that is shown for pairs is computed with a level; it is sharpest for p-values around
this one. For information only."""


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
    def in_pairs(self) -> tuple[int, int, int]:
        """Pairs with both outputs in the event, only the likelier, only the other."""
        both = self.both or 0
        return both, self.c1 - both, self.c2 - both

    def swapped(self) -> Counts:
        """The same, with the other input as the likelier one."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.equal[::-1], self.common, self.both)


NO_COUNTS = Counts(0, 0, 0, 0, (0, 0), 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """What one set of counts proves at its share of alpha.

    Attributes
    ----------
    kind : str
        A name for what was counted.
    counts : Counts
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the bound, and of the intervals; of each test where two are combined.
    lower : float
        On the parameter of the claim, by this event; minus infinity where nothing was counted.
    p_value : float
        That of the claim.
    """

    kind: str
    counts: Counts
    guarantee: Guarantee
    alpha: float
    lower: float = -math.inf
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
        """Two-sided interval of what was counted shows of the parameter if all is known of it."""
        counts, guarantee = self.counts, self.guarantee
        if guarantee.largest_ratio is None:
            return self._least, self._most
        if counts.both is not None:
            return paired.interval(*counts.in_pairs, self.alpha)
        return ratio.interval(*counts.four, self.alpha)

    @property
    def _least(self) -> float:
        return sharp(self.kind, self.counts, self.guarantee, self.alpha / 2).lower

    @property
    def _most(self) -> float:
        c1, n1, c2, n2 = self.counts.four
        share = self.alpha / 4
        ends = clopper_pearson.upper(c1, n1, share), clopper_pearson.lower(c2, n2, share)
        return float(shown.shows(self.guarantee, *np.array(ends)))

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
        counts, guarantee = self.counts, self.guarantee
        if not counts.common:
            return 1.0
        if counts.both is None and guarantee.largest_ratio is not None:
            return statdp.p_value_both(*counts.equal, counts.common, guarantee.largest_ratio)
        return sharp(self.kind, counts, guarantee, SHOWN_AT).p_value


def sharp(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """By the bound on both probabilities at once, for outputs in pairs or independent ones."""
    if counts.both is not None:
        given = *counts.in_pairs, counts.n1, guarantee, alpha
        bound, p = shown.paired_lower(*given), shown.paired_p_value(*given)
    else:
        independent = *counts.four, guarantee, alpha
        bound, p = shown.lower(*independent), shown.p_value(*independent)
    return Bound(kind, counts, guarantee, alpha, bound, p)


def as_published(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """By two Clopper-Pearson bounds, as in the DP-Sniper paper."""
    bound = clopper_pearson.claim_lower(*counts.four, guarantee, alpha)
    p = clopper_pearson.claim_p_value(*counts.four, guarantee)
    return Bound(kind, counts, guarantee, alpha, bound, p)


def classical(kind: str, counts: Counts, guarantee: Guarantee, alpha: float) -> Bound:
    """By StatDP's test and DP-Sniper's bound, with half of alpha each; as many runs on each input.

    StatDP's test looks in both directions. It knows no δ: for other claims than ε alone, both
    directions are tested with the bound on both probabilities, which is at least as good.
    """
    if guarantee.largest_ratio is None:
        likelier = counts if counts.c1 >= counts.c2 else counts.swapped()
        found = sharp(kind, likelier, guarantee, alpha / 2)
        return replace(found, counts=counts, p_value=min(1.0, 2 * found.p_value))
    three = *counts.equal, counts.common
    bound, p = combined.eps_lower(*three, alpha), combined.p_value(*three, guarantee.largest_ratio)
    return Bound(kind, counts, guarantee, alpha / 2, bound, p)


def runs_to_refute(
    p1: float, p2: float, guarantee: Guarantee, alpha: float, most: int
) -> int | None:
    """About how many runs on each input refute the claim nearly always; None if `most` do not.

    Parameters
    ----------
    p1, p2 : float
        Probabilities of the event.
    guarantee : Guarantee
    alpha : float
        Level of each of the tests that `classical` combines.
    most : int
    """
    if guarantee.largest_ratio is not None:
        eps = guarantee.largest_ratio
        return statdp.runs_for_power(p1, p2, eps, alpha, power=0.999, most=max(most, 1))
    runs = 100
    while runs <= most:
        counts = Counts(0, runs, 0, runs, (0, 0), runs)
        if _expected_apart(p1, p2, counts, guarantee, alpha) > guarantee.claimed:
            return runs
        runs = 3 * runs // 2
    return None


def classical_resolution(counts: Counts, guarantee: Guarantee, alpha: float) -> float:
    """`resolution` of what `classical` proves; `alpha` as in `runs_to_refute`."""
    if guarantee.largest_ratio is None:
        return resolution(counts, guarantee, alpha)
    p1, eps = min(counts.c1 / counts.n1, 0.5), guarantee.largest_ratio
    return statdp.smallest_eps(p1, counts.n1, eps, alpha, power=0.99)


def resolution(counts: Counts, guarantee: Guarantee, alpha: float, c: float | None = None) -> float:
    """The smallest parameter that an event with these counts would have shown, with 95 % power.

    Approximate. With a fixed `c` the rarer side has that probability, and no loss above ``-ln c``
    can be shown; as that may not be where most of a loss shows, a tenth of it is taken to be
    missed.

    Of an attack that has nearly the mechanism's full loss, the likelier side is seldom above one
    half. The test gets 99 %, which leaves a share for the search to fail.
    """
    if c is not None:
        return _smallest_parameter(
            guarantee,
            lambda loss: (min(c * math.exp(loss), 1.0), c),
            lambda loss: _expected_as_published(c, loss, counts, guarantee, alpha),
        )
    p1 = min(counts.c1 / counts.n1, 0.5)
    expected, attained = (
        (_expected_apart, 1.0) if counts.both is None else (_expected_in_pairs, ATTAINED)
    )
    return _smallest_parameter(
        guarantee,
        lambda loss: (p1, p1 * math.exp(-loss)),
        lambda loss: expected(p1, p1 * math.exp(-attained * loss), counts, guarantee, alpha),
    )


def _smallest_parameter(
    guarantee: Guarantee,
    probabilities: Callable[[float], tuple[float, float]],
    expected: Callable[[float], float],
) -> float:
    """What the event shows from which on more than the claim is to be expected of the test."""
    claimed = guarantee.claimed
    if guarantee.largest_ratio is not None:
        return smallest_loss(lambda loss: expected(loss) > claimed, claimed)
    loss = smallest(lambda loss: expected(loss) > claimed, 0.0, 1.0, MAX_EXCESS)
    if math.isinf(loss):
        return math.inf
    return float(shown.shows(guarantee, *np.array(probabilities(loss))))


_SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is off: by chance, less than 1 % of all bounds are
lower than what is then expected."""


def _expected_apart(
    p1: float, p2: float, counts: Counts, guarantee: Guarantee, alpha: float
) -> float:
    low = p1 - _SPREAD * math.sqrt(p1 * (1 - p1) / counts.n1)
    high = p2 + _SPREAD * math.sqrt(p2 * (1 - p2) / counts.n2)
    if low <= 0 or high >= 1:
        return -math.inf
    return float(shown.predicted(low, counts.n1, high, counts.n2, guarantee, alpha))


def _expected_as_published(
    c: float, loss: float, counts: Counts, guarantee: Guarantee, alpha: float
) -> float:
    p1 = min(c * math.exp(0.9 * loss), 1.0)
    low = p1 - _SPREAD * math.sqrt(p1 * (1 - p1) / counts.n1)
    high = c + _SPREAD * math.sqrt(c * (1 - c) / counts.n2)
    hits = max(int(low * counts.n1), 0), min(math.ceil(high * counts.n2), counts.n2)
    return clopper_pearson.claim_lower(hits[0], counts.n1, hits[1], counts.n2, guarantee, alpha)


def _expected_in_pairs(
    p1: float, p2: float, counts: Counts, guarantee: Guarantee, alpha: float
) -> float:
    """For outputs that are in the event together as far as those that were counted."""
    seen1, seen2, common = (c / counts.n1 for c in (counts.c1, counts.c2, counts.both or 0))
    independent = seen1 * seen2
    together = (common - independent) / max(min(seen1, seen2) - independent, 1e-12)
    both = min(max(p1 * p2 + together * (p2 - p1 * p2), 0.0), p2)
    either = p1 + p2 - both
    if p1 <= 0:
        return -math.inf
    q, b = (p1 - both) / p1, (p2 - both) / either  # as in `paired`
    q = max(q - _SPREAD * math.sqrt(q * (1 - q) / (counts.n1 * p1)), 0.0)
    b = min(b + _SPREAD * math.sqrt(b * (1 - b) / (counts.n1 * either)), 1.0)
    p1 = either * (1 - b)
    both = (1 - q) * p1
    p2 = both + either * b
    return float(shown.paired_predicted(p1, p2, both, counts.n1, guarantee, alpha))
