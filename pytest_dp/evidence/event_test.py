"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

What two probabilities p1 and p2 show of a claim's parameter rises with p1 and falls with p2, and
the confidence regions of `pytest_dp.evidence.region` hold for both at once. So the least that any
point of a region shows is a bound, and the largest p-value of the points that the claim allows is a
p-value: docs/proofs/bounds-on-any-claim.md. Weights follow the boundary of what the claim allows.

A claim of ε alone is the simplest case: it bounds the ratio of the probabilities, of which bounds
may be negative, and which does not depend on how often any output of a pair is in the event. It has
the tests of the papers beside these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtr

from pytest_dp.arrays import Bools, Floats
from pytest_dp.bisection import MAX_EXCESS, smallest
from pytest_dp.evidence import boundary, clopper_pearson, region, statdp
from pytest_dp.evidence.region import BETA, LOG_MARGIN, MIN_LEVEL
from pytest_dp.evidence.validation import check_count, check_level
from pytest_dp.limits import SHOWN_AT
from pytest_dp.privacy import Guarantee

ANY_SHARE = 0.02
"""Share of alpha for a lower bound on how often any output of a pair is in the event; the rest is
for what tells the two apart. Larger: less for that; smaller: the bound on the sum is too low. By
hand; it changes little of what is shown."""
MANY = 1e6
"""Runs at which probabilities are compared with 0 and 1 where errors are compared: any large number
would do."""
SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is taken to be off: by chance, less than 1 % of
all bounds are lower than what is then expected. It is the normal quantile of 99 %, shared by two
errors."""


class Apart(NamedTuple):
    """Independent outputs in an event, and in all, on the likelier input and on the other."""

    c1: int
    n1: int
    c2: int
    n2: int

    @property
    def swapped(self) -> Apart:
        return Apart(self.c2, self.n2, self.c1, self.n1)


class InPairs(NamedTuple):
    """Pairs of outputs with the same random numbers; pairs are independent of each other."""

    both: int
    only1: int
    """Pairs with only the output on the likelier input in the event."""
    only2: int
    pairs: int

    @property
    def apart(self) -> Apart:
        """The same counts without the pairs."""
        return Apart(self.both + self.only1, self.pairs, self.both + self.only2, self.pairs)

    @property
    def swapped(self) -> InPairs:
        return self._replace(only1=self.only2, only2=self.only1)


def event_test(guarantee: Guarantee) -> EventTest:
    """How counts of an event are held against a claim; only this asks which kind of claim it is."""
    return (EventTest if guarantee.largest_ratio is None else RatioTest)(guarantee)


def unlucky(p1: float, n1: int, p2: float, n2: int) -> tuple[float, float]:
    """Two frequencies that show less than independent samples do, nearly always."""
    return (
        p1 - SPREAD * math.sqrt(p1 * (1 - p1) / n1),
        p2 + SPREAD * math.sqrt(p2 * (1 - p2) / n2),
    )


@dataclass(frozen=True)
class EventTest:
    """What counts of one event prove of a claim."""

    guarantee: Guarantee
    """The claim, with what it fixes, such as δ."""
    any_share: ClassVar[float] = ANY_SHARE
    follows: ClassVar[bool] = False
    """Whether the weights follow what is bounded wherever it is looked at."""

    def lower(self, seen: Apart | InPairs, alpha: float) -> float:
        """Lower confidence bound on the parameter; `-inf` if the event was not seen.

        It exceeds the claim if its `p_value` is at most `alpha`; the claim matters elsewhere too,
        as the bound is made to be sharp there. It may be negative, which says nothing but how far
        it is from showing anything.
        """
        grid = self._grid(seen, alpha)
        if grid is None:
            return -math.inf
        return float(self._proved(*grid.corner(*grid.frontier())).min(initial=math.inf))

    def p_value(self, seen: Apart | InPairs, alpha: float) -> float:
        """A valid p-value of the claim: the largest over all probabilities that it allows.

        It is sharpest around `alpha`, which must be fixed before the counts are seen, and 1.0
        instead of anything above 0.5.
        """
        grid = self._grid(seen, alpha)
        score = 0.0 if grid is None else grid.smallest_score(self._allows)
        if not score > 0:
            return 1.0
        share = self.any_share if isinstance(seen, InPairs) else 0.0
        return float((BETA * (1 - share) + share) * alpha + ndtr(-score))

    def interval(self, seen: Apart | InPairs, alpha: float) -> tuple[float, float]:
        """Two-sided confidence interval of what the event shows of the parameter."""
        share = alpha / 4
        c1, n1, c2, n2 = seen.apart if isinstance(seen, InPairs) else seen
        ends = clopper_pearson.upper(c1, n1, share), clopper_pearson.lower(c2, n2, share)
        return self.lower(seen, alpha / 2), float(self.shows(*ends))

    def _grid(self, seen: Apart | InPairs, alpha: float) -> region.Grid | None:
        """The region of both probabilities; None if nothing can be proved."""
        check_level(alpha)
        if isinstance(seen, Apart):
            check_count("c1", seen.c1, seen.n1)
            check_count("c2", seen.c2, seen.n2)
            if seen.c1 == 0 or alpha < MIN_LEVEL:
                return None
            return region.ApartGrid(*seen, self.variances, alpha)
        both, only1, only2, pairs = seen
        for name, count in seen._asdict().items():
            check_count(name, count, pairs)
        check_count("both + only1 + only2", both + only1 + only2, pairs)
        if both + only1 == 0 or alpha < MIN_LEVEL:
            return None
        least = 1.0
        if self.any_share:
            least = clopper_pearson.lower(both + only1 + only2, pairs, self.any_share * alpha)
        return region.PairsGrid(both, only1, only2, least, (1 - self.any_share) * alpha)

    def predicted(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float
    ) -> Floats:
        """About the median of `lower` over samples: for choosing between events, proves nothing.

        Of independent outputs; probabilities, or estimates of them, and runs are broadcast. The
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
        found = region.predicted(estimates, runs, alpha, self.shows, odds, not self.follows)
        return np.where(chance1 > 0, found, -np.inf)

    def paired_predicted(
        self, p1: ArrayLike, p2: ArrayLike, both: ArrayLike, pairs: ArrayLike, alpha: float
    ) -> Floats:
        """The same of outputs in pairs; `both` is the probability of both outputs in the event."""
        check_level(alpha)
        chance1, chance2, common, runs = _broadcast(p1, p2, both, pairs)
        common = np.minimum(common, np.minimum(chance1, chance2))
        any_of_both = np.maximum(chance1 + chance2 - common, 1e-300)
        q, b = (chance1 - common) / np.maximum(chance1, 1e-300), (chance2 - common) / any_of_both
        least: Floats = np.ones(())
        if self.any_share:
            hits = runs * np.minimum(any_of_both, 1.0)
            shape = np.maximum(hits, 1e-300), runs - hits + 1
            least = np.asarray(betaincinv(*shape, self.any_share * alpha), np.float64)

        def shown(q: Floats, b: Floats) -> Floats:
            return self.shows(*region.of_pairs(least, q, b))

        found = region.predicted(
            (q, b),
            (runs * chance1, runs * any_of_both),
            (1 - self.any_share) * alpha,
            shown,
            region.odds_of_pairs,
            not self.follows,
        )
        return np.where(chance1 > 0, found, -np.inf)

    def expected(self, p1: float, n1: int, p2: float, n2: int, alpha: float) -> float:
        """A bound that independent samples exceed nearly always."""
        low, high = unlucky(p1, n1, p2, n2)
        if low <= 0 or high >= 1:
            return -math.inf
        return float(self.predicted(low, n1, high, n2, alpha))

    def classical(self, c1: int, c2: int, runs: int, alpha: float) -> tuple[float, float]:
        """The bound and the p-value by which StatDP decides, at half of alpha each.

        StatDP's test looks in both directions. It knows no δ: for other claims than ε alone, both
        directions are tested with the bound on both probabilities, which is at least as good.
        """
        counts = Apart(max(c1, c2), runs, min(c1, c2), runs), alpha / 2
        return self.lower(*counts), min(1.0, 2 * self.p_value(*counts))

    def classical_refutes(self, p1: float, p2: float, runs: int, alpha: float) -> bool:
        """Whether `classical` nearly always refutes the claim, by an event with these chances.

        `alpha` is the level of each of the tests that `classical` combines.
        """
        return self.expected(p1, runs, p2, runs, alpha) > self.guarantee.claimed

    def classical_runs(self, p1: float, p2: float, alpha: float, limit: int) -> int | None:
        """Runs on each input by which `classical_refutes`, to 2 %; None if more than the limit."""
        runs = smallest(
            lambda runs: self.classical_refutes(p1, p2, math.ceil(runs), alpha),
            0.0,
            100.0,
            float(limit),
            relative=0.02,
        )
        return math.ceil(runs) if runs <= limit else None

    def classical_resolution(self, p1: float, runs: int, alpha: float) -> float:
        """The smallest parameter that `classical` would have caught; `alpha` that of each test.

        By an event that has the probability p1 on the likelier input.
        """
        return self.smallest(
            lambda loss: (p1, p1 * math.exp(-loss)),
            lambda loss: self.classical_refutes(p1, p1 * math.exp(-loss), runs, alpha),
        )

    def smallest(
        self,
        probabilities: Callable[[float], tuple[float, float]],
        refuted: Callable[[float], bool],
    ) -> float:
        """What an event with such probabilities shows at the smallest loss that is refuted."""
        limit = MAX_EXCESS + (self.guarantee.largest_ratio or 0.0)
        loss = smallest(refuted, 0.0, 1.0, limit)
        return math.inf if math.isinf(loss) else float(self.shows(*probabilities(loss)))

    def informal_p_value(self, seen: Apart, equal: tuple[int, int], common: int) -> float:  # noqa: ARG002
        """A p-value to show beside a bound; StatDP's, of as many runs on both, if there is one."""
        return self.p_value(seen, SHOWN_AT)

    def errors(self, p1: Floats, p2: Floats) -> tuple[Floats, Floats]:
        """What either frequency adds, by one run, to the standard error of what an event shows."""
        v1, v2 = self.variances(np.maximum(p1, 1e-12), MANY, np.maximum(p2, 1e-12), MANY)
        return np.sqrt(MANY * v1) + 1e-12, np.sqrt(MANY * v2) + 1e-12

    def variances(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        """How much frequencies, of so many runs, add to the error of what an event shows."""
        return boundary.boundary(self.guarantee).variances(p1, n1, p2, n2)

    def shows(self, p1: ArrayLike, p2: ArrayLike) -> Floats:
        """What probabilities show of the parameter, rounded down.

        Where that is nothing, the log ratio of ``p1 - delta`` and p2: negative, and no more than
        the distance from showing anything.
        """
        chance1, chance2 = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
        ratios = _log_ratio(np.maximum(chance1 - self.guarantee.delta, 0.0), chance2)
        proved = self.guarantee.shown_by(np.maximum(chance1, chance2), chance2)
        return np.where(proved > 0, proved, np.fmin(ratios, 0.0))

    def _proved(self, p1: Floats, p2: Floats) -> Floats:
        """What the corners of cells prove: rounded down."""
        return self.shows(p1, p2)

    def _allows(self, p1: Floats, p2: Floats) -> Bools:
        """Whether the claim allows such corners of cells."""
        allowed: Bools = p1 <= self.guarantee.largest_probability(p2)
        return allowed


class RatioTest(EventTest):
    """For claims of ε alone: the log ratio of both probabilities, and the tests of the papers."""

    any_share = 0.0
    follows = True

    @property
    def eps(self) -> float:
        return self.guarantee.claimed

    def interval(self, seen: Apart | InPairs, alpha: float) -> tuple[float, float]:
        return self.lower(seen, alpha / 2), -self.lower(seen.swapped, alpha / 2)

    def classical(self, c1: int, c2: int, runs: int, alpha: float) -> tuple[float, float]:
        """By StatDP's test and DP-Sniper's bound, each at half of alpha (Bonferroni).

        They use the same counts in different ways; neither is always the stronger. Which input is
        called first must not depend on the counts, as the bound looks in one direction only.
        """
        counts = Apart(c1, runs, c2, runs)
        lower = max(
            statdp.eps_lower(c1, c2, runs, alpha / 2),
            clopper_pearson.eps_lower(*counts, alpha / 2),
        )
        published = clopper_pearson.claim_p_value(*counts, self.guarantee)
        return lower, min(1.0, 2 * statdp.p_value_both(c1, c2, runs, self.eps), 2 * published)

    def classical_refutes(self, p1: float, p2: float, runs: int, alpha: float) -> bool:
        low, high = unlucky(p1, runs, p2, runs)
        c1, c2 = max(math.floor(low * runs), 0), min(math.ceil(high * runs), runs)
        return c1 > c2 and statdp.log_p_value_both(c1, c2, runs, self.eps) <= math.log(alpha)

    def informal_p_value(self, seen: Apart, equal: tuple[int, int], common: int) -> float:  # noqa: ARG002
        return statdp.p_value_both(*equal, common, self.eps)

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
