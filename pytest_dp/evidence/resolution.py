"""What bets would have caught: a mechanism like the one that was seen, with its noise scaled down.

A record says how often events held on D and on D'. With noise ``t`` times smaller, the two inputs
look ``t`` times as far apart. For noise that is added, and events "more than so much", that is
known exactly: if those that hold with probability a on D' hold with probability ``G(a)`` on D, then
G applied twice is what inputs at twice the distance show, and so on. What lies between whole
numbers is interpolated on the scale of log odds, on which G is close to a shift.

All of this is approximate, and for information only: it decides when to stop looking for a
violation, and never that there is one. Where nothing tells two inputs apart beyond chance, it is
not known at all: it rests on events at which a leak would show.

Source: Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022, section 2.5 (group privacy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaincinv, ndtri

from pytest_dp.arrays import Bools, Floats
from pytest_dp.bisection import smallest, smallest_loss
from pytest_dp.evidence.betting import Record
from pytest_dp.evidence.event_bets import contingency, payoffs
from pytest_dp.evidence.regression import expit, logit
from pytest_dp.limits import CLEAR_ERRORS, RARELY, SEVERAL, SHOWN_ALPHA
from pytest_dp.privacy import Guarantee

LEARNING_COST = 6.0
"""Log wealth that bets lose, about, while they learn what to bet on. Larger: the reported
resolution says less than the audit can do, and audits that pass take longer; smaller: it is missed
more often. By hand."""
DELTAS = 10
"""How many times a claim's delta a leak may have that a strong pass would have seen. Larger: passes
say less of delta; smaller: hardly any is strong. By hand."""
OTHER_PAIRS_SHARE = 0.35
"""Samples that every other pair of inputs gets, as a share of those that the best pair gets. Larger
or smaller: what many pairs cost is over- or underestimated. By hand."""
CURVE_CAUTION = 1.0
"""Standard errors by which two inputs are taken to be less far apart than they look. Larger: the
reported resolution says less; smaller: it relies on chance. By hand."""
SEEN = 0.5
"""Share of a difference that events may be expected to show, as they are seldom the best ones.
Larger: audits of few samples are called blind more often; smaller: they get a grade though nothing
was told apart. By hand."""
LITTLE = 0.1
"""Share of what a claim allows that is looked for before nothing is said to tell inputs apart.
Smaller: such audits take longer, by the square; larger: mechanisms with much more noise than they
need are called blind more often. By hand."""
STAKES = np.geomspace(1e-3, 0.98, 40)
"""Shares of the largest stake, one of which is near the best. More cost time only."""
MAX_SCALE = 1e4
"""How many times too small noise is looked for; beyond, nothing would have been caught. By hand."""
CERTAIN = 40.0
"""Log odds from which a probability is 1.0 in floating point."""
_GRID = logit(np.concatenate([np.geomspace(1e-6, 0.05, 40), np.linspace(0.06, 0.5, 45)]))
"""Log odds of probabilities up to one half: dense where events are rare. By hand."""
GRID: Floats = np.concatenate([_GRID, -_GRID[-2::-1]])
"""Log odds at which curves are known."""


@dataclass(frozen=True, slots=True)
class Curve:
    """How events look on two inputs: log odds on D' and on D, and how far both hold together."""

    rarer: Floats
    """Log odds on D', increasing."""
    shift: Floats
    """By how much those on D are larger: at least 0."""
    shared: Floats
    """0 where outputs on both inputs were in the event independently, 1 where the rarer side never
    was alone, -1 if they excluded each other as far as can be."""
    continuous: bool
    """Whether there are events between those that were seen."""
    _applied: list[Floats] = field(
        default_factory=lambda: [GRID], init=False, repr=False, compare=False
    )

    def scaled(self, times: float) -> tuple[Floats, Floats, Floats]:
        """Probabilities on D and on D', with noise so many times smaller, and `shared`."""
        if not self.continuous:
            middle = self.rarer + self.shift / 2
            far = times * self.shift / 2
            return expit(middle + far), expit(middle - far), self.shared
        here = self._after(int(times))
        here = here + (times - int(times)) * np.interp(here, self.rarer, self.shift)
        return expit(here), expit(GRID), np.interp(GRID, self.rarer, self.shared)

    def _after(self, steps: int) -> Floats:
        """What GRID becomes if the curve is applied so many times; kept, as a search asks often."""
        while len(self._applied) <= steps:
            here = self._applied[-1]
            further = here + np.interp(here, self.rarer, self.shift)
            if (further == here)[here < CERTAIN].all():
                return here
            self._applied.append(further)
        return self._applied[steps]

    def loss(self, times: float) -> float:
        """The largest loss of events that are not too rare to be seen, with so much less noise."""
        p, q, _ = self.scaled(times)
        losses = [
            np.log(likelier / rarer)[(rarer >= RARELY) & (likelier > 0)].max(initial=0.0)
            for likelier, rarer in ((p, q), (1 - q, 1 - p))
        ]
        return float(max(losses))


