"""Lower bounds on divergences, from held-out pairs of outputs: a bet at every bound at once.

A bet that is fixed beforehand, and pays on average at most r if a divergence is at most D, refutes
all D for which it wins ``1 / alpha`` on the held-out pairs. As r only shifts its log wealth, these
are all D below a number in closed form, which is a bound with confidence 1 - alpha at any number of
pairs. Both outputs of a pair may share their random numbers; independent ones are paired as they
were drawn. docs/proofs/betting-on-divergences.md proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.evidence.divergence_bets import against_divergences
from pytest_dp.evidence.validation import check_level
from pytest_dp.privacy import Guarantee

FINE_FRACTIONS = 0.98 * 0.7 ** np.arange(30)
"""What may be staked, as shares of the largest stake that cannot ruin. Only one is taken, so that
more cost nothing but time; with fewer, the best one is further off. By hand."""
LOG_WEALTH_ROUNDING = 1e-15
"""What each pair of outputs adds to log wealth by rounding, at most; it is taken off. Larger is
never invalid."""


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
        """Lower confidence bound on the divergence, in nats; 0 if nothing is shown.

        `joint` counts held-out pairs, as in `Record.joint`. None of them may have had a say in the
        bet.
        """
        check_level("alpha", alpha)
        runs = float(joint.sum())
        if runs == 0:
            return 0.0
        i, j = np.nonzero(joint)
        won = float(np.log1p(self.stake * (self.paid1[i] + self.paid2[j])) @ joint[i, j])
        return float(_shown(won / runs, runs, self.stake * self.ways, self.order, alpha))


def best_bet(
    joint: Floats, scores: Floats, guarantee: Guarantee, pairs: float, alpha: float
) -> DivergenceBet:
    """The bet from which the most is expected of the guarantee's parameter, by past pairs.

    `joint` and `scores` are those of the first binning of a `Record`; `pairs` is how many will be
    held out. The guarantee must bound divergences.
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
    """The best bet on the divergence of one order, and what it should show, in nats."""
    attacks = against_divergences(joint, scores, [order], np.zeros((1, 1)))
    paid1, paid2 = attacks.paid1[0], attacks.paid2[0]
    ways = np.repeat([1, 1, 2], paid1.shape[1] // 3)
    stakes = FINE_FRACTIONS[:, None] / attacks.largest_loss
    i, j = np.nonzero(joint)
    pays = paid1[i] + paid2[j]
    runs = joint.sum()
    won = joint[i, j] @ np.log1p(pays * stakes[:, None])
    shown = _shown((won - attacks.optimism) / runs, pairs, stakes * ways, order, alpha)
    f, k = np.unravel_index(np.argmax(shown), shown.shape)
    bet = DivergenceBet(order, paid1[:, k], paid2[:, k], float(stakes[f, k]), int(ways[k]))
    return bet, float(shown[f, k])


def _shown(
    growth: Floats | float, pairs: float, stake: Floats | float, order: float, alpha: float
) -> Floats:
    """The divergence that is shown by such growth of log wealth with each pair, in nats.

    Rounded down: the error of the sum of logarithms is far below what is taken off.
    """
    r = np.expm1(np.asarray(growth) - LOG_WEALTH_ROUNDING + math.log(alpha) / pairs) / stake
    r = np.maximum(r, 0.0)
    shown: Floats = r if order == 1 else np.log1p(r) / (order - 1)
    return shown * (1 - 1e-14)
