"""Betting against a claim: wealth that stays small, however one bets, as long as the claim holds.

A batch of outputs x_i on D and y_i on D' multiplies what is staked on an attack ``s`` with the
fraction ``f`` by the product of ``1 + f * (s(x_i) - exp(eps) * s(y_i) - delta)``. Under the claim
each factor has mean at most 1, whatever was chosen before the batch was drawn, so wealth reaches
1 / alpha with probability at most alpha, at any time; x_i and y_i may share their random numbers.
Bets in both directions are made together. Where x_i and y_i are independent, there are bets on
"x_i in S and y_i not in S" as well. docs/proofs/betting-under-coupling.md proves all three.

Nothing here is approximate. What is bet on is chosen by past batches (the *record*), as a Bayesian
portfolio: every attack and fraction weighted by what it would have earned.

References
----------
Shafer, Vovk, "Game-Theoretic Foundations for Probability and Finance", 2019.
Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.evidence._isotonic import increasing

FRACTIONS = 0.98 * 0.5 ** np.arange(9)
"""What can be staked, as shares of the largest stake that cannot ruin."""
DISAGREEING = np.array([0.95, 0.5, 0.2])
"""Shares of the wealth of a bet that can be staked on independent outputs that disagree."""
SOFT = 0.1
"""Share of the prior that soft attacks have."""
MARGIN = 1.0
"""Log wealth by which independent draws have to look better than coupled ones."""
RUNGS = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
"""Losses that are bet against, as shares of the claim."""


def contingency(joint: Ints | Floats) -> Floats:
    """Counts of (both, only the likelier, only the rarer, neither) for the events that cut bins.

    Parameters
    ----------
    joint : ndarray, shape (b, b)
        How many pairs of outputs fell into each pair of bins, that on D first.

    Returns
    -------
    ndarray, shape (2 * (b - 1), 4)
        For the events "bin k or higher", which D should make likelier, then for "below bin k",
        which D' should.
    """
    above = joint[::-1, ::-1].cumsum(0).cumsum(1)[::-1, ::-1]
    below = joint.cumsum(0).cumsum(1)
    total = below[-1, -1]
    last = len(joint) - 1
    counts = np.empty((2 * last, 4))
    for part, both, p, q in (
        (counts[:last], above.diagonal()[1:], above[1:, 0], above[0, 1:]),
        (counts[last:], below.diagonal()[:-1], below[-1, :-1], below[:-1, -1]),
    ):
        part[:, 0], part[:, 1], part[:, 2] = both, p - both, q - both
        part[:, 3] = total - p - q + both
    return counts


def contingency_both_ways(joint: Ints | Floats) -> Floats:
    """Counts of pairs of outputs, (low, middle, high) on D times the same on D', flattened.

    Parameters
    ----------
    joint : ndarray, shape (b, b)
        As in `contingency`.

    Returns
    -------
    ndarray, shape (b * (b - 1) / 2, 9)
        For all j <= k: "low" is below bin j, which D' should make likelier, and "high" is bin k or
        higher, which D should.
    """
    b = len(joint)
    below = np.zeros((b + 1, b + 1))
    below[1:, 1:] = joint.cumsum(0).cumsum(1)
    corners = below.ravel()[_corners(b)]  # (4, 4, events)
    rows = corners[1:] - corners[:-1]
    return (rows[:, 1:] - rows[:, :-1]).reshape(9, -1).T


@lru_cache(maxsize=64)
def _corners(b: int) -> Ints:
    """Where the parts of pairs of outputs begin and end in cumulative counts, shape (4, 4, k)."""
    j, k = np.triu_indices(b - 1)
    ends = np.stack([np.zeros_like(j), j + 1, k + 1, np.full_like(j, b)])
    return ends[:, None, :] * (b + 1) + ends[None, :, :]


_TWO_BINS = np.array([[3, 2, 1, 0], [0, 2, 1, 3]])
_TWO_BINS_BOTH_WAYS = np.array([0, 2, 6, 8])
"""Where the four counts of a record of two bins are to be found in, and go to in, its events."""


def all_contingencies(joints: Sequence[Ints | Floats]) -> Floats:
    """`contingency` of several records, one below the other; those of two bins come last.

    Most binnings have two bins: they are counted all at once.
    """
    wide = [contingency(joint) for joint in joints if len(joint) != 2]
    flat = np.array([joint for joint in joints if len(joint) == 2], np.float64).reshape(-1, 4)
    return np.concatenate([*wide, flat[:, _TWO_BINS].reshape(-1, 4)])


def all_contingencies_both_ways(joints: Sequence[Ints | Floats]) -> Floats:
    """The same of `contingency_both_ways`."""
    wide = [contingency_both_ways(joint) for joint in joints if len(joint) != 2]
    flat = np.array([joint for joint in joints if len(joint) == 2], np.float64).reshape(-1, 4)
    narrow = np.zeros((len(flat), 9))
    narrow[:, _TWO_BINS_BOTH_WAYS] = flat
    return np.concatenate([*wide, narrow])


def independent(joint: Floats) -> Floats:
    """The counts to expect if outputs on D and on D' had been drawn independently."""
    expected: Floats = np.outer(joint.sum(1), joint.sum(0)) / max(joint.sum(), 1)
    return expected