def curve(joint: Floats) -> Curve | None:
    """The curve of a record seen through one binning; None if it has only one bin.

    Bins are in increasing order of the odds for D. Differences between the inputs that chance
    explains are taken for none. Of the others, those that are uncertain are drawn towards what the
    clearest event shows of all of them.
    """
    b = len(joint)
    if b < 2:
        return None
    both, only1, only2, neither = contingency(joint)[: b - 1].T
    runs = both + only1 + only2 + neither
    c1, c2 = both + only1 + 0.5, both + only2 + 0.5
    p, q = c1 / (runs + 1), c2 / (runs + 1)
    inner = (p > 0) & (p < 1) & (q > 0) & (q < 1)
    apart = np.sqrt(only1 + only2 + 1) / runs
    error = apart / np.sqrt(p * (1 - p) * q * (1 - q))
    seen = logit(p) - logit(q)
    careful = np.maximum(seen - CURVE_CAUTION * error, 0.0)
    k = int(np.argmax(seen / error))
    significant = bool((np.abs(seen) > CLEAR_ERRORS * error).any() and careful[k] > 0)
    implied = _implied(q, float(careful[k]), float(q[k]))
    trust = implied**2 / (implied**2 + error**2)
    shift = (implied + trust * (careful - implied)) * significant
    extra = both / runs - p * q
    room = _largest_dependence(p, q, extra > 0)
    shared = np.clip(np.divide(extra, room, out=np.zeros_like(extra), where=room > 1e-12), -1, 1)
    order = np.argsort(logit(q)[inner], kind="stable")
    rarer = np.maximum.accumulate(logit(q)[inner][order])
    return Curve(rarer, shift[inner][order], shared[inner][order], b >= SEVERAL)


def _largest_dependence(p: Floats | float, q: Floats | float, together: Bools | bool) -> Floats:
    """How far the probability of both events can be from that of independent ones (Fréchet).

    Above it where they hold `together`, else below it.
    """
    lower, upper = np.maximum(0.0, np.add(p, q) - 1), np.minimum(p, q)
    independent = np.multiply(p, q)
    return np.where(together, upper - independent, independent - lower)


def _implied(q: Floats, shift: float, where: float) -> Floats:
    """By how much log odds differ at least, if by `shift` where the probability on D' is `where`.

    One event implies others: random parts of it, and of what it leaves out.
    """
    p = expit(logit(where) + shift)
    rarer = np.where(q <= where, q * p / where, 1 - (1 - q) * (1 - p) / (1 - where))
    return np.maximum(logit(rarer) - logit(q), 0.0)


@dataclass(frozen=True, slots=True)
class PlannedBets:
    """So many bets against a claim, and what they would have caught."""

    guarantee: Guarantee
    runs: float
    """Pairs of outputs that are bet on."""
    alpha: float
    """A claim is refuted at ``1 / alpha``."""

    def catch(self, p: Floats, q: Floats, shared: Floats) -> bool:
        """Whether the best bet on events with these probabilities wins, with 95 % power."""
        return growth(p, q, shared, self.guarantee) * self.runs >= wealth_for(self.alpha)


def smallest_scale(curves: list[Curve], bets: PlannedBets) -> float:
    """By how much noise has to be scaled down to be caught, with 95 % power (approximate).

    At least 1; infinite if no scale would be caught.
    """
    informative = [curve for curve in curves if curve.shift.size and curve.shift.max() > 0]
    if not informative:
        return math.inf

    def caught(times: float) -> bool:
        return any(bets.catch(*curve.scaled(times)) for curve in informative)

    return 1.0 if caught(1.0) else smallest(caught, 1.0, 2.0, MAX_SCALE)


def smallest_event(p1: float, bets: PlannedBets, shared: float = 0.0) -> float:
    """What the weakest event shows that bets would have found, with 95 % power (approximate).

    In the claim's parameter; infinite if nothing would have been found. p1 is the probability of
    the event on the input that makes it likelier, and `shared` is as in `Curve`.
    """

    def caught(loss: float) -> bool:
        return bets.catch(np.array([p1]), np.array([p1 * math.exp(-loss)]), np.array([shared]))

    loss = smallest_loss(caught, bets.guarantee.largest_ratio or 0.0)
    return bets.guarantee.shown_by(p1, p1 * math.exp(-loss)) if math.isfinite(loss) else loss


def rarest_leak(bets: PlannedBets) -> float:
    """The smallest probability of an event that never comes on the other input, and is seen.

    With 95 % power: by the best stake, so many hits win ``1 / alpha`` and what is lost while bets
    learn; so often it comes but once in 20 audits. 1.0 if no such event would be seen.
    """
    runs, seen = bets.runs, 1.0
    needed = LEARNING_COST - math.log(bets.alpha)
    for eps, delta in bets.guarantee.hockey_sticks:
        stakes = STAKES / (math.exp(eps) + delta)
        lost = -np.log1p(-stakes * delta)
        hits = np.ceil((needed + runs * lost) / (np.log1p(stakes * (1 - delta)) + lost))
        fewest = float(hits.min())
        if 0 < fewest <= runs:
            seen = min(seen, float(betaincinv(fewest, runs - fewest + 1, 1 - SHOWN_ALPHA)))
    return seen


