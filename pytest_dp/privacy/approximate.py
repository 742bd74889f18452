"""Guarantees about events: (eps, delta), curves of such pairs, and bounds on the AUC of attacks.

Pure differential privacy is the case delta = 0. A `PrivacyProfile` has a delta for every eps, a
`TradeOff` the least error of the second kind for every error of the first.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Self

from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.guarantees import (
    LARGEST_EPS,
    Curve,
    Guarantee,
    HockeyStick,
    Number,
    as_given,
    name_argument,
)

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Bools, Floats
    from pytest_dp.privacy.regions import Region

_NORMAL = NormalDist()


@dataclass(frozen=True)
class ApproximateDP(Guarantee):
    """(eps, delta)-differential privacy: ``P(S) <= exp(eps) Q(S) + delta`` for every event S.

    Pure differential privacy is the case delta = 0.
    """

    eps: float
    delta: float = 0.0
    _parameter: ClassVar[str] = "eps"

    @cached_property
    def region(self) -> Region:
        import numpy as np

        from pytest_dp.privacy.regions import Region

        return Region.of_sticks(np.array([self.eps]), np.array([self.delta]))

    @property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        return (HockeyStick(self.eps, self.delta),)

    def at(self, value: float) -> ApproximateDP:
        return ApproximateDP(value, self.delta)

    def times(self, factor: float) -> ApproximateDP:
        """Return the guarantee with eps times `factor`; if eps is 0, exp(eps) is multiplied."""
        return self.at(self.eps * factor if self.eps else max(math.log(factor), 0.0))

    def with_noise_over(self, times: float) -> float:
        return super().with_noise_over(times) if self.eps else self.times(times).eps

    def noise_below(self, value: float) -> float:
        return super().noise_below(value) if self.eps else math.exp(min(value, 2 * LARGEST_EPS))

    def delta_at(self, eps: float) -> float:
        """Return the delta at `eps` of randomised response with a leak, the worst case."""
        if eps >= self.eps:
            return self.delta
        more = (math.exp(self.eps) - math.exp(eps)) / (1 + math.exp(self.eps))
        return min((self.delta + (1 - self.delta) * more) * (1 + 1e-15), 1.0)

    def renyi_at(self, order: float) -> float:
        return math.inf if self.delta else pure_to_renyi(self.eps, order)

    def largest_probability(self, q: Number) -> Number:
        """Return the largest P(S) where Q(S) = q, by the event or its complement, rounded up."""
        import numpy as np

        straight = (math.exp(self.eps) * np.asarray(q) + self.delta) * (1 + 1e-15)
        complement = 1 - math.exp(-self.eps) * (1 - self.delta - np.asarray(q)) * (1 - 1e-15)
        return as_given(q, np.minimum(np.minimum(straight, complement), 1.0))

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Return the eps that events or their complements prove, rounded down; may be infinite."""
        import numpy as np

        with np.errstate(all="ignore"):
            straight = np.log((p - self.delta) / q)
            complement = np.log((1 - q - self.delta) / (1 - p))
        shown: Floats = np.fmax(np.fmax(straight, complement), 0.0)
        return np.maximum(shown * (1 - 5e-16) - 5e-16, 0.0)

    def group(self, k: int) -> ApproximateDP:
        """Return the guarantee for distance `k`; raise ClaimError if it promises nothing."""
        eps, delta = self.eps * k, self.delta
        if k > 1 and eps <= LARGEST_EPS:
            steps = math.expm1(eps) / math.expm1(self.eps) if eps else float(k)
            delta *= steps * (1 + 1e-13)
        if delta < 1 and eps <= LARGEST_EPS:
            return ApproximateDP(eps, delta)
        raise ClaimError(
            f"group={k} of {self} promises nothing: eps={eps:g}, delta={delta:.3g}. "
            f"Allowed: eps at most {LARGEST_EPS:g} and delta below 1, by then. Write a smaller "
            "group, or a claim for groups of that size."
        )

    @property
    def largest_ratio(self) -> float | None:
        return None if self.delta else self.eps


