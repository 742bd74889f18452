"""Bets on attacks: functions of a bin that pay for the output on D and for the output on D'.

A bound on an f-divergence of P from Q is ``E_P[s] <= E_Q[f*(s)] + r`` for all functions ``s`` of
the output (`f*` is the convex conjugate): a pair of outputs x ~ P, y ~ Q pays
``s(x) - f*(s(y)) - r``, whose mean is at most 0 under the claim. A hockey stick is the case with s
in [0, 1], ``f*(s) = exp(eps) s`` and ``r = delta``.

Of the Rényi divergences (that of order 1 is Kullback-Leibler's), with v the ratio of the
probabilities of a bin on D and on D', as far as the past tells, a pair of outputs pays for the
order 1 ``ln v(x) - (v(y) - 1)``, whose mean is at most the divergence, and for order a > 1
``a v(x)^(a-1) - (a-1) v(y)^a - 1``, whose mean is at most ``exp((a-1) D) - 1``. That holds for any
v (Young's inequality): with a bad estimate they only pay less. So that one rare output does not cap
all stakes, log ratios are cut off at several sizes, and drawn towards 0.

docs/proofs/betting-on-divergences.md proves all of it.

Source: Nguyen, Wainwright, Jordan, "Estimating Divergence Functionals and the Likelihood Ratio by
Convex Risk Minimization", IEEE Trans. Inf. Theory 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import FRACTIONS

MAX_STEPS = 100
"""Steps of Newton's method, at most. Fewer stop early if one number separates all outputs."""
LAST_STEP = 1e-8
"""Largest step in a weight at which a fit has converged. Larger: less exact; smaller: a step
more."""
MIN_LOSS = 1e-9
"""Largest loss of a bet that is divided by, at least."""

SHARPNESS = np.array([1.0, 3.0, 10.0])
"""Factors of a soft attack before it is cut off at 1, for claims with a delta: large ones bet on
ratios of probabilities far above the claim. More share one wealth; fewer miss such leaks: the first
alone takes twice the samples of independent Gaussian noise under a delta. Measured."""
LINE_OPTIMISM = 1.0
"""Log growth, in nats, by which an attack does better on the record that it was fitted to than on
new outputs: 0.5, by Wilks' theorem, for each of the two numbers of a line. Larger: bets wait;
smaller: bets on chance: 0 takes 1.1 to 1.17 times the samples of Gaussian noise under mu, rho or
Rényi privacy of order 2 (benchmarks/README.md)."""
LARGEST_LOG_RATIO = 30.0
"""Limit to a log ratio, in nats, so that nothing overflows."""
POWERS = (0.7, 1.0)
"""Powers of the estimated ratio of probabilities that are bet on: below 1 less is won, and far less
lost where the estimate is too steep. 1 alone takes 10 % more samples; more share one wealth."""
CUT_OFF = np.arange(1, 7) / 6
"""Where log ratios are cut off, as shares of the largest, so that rare outputs cannot ruin all
bets. More share one wealth; the largest alone takes 1.1 to 1.2 times the samples under a bound of
order 8. Measured."""
LARGEST_LOG_PAID = 300.0
"""Limit to the log of a payoff, in nats, so that nothing overflows."""
FINE_FRACTIONS = 0.98 * 0.7 ** np.arange(30)
"""Stakes to choose one from, as shares of the largest that cannot ruin. More take longer; fewer are
farther from the best. By hand."""
LOG_WEALTH_ROUNDING = 1e-15
"""Largest rounding error of log wealth for each pair of outputs; it is taken off. Larger is never
invalid."""


def expit(log_odds: Any) -> Floats:
    """Return the probabilities of log odds, to full relative precision."""
    odds = np.asarray(log_odds, np.float64)
    small = np.exp(-np.abs(odds))
    probabilities: Floats = np.where(odds >= 0, 1.0, small) / (1.0 + small)
    return probabilities


def logit(probability: Any) -> Floats:
    """Return the log odds of probabilities; infinite at 0 and 1."""
    p = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore"):
        odds: Floats = np.log(p) - np.log1p(-p)
    return odds


