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
"""Log wealth that picking the best of many events gains under a claim that holds; it ranks events
only. With 0, bets miss what the last digit of a number reveals. Measured."""
TIE_WEIGHT = 1e-6
"""Weight of log wealth in the rank of events too rare for any bound: it only breaks ties. Without
it, the best event of the first dozen outputs is missed. Measured."""
FRACTIONS = 0.98 * 0.5 ** np.arange(9)
"""Stakes, as shares of the largest stake that cannot ruin. More share one wealth; the best of fewer
wins less. By hand."""


class EventBets:
    """A family of all bets on events that cut binnings, for each rung of a ladder of guarantees.

    A rung is a sequence of hockey sticks; all rungs have equally many.
    """

    def __init__(self, rungs: Sequence[Sequence[HockeyStick]]) -> None:
        tables = [[_growth_per_pair(stick) for stick in sticks] for sticks in rungs]
        self.one_way, self.both_ways = (
            np.stack([np.concatenate([kinds[kind] for kinds in rung], axis=1) for rung in tables])
            for kind in range(2)
        )

    def growth(self, joint: Sequence[Ints | Floats], rungs: Ints) -> Floats:
        """Return the log growth of all bets against some rungs, by index, shape (rungs, bets)."""
        one_way = event_tables(joint) @ self.one_way[rungs]
        both = two_event_tables(joint) @ self.both_ways[rungs]
        return np.concatenate([flatten_bets(one_way), flatten_bets(both)], axis=1)


def _growth_per_pair(stick: HockeyStick) -> tuple[Floats, Floats]:
    """Return the log growth for each kind of pair of outputs, shape (kinds, fractions).

    First of bets on one event (four kinds), then of bets on two events (nine kinds).
    """
    largest = 1 / (np.exp(np.array([stick.eps])) + stick.delta)
    stakes = largest * FRACTIONS
    one_way = np.log1p(payoffs(*stick)[:, None] * stakes)
    both_ways = np.log1p(payoffs_both_ways(*stick)[:, None] * stakes / 2)  # either may lose it all
    return one_way, both_ways


@lru_cache(maxsize=16)
def _every_stake(sticks: tuple[HockeyStick, ...]) -> Floats:
    """Return the log growth of bets on one event, for many stakes, shape (4, bets).

    The kinds of pairs: the event holds on both inputs, on D only, on D' only, on neither.
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
    """Return the log growth of the best bet on each event on independent outputs, at least 0.

    `c1` and `c2` are the counts of each event in `runs` outputs on D, which is to make it likelier,
    and on D', shape (k,). The bets are against the hockey sticks of a claim.
    """
    p, q = np.asarray(c1) / runs, np.asarray(c2) / runs
    cells = np.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], axis=-1)
    growth: Floats = runs * (cells @ _every_stake(sticks)).max(axis=-1, initial=0.0)
    return growth


def flatten_bets(bets: Floats) -> Floats:
    """Return an array with all axes but the first, the rungs, joined to one."""
    return bets.reshape(len(bets), math.prod(bets.shape[1:]))


def event_table(joint: Ints | Floats) -> Floats:
    """Return counts of pairs of outputs for each event that cuts bins, shape (2 * (b - 1), 4).

    Pairs have the event on both inputs, only on the likelier, only on the rarer, or on neither.
    Events are "bin k or higher", likelier on D, then "below bin k", likelier on D'. `joint` is as
    in `BetRecord.joint`.
    """
    neither = joint.cumsum(0).cumsum(1).diagonal()[:-1]
    p, q = (joint.sum(axis)[::-1].cumsum()[::-1][1:] for axis in (1, 0))
    both = p + q + neither - joint.sum()
    above = np.stack([both, p - both, q - both, neither], axis=1)
    return np.concatenate([above, above[:, [3, 1, 2, 0]]])


def two_event_table(joint: Ints | Floats) -> Floats:
    """Return counts of pairs of outputs for each two cuts j <= k, shape (b * (b - 1) / 2, 9).

    The nine kinds are (low, middle, high) on D times low, middle, high on D': "low" is below bin j,
    likelier on D', and "high" is bin k or higher, likelier on D.
    """
    b = len(joint)
    below = np.zeros((b + 1, b + 1))
    below[1:, 1:] = joint.cumsum(0).cumsum(1)
    corners = below.ravel()[_corners(b)]  # (4, 4, events)
    rows = corners[1:] - corners[:-1]
    return (rows[:, 1:] - rows[:, :-1]).reshape(9, -1).T


@lru_cache(maxsize=64)
def _corners(b: int) -> Ints:
    """Return indices of cumulative counts at the corners of nine parts of a table: (4, 4, k)."""
    j, k = np.triu_indices(b - 1)
    ends = np.stack([np.zeros_like(j), j + 1, k + 1, np.full_like(j, b)])
    return ends[:, None, :] * (b + 1) + ends[None, :, :]


def event_tables(joints: Sequence[Ints | Floats]) -> Floats:
    """Return `event_table` of several tables, one below the other, shape (events, 4)."""
    return np.concatenate([np.zeros((0, 4)), *map(event_table, joints)])


def two_event_tables(joints: Sequence[Ints | Floats]) -> Floats:
    """Return `two_event_table` of several tables, one below the other, shape (events, 9)."""
    return np.concatenate([np.zeros((0, 9)), *map(two_event_table, joints)])


def independent_table(joint: Floats) -> Floats:
    """Return the table to expect of independent outputs with equal bins, shape (b, b)."""
    expected: Floats = np.outer(joint.sum(1), joint.sum(0)) / max(joint.sum(), 1)
    return expected


def payoffs_both_ways(eps: float, delta: float) -> Floats:
    """Return the payoff of a bet on two events for each of nine kinds of pairs, shape (9,)."""
    price = math.exp(eps)
    low, high = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    up = high[:, None] - price * high[None, :] - delta
    down = low[None, :] - price * low[:, None] - delta
    return (up + down).ravel()


def payoffs(eps: float, delta: float) -> Floats:
    """Return the payoff of a bet on one event for each of four kinds of pairs, shape (4,)."""
    price = math.exp(eps)
    return np.array([1 - price - delta, 1 - delta, -price - delta, -delta])


def rank_for(guarantee: Guarantee, rarest: float = 0.001) -> Callable[[int], Rank]:
    """Return a function from the number of pairs of outputs to a rank of events by their counts.

    Positive ranks: log growth of the best bet on the event minus `LUCK`, ordered as p-values are.
    Negative ranks: a cautious lower bound on the loss minus the claim, so that rare events do not
    win by chance. `-inf` for events that came, on both inputs together, less than five times, or
    less often than the claim allows on D if the probability on D' is `rarest` (the filter of
    StatDP's paper).
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