def pure_to_renyi(eps: float, order: float) -> float:
    """Return the largest divergence of an order under pure eps, in nats, rounded up.

    Attained by randomised response; for order 1 it is eps tanh(eps / 2).
    """
    if order == 1 or eps == 0:
        return eps * math.tanh(eps / 2) * (1 + 1e-15)
    k = order - 1
    if k * eps > 1:
        log = k * eps + math.log1p(math.exp(-(2 * order - 1) * eps)) - math.log1p(math.exp(-eps))
        return log / k * (1 + 1e-14)
    # A sum of two moments, as a product, in which nothing cancels out.
    inner = -math.expm1(-k * eps) * math.expm1(order * eps) / (1 + math.exp(eps))
    return math.log1p(inner) / k * (1 + 1e-14)


@dataclass(frozen=True)
class AttackAUC(Curve):
    """No attack scores an output with the record above one without it more often than `auc`.

    Ties count one half. An event with probabilities p and q makes an attack of area
    ``(1 + p - q) / 2``, so that p - q is at most ``2 auc - 1``: the guarantee implies
    (0, 2 auc - 1)-differential privacy for these records, and no less follows from it.

    Hanley, McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC)
    Curve", Radiology 1982.
    """

    auc: float
    _parameter: ClassVar[str] = "auc"

    @cached_property
    def region(self) -> Region:
        return ApproximateDP(0.0, 2 * self.auc - 1).region

    def at(self, value: float) -> AttackAUC:
        return AttackAUC(value)

    def times(self, factor: float) -> AttackAUC:
        """Return the guarantee with the advantage over a coin times `factor`, at most auc = 1."""
        return self.at(min(0.5 + factor * (self.auc - 0.5), 1.0))

    def with_noise_over(self, times: float) -> float:
        """Return the area with less noise, as Phi(mu / sqrt(2)) changes for Gaussian noise."""
        return _NORMAL.cdf(times * _NORMAL.inv_cdf(self.auc))

    def noise_below(self, value: float) -> float:
        """Return how many times noise is too small; infinite for an area of about 1."""
        certain = 1 - 1e-15
        below = _NORMAL.inv_cdf(min(max(value, 0.5), certain)) / _NORMAL.inv_cdf(self.auc)
        return below if value < certain else float("inf")

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        shown: Floats = (1 + p - q) / 2 * (1 - 1e-15)
        return shown

    def group(self, k: int) -> AttackAUC:
        """Return the guarantee itself for k = 1; raise ClaimError for larger groups."""
        if k > 1:
            raise ClaimError(
                f"{self} is a claim about single records, and group={k} asks for more. Allowed: "
                "group=1. Claim eps= for groups."
            )
        return self