def logistic(basis: Floats, hits: Floats | Ints, runs: Floats | Ints, precision: Floats) -> Floats:
    """Return the weights of a ridge logistic regression on grouped outcomes, by Newton's method.

    `hits` of `runs` outcomes per group; the log odds are a weighted sum of the rows of `basis`,
    shape (k, groups). The prior of the k weights has mean 0 and this `precision`, shape (k,). After
    `MAX_STEPS` steps the last weights are returned, converged or not.
    """
    weights = np.zeros(len(basis))
    for _ in range(MAX_STEPS):
        p = expit(weights @ basis)
        curvature = (basis * (runs * p * (1 - p))) @ basis.T + np.diag(precision)
        slope = basis @ (hits - runs * p) - precision * weights
        step = np.linalg.solve(curvature, slope)
        weights = weights + np.clip(step, -1, 1)
        if np.abs(step).max() < LAST_STEP:
            break
    return weights


@dataclass(frozen=True, slots=True)
class Attacks:
    """A set of bets that pay by the bins of both outputs, against some rungs (guarantees).

    A pair of outputs in bins (i, j) pays ``paid1[i] + paid2[j] - r``.
    """

    paid1: Floats
    """Payoff of the bin of the output on D, shape (rungs or 1, b, attacks); one row serves all
    rungs."""
    paid2: Floats
    """Payoff of the bin of the output on D'."""
    r: Floats
    """The largest mean payoff that the claim allows, at least 0, shape (rungs, attacks)."""

    @property
    def stakes(self) -> Floats:
        """The stakes for every fraction, shape (rungs or 1, fractions, attacks).

        In units in which `r` only shifts growth: with ``f = g / (1 + g r)``, ``1 + f (pay - r)`` is
        ``(1 + g pay) / (1 + g r)``, nonnegative for g up to the inverse of the largest loss.
        """
        stakes: Floats = (1 / self.largest_loss)[:, None, :] * FRACTIONS[:, None]
        return stakes

    @property
    def largest_loss(self) -> Floats:
        """The largest loss by a pair of bins, without `r`, shape (rungs or 1, attacks)."""
        loss: Floats = np.maximum(-(self.paid1.min(axis=1) + self.paid2.min(axis=1)), MIN_LOSS)
        return loss

    def growth(self, joint: Ints | Floats) -> Floats:
        """Return the log growth on a table of pairs of outputs, (rungs, attacks, fractions)."""
        i, j = np.nonzero(joint)
        times = joint[i, j].astype(np.float64)
        stakes = self.stakes
        pays = self.paid1[:, i] + self.paid2[:, j]
        growth = np.log1p(pays[:, None] * stakes[:, :, None])
        gained = np.moveaxis(growth, -1, 1) @ times
        shift = times.sum() * np.log1p(stakes * self.r[:, None])
        shifted: Floats = gained - shift.swapaxes(1, 2)
        return shifted


def log_ratio_of(joint: Ints | Floats, scores: Floats) -> Floats:
    """Return estimated log ratios of the bins' probabilities on D and on D', in nats, shape (b,).

    By logistic regression on the average score of each bin, with a weak prior against steep ratios
    (Platt, "Probabilistic Outputs for Support Vector Machines", 1999). All 0 if all scores are
    equal.
    """
    counts1 = joint.sum(1)
    runs = counts1 + joint.sum(0)
    centred = scores - np.average(scores, weights=runs)
    spread = math.sqrt(np.average(centred**2, weights=runs))
    if spread == 0:
        return np.zeros(len(scores))
    about = np.stack([np.ones(len(scores)), centred / spread])
    odds = logistic(about, counts1, runs, np.array([1.0, 0.1])) @ about
    return np.clip(odds, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)


def soft_attack_sizes(ratio: Floats, prices: Floats) -> Floats:
    """Return an attack for each price: the stake on each bin, from 0 to 1, shape (prices, b).

    To second order the best stakes for small edges, ``max(p - price q, 0) / (p + price^2 q)``,
    divided by the largest of them; 0 if no bin has an edge. `ratio` is the log ratio of the bins'
    probabilities p on D and q on D'; its negative gives attacks in the other direction. Prices are
    exponentials of losses.
    """
    p, q, price = expit(ratio), expit(-ratio), prices[:, None]
    size = np.maximum(p - price * q, 0) / (p + price**2 * q)
    largest = size.max(axis=1, keepdims=True)
    scaled: Floats = np.divide(size, largest, out=np.zeros_like(size), where=largest > 0)
    return scaled


