"""Bets on attacks: functions of a bin that pay for the output on D and for the output on D'.

A bound on an f-divergence of P from Q is ``E_P[s] <= E_Q[f*(s)] + r`` for all functions ``s`` of
the output (`f*` is the convex conjugate): a pair of outputs x ~ P, y ~ Q pays
``s(x) - f*(s(y)) - r``, whose mean is at most 0 under the claim. A hockey stick is the case with s
in [0, 1], ``f*(s) = exp(eps) s`` and ``r = delta``. Divergences are in `divergence_bets`.

Source: Nguyen, Wainwright, Jordan, "Estimating Divergence Functionals and the Likelihood Ratio by
Convex Risk Minimization", IEEE Trans. Inf. Theory 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.statistics.event_bets import FRACTIONS
from pytest_dp.statistics.regression import expit, logistic

MIN_LOSS = 1e-9
"""Largest loss of a bet that is divided by, at least."""

SHARPNESS = np.array([1.0, 3.0, 10.0])
"""Factors of a soft attack before it is cut off at 1, for claims with a delta: with large ones,
more is bet on ratios of probabilities far above the claim. More factors share the same wealth;
fewer miss such leaks: the first alone takes twice the samples of Gaussian noise under a delta if
draws are independent. Measured."""
LINE_OPTIMISM = 1.0
"""Log growth, in nats, by which an attack does better on the record that it was fitted to than the
truth would: 0.5, by Wilks' theorem, for each of the two numbers of a line. Larger: bets wait until
the record speaks clearly; smaller: bets on chance, and with 0 Gaussian noise under mu, rho or Rényi
privacy of order 2 takes 1.1 to 1.17 times the samples (benchmarks/README.md)."""
LARGEST_LOG_RATIO = 30.0
"""Limit to a log ratio, in nats, so that nothing overflows."""
NEWTON_STEPS = 30
"""Steps of Newton's method, at most. Each is bounded, so that a steep line takes a few more. It
stops earlier once it has converged; only the time depends on it."""


@dataclass(frozen=True, slots=True)
class Attacks:
    """Attacks that are bet on, for some rungs; bins (i, j) pay ``paid1[i] + paid2[j] - r``."""

    paid1: Floats
    """Paid for the bin of the output on D, shape (rungs or 1, b, attacks); one row serves all
    rungs."""
    paid2: Floats
    """The same on D'."""
    r: Floats
    """What the claim allows, at least 0, shape (rungs, attacks)."""

    @property
    def stakes(self) -> Floats:
        """Stakes for every fraction, shape (rungs or 1, fractions, attacks).

        In units in which `r` only shifts growth: with ``f = g / (1 + g r)``, ``1 + f (pay - r)`` is
        ``(1 + g pay) / (1 + g r)``, nonnegative for g up to the inverse of the largest loss.
        """
        stakes: Floats = (1 / self.largest_loss)[:, None, :] * FRACTIONS[:, None]
        return stakes

    @property
    def largest_loss(self) -> Floats:
        """The most that any pair of bins costs, without `r`, shape (rungs or 1, attacks)."""
        loss: Floats = np.maximum(-(self.paid1.min(axis=1) + self.paid2.min(axis=1)), MIN_LOSS)
        return loss

    def growth(self, joint: Ints | Floats) -> Floats:
        """Return the log growth on a `BetRecord.joint`, shape (rungs, attacks, fractions)."""
        i, j = np.nonzero(joint)
        times = joint[i, j].astype(np.float64)
        stakes = self.stakes
        pays = self.paid1[:, i] + self.paid2[:, j]
        growth = np.log1p(pays[:, None] * stakes[:, :, None])
        gained = np.moveaxis(growth, -1, 1) @ times
        shift = times.sum() * np.log1p(stakes * self.r[:, None])
        shifted: Floats = gained - shift.swapaxes(1, 2)
        return shifted


def no_attacks(bins: int, rungs: int) -> Attacks:
    """Return an empty set of attacks."""
    nothing = np.zeros((1, bins, 0))
    return Attacks(nothing, nothing, np.zeros((rungs, 0)))


def log_ratio_of(joint: Ints | Floats, scores: Floats) -> Floats:
    """Estimate the log ratio of the bins' probabilities on D and on D', in nats, shape (b,).

    It is linear in the average score of the bins, of largest likelihood, and hardly steeper than is
    known (Platt, "Probabilistic Outputs for Support Vector Machines", 1999).
    """
    counts1 = joint.sum(1)
    runs = counts1 + joint.sum(0)
    centred = scores - np.average(scores, weights=runs)
    spread = math.sqrt(np.average(centred**2, weights=runs))
    if spread == 0:
        return np.zeros(len(scores))
    about = np.stack([np.ones(len(scores)), centred / spread])
    prior = np.zeros(2), np.array([1.0, 0.1])
    odds = logistic(about, counts1, runs, prior, NEWTON_STEPS, 1e-9) @ about
    return np.clip(odds, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)


def soft_attacks(ratio: Floats, prices: Floats) -> Floats:
    """Return how much of each bin to bet on so that small edges grow fastest, shape (prices, b).

    The optimum to second order, ``max(p - price q, 0) / (p + price^2 q)``, by the log ratio of the
    bins' probabilities p and q on D and D'. Prices are exponentials of the losses that are bet
    against. For the other direction, turn the sign of the ratio.
    """
    p, q, price = expit(ratio), expit(-ratio), prices[:, None]
    size = np.maximum(p - price * q, 0) / (p + price**2 * q)
    largest = size.max(axis=1, keepdims=True)
    scaled: Floats = np.divide(size, largest, out=np.zeros_like(size), where=largest > 0)
    return scaled


def against_sticks(ratio: Floats, prices: Floats, delta: Floats, sharpness: Floats) -> Attacks:
    """Return soft attacks against hockey sticks: on D, on D', and on both if delta is claimed.

    `ratio` is that of `log_ratio_of`. Prices are exponentials of the losses; they and `delta` have
    the shape (rungs, sticks). An attack is multiplied by each factor in `sharpness` before it is
    cut off at 1.
    """
    rungs, sticks = prices.shape
    up, down = (
        np.minimum(sharpness * soft_attacks(side, prices.ravel())[..., None], 1.0).reshape(
            rungs, sticks, len(ratio), len(sharpness)
        )
        for side in (ratio, -ratio)
    )
    price = prices[:, :, None, None]
    paid1, paid2 = [up, -price * down], [-price * up, down]
    r = [delta, delta]
    if len(sharpness) > 1:
        paid1, paid2, r = (
            [*paid1, paid1[0] + paid1[1]],
            [*paid2, paid2[0] + paid2[1]],
            [*r, 2 * delta],
        )

    attacks = sticks * len(sharpness) * len(r)

    def by_bin(parts: list[Floats]) -> Floats:
        return np.stack(parts, axis=-1).transpose(0, 2, 1, 3, 4).reshape(rungs, len(ratio), attacks)

    allowed = np.repeat(np.stack(r, axis=-1)[:, :, None], len(sharpness), axis=2)
    return Attacks(by_bin(paid1), by_bin(paid2), allowed.reshape(rungs, attacks))