@dataclass(frozen=True, repr=False)
class _Functional(Curve):
    """A guarantee that is stated as a function; a scale multiplies every eps and its delta."""

    function: Callable[[float], float]
    name: str = field(default="", compare=False)
    scale: float = 1.0
    _parameter: ClassVar[str] = "scale"

    @cached_property
    @abstractmethod
    def sticks(self) -> tuple[Floats, Floats]:
        """The eps and the deltas of many hockey sticks that hold at scale 1; calls the function."""

    @cached_property
    def region(self) -> Region:
        """The region that the sampled hockey sticks allow, multiplied by the scale."""
        import numpy as np

        from pytest_dp.privacy.regions import Region

        eps, delta = (values * self.scale for values in self.sticks)
        keep = eps < 700
        return Region.of_sticks(eps[keep], np.minimum(delta[keep], 1.0))

    def at(self, value: float) -> Self:
        """Return the guarantee at scale `value`, which does not call the function again."""
        other = replace(self, scale=value)
        vars(other)["sticks"] = self.sticks  # so that the function is asked once
        return other

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Return the largest scale that each event breaks; infinite from about 1e9."""
        import numpy as np

        both = np.stack([p.ravel(), q.ravel()])
        parts = np.array_split(both, 1 + p.size // 1000, axis=1)
        shown = [self._largest_broken_scale(*part) for part in parts]
        return np.concatenate(shown).reshape(p.shape)

    def _largest_broken_scale(self, p: Floats, q: Floats) -> Floats:
        """Return the largest scale at which each event breaks a hockey stick; infinite from 1e9."""
        import numpy as np

        eps, delta = self.sticks

        def is_broken(scale: Floats) -> Bools:
            with np.errstate(over="ignore", invalid="ignore"):
                price, leak = np.exp(eps * scale[:, None]), delta * scale[:, None]
                straight = p[:, None] > np.fmax(price * q[:, None], 0.0) + leak
                complement = 1 - q[:, None] > np.fmax(price * (1 - p)[:, None], 0.0) + leak
            return np.asarray(np.any(straight | complement, axis=1) & (p > q))

        low, high = np.zeros(len(p)), np.ones(len(p))
        while np.any(broken := is_broken(high)) and np.max(high) < 1e9:
            low, high = np.where(broken, high, low), np.where(broken, 2 * high, high)
        never = broken
        for _ in range(40):
            middle = (low + high) / 2
            broken = is_broken(middle)
            low, high = np.where(broken, middle, low), np.where(broken, high, middle)
        return np.where(never, np.inf, low)

    def group(self, k: int) -> TradeOff | _Functional:
        """Return the trade-off function for distance `k` (Dong, Roth, Su 2022, Theorem 2.14)."""
        return self if k == 1 else TradeOff(_Repeated(self, k), self.name and f"{k} x {self.name}")

    @property
    def label(self) -> str:
        return self.name + _scale_suffix(self.scale) if self.name else repr(self)

    def __repr__(self) -> str:
        arguments = f"{_function_name(self.function)}{name_argument(self.name)}"
        return f"{type(self).__name__}({arguments}){_scale_suffix(self.scale)}"

    def __str__(self) -> str:
        return f"guarantee={self!r}"


@dataclass(frozen=True)
class _Repeated:
    """A trade-off function for inputs at distance k, from one for neighbours."""

    of: _Functional
    k: int

    def __call__(self, x: float) -> float:
        for _ in range(self.k):
            x = self.of.largest_probability(x)
        return 1 - x


class PrivacyProfile(_Functional):
    """(eps, delta)-privacy with ``delta = function(eps)`` for every eps >= 0 at once.

    Balle, Barthe, Gaboardi, "Privacy Profiles and Amplification by Subsampling", JPC 2020.

    Parameters
    ----------
    function : callable
    name : str, optional
        In reports, and in the ids of tests; by default the function's name.
    scale : float, optional
        Factor of every eps and its delta, as the unit of bounds. A claim has 1.
    """

    @cached_property
    def sticks(self) -> tuple[Floats, Floats]:
        from pytest_dp.privacy.regions import sampled_profile

        return sampled_profile(self.function)

    def delta_at(self, eps: float) -> float:
        value = float(self.function(eps / self.scale)) * self.scale
        return min(value, self.region.delta_at(eps), 1.0)

    def __str__(self) -> str:
        if self.scale == 1:
            return super().__str__()
        times, name = f"{self.scale * (1 + 1e-4):.6g}", _function_name(self.function)
        return f"guarantee=PrivacyProfile(lambda eps: {times} * {name}(eps / {times}))"


class TradeOff(_Functional):
    """f-differential privacy: P(S) is at most ``1 - function(Q(S))`` for every event S.

    Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022.

    Parameters
    ----------
    function : callable
        The least type II error of a test, by its type I error.
    name, scale
        As of `PrivacyProfile`.
    """

    @cached_property
    def sticks(self) -> tuple[Floats, Floats]:
        """The hockey sticks above the trade-off function; calls the function."""
        import numpy as np

        from pytest_dp.privacy.regions import Region, lines_above, quantile_grid

        q = quantile_grid()
        p = np.array([1 - float(self.function(x)) for x in q])
        return Region.below(*lines_above(np.array(q), p)).sticks()


def _function_name(function: Callable[[float], float]) -> str:
    """Return the name of a function, or of its type, for texts; ``f`` for a lambda."""
    if isinstance(function, _Repeated):
        return f"{function.k} x {_function_name(function.of.function)}"
    name = getattr(function, "__name__", type(function).__name__)
    return "f" if name == "<lambda>" else str(name)


def _scale_suffix(scale: float) -> str:
    return "" if scale == 1 else f"-times={scale:g}"
