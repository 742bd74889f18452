"""Bets against bounds on Rényi divergences, that of order 1 (Kullback-Leibler) among them.

With v the ratio of the probabilities of a bin on D and on D', as far as the past tells, a pair of
outputs pays for the order 1 ``ln v(x) - (v(y) - 1)``, whose mean is at most the divergence, and for
order a > 1 ``a v(x)^(a-1) - (a-1) v(y)^a - 1``, whose mean is at most ``exp((a-1) D) - 1``. That
holds for any v (Young's inequality): with a bad estimate they only pay less. So that one rare
output does not cap all stakes, log ratios are cut off at several sizes, and drawn towards 0. What
is bet on is the same for every rung of a ladder.

A bet that is fixed beforehand refutes all divergences D for which it wins ``1 / alpha`` on held-out
pairs. As r only shifts its log wealth, these are all D below a number in closed form, which is a
lower bound with confidence 1 - alpha. docs/proofs/betting-on-divergences.md proves all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.soft_bets import LINE_OPTIMISM, Attacks, log_ratio_of

POWERS = (0.7, 1.0)
"""Powers of the estimated ratio of probabilities that are bet on: below 1 less is won, and far less
is lost where the estimate is too steep. 1 alone takes 10 % more samples. More powers share the same
wealth."""
CUT_OFF = np.arange(1, 7) / 6
"""Where log ratios are cut off, as shares of the largest that there is: rare outputs, of which
little is known, cannot ruin a bet that is cut off early. More of them share the same wealth; fewer
are further from the best one: none but the largest takes 1.1 to 1.2 times the samples under a bound
of order 8, and makes no difference elsewhere. Measured."""
LARGEST_LOG_PAID = 300.0
"""Limit to the logarithm of what is paid, in nats, so that it does not overflow."""
FINE_FRACTIONS = 0.98 * 0.7 ** np.arange(30)
"""What may be staked, as shares of the largest stake that cannot ruin. Only one is taken, so that
more cost nothing but time; with fewer, the best one is further off. By hand."""
LOG_WEALTH_ROUNDING = 1e-15
"""What each pair of outputs adds to log wealth by rounding, at most; it is taken off. Larger is
never invalid."""


def payoffs_of_ratio(log_ratio: Floats, order: float) -> tuple[Floats, Floats]:
    """Return what an output pays on the input that it should be likelier on, and on the other."""
    if order == 1:
        return log_ratio, -np.expm1(log_ratio)
    k = order - 1
    return order * np.expm1(k * log_ratio), -k * np.expm1(order * log_ratio)


def largest_mean_payoff(order: float, bound: float | Floats) -> Floats:
    """Return the mean payoff that a divergence of at most `bound` allows; rounded up."""
    k = max(order - 1, 0.0)
    r: Floats = np.asarray(bound, np.float64) if k == 0 else np.expm1(k * np.asarray(bound))
    return r * (1 + 1e-15)


def against_divergences(
    joint: Ints | Floats, scores: Floats, orders: Sequence[float], bounds: Floats
) -> Attacks:
    """Return attacks on the divergence of D from D', of D' from D, and on both at once.

    `bounds` are those of the divergences, in nats, shape (rungs, orders).
    """
    ratio = log_ratio_of(joint, scores)
    paid1, paid2, r = [], [], []
    shapes = [
        np.clip(power * ratio, -share * largest, share * largest)
        for power in POWERS
        for largest in [power * np.abs(ratio).max()]
        for share in CUT_OFF
    ]
    shape = np.stack(shapes)
    for k, order in enumerate(orders):
        clipped = np.clip(shape, -LARGEST_LOG_PAID / order, LARGEST_LOG_PAID / order)
        (gain, cost), (back, price) = (
            payoffs_of_ratio(clipped, order),
            payoffs_of_ratio(-clipped, order),
        )
        paid1 += [gain, price, gain + price]
        paid2 += [cost, back, back + cost]
        limit = largest_mean_payoff(order, bounds[:, k])[:, None]
        r += [factor * np.repeat(limit, len(shape), axis=1) for factor in (1.0, 1.0, 2.0)]
    paid_for_d, paid_for_d2 = (np.concatenate(part).T[None] for part in (paid1, paid2))
    return Attacks(paid_for_d, paid_for_d2, np.concatenate(r, axis=1))


@dataclass(frozen=True, slots=True)
class DivergenceBet:
    """One bet on a divergence, that of D from D', that of D' from D, or the larger of both."""

    order: float
    paid1: Floats
    """Paid for the bin of the output on D, shape (b,)."""
    paid2: Floats
    """The same on D'."""
    stake: float
    """At most the inverse of the largest loss."""
    ways: int
    """2 if it bets on both."""

    def lower(self, joint: Ints, alpha: float) -> float:
        """Return the lower confidence bound on the divergence, in nats; 0 if nothing is shown.

        `joint` counts held-out pairs, as in `BetRecord.joint`. None of them may have had a say in
        the bet.
        """
        runs = float(joint.sum())
        if runs == 0:
            return 0.0
        i, j = np.nonzero(joint)
        won = float(np.log1p(self.stake * (self.paid1[i] + self.paid2[j])) @ joint[i, j])
        return float(
            _proved_divergence(won / runs, runs, self.stake * self.ways, self.order, alpha)
        )


def best_bet(
    joint: Floats, scores: Floats, guarantee: Guarantee, pairs: float, alpha: float
) -> DivergenceBet:
    """Return the bet from which the most is expected of the guarantee's parameter, by past pairs.

    `joint` and `scores` are those of the first binning of a `BetRecord`; `pairs` is how many will
    be held out. The guarantee must bound divergences.
    """
    candidates = [
        _best_of_order(joint, scores, divergence.order, pairs, alpha)
        for divergence in guarantee.divergences
    ]
    shown = [guarantee.shown_by_divergence(bet.order, value) for bet, value in candidates]
    return candidates[int(np.argmax(shown))][0]


def _best_of_order(
    joint: Floats, scores: Floats, order: float, pairs: float, alpha: float
) -> tuple[DivergenceBet, float]:
    """Return the best bet on the divergence of one order, and what it should show, in nats."""
    attacks = against_divergences(joint, scores, [order], np.zeros((1, 1)))
    paid1, paid2 = attacks.paid1[0], attacks.paid2[0]
    ways = np.repeat([1, 1, 2], paid1.shape[1] // 3)
    stakes = FINE_FRACTIONS[:, None] / attacks.largest_loss
    i, j = np.nonzero(joint)
    pays = paid1[i] + paid2[j]
    runs = joint.sum()
    won = joint[i, j] @ np.log1p(pays * stakes[:, None])
    shown = _proved_divergence((won - LINE_OPTIMISM) / runs, pairs, stakes * ways, order, alpha)
    f, k = np.unravel_index(np.argmax(shown), shown.shape)
    bet = DivergenceBet(order, paid1[:, k], paid2[:, k], float(stakes[f, k]), int(ways[k]))
    return bet, float(shown[f, k])


def _proved_divergence(
    growth: Floats | float, pairs: float, stake: Floats | float, order: float, alpha: float
) -> Floats:
    """Return the divergence, in nats, that this growth of log wealth per pair proves.

    Rounded down: the error of the sum of logarithms is far below what is taken off.
    """
    r = np.expm1(np.asarray(growth) - LOG_WEALTH_ROUNDING + math.log(alpha) / pairs) / stake
    r = np.maximum(r, 0.0)
    shown: Floats = r if order == 1 else np.log1p(r) / (order - 1)
    return shown * (1 - 1e-14)
