"""Laws of single draws in their standard form: densities and distribution functions, as logarithms.

All are those of a location-scale family at location 0 and scale 1, or of integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr

from pytest_dp.arrays import Floats

LATTICES = {"geometric", "two-sided geometric", "integers"}
"""Families of integers."""
EXPONENTIAL_TAILS = {"laplace", "logistic"}
"""Families on the whole line whose log density falls with slope 1 far out, and nowhere faster."""


@dataclass(frozen=True, slots=True)
class Law:
    """The law of a standard draw.

    Attributes
    ----------
    family : str
        ``"laplace"``, ``"normal"``, ``"logistic"``, ``"gumbel"``, ``"exponential"`` and
        ``"uniform"`` have a density; of integers are ``"geometric"`` (from 0), ``"two-sided
        geometric"`` and ``"integers"`` (all from 0 to below a number equally likely).
    parameter : float or int
        Of the first two of integers: the ratio of neighbouring probabilities, below 1; of the last,
        how many there are. 0 for the others.
    """

    family: str
    parameter: float | int = 0

    @property
    def lattice(self) -> bool:
        """Whether it is one of integers."""
        return self.family in LATTICES

    @property
    def symmetric(self) -> bool:
        """Whether a draw and its negative have the same law."""
        return self.family in {"laplace", "normal", "logistic", "two-sided geometric"}

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value."""
        if self.family in {"exponential", "geometric"}:
            return 0.0, math.inf
        if self.family == "uniform":
            return 0.0, 1.0
        if self.family == "integers":
            return 0.0, float(self.parameter - 1)
        return -math.inf, math.inf

    def draws(self, generator: Generator, count: int) -> Floats:
        """Independent standard draws; `count` of them."""
        if self.family == "geometric":
            return np.array(generator.geometric(1 - self.parameter, size=count) - 1, float)
        if self.family == "integers":
            return np.array(generator.integers(int(self.parameter), size=count), float)
        draws: Floats = getattr(generator, self.family)(size=count)
        return draws

    def log_density(self, x: Floats) -> Floats:
        """Logarithm of the density; minus infinity outside of the support."""
        with np.errstate(over="ignore"):
            return _LOG_DENSITY[self.family](np.asarray(x, float))

    def log_below(self, x: Floats) -> Floats:
        """Logarithm of the probability of at most x."""
        with np.errstate(all="ignore"):
            if self.lattice:
                return self._log_at_most(np.floor(x))
            return _LOG_BELOW[self.family](np.asarray(x, float))

    def log_above(self, x: Floats) -> Floats:
        """Logarithm of the probability of more than x."""
        with np.errstate(all="ignore"):
            if self.lattice:
                return self._log_more_than(np.floor(x))
            return _LOG_ABOVE[self.family](np.asarray(x, float))

    def log_between(self, low: Floats, high: Floats) -> Floats:
        """Logarithm of the probability of more than `low`, and at most `high`; may be -inf.

        It is the difference of two probabilities, from the side where these are smaller, so that
        few digits cancel.
        """
        low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        with np.errstate(all="ignore"):
            upper = (low + high > 0) | (np.isfinite(low) & ~np.isfinite(high))
            larger = np.where(upper, self.log_above(low), self.log_below(high))
            smaller = np.where(upper, self.log_above(high), self.log_below(low))
            difference = larger + np.log(-np.expm1(np.minimum(smaller - larger, 0.0)))
            return np.where((high > low) & (larger > -np.inf), difference, -np.inf)

    def _log_at_most(self, k: Floats) -> Floats:
        if self.family == "integers":
            return np.log(np.clip((k + 1) / self.parameter, 0.0, 1.0))
        ratio = float(self.parameter)
        right = k >= 0
        if self.family == "geometric":
            return np.where(right, np.log1p(-(ratio ** np.where(right, k + 1, 1.0))), -np.inf)
        tail = -math.log1p(ratio)  # logarithm of the probability of at most 0
        below = np.where(right, 0.0, -k) * math.log(ratio) + tail
        above = np.log1p(-np.exp(np.where(right, k + 1, 1.0) * math.log(ratio) + tail))
        return np.where(right, above, below)

    def _log_more_than(self, k: Floats) -> Floats:
        if self.family == "integers":
            return np.log(np.clip(1 - (k + 1) / self.parameter, 0.0, 1.0))
        if self.family == "geometric":
            return np.maximum(k + 1, 0.0) * math.log(self.parameter)
        return self._log_at_most(-k - 1)


def _log_one_minus_exp(x: Floats) -> Floats:
    """log(1 - exp(x)) for x of at most 0."""
    return np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _log_logistic(x: Floats) -> Floats:
    return -np.logaddexp(0.0, -x)


def _laplace_below(x: Floats) -> Floats:
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))


def _inside(x: Floats) -> Floats:
    return np.where((x >= 0) & (x <= 1), 0.0, -np.inf)


_LOG_DENSITY: dict[str, Callable[[Floats], Floats]] = {
    "laplace": lambda x: -np.abs(x) - math.log(2),
    "normal": lambda x: -x * x / 2 - math.log(2 * math.pi) / 2,
    "logistic": lambda x: -np.abs(x) - 2 * np.log1p(np.exp(-np.abs(x))),
    "gumbel": lambda x: -x - np.exp(-x),
    "exponential": lambda x: np.where(x >= 0, -x, -np.inf),
    "uniform": _inside,
}
_LOG_BELOW: dict[str, Callable[[Floats], Floats]] = {
    "laplace": _laplace_below,
    "normal": log_ndtr,
    "logistic": _log_logistic,
    "gumbel": lambda x: -np.exp(-x),
    "exponential": lambda x: np.where(x > 0, _log_one_minus_exp(-np.maximum(x, 0.0)), -np.inf),
    "uniform": lambda x: np.log(np.clip(x, 0.0, 1.0)),
}
_LOG_ABOVE: dict[str, Callable[[Floats], Floats]] = {
    "laplace": lambda x: _laplace_below(-x),
    "normal": lambda x: log_ndtr(-x),
    "logistic": lambda x: _log_logistic(-x),
    "gumbel": lambda x: _log_one_minus_exp(-np.exp(-x)),
    "exponential": lambda x: -np.maximum(x, 0.0),
    "uniform": lambda x: np.log(np.clip(1 - x, 0.0, 1.0)),
}
"""Logarithms of the density, of P(X <= x) and of P(X > x), by family."""
