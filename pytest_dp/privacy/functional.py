"""Guarantees that are functions: privacy profiles and trade-off functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

from pytest_dp.privacy.guarantees import Curve, name_argument

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Bools, Floats
    from pytest_dp.privacy.regions import Region


@dataclass(frozen=True, repr=False)
class _Functional(Curve):
    """A guarantee as a function. Times a factor, every eps and its delta are multiplied by it."""

    function: Callable[[float], float]
    name: str = field(default="", compare=False)
    scale: float = 1.0
    _parameter: ClassVar[str] = "scale"

    @cached_property
    @abstractmethod
    def sticks(self) -> tuple[Floats, Floats]:
        """Many hockey sticks that hold at scale 1."""

    @cached_property
    def region(self) -> Region:
        import numpy as np

        from pytest_dp.privacy.regions import Region

        eps, delta = (values * self.scale for values in self.sticks)
        keep = eps < 700
        return Region.of_sticks(eps[keep], np.minimum(delta[keep], 1.0))

    def at(self, value: float) -> Self:
        other = replace(self, scale=value)
        vars(other)["sticks"] = self.sticks  # so that the function is asked once
        return other

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        import numpy as np

        both = np.stack([p.ravel(), q.ravel()])
        parts = np.array_split(both, 1 + p.size // 1000, axis=1)
        shown = [self._largest_broken_scale(*part) for part in parts]
        return np.concatenate(shown).reshape(p.shape)

    def _largest_broken_scale(self, p: Floats, q: Floats) -> Floats:
        """Return the scales up to which some hockey stick is broken; infinite if it is at 1e9."""
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
        """Return what `k` uses in a row allow (Dong, Roth, Su 2022, Theorem 2.14)."""
        return self if k == 1 else TradeOff(_Repeated(self, k), self.name and f"{k} x {self.name}")

    @property
    def label(self) -> str:
        return self.name + _times(self.scale) if self.name else repr(self)

    def __repr__(self) -> str:
        arguments = f"{_name(self.function)}{name_argument(self.name)}"
        return f"{type(self).__name__}({arguments}){_times(self.scale)}"

    def __str__(self) -> str:
        return f"guarantee={self!r}"


@dataclass(frozen=True)
class _Repeated:
    """The trade-off function of inputs at distance k."""

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
        times, name = f"{self.scale * (1 + 1e-4):.6g}", _name(self.function)
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
        import numpy as np

        from pytest_dp.privacy.regions import Region, lines_above, quantile_grid

        q = quantile_grid()
        p = np.array([1 - float(self.function(x)) for x in q])
        return Region.below(*lines_above(np.array(q), p)).sticks()


def _name(function: Callable[[float], float]) -> str:
    if isinstance(function, _Repeated):
        return f"{function.k} x {_name(function.of.function)}"
    name = getattr(function, "__name__", type(function).__name__)
    return "f" if name == "<lambda>" else str(name)


def _times(scale: float) -> str:
    return "" if scale == 1 else f"-times={scale:g}"