def against_sticks(ratio: Floats, prices: Floats, delta: Floats, sharpness: Floats) -> Attacks:
    """Return soft attacks against hockey sticks: on D, on D', and on both at once.

    `ratio` is that of `log_ratio_of`. Prices are exponentials of losses; they and `delta` have the
    shape (rungs, sticks). Each factor in `sharpness` multiplies attacks before they are cut off at
    1; a single factor makes no attacks on both at once.
    """
    paid1, paid2, r = list[Floats](), list[Floats](), list[Floats]()
    for k in range(prices.shape[1]):
        price, leak = prices[:, k, None], delta[:, k]
        up, down = (soft_attack_sizes(side, prices[:, k]) for side in (ratio, -ratio))
        for factor in sharpness.tolist():
            one, other = np.minimum(factor * up, 1.0), np.minimum(factor * down, 1.0)
            paid1 += [one, -price * other]
            paid2 += [-price * one, other]
            r += [leak, leak]
            if len(sharpness) > 1:
                paid1.append(one - price * other)
                paid2.append(other - price * one)
                r.append(2 * leak)
    return Attacks(np.stack(paid1, axis=2), np.stack(paid2, axis=2), np.stack(r, axis=1))


def payoffs_of_ratio(log_ratio: Floats, order: float) -> tuple[Floats, Floats]:
    """Return the payoffs of bins on the likelier input, and on the other, shape (b,) each.

    For a bet on the divergence of an order, by an estimate of the bins' log ratio.
    """
    if order == 1:
        return log_ratio, -np.expm1(log_ratio)
    k = order - 1
    return order * np.expm1(k * log_ratio), -k * np.expm1(order * log_ratio)


def largest_mean_payoff(order: float, bound: float | Floats) -> Floats:
    """Return the largest mean payoff under a bound, in nats, on a divergence; rounded up."""
    k = max(order - 1, 0.0)
    r: Floats = np.asarray(bound, np.float64) if k == 0 else np.expm1(k * np.asarray(bound))
    return r * (1 + 1e-15)


def against_divergences(
    joint: Ints | Floats, scores: Floats, orders: Sequence[float], bounds: Floats
) -> Attacks:
    """Return attacks on the divergence of D from D', of D' from D, and on both at once.

    `joint` and `scores` are those of the first binning of a `BetRecord`; `bounds` are in nats,
    shape (rungs, orders). Empty without orders.
    """
    ratio = log_ratio_of(joint, scores) if orders else np.zeros(len(joint))
    paid1, paid2, r = list[Floats](), list[Floats](), list[Floats]()
    for order, bound in zip(orders, bounds.T, strict=True):
        limit = largest_mean_payoff(order, bound)
        for power, share in product(POWERS, CUT_OFF):
            shape = power * ratio
            most = min(share * float(np.abs(shape).max()), LARGEST_LOG_PAID / order)
            clipped = np.clip(shape, -most, most)
            gain, cost = payoffs_of_ratio(clipped, order)
            back, price = payoffs_of_ratio(-clipped, order)
            paid1 += [gain, price, gain + price]
            paid2 += [cost, back, back + cost]
            r += [limit, limit, 2 * limit]
    by_bin1, by_bin2 = (np.array(paid).reshape(len(r), len(joint)).T for paid in (paid1, paid2))
    return Attacks(by_bin1[None], by_bin2[None], np.array(r).reshape(len(r), len(bounds)).T)


@dataclass(frozen=True, slots=True)
class DivergenceBet:
    """A bet on the divergence of D from D', of D' from D, or on the larger of both."""

    order: float
    paid1: Floats
    """Payoff of the bin of the output on D, shape (b,)."""
    paid2: Floats
    """Payoff of the bin of the output on D'."""
    stake: float
    """At most the inverse of the largest loss."""
    ways: int
    """2 for a bet on both directions, else 1."""

    def lower(self, joint: Ints, alpha: float) -> float:
        """Return the lower confidence bound on the divergence, in nats; 0.0 if nothing is proved.

        `joint` counts held-out pairs, as in `BetRecord.joint`, that had no part in the choice of
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
    """Return the bet that is expected to prove the largest parameter of a guarantee.

    `joint` and `scores` are those of the first binning of a `BetRecord`; `pairs` will be held out,
    for a bound at level `alpha`. Raises ValueError unless the guarantee bounds divergences.
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
    """Return the best bet on the divergence of an order, and the divergence it should prove."""
    attacks = against_divergences(joint, scores, [order], np.zeros((1, 1)))
    paid1, paid2 = attacks.paid1[0], attacks.paid2[0]
    ways = np.tile([1, 1, 2], paid1.shape[1] // 3)
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
    """Return the divergence, in nats, that log growth per pair proves; at least 0, rounded down."""
    r = np.expm1(np.asarray(growth) - LOG_WEALTH_ROUNDING + math.log(alpha) / pairs) / stake
    r = np.maximum(r, 0.0)
    shown: Floats = r if order == 1 else np.log1p(r) / (order - 1)
    return shown * (1 - 1e-14)
