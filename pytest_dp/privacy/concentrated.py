"""Guarantees that bound all of the privacy loss: zero-concentrated, Gaussian, and Rényi privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_dp.errors import ClaimError
from pytest_dp.privacy.constraints import HockeyStick, Renyi
from pytest_dp.privacy.guarantees import (
    LARGEST_EPS,
    Curve,
    Number,
    WithoutEps,
    as_given,
    rounded_down,
)

if TYPE_CHECKING:
    from pytest_dp.privacy.profiles import Region

_QUANTILES = (0.7, 1.4, 2.1, 2.8, 3.6, 4.5, 5.5)


@dataclass(frozen=True)
class ZeroConcentratedDP(Curve):
    """rho-zero-concentrated privacy: the divergence of every order above 1 is at most order * rho.

    Bun, Steinke, "Concentrated Differential Privacy", TCC 2016.
    """

    rho: float

    @property
    def parameter(self) -> str:
        return "rho"

    @property
    def claimed(self) -> float:
        return self.rho

    @cached_property
    def region(self) -> Region:
        from pytest_dp.privacy.bernoulli import concentrated_tangents
        from pytest_dp.privacy.profiles import Region

        return Region.below(*concentrated_tangents(self.rho))

    @property
    def divergences(self) -> tuple[Renyi, ...]:
        orders = (1.0, 2.0, 8.0)
        return tuple(Renyi(order, order * self.rho) for order in orders if can_bet(order, self.rho))

    def at(self, value: float) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(value)

    def shown_by(self, p: Number, q: Number) -> Number:
        import numpy as np

        from pytest_dp.privacy.bernoulli import concentration

        p_, q_ = np.asarray(p, float), np.asarray(q, float)
        return as_given(p, np.where(p_ > q_, concentration(p_, q_), 0.0))

    def shown_by_divergence(self, order: float, value: float) -> float:
        return max(value / order, 0.0)

    def group(self, k: int) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(self.rho * k * k)

    @property
    def label(self) -> str:
        return f"rho={self.rho!r}"


def can_bet(order: float, rho: float) -> bool:
    """Whether floats hold the moment that is bounded."""
    return order * (order - 1) * rho <= LARGEST_EPS


@dataclass(frozen=True)
class GaussianDP(WithoutEps):
    """mu-Gaussian privacy: P and Q are no easier to tell apart than N(mu, 1) and N(0, 1).

    Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022.
    """

    mu: float

    @property
    def parameter(self) -> str:
        return "mu"

    @property
    def claimed(self) -> float:
        return self.mu

    @property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        losses = (0.0, *(self.mu * self.mu / 2 + self.mu * each for each in _QUANTILES))
        return tuple(HockeyStick(eps, self.delta_at(eps)) for eps in losses if eps <= LARGEST_EPS)

    @property
    def divergences(self) -> tuple[Renyi, ...]:
        rho = self.mu * self.mu / 2 * (1 + 4e-16)
        return tuple(Renyi(order, order * rho) for order in (1.0, 2.0) if can_bet(order, rho))

    def at(self, value: float) -> GaussianDP:
        return GaussianDP(value)

    def delta_at(self, eps: float) -> float:
        """Exact: Balle, Wang, "Improving the Gaussian Mechanism", ICML 2018, Theorem 5."""
        near, far = self.mu / 2 - eps / self.mu, -self.mu / 2 - eps / self.mu
        above = math.erfc(-near / math.sqrt(2)) / 2
        paid = math.exp(eps + _log_normal(far))
        error = 2e-15 * (4 + near * near + far * far) * (above + paid)
        return min(max(above - paid, 0.0) + error, 1.0)

    def most(self, q: Number) -> Number:
        import numpy as np
        from scipy.special import ndtr, ndtri

        return as_given(q, np.minimum(ndtr(ndtri(np.asarray(q, float)) + self.mu) * (1 + 1e-12), 1))

    def shown_by(self, p: Number, q: Number) -> Number:
        import numpy as np
        from scipy.special import ndtri

        p_, q_ = np.asarray(p, float), np.asarray(q, float)
        with np.errstate(invalid="ignore"):
            high, low = ndtri(p_), ndtri(q_)
            shown = high - low - 4e-15 * (1 + abs(high) + abs(low))
        shown = np.where(np.isinf(high) | np.isinf(low), np.inf, shown)
        return as_given(p, np.where(p_ > q_, np.maximum(shown, 0.0), 0.0))

    def shown_by_divergence(self, order: float, value: float) -> float:
        return math.sqrt(2 * max(value, 0.0) / order) * (1 - 4e-16)

    def group(self, k: int) -> GaussianDP:
        return GaussianDP(self.mu * k)

    @property
    def label(self) -> str:
        return f"mu={self.mu!r}"


def _log_normal(x: float) -> float:
    """The logarithm of the normal distribution function at x below 0."""
    if x > -37:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    series = 1 - 1 / x**2 + 3 / x**4
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log(series)


@dataclass(frozen=True)
class RenyiDP(Curve):
    """Rényi privacy: the divergence of each of some orders above 1 is bounded.

    Mironov, "Rényi Differential Privacy", CSF 2017.

    Attributes
    ----------
    orders : tuple of (order, eps)
        As promised.
    scale : float
        By which every eps is multiplied.
    """

    orders: tuple[tuple[float, float], ...]
    scale: float = 1.0

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Pairs of an order and its bound, scaled."""
        return tuple((order, eps * self.scale) for order, eps in self.orders)

    @property
    def parameter(self) -> str:
        return "rdp" if len(self.orders) == 1 else "scale"

    @property
    def claimed(self) -> float:
        return self.scale * (self.orders[0][1] if len(self.orders) == 1 else 1.0)

    @cached_property
    def region(self) -> Region:
        from pytest_dp.privacy.bernoulli import renyi_tangents
        from pytest_dp.privacy.profiles import Region

        return Region.below(*renyi_tangents(self.bounds))

    @property
    def divergences(self) -> tuple[Renyi, ...]:
        least = Renyi(1.0, min(bound for _, bound in self.bounds))
        given = (Renyi(order, bound) for order, bound in self.bounds)
        return (least, *(each for each in given if can_bet(each.order, each.bound / each.order)))

    def at(self, value: float) -> RenyiDP:
        if len(self.orders) == 1:
            return RenyiDP(((self.orders[0][0], value),))
        return RenyiDP(self.orders, value)

    def shown_by(self, p: Number, q: Number) -> Number:
        import numpy as np

        from pytest_dp.privacy.bernoulli import renyi

        p_, q_ = np.asarray(p, float), np.asarray(q, float)
        shown = np.zeros(np.broadcast_shapes(p_.shape, q_.shape))
        for order, unit in self._units():
            both = np.maximum(renyi(p_, q_, order), renyi(1 - q_, 1 - p_, order))
            shown = np.maximum(shown, both / unit * (1 - 4e-16))
        return as_given(p, np.where(p_ > q_, shown, 0.0))

    def shown_by_divergence(self, order: float, value: float) -> float:
        """Divergences of larger orders are as large or larger."""
        units = [unit for bounded, unit in self._units() if bounded >= order]
        return max(value, 0.0) / min(units) * (1 - 4e-16) if units else 0.0

    def _units(self) -> tuple[tuple[float, float], ...]:
        """What of each order's divergence is 1 of the parameter."""
        return ((self.orders[0][0], 1.0),) if len(self.orders) == 1 else self.orders

    def group(self, k: int) -> RenyiDP:
        if k == 1:
            return self
        raise ClaimError(
            f"group={k} of {self}: Rényi privacy has no rule for groups. Allowed: group= with "
            "every other notion. Write what the mechanism promises for inputs at that distance as "
            "rdp= itself, or claim rho= or mu= with group=."
        )

    @property
    def label(self) -> str:
        if len(self.orders) == 1:
            return f"rdp={self.bounds[0]!r}"
        return f"rdp={dict(self.bounds)!r}"

    def in_words(self, value: float) -> str:
        if len(self.orders) > 1:
            return f"{rounded_down(value)} times the claim"
        return f"eps >= {rounded_down(value)} at order {self.orders[0][0]:g}"
