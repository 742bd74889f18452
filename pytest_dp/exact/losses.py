"""The loss between two distributions: exact where both are fully known, else between bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.exact.distribution import Distribution
from pytest_dp.limits import FLOAT_ERRORS
from pytest_dp.privacy import HockeyStick


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probabilities of the same outcomes on two inputs."""

    marks: Ints
    """Of each outcome."""
    p: Floats
    """Lower bounds on its probability on D."""
    q: Floats
    """The same on D'."""
    residuals: tuple[float, float]
    """The probability on D and on D' that was not enumerated, which any outcomes may have."""
    rounding: float
    """Relative error of the probabilities."""

    @property
    def swapped(self) -> PairProbabilities:
        """The other direction: D' in the place of D."""
        return PairProbabilities(self.marks, self.q, self.p, self.residuals[::-1], self.rounding)


def pair_probabilities(on_d: Distribution, on_d2: Distribution) -> PairProbabilities:
    """The probabilities of all outcomes of two distributions, by their hashes."""
    marks = np.union1d(on_d.marks, on_d2.marks)
    p, q = np.zeros(len(marks)), np.zeros(len(marks))
    p[np.searchsorted(marks, on_d.marks)] = on_d.probabilities
    q[np.searchsorted(marks, on_d2.marks)] = on_d2.probabilities
    rounding = max(on_d.rounding, on_d2.rounding) + FLOAT_ERRORS
    return PairProbabilities(marks, p, q, (on_d.residual, on_d2.residual), rounding)


@dataclass(frozen=True, slots=True)
class Loss:
    """Bounds on eps in one direction of a pair."""

    lower: float
    upper: float
    """With a delta that is larger by `extra_delta`."""
    extra_delta: float
    """By outputs that were not enumerated; 0 where all were."""
    error: float
    """Of `upper`, by rounding."""
    marks: Ints
    """The outcomes by which it is attained."""


def delta_of(stick: HockeyStick, pair: PairProbabilities) -> tuple[float, float, Bools]:
    """Bounds on how much P exceeds ``exp(eps) Q`` on the worst set of outcomes, and that set."""
    factor = math.exp(stick.eps)
    worst = pair.p > factor * pair.q
    p, q = math.fsum(pair.p[worst]), math.fsum(pair.q[worst])
    on_d, on_d2 = pair.residuals
    slack = pair.rounding * (p + factor * q)
    return p - factor * (q + on_d2) - slack, p - factor * q + on_d + slack, worst


def eps_at(delta: float, pair: PairProbabilities) -> Loss:
    """The smallest eps for which P exceeds ``exp(eps) Q`` by at most `delta`, in nats.

    Source: the hockey-stick divergence is piecewise linear in exp(eps), with a corner at each ratio
    of probabilities.
    """
    on_d, on_d2 = pair.residuals
    shrink = 1 - pair.rounding
    lower, worst = _eps(delta, pair.p * shrink, pair.q / shrink, on_d2)
    extra_delta = on_d + math.exp(min(lower, 700.0)) * on_d2
    upper, _ = _eps(delta + extra_delta, pair.p, pair.q, 0.0)
    return Loss(lower, max(upper, lower), extra_delta, 2 * pair.rounding, pair.marks[worst])


def _eps(delta: float, p: Floats, q: Floats, residual: float) -> tuple[float, Bools]:
    """Logarithm of the largest (P(S) - delta) / (Q(S) + residual), and the set S."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    numerator, denominator = np.cumsum(p[order]) - delta, np.cumsum(q[order]) + residual
    if not len(p) or not (numerator > 0).any():
        return 0.0, np.zeros(len(p), bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(numerator > 0, numerator / denominator, 0.0)
    best = int(np.argmax(quotient))
    worst = np.zeros(len(p), bool)
    worst[order[: best + 1]] = True
    return max(math.log(quotient[best]) if quotient[best] > 0 else 0.0, 0.0), worst
