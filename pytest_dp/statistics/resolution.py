"""Detection limits of bets: the weakest event, the rarest leak, any difference.

All of this is approximate, and for information only, as in `replay`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, ndtri

from pytest_dp.arrays import Floats
from pytest_dp.bisection import smallest_loss
from pytest_dp.limits import CLEAR_ERRORS, RARELY, SHOWN_ALPHA
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import all_contingencies
from pytest_dp.statistics.ledger import Record
from pytest_dp.statistics.replay import LEARNING_COST, PlannedBets, couple_bins, largest_dependence

DELTAS = 10
"""How many times a claim's delta a leak may have that a strong pass would have seen. Larger: passes
say less of delta; smaller: hardly any is strong. By hand."""
OTHER_PAIRS_SHARE = 0.35
"""Samples that every other pair of inputs gets, as a share of those that the best pair gets. Larger
or smaller: what many pairs cost is over- or underestimated. By hand."""
SEEN = 0.5
"""Share of a difference that events may be expected to show, as they are seldom the best ones.
Larger: audits of few samples are called blind more often; smaller: they get a grade though nothing
was told apart. By hand."""
STAKES = np.geomspace(1e-3, 0.98, 40)
"""Shares of the largest stake, one of which is near the best. More cost time only."""


def smallest_event(p1: float, bets: PlannedBets, shared: float = 0.0) -> float:
    """Return the least loss of an event that bets find with 95 % power (approximate).

    In the claim's parameter; infinite if nothing would have been found. p1 is the probability of
    the event on the input that makes it likelier, and `shared` is as in `replay.couple_bins`.
    """

    def is_caught(loss: float) -> bool:
        return bets.catch(couple_bins(np.array([p1]), np.array([p1 * math.exp(-loss)]), shared))

    loss = smallest_loss(is_caught, bets.guarantee.largest_ratio or 0.0)
    return bets.guarantee.shown_by(p1, p1 * math.exp(-loss)) if math.isfinite(loss) else loss


def runs_to_margin(guarantee: Guarantee, alpha: float, margin: float, pairs: int) -> int:
    """Return roughly how many runs reach a margin on so many pairs, a power of two; 0 if none do.

    They are shared as the worst pair of inputs has them.
    """
    shared = 1 + OTHER_PAIRS_SHARE * (pairs - 1)
    for runs in 2 ** np.arange(6, 25):
        caught = smallest_event(0.5, PlannedBets(guarantee, float(runs), alpha))
        if guarantee.noise_below(caught) <= margin:
            return int(2 * runs * shared)
    return 0


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
    chance explains the event; and how far it held on both together, as in `replay.couple_bins`.
    """
    counts = all_contingencies(record.joint)
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
    room = float(largest_dependence(p, q, extra > 0))
    common = float(np.clip(extra / room, -1, 1)) if room > 0 else 0.0
    return min(p, 0.5) if clear[k] > CLEAR_ERRORS else 0.5, common


def shown_by_events(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that an event may show in fact, two standard errors allowed."""
    counts = all_contingencies(record.joint)
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


def any_event_differs(counts: Floats) -> bool:
    """Return whether any event differs between the two inputs by more than chance explains.

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
    """Return whether bets would detect a mechanism that uses this share of its claim.

    By an event that is as likely as not on one input, among so many, in so many pairs of
    independent outputs. Where a claim allows no difference at all, none would show.
    """
    rarer = max(0.0, *(math.exp(-eps) * (0.5 - delta) for eps, delta in guarantee.hockey_sticks))
    disagreeing = 0.5 * (1 - rarer) + rarer * 0.5
    errors = used * (0.5 - rarer) * math.sqrt(pairs / disagreeing)
    return errors > errors_of_chance(events) - float(ndtri(SHOWN_ALPHA))
