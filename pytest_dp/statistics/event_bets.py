"""Bets on events: outputs in the upper or the lower bins of a binning, on both inputs.

What a pair of outputs pays depends only on whether either is in the event, so a record is turned
into counts of such pairs, for all events at once, and growth is a product of matrices.
docs/proofs/betting-under-coupling.md proves that none of these bets gains under the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.event_search import Rank
from pytest_dp.privacy import Guarantee
from pytest_dp.privacy.guarantees import HockeyStick

LUCK = 8.0
"""Log wealth that choosing the best of many events afterwards gives to a claim that holds. It ranks
events only: with 0, StatDP takes no more samples, but bets miss what the last digit of a number
says. Measured."""
TIE_WEIGHT = 1e-6
"""Weight of log wealth where so few outputs were seen that no bound says anything: it only breaks
ties. StatDP takes as many samples without it; but the best event of a dozen outputs,
from which the first bets come, is then missed. Measured."""
FRACTIONS = 0.98 * 0.5 ** np.arange(9)
"""What can be staked, as shares of the largest stake that cannot ruin. More of them, down to
smaller ones, share the same wealth; the best of fewer wins less. By hand."""


class EventBets:
    """All bets on events that cut binnings, for each rung of a ladder of guarantees.

    A rung is a sequence of hockey sticks; all rungs have as many.
    """

    def __init__(self, rungs: Sequence[Sequence[HockeyStick]]) -> None:
        tables = [[_growth_per_pair(stick) for stick in sticks] for sticks in rungs]
        self.one_way, self.both_ways = (
            np.stack([np.concatenate([kinds[kind] for kinds in rung], axis=1) for rung in tables])
            for kind in range(2)
        )

    def growth(self, joint: Sequence[Ints | Floats], rungs: Ints) -> Floats:
        """Return the log growth of all bets against some rungs, shape (rungs, bets)."""
        one_way = event_tables(joint) @ self.one_way[rungs]
        both = two_event_tables(joint) @ self.both_ways[rungs]
        return np.concatenate([flatten_bets(one_way), flatten_bets(both)], axis=1)


def _growth_per_pair(stick: HockeyStick) -> tuple[Floats, Floats]:
    """Return the log growth per pair of outputs, shape (kinds of pairs, fractions) each.

    First of bets one way, with four kinds of pairs; then of bets both ways, with nine.
    """
    largest = 1 / (np.exp(np.array([stick.eps])) + stick.delta)
    stakes = largest * FRACTIONS
    one_way = np.log1p(payoffs(*stick)[:, None] * stakes)
    both_ways = np.log1p(payoffs_both_ways(*stick)[:, None] * stakes / 2)  # either may lose it all
    return one_way, both_ways


@lru_cache(maxsize=16)
def _every_stake(sticks: tuple[HockeyStick, ...]) -> Floats:
    """Return the log growth per pair of bets one way, with four stakes for each of `FRACTIONS`.

    Of shape (4, bets). The kinds of pairs: the event holds on both inputs, on D only, on D' only,
    on neither.
    """
    fine = 0.98 * 0.5 ** np.arange(0.0, len(FRACTIONS), 0.25)
    bets = [
        np.log1p(payoffs(*stick)[:, None] * fine / (math.exp(stick.eps) + stick.delta))
        for stick in sticks
    ]
    return np.concatenate(bets, axis=1)


def event_growth(
    c1: Ints | Floats, c2: Ints | Floats, runs: int, sticks: tuple[HockeyStick, ...]
) -> Floats:
    """Return the log growth of the best bet on each event, on independent outputs; at least 0.

    `c1` and `c2` are the counts of each event in `runs` outputs on D, which is to make it likelier,
    and on D', shape (k,). The bets are against a claim from which the hockey sticks follow.
    """
    p, q = np.asarray(c1) / runs, np.asarray(c2) / runs
    cells = np.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], axis=-1)
    growth: Floats = runs * (cells @ _every_stake(sticks)).max(axis=-1, initial=0.0)
    return growth


def flatten_bets(bets: Floats) -> Floats:
    """Return an array with all axes but the first, the rungs, made one."""
    return bets.reshape(len(bets), math.prod(bets.shape[1:]))


def event_table(joint: Ints | Floats) -> Floats:
    """Return counts of pairs of outputs for each event that cuts bins, shape (2 * (b - 1), 4).

    Pairs have the event on both inputs, only on the likelier, only on the rarer, or on neither.
    Events are "bin k or higher", which D should make likelier, then "below bin k", which D' should.
    `joint` is as in `BetRecord.joint`.
    """
    neither = joint.cumsum(0).cumsum(1).diagonal()[:-1]
    p, q = (joint.sum(axis)[::-1].cumsum()[::-1][1:] for axis in (1, 0))
    both = p + q + neither - joint.sum()
    above = np.stack([both, p - both, q - both, neither], axis=1)
    return np.concatenate([above, above[:, [3, 1, 2, 0]]])


def two_event_table(joint: Ints | Floats) -> Floats:
    """Return counts of pairs of outputs for each two cuts j <= k, shape (b * (b - 1) / 2, 9).

    The nine kinds are (low, middle, high) on D times the same on D': "low" is below bin j, which D'
    should make likelier, and "high" is bin k or higher, which D should.
    """
    b = len(joint)
    below = np.zeros((b + 1, b + 1))
    below[1:, 1:] = joint.cumsum(0).cumsum(1)
    corners = below.ravel()[_corners(b)]  # (4, 4, events)
    rows = corners[1:] - corners[:-1]
    return (rows[:, 1:] - rows[:, :-1]).reshape(9, -1).T


@lru_cache(maxsize=64)
def _corners(b: int) -> Ints:
    """Return where the nine parts of a table begin and end, by its cumulative counts: (4, 4, k)."""
    j, k = np.triu_indices(b - 1)
    ends = np.stack([np.zeros_like(j), j + 1, k + 1, np.full_like(j, b)])
    return ends[:, None, :] * (b + 1) + ends[None, :, :]


def event_tables(joints: Sequence[Ints | Floats]) -> Floats:
    """Return `event_table` of several tables, one below the other, shape (events, 4)."""
    return np.concatenate([np.zeros((0, 4)), *map(event_table, joints)])


def two_event_tables(joints: Sequence[Ints | Floats]) -> Floats:
    """Return `two_event_table` of several tables, shape (events, 9)."""
    return np.concatenate([np.zeros((0, 9)), *map(two_event_table, joints)])


def independent_table(joint: Floats) -> Floats:
    """Return the table to expect of independent outputs with the same bins, shape (b, b)."""
    expected: Floats = np.outer(joint.sum(1), joint.sum(0)) / max(joint.sum(), 1)
    return expected


def payoffs_both_ways(eps: float, delta: float) -> Floats:
    """Return what a bet both ways pays for each of the nine kinds of pairs, shape (9,)."""
    price = math.exp(eps)
    low, high = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    up = high[:, None] - price * high[None, :] - delta
    down = low[None, :] - price * low[:, None] - delta
    return (up + down).ravel()


def payoffs(eps: float, delta: float) -> Floats:
    """Return what a bet on one event pays for each of the four kinds of pairs, shape (4,)."""
    price = math.exp(eps)
    return np.array([1 - price - delta, 1 - delta, -price - delta, -delta])


def rank_for(guarantee: Guarantee, rarest: float = 0.001) -> Callable[[int], Rank]:
    """Return a function that ranks events by their counts, given the number of pairs of outputs.

    Positive ranks: log growth of the best bet on the event, which orders events as their p-values
    do. Negative ranks: a cautious lower bound on the loss minus the claim, so that rare events that
    came by chance do not win.

    Events have to come at least five times. On D' their probability is `rarest` or more if the
    claim is used up: the paper's filter, by default.
    """
    sticks = guarantee.hockey_sticks

    def of_runs(runs: int) -> Rank:
        fewest = max(5.0, runs * min(stick.largest_probability(rarest) for stick in sticks))

        def rank(c1: Ints, c2: Ints) -> Floats:
            high, low = np.maximum(c1, c2), np.minimum(c1, c2)
            score = event_growth(high, low, runs, sticks)
            excess = score - LUCK
            seldom, often = np.maximum(high - 4 * np.sqrt(high), 0.1), low + 4 * np.sqrt(low) + 4.0
            allowed = np.min([stick.largest_probability(often, runs) for stick in sticks], axis=0)
            short = np.minimum(np.log(seldom / allowed), 0.0)
            ranks = np.where(excess > 0, excess, short - 1.0 + TIE_WEIGHT * score)
            return np.where(c1 + c2 >= min(fewest, runs), ranks, -np.inf)

        return rank

    return of_runs