def clearest_event(record: Record) -> tuple[float, float]:
    """The event of a record that is told apart best.

    Its probability on the input that makes it likelier, at most one half, which it also is if
    chance explains the event; and how far it held on both together, as in `Curve.shared`.
    """
    counts = np.concatenate([contingency(joint) for joint in record.joint])
    if not len(counts):
        return 0.5, 0.0
    both, only1, only2, neither = counts.T
    runs = both + only1 + only2 + neither
    clear = np.abs(only1 - only2) / np.sqrt(only1 + only2 + 1)
    k = int(np.argmax(clear))
    p, q, together = (float(c[k] / runs[k]) for c in (both + only1, both + only2, both))
    if min(p, q) > 0.5:  # what it leaves out
        p, q, together = 1 - p, 1 - q, 1 - p - q + together
    p, q = max(p, q), min(p, q)
    extra = together - p * q
    room = float(_largest_dependence(p, q, extra > 0))
    common = float(np.clip(extra / room, -1, 1)) if room > 0 else 0.0
    return min(p, 0.5) if clear[k] > CLEAR_ERRORS else 0.5, common


def shown_by_events(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that an event may show in fact, two standard errors allowed."""
    counts = np.concatenate([contingency(joint) for joint in record.joint])
    if not len(counts):
        return 0.0
    both, only1, only2, neither = counts.T
    c1, c2 = both + only1 + 0.5, both + only2 + 0.5
    runs = both + only1 + only2 + neither + 1
    # Pairs of outputs that are in the event together say nothing about its loss.
    loss, error = np.log(c1 / c2), 2 * np.sqrt((only1 + only2 + 1) / (c1 * c2))
    # The event that shows most for sure, three standard errors less than it seems; of a delta,
    # by how much its probability is above that.
    eps, delta = np.array(guarantee.hockey_sticks).T[..., None]
    above = 1 - delta * runs / c1 * np.exp(0.75 * error)
    sure = np.log(np.maximum(above, np.finfo(float).tiny)) + loss - 1.5 * error - eps
    k = int(np.argmax(sure.max(axis=0)))
    p, q, room = float(c1[k] / runs[k]), float(c2[k] / runs[k]), math.exp(error[k] / 2)
    # The rarer of the event and its complement may be off by this factor.
    return guarantee.shown_by(min(p * room, 1 - (1 - p) / room), max(q / room, 1 - (1 - q) * room))


def wealth_for(alpha: float) -> float:
    """Log wealth to expect, so that 1 / alpha is reached in 19 of 20 audits."""
    return -math.log(alpha) + LEARNING_COST + 2.0 * math.sqrt(-2 * math.log(alpha))


def growth(p: Floats, q: Floats, shared: Floats, guarantee: Guarantee) -> float:
    """Log wealth that the best bet on one of these events earns with each pair of outputs.

    p and q are probabilities of the events on D and on D'; `shared` is as in `Curve`.
    """
    best = -math.inf
    for p1, p2 in ((p, q), (1 - q, 1 - p)):  # an event that D makes likelier, and what D' does
        both = p1 * p2 + shared * _largest_dependence(p1, p2, shared > 0)
        cells = np.stack([both, p1 - both, p2 - both, 1 - p1 - p2 + both], axis=1)
        for eps, delta in guarantee.hockey_sticks:
            stakes = STAKES / (math.exp(eps) + delta)
            paid = np.log1p(payoffs(eps, delta)[:, None] * stakes)
            best = max(best, float((cells @ paid).max()))
    return best


def told_apart(counts: Floats) -> bool:
    """Whether any event tells two inputs apart, beyond chance.

    `counts` has a row for each event, as in `event_bets.contingency`: one-sided, so both directions
    of an event are two.
    """
    only1, only2 = counts[:, 1], counts[:, 2]
    errors = (only1 - only2) / np.sqrt(only1 + only2 + 1)
    return bool((errors > errors_of_chance(len(counts))).any())


def errors_of_chance(events: int) -> float:
    """Standard errors that one of so many events exceeds by chance, at most `RARELY` times."""
    return float(-ndtri(RARELY / max(events, 1)))


def would_show(guarantee: Guarantee, pairs: float, events: int, used: float = SEEN) -> bool:
    """Whether a mechanism that uses this share of its claim would be told apart (approximate).

    By an event that is as likely as not on one input, among so many, in so many pairs of
    independent outputs. Where a claim allows no difference at all, none would show.
    """
    rarer = max(0.0, *(math.exp(-eps) * (0.5 - delta) for eps, delta in guarantee.hockey_sticks))
    disagreeing = 0.5 * (1 - rarer) + rarer * 0.5
    errors = used * (0.5 - rarer) * math.sqrt(pairs / disagreeing)
    return errors > errors_of_chance(events) - float(ndtri(SHOWN_ALPHA))