def payoffs_both_ways(eps: float, delta: float) -> Floats:
    """What a pair of outputs pays for bets in both directions, as in `contingency_both_ways`."""
    price = math.exp(eps)
    low, high = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    up = high[:, None] - price * high[None, :] - delta
    down = low[None, :] - price * low[:, None] - delta
    return (up + down).ravel()


def payoffs(eps: float, delta: float) -> Floats:
    """What a pair of outputs pays for an event, in the order of `contingency`."""
    price = math.exp(eps)
    return np.array([1 - price - delta, 1 - delta, -price - delta, -delta])


def most_disagreeing(eps: float, delta: float) -> float:
    """The largest chance of independent outputs to be in an event on D and not in it on D'.

    With ``p <= e q + delta`` and ``1 - q <= e (1 - p) + delta`` the sum of p and 1 - q is at most
    ``2 (e + delta) / (1 + e)``, and their product at most the square of half of it.
    """
    price = math.exp(eps)
    return ((price + delta) / (1 + price)) ** 2


def soft_attacks(joint: Floats, prices: Floats) -> Floats:
    """How much of each bin to bet on so that small edges grow fastest, shape (prices, b).

    The optimum to second order, ``max(p - price q, 0) / (p + price^2 q)``, where the ratio of the
    bins' probabilities p and q on D and D' is estimated to be increasing. For the other direction
    transpose `joint` and reverse its bins.

    Parameters
    ----------
    joint : ndarray, shape (b, b)
        As in `contingency`.
    prices : ndarray
        Exponentials of the losses that are bet against.
    """
    one, two = joint.sum(1) + 0.5, joint.sum(0) + 0.5
    p = increasing(one / (one + two), one + two)
    price = prices[:, None]
    size = np.maximum(p - price * (1 - p), 0) / (p + price**2 * (1 - p))
    most = size.max(axis=1, keepdims=True)
    scaled: Floats = np.divide(size, most, out=np.zeros_like(size), where=most > 0)
    return scaled


@dataclass(slots=True)
class Record:
    """What is known of a pair from batches of the past, through some binnings.

    Attributes
    ----------
    joint : list of ndarray, shape (b, b)
        As in `contingency`, one for each binning; soft attacks go by the first.
    soft : ndarray, shape (rungs, 2, fractions)
        Log growth that soft attacks have earned, for each rung, direction and fraction.
    apart : bool
        Whether outputs on both inputs are drawn independently.
    """

    joint: list[Floats]
    soft: Floats
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Wager:
    """How wealth is spread over bets on the next batch, and what is kept, for every open rung.

    Attributes
    ----------
    open : ndarray of int
        Rungs that are not refuted yet; nothing is bet against the others.
    hard : ndarray, shape (rungs, bets)
        Log weights.
    soft : ndarray, shape (rungs, 2, fractions)
    cash : ndarray, shape (rungs,)
    attacks : ndarray, shape (rungs, 2, b)
        The soft attacks, in bins of the first binning; of D' in reversed order.
    """

    open: Ints
    hard: Floats
    soft: Floats
    cash: Floats
    attacks: Floats


