"""Guarantees that bound all of the privacy loss: zero-concentrated, Gaussian, and Rényi privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from pytest_dp.basics.bisection import bracket
from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.guarantees import (
    LARGEST_EPS,
    Curve,
    HockeyStick,
    Number,
    Renyi,
    WithoutEps,
    as_given,
    name_argument,
)

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Floats
    from pytest_dp.privacy.regions import Region

FLOAT_ERROR = 2.0**-50
"""Relative error of one operation or two. Smaller: rounding may make a bound too small."""
LOSS_QUANTILES = (0.7, 1.4, 2.1, 2.8, 3.6, 4.5, 5.5)
"""Losses to bet against, in standard deviations of the loss. More share one wealth; fewer may miss
the one that shows most."""


@dataclass(frozen=True)
class ZeroConcentratedDP(Curve):
    """rho-zero-concentrated privacy: the divergence of every order above 1 is at most order * rho.

    Beside a delta above 0, it is approximate: P and Q are mixtures, with shares of at least 1 -
    delta, of distributions of which it holds. So the divergences of P and Q may be infinite, and
    every event leaves room for delta. Bun, Steinke, "Concentrated Differential Privacy", TCC 2016,
    Definitions 1.1 and 8.1.
    """

    rho: float
    delta: float = field(default=0.0, kw_only=True)
    _parameter: ClassVar[str] = "rho"

    @cached_property
    def region(self) -> Region:
        """The region below lines of all orders, with a leak of delta."""
        from pytest_dp.privacy.regions import Region, concentrated_tangents

        slopes, intercepts = concentrated_tangents(self.rho)
        return Region.below(slopes, self._add_leak(intercepts) if self.delta else intercepts)

    def _add_leak(self, delta: Number) -> Number:
        """Return the delta of a hockey stick together with the leak, rounded up."""
        return (self.delta + (1 - self.delta) * delta) * (1 + FLOAT_ERROR)

    @cached_property
    def divergences(self) -> tuple[Renyi, ...]:
        orders = () if self.delta else (1.0, 2.0, 8.0)
        return tuple(Renyi(order, order * self.rho) for order in orders if can_bet(order, self.rho))

    def delta_at(self, eps: float) -> float:
        """Return the smaller delta at an eps of two: by the region, and by the best order."""

        def rises(log: float) -> bool:
            order = 1 + math.exp(log)
            return (2 * order - 1) * self.rho - eps + math.log1p(-1 / order) > 0

        # Where the exponent is smallest, as ln(order - 1).
        order = 1 + math.exp(bracket(rises, -25.0, 25.0, width=1e-14)[1])
        by_order = renyi_to_delta(order, order * self.rho, eps)
        if self.delta:
            by_order = min(self._add_leak(by_order), 1.0)
        return min(self.region.delta_at(eps), by_order)

    def renyi_at(self, order: float) -> float:
        return math.inf if self.delta else order * self.rho

    def at(self, value: float) -> ZeroConcentratedDP:
        return replace(self, rho=value)

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Return the rho that events prove, with delta taken off, rounded down."""
        from pytest_dp.privacy.regions import concentration

        if not self.delta:
            return concentration(p, q)
        import numpy as np

        share = 1 - self.delta
        p = np.maximum((p - self.delta) / share, 0.0) * (1 - FLOAT_ERROR)
        q = np.minimum(q / share * (1 + FLOAT_ERROR), 1.0)
        return np.where(p > q, concentration(np.maximum(p, q), q), 0.0)

    @property
    def power(self) -> int:
        return 2

    def shown_by_divergence(self, order: float, value: float) -> float:
        return 0.0 if self.delta else max(value / order, 0.0)

    def group(self, k: int) -> ZeroConcentratedDP:
        """Return the guarantee for distance `k`; raise ClaimError if k > 1 and delta > 0."""
        if k > 1 and self.delta:
            raise ClaimError(
                f"group={k} of {self}: no rule is known for groups beside a delta. Allowed: group= "
                "beside rho= alone, or beside eps= and delta=. Write what groups are promised."
            )
        return replace(self, rho=self.rho * k * k)


def renyi_to_delta(order: float, bound: float, eps: float) -> float:
    """Return the delta at eps that follows from a bound on one Rényi divergence, rounded up.

    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020,
    Proposition 12. `order` is above 1, `bound` in nats.
    """
    log = (order - 1) * (bound - eps + math.log(order - 1)) - order * math.log(order)
    error = 1e-15 * (1 + (order - 1) * (bound + eps) + order * math.log(order) + abs(log))
    return math.exp(min(log + error, 0.0))


