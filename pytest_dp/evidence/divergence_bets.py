"""Bets against bounds on Rényi divergences, that of order 1 (Kullback-Leibler) among them.

With v the ratio of the probabilities of a bin on D and on D', as far as the past tells, a pair of
outputs pays for the order 1 ``ln v(x) - (v(y) - 1)``, whose mean is at most the divergence, and for
order a > 1 ``a v(x)^(a-1) - (a-1) v(y)^a - 1``, whose mean is at most ``exp((a-1) D) - 1``. That
holds for any v (Young's inequality): with a bad estimate they only pay less. So that one rare
output does not cap all stakes, log ratios are cut off at several sizes, and drawn towards 0. What
is bet on is the same for every rung of a ladder. docs/proofs/betting-on-divergences.md proves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.evidence.attack_bets import OPTIMISM_PER_PARAMETER, Attacks
from pytest_dp.evidence.isotonic import increasing
from pytest_dp.evidence.logistic import logit, regression

POWERS = (0.7, 1.0)
"""Powers of the estimated ratio of probabilities that are bet on: below 1 less is won, and far less
is lost where the estimate is too steep. 1 alone takes 10 % more samples. More powers share the same
wealth."""
CUT_OFF = np.arange(1, 7) / 6
"""Where log ratios are cut off, as shares of the largest that there is: rare outputs, of which
little is known, cannot ruin a bet that is cut off early. More of them share the same wealth; fewer
are further from the best one: none but the largest takes 1.1 to 1.2 times the samples under a bound
of order 8, and makes no difference elsewhere. Measured."""
NEWTON_STEPS = 30
"""Steps of Newton's method, at most. Each is bounded, so that a steep line takes a few more. It
stops earlier once it has converged; only the time depends on it."""
LARGEST_LOG_RATIO, LARGEST_LOG_PAID = 30.0, 300.0
"""Limits to a log ratio, and to the logarithm of what is paid, in nats, so that neither overflows.
"""


def log_ratios(joint: Ints | Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Estimates of the log ratio of the bins' probabilities on D and on D', in nats, shape (2, b).

    The first are increasing; the second are linear in the average score of the bins (Platt,
    "Probabilistic Outputs for Support Vector Machines", 1999). With them comes how many numbers
    were estimated for each.
    """
    counts1, counts2 = joint.sum(1), joint.sum(0)
    weight = counts1 + counts2 + 1.0
    steps = increasing((counts1 + 0.5) / weight, weight)
    line = _logistic(counts1, counts2, scores)
    ratios = np.clip(np.stack([logit(steps), line]), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return ratios, np.array([float(len(np.unique(steps))), 2.0])


def _logistic(counts1: Floats, counts2: Floats, scores: Floats) -> Floats:
    """Log odds of D, linear in the score, of largest likelihood; hardly steeper than is known."""
    runs = counts1 + counts2
    centred = scores - np.average(scores, weights=runs)
    spread = math.sqrt(np.average(centred**2, weights=runs))
    if spread == 0:
        return np.zeros(len(scores))
    about = np.stack([np.ones(len(scores)), centred / spread])
    prior = np.zeros(2), np.array([1.0, 0.1])
    odds: Floats = regression(about, counts1, runs, prior, NEWTON_STEPS, 1e-9) @ about
    return odds


def paid(log_ratio: Floats, order: float) -> tuple[Floats, Floats]:
    """What an output pays on the input that should make it likelier, and on the other one."""
    if order == 1:
        return log_ratio, -np.expm1(log_ratio)
    k = order - 1
    return order * np.expm1(k * log_ratio), -k * np.expm1(order * log_ratio)


def allowed(order: float, bound: float | Floats) -> Floats:
    """What a bet may pay on average, if the divergence is at most `bound`; rounded up."""
    k = max(order - 1, 0.0)
    r: Floats = np.asarray(bound, np.float64) if k == 0 else np.expm1(k * np.asarray(bound))
    return r * (1 + 1e-15)


def against_divergences(
    joint: Ints | Floats, scores: Floats, orders: Sequence[float], bounds: Floats
) -> Attacks:
    """Attacks on the divergence of D from D', of D' from D, and on both at once.

    `bounds` are those of the divergences, in nats, shape (rungs, orders).
    """
    ratios, known = log_ratios(joint, scores)
    paid1, paid2, r = [], [], []
    shapes = [
        np.clip(power * ratio, -share * largest, share * largest)
        for ratio in ratios
        for power in POWERS
        for largest in [power * np.abs(ratio).max()]
        for share in CUT_OFF
    ]
    shape = np.stack(shapes)
    for k, order in enumerate(orders):
        clipped = np.clip(shape, -LARGEST_LOG_PAID / order, LARGEST_LOG_PAID / order)
        (gain, cost), (back, price) = paid(clipped, order), paid(-clipped, order)
        paid1 += [gain, price, gain + price]
        paid2 += [cost, back, back + cost]
        limit = allowed(order, bounds[:, k])[:, None]
        r += [factor * np.repeat(limit, len(shape), axis=1) for factor in (1.0, 1.0, 2.0)]
    optimism = np.tile(
        np.repeat(OPTIMISM_PER_PARAMETER * known, len(POWERS) * len(CUT_OFF)), 3 * len(orders)
    )
    paid_for_d, paid_for_d2 = (np.concatenate(part).T[None] for part in (paid1, paid2))
    return Attacks(paid_for_d, paid_for_d2, np.concatenate(r, axis=1), optimism)