class Ledger:
    """Wealth, in bets against each of a ladder of losses; the claim is the highest rung.

    Parameters
    ----------
    eps, delta : float
        The claim.
    alpha : float
        A rung is refuted, and not bet against any more, once wealth reaches ``1 / alpha``; 0 goes
        on for ever.

    Attributes
    ----------
    rungs : ndarray
        Losses in nats, increasing.
    log_wealth : ndarray
        Against each of them, now.
    highest : ndarray
        The highest that it has been.
    """

    def __init__(self, eps: float, delta: float = 0.0, alpha: float = 0.0) -> None:
        self.delta = delta
        self.enough = -math.log(alpha) if alpha else math.inf
        self.rungs = eps * RUNGS
        self.prices = np.exp(self.rungs)
        self.log_wealth = np.zeros(len(RUNGS))
        self.highest = np.zeros(len(RUNGS))
        self.most = 1 / (self.prices + delta)
        stakes = self.most[:, None, None] * FRACTIONS
        one_way = np.stack([payoffs(rung, delta) for rung in self.rungs])
        both = np.stack([payoffs_both_ways(rung, delta) for rung in self.rungs])
        self.one_way = np.log1p(one_way[:, :, None] * stakes)  # (rungs, 4, fractions)
        # The same with bets that need independence behind.
        disagreeing = np.array([1 / most_disagreeing(rung, delta) for rung in self.rungs])
        pays = np.array([0.0, 1.0, 0.0, 0.0])[None, :, None] * disagreeing[:, None, None] - 1
        self.apart = np.concatenate([self.one_way, np.log1p(pays * DISAGREEING)], axis=2)
        self.both_ways = np.log1p(both[:, :, None] * stakes / 2)  # either may lose all of it

    def wager(self, record: Record, cash: float) -> Wager:
        """Stake on every bet what the record speaks for, and keep the rest.

        Parameters
        ----------
        record : Record
        cash : float
            Odds against there being anything to win, before the record is seen.
        """
        rungs = np.flatnonzero(self.log_wealth < self.enough)
        hard = self._hard_growth(record.joint, record.apart, rungs)
        hard += math.log((1 - SOFT) / max(hard.shape[1], 1))
        soft = record.soft[rungs] + math.log(SOFT / record.soft[0].size)
        kept = np.full(len(rungs), math.log(cash))
        total = _log_total(hard, soft, kept)
        first, prices = record.joint[0], self.prices[rungs]
        sides = soft_attacks(first, prices), soft_attacks(first.T[::-1, ::-1], prices)
        share = total[:, None]
        hard -= share
        return Wager(rungs, hard, soft - share[..., None], kept - total, np.stack(sides, axis=1))

    def settle(self, wager: Wager, record: Record, draw: Callable[[], Sequence[Ints]]) -> None:
        """Draw a batch, which the wager could not know; pay out, and enter it in the record.

        Parameters
        ----------
        wager : Wager
        record : Record
            Gets the batch added.
        draw : callable
            Draws a batch that nobody has seen, and counts it as in `Record.joint`.
        """
        batch = draw()
        rungs = wager.open
        hard = self._hard_growth(batch, record.apart, rungs)
        hard += wager.hard
        soft = self._soft_growth(wager, batch[0])
        earned = _log_total(hard, wager.soft + soft, wager.cash)
        self.log_wealth = self.log_wealth.copy()
        self.log_wealth[rungs] += earned
        self.highest = np.maximum(self.highest, self.log_wealth)
        record.soft = record.soft.copy()
        record.soft[rungs] += soft
        record.joint = [old + new for old, new in zip(record.joint, batch, strict=True)]

    def _hard_growth(self, joint: Sequence[Ints | Floats], apart: bool, rungs: Ints) -> Floats:
        """Log growth of bets on events, one way and both ways, shape (rungs, bets)."""
        table = self.apart if apart else self.one_way
        one_way = all_contingencies(joint) @ table[rungs]
        both = all_contingencies_both_ways(joint) @ self.both_ways[rungs]
        return np.concatenate([_by_rung(one_way), _by_rung(both)], axis=1)

    def _soft_growth(self, wager: Wager, joint: Ints) -> Floats:
        """Log growth of the soft attacks, shape (rungs, 2, fractions)."""
        one, two = np.nonzero(joint)
        times = joint[one, two].astype(np.float64)
        last = joint.shape[0] - 1
        price = self.prices[wager.open, None, None]
        attacks = wager.attacks
        likelier = np.stack([attacks[:, 0, one], attacks[:, 1, last - two]], axis=1)
        rarer = np.stack([attacks[:, 0, two], attacks[:, 1, last - one]], axis=1)
        pays = likelier - price * rarer - self.delta
        stakes = self.most[wager.open, None] * FRACTIONS
        return np.log1p(pays[..., None, :] * stakes[:, None, :, None]) @ times

    @property
    def eps_lower(self) -> float:
        """The highest rung up to which all are refuted, in nats; 0.0 if none is."""
        refuted = self.highest >= self.enough
        return float(self.rungs[refuted.cumprod().astype(bool)].max(initial=0.0))

    @property
    def refuted(self) -> bool:
        """Whether the claim, and all rungs below, are refuted at the level of the ledger."""
        return bool((self.highest >= self.enough).all())

    @property
    def p_value(self) -> float:
        """Valid at any time, as that of the claim and of all rungs below."""
        return math.exp(-max(float(self.highest.min()), 0.0))

    def prefers_apart(self, record: Record) -> bool:
        """Whether bets on coupled outputs would have won more if those had been independent."""
        apart = list(map(independent, record.joint))
        claim = np.array([len(self.rungs) - 1])
        best = [
            float(self._hard_growth(joint, drawn_apart, claim).max(initial=0.0))
            for joint, drawn_apart in ((record.joint, False), (apart, True))
        ]
        return best[1] > max(best[0], 0.0) + MARGIN

    @property
    def log_e_value(self) -> float:
        """Log wealth against the claim, now."""
        return float(self.log_wealth[-1])


def _by_rung(bets: Floats) -> Floats:
    """One row for each rung; there may be none."""
    return bets.reshape(len(bets), math.prod(bets.shape[1:]))


def _log_total(hard: Floats, soft: Floats, cash: Floats) -> Floats:
    """Log sums for every rung."""
    parts = [_by_rung(part) for part in (hard, soft, cash)]
    most = np.max([part.max(axis=1, initial=-np.inf) for part in parts], axis=0)
    total: Floats = most + np.log(sum(np.exp(part - most[:, None]).sum(axis=1) for part in parts))
    return total
