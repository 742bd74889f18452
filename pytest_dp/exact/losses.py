"""What two distributions lose: exactly where both are known, else with sure bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.exact.distribution import Distribution
from pytest_dp.privacy import HockeyStick


@dataclass(frozen=True, slots=True)
class Both:
    """Probabilities of the same outcomes on two inputs.

    Attributes
    ----------
    marks : ndarray of int
        Of each outcome.
    p, q : ndarray of float
        Its probability on D and on D', as far as it is known.
    residuals : (float, float)
        What is not known, which any outcome may have.
    rounding : float
        Relative error of the probabilities.
    """

    marks: Ints
    p: Floats
    q: Floats
    residuals: tuple[float, float]
    rounding: float

    @property
    def turned(self) -> Both:
        """The other direction."""
        return Both(self.marks, self.q, self.p, self.residuals[::-1], self.rounding)


def both(on_d: Distribution, on_d2: Distribution) -> Both:
    """Outcomes of either distribution, by their hashes."""
    marks = np.union1d(on_d.marks, on_d2.marks)
    p, q = np.zeros(len(marks)), np.zeros(len(marks))
    p[np.searchsorted(marks, on_d.marks)] = on_d.probabilities
    q[np.searchsorted(marks, on_d2.marks)] = on_d2.probabilities
    rounding = max(on_d.rounding, on_d2.rounding) + FLOATS
    return Both(marks, p, q, (on_d.residual, on_d2.residual), rounding)


FLOATS = 2.0**-50
"""Relative error of sums of a few floats."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What is known of a guarantee's parameter, from one direction of a pair.

    Attributes
    ----------
    lower : float
        The parameter is at least this large: surely.
    upper : float
        It is at most this large beside a further delta of `beside`.
    beside : float
        What outputs may have that were not enumerated; 0 where all were.
    error : float
        Of `upper`, by rounding.
    marks : ndarray of int
        The outcomes by which it is attained.
    """

    lower: float
    upper: float
    beside: float
    error: float
    marks: Ints


def delta_of(stick: HockeyStick, pair: Both) -> tuple[float, float, Bools]:
    """What P exceeds ``exp(eps) Q`` by, on the worst set of outcomes: at least, and at most.

    Returns
    -------
    lower, upper : float
    worst : ndarray of bool
        The set.
    """
    factor = math.exp(stick.eps)
    worst = pair.p > factor * pair.q
    p, q = math.fsum(pair.p[worst]), math.fsum(pair.q[worst])
    on_d, on_d2 = pair.residuals
    slack = pair.rounding * (p + factor * q)
    return p - factor * (q + on_d2) - slack, p - factor * q + on_d + slack, worst


def eps_at(delta: float, pair: Both) -> Loss:
    """The smallest eps at which P is covered beside `delta`, in nats.

    Source: the hockey-stick divergence is piecewise linear in exp(eps), with a corner at each ratio
    of probabilities.
    """
    on_d, on_d2 = pair.residuals
    nearly = 1 - pair.rounding
    lower, worst = _eps(delta, pair.p * nearly, pair.q / nearly, on_d2)
    beside = on_d + math.exp(min(lower, 700.0)) * on_d2
    upper, _ = _eps(delta + beside, pair.p, pair.q, 0.0)
    return Loss(lower, max(upper, lower), beside, 2 * pair.rounding, pair.marks[worst])


def _eps(delta: float, p: Floats, q: Floats, more: float) -> tuple[float, Bools]:
    """Logarithm of the largest (P(S) - delta) / (Q(S) + more), and the set S."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    left, right = np.cumsum(p[order]) - delta, np.cumsum(q[order]) + more
    if not len(p) or not (left > 0).any():
        return 0.0, np.zeros(len(p), bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(left > 0, left / right, 0.0)
    best = int(np.argmax(quotient))
    worst = np.zeros(len(p), bool)
    worst[order[: best + 1]] = True
    return max(math.log(quotient[best]) if quotient[best] > 0 else 0.0, 0.0), worst