def can_bet(order: float, rho: float) -> bool:
    """Return whether floats hold the moment of a divergence of at most ``order * rho``."""
    return order * (order - 1) * rho <= LARGEST_EPS


@dataclass(frozen=True)
class GaussianDP(WithoutEps):
    """mu-Gaussian privacy: P and Q are no easier to tell apart than N(mu, 1) and N(0, 1).

    Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022.
    """

    mu: float
    _parameter: ClassVar[str] = "mu"

    @cached_property
    def region(self) -> Region:
        import numpy as np

        from pytest_dp.privacy.regions import Region

        losses = self.mu * self.mu / 2 + self.mu * np.linspace(-12, 20, 1200)
        eps = np.concatenate([[0.0], losses[(losses > 0) & (losses < 2 * LARGEST_EPS)]])
        return Region.of_sticks(eps, np.array([self.delta_at(loss) for loss in eps.tolist()]))

    @cached_property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        losses = (0.0, *(self.mu * self.mu / 2 + self.mu * quantile for quantile in LOSS_QUANTILES))
        return tuple(HockeyStick(eps, self.delta_at(eps)) for eps in losses if eps <= LARGEST_EPS)

    @cached_property
    def divergences(self) -> tuple[Renyi, ...]:
        orders = (1.0, 2.0) if can_bet(2.0, self.mu * self.mu / 2) else (1.0,)
        return tuple(Renyi(order, self.renyi_at(order)) for order in orders)

    def renyi_at(self, order: float) -> float:
        return order * self.mu * self.mu / 2 * (1 + 4e-16)

    def at(self, value: float) -> GaussianDP:
        return GaussianDP(value)

    def delta_at(self, eps: float) -> float:
        """Return the exact delta at eps, rounded up (see `stated.gdp_to_delta`)."""
        near, far = self.mu / 2 - eps / self.mu, -self.mu / 2 - eps / self.mu
        above = math.erfc(-near / math.sqrt(2)) / 2
        paid = math.exp(eps + _log_normal(far))
        error = 2e-15 * (4 + near * near + far * far) * (above + paid)
        return min(max(above - paid, 0.0) + error + math.ulp(0.0), 1.0)

    def largest_probability(self, q: Number) -> Number:
        """Return the largest P(S) where Q(S) = q, by the Gaussian trade-off, rounded up."""
        import numpy as np
        from scipy.special import ndtr, ndtri

        from pytest_dp.privacy.regions import round_up_probabilities

        return as_given(q, round_up_probabilities(ndtr(ndtri(np.asarray(q, float)) + self.mu)))

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Return the mu that events prove, rounded down; infinite where p is 1 or q is 0."""
        import numpy as np
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):
            high, low = ndtri(p), ndtri(q)
            shown = high - low - 4e-15 * (1 + abs(high) + abs(low))
        return np.maximum(np.where(np.isinf(high) | np.isinf(low), np.inf, shown), 0.0)

    def shown_by_divergence(self, order: float, value: float) -> float:
        return math.sqrt(2 * max(value, 0.0) / order) * (1 - 4e-16)

    def group(self, k: int) -> GaussianDP:
        return GaussianDP(self.mu * k)


def _log_normal(x: float) -> float:
    """Return the logarithm of the normal distribution function at x below 0."""
    if x > -37:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    series = 1 - 1 / x**2 + 3 / x**4 - 15 / x**6 + 105 / x**8 - 945 / x**10
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log(series)


@dataclass(frozen=True, repr=False)
class RenyiDP(Curve):
    """Rényi privacy: the divergence of each of some orders above 1 is bounded.

    Mironov, "Rényi Differential Privacy", CSF 2017.

    Parameters
    ----------
    orders : dict
        The eps of each order, such as ``{8: 0.5}``, in nats.
    name : str, optional
        In reports, and in the ids of tests.
    """

    orders: tuple[tuple[float, float], ...]
    """Pairs (order, eps), as promised."""
    name: str = field(default="", compare=False)
    scale: float = 1.0
    """A factor of every eps."""

    def __init__(
        self,
        orders: Mapping[float, float] | tuple[tuple[float, float], ...],
        name: str = "",
        scale: float = 1.0,
    ) -> None:
        pairs = tuple(orders.items()) if isinstance(orders, Mapping) else orders
        for attribute, value in (("orders", pairs), ("name", name), ("scale", scale)):
            object.__setattr__(self, attribute, value)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Pairs of an order and its bound in nats, `scale` included."""
        return tuple((order, eps * self.scale) for order, eps in self.orders)

    @property
    def parameter(self) -> str:
        return "rdp" if len(self.orders) == 1 else "scale"

    @property
    def claimed(self) -> float:
        return self.scale * (self.orders[0][1] if len(self.orders) == 1 else 1.0)

    @cached_property
    def region(self) -> Region:
        from pytest_dp.privacy.regions import Region, renyi_tangents

        return Region.below(*renyi_tangents(self.bounds))

    @cached_property
    def divergences(self) -> tuple[Renyi, ...]:
        """A bound of order 1, and the given bounds of which floats hold the moments."""
        least = Renyi(1.0, self.renyi_at(1.0))
        bounds = self.bounds
        return (least, *(Renyi(order, eps) for order, eps in bounds if can_bet(order, eps / order)))

    def delta_at(self, eps: float) -> float:
        """Return the smallest delta at an eps: by the region, or by one of the orders."""
        by_order = (renyi_to_delta(order, bound, eps) for order, bound in self.bounds)
        return min(self.region.delta_at(eps), *by_order)

    def renyi_at(self, order: float) -> float:
        """Return the bound on the divergence of an order; infinite above all given orders.

        Divergences rise with the order, and (order - 1) times a divergence is convex in the order.
        """
        known = [(1.0, 0.0), *((bounded, (bounded - 1) * bound) for bounded, bound in self.bounds)]
        bounds = [bound for bounded, bound in self.bounds if bounded >= order]
        for (low, at_low), (high, at_high) in combinations(sorted(known), 2):
            if max(low, 1.0) < order <= high and low < high:
                share = (order - low) / (high - low)
                moment = (1 - share) * at_low + share * at_high
                bounds.append(moment / (order - 1) * (1 + 1e-15))
        return min(bounds, default=math.inf)

    def at(self, value: float) -> RenyiDP:
        if len(self.orders) == 1:
            return RenyiDP(((self.orders[0][0], value),), self.name)
        return replace(self, scale=value)

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Return the largest parameter that events prove at some order, rounded down."""
        import numpy as np

        from pytest_dp.privacy.regions import renyi

        shown = np.zeros(p.shape)
        for order, unit in self.units:
            both = np.maximum(renyi(p, q, order), renyi(1 - q, 1 - p, order))
            shown = np.maximum(shown, both / unit * (1 - 4e-16))
        return shown

    def shown_by_divergence(self, order: float, value: float) -> float:
        """Return the largest parameter that a divergence of `order` proves; else 0.0."""
        units = [unit for bounded, unit in self.units if bounded >= order]
        return max(value, 0.0) / min(units) * (1 - 4e-16) if units else 0.0

    @property
    def units(self) -> tuple[tuple[float, float], ...]:
        """The divergence of each order at a parameter of 1, as pairs."""
        return ((self.orders[0][0], 1.0),) if len(self.orders) == 1 else self.orders

    def group(self, k: int) -> RenyiDP:
        """Return the guarantee itself for k = 1; raise ClaimError for larger groups."""
        if k == 1:
            return self
        raise ClaimError(
            f"group={k} of {self}: Rényi privacy has no rule for groups. Allowed: group= with "
            "every other notion. Write what the mechanism promises for inputs at that distance, "
            "with neighbors= or pairs= that say which these are, or claim rho= or mu= with group=."
        )

    @property
    def label(self) -> str:
        return self.name or repr(self)

    def __repr__(self) -> str:
        orders = {int(order) if order % 1 == 0 else order: eps for order, eps in self.bounds}
        return f"RenyiDP({orders}{name_argument(self.name)})"

    def __str__(self) -> str:
        return f"guarantee={self!r}"

    @property
    def power(self) -> int:
        return 2

    @property
    def _parameter_words(self) -> tuple[str, str]:
        alone = len(self.orders) == 1
        return ("eps", f" at order {self.orders[0][0]:g}") if alone else super()._parameter_words

    def write_claim(self, number: str) -> str:
        return self.name or super().write_claim(number)
