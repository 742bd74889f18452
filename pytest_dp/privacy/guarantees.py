"""Guarantees as values: what each allows, what an event or a divergence proves of it, its words.

Every guarantee is one of P and Q, the outputs on two neighbouring inputs, in both orders. Whatever
is asked, rounding errs towards the weaker guarantee and the weaker proof. What is asked of outputs
are bounds on f-divergences: Nguyen, Wainwright, Jordan, "Estimating Divergence Functionals and the
Likelihood Ratio by Convex Risk Minimization", IEEE Trans. Inf. Theory 2010.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

from pytest_dp.basics.bisection import bracket

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Floats
    from pytest_dp.privacy.regions import Region

Number = TypeVar("Number", float, "Floats")
LARGEST_EPS = 300.0
"""Derived: losses beyond which probabilities of outputs differ by more than floats hold."""


class HockeyStick(NamedTuple):
    """A bound on events: P(S) is at most ``exp(eps) Q(S) + delta`` for every event S."""

    eps: float
    delta: float

    def largest_probability(self, q: Any, runs: float = 1.0) -> Any:
        """Return the largest P(S) for Q(S) = `q`, or of counts in `runs` runs; may exceed 1."""
        return math.exp(self.eps) * q + self.delta * runs


class Renyi(NamedTuple):
    """A bound on the Rényi divergence of P from Q, in nats."""

    order: float
    """At least 1; the divergence of order 1 is the Kullback-Leibler divergence."""
    bound: float


class Guarantee(ABC):
    """A promise about the outputs P and Q on any two neighbouring inputs, in either order."""

    eps: float | None
    """In nats; None for notions that have no eps of their own."""
    delta: float
    """Beside `eps`; 0 for notions that have none."""

    _parameter: ClassVar[str]
    """The attribute that is the parameter."""

    @property
    def parameter(self) -> str:
        """The parameter that bounds are stated in: "eps", "rho", "mu", "rdp", "auc" or "scale"."""
        return self._parameter

    @property
    def claimed(self) -> float:
        """The claimed value of the parameter."""
        return float(getattr(self, self._parameter))

    @property
    def largest_ratio(self) -> float | None:
        """The log of the largest ratio of P(S) to Q(S), in nats; None if ratios have no bound."""
        return None

    @property
    def power(self) -> int:
        """The power of the distance of two inputs with which the parameter grows."""
        return 1

    def with_noise_over(self, times: float) -> float:
        """Return the parameter if noise is `times` times smaller than claimed (approximate)."""
        return self.claimed * times**self.power

    def noise_below(self, value: float) -> float:
        """Return how many times noise is too small at a value of the parameter (approximate)."""
        return float((value / self.claimed) ** (1 / self.power))

    @property
    @abstractmethod
    def region(self) -> Region:
        """All pairs (Q(S), P(S)) that the guarantee allows."""

    @property
    @abstractmethod
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        """A few hockey sticks that follow from the guarantee."""

    @property
    def divergences(self) -> tuple[Renyi, ...]:
        """Bounds on divergences to bet against; empty if events show all."""
        return ()

    @abstractmethod
    def at(self, value: float) -> Guarantee:
        """Return the guarantee with its parameter at `value`: weaker for a larger one."""

    def times(self, factor: float) -> Guarantee:
        """Return the guarantee with its parameter times `factor`: weaker above 1."""
        return self.at(self.claimed * factor)

    @abstractmethod
    def delta_at(self, eps: float) -> float:
        """Return the smallest known delta at `eps` (at least 0, in nats), rounded up."""

    def eps_at(self, delta: float) -> float:
        """Return the smallest known eps at `delta`, rounded up; infinite if none is found."""
        if self.delta_at(0.0) <= delta:
            return 0.0
        if not self.delta_at(2 * LARGEST_EPS) <= delta:
            return math.inf

        def is_enough(eps: float) -> bool:
            return self.delta_at(eps) <= delta

        return bracket(is_enough, 0.0, 2 * LARGEST_EPS, relative=1e-12)[1]

    def renyi_at(self, order: float) -> float:  # noqa: ARG002
        """Return a bound on the divergence of an order from 1 up, rounded up; infinite if none."""
        return math.inf

    @abstractmethod
    def largest_probability(self, q: Number) -> Number:
        """Return the largest P(S) allowed where Q(S) = q, rounded up: 1 minus the trade-off."""

    def shown_by(self, p: Number, q: Number) -> Number:
        """Return the parameter that an event with P(S) = p and Q(S) = q proves, rounded down.

        More than `claimed` if p is above `largest_probability` of q; 0 where p <= q; infinite where
        the guarantee is broken at any value. The event's complement counts as well.
        """
        import numpy as np

        p_, q_ = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
        return as_given(p, np.where(p_ > q_, self._loss_shown(p_, q_), 0.0))

    @abstractmethod
    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        """Compute `shown_by` for arrays of one shape; entries with p <= q are ignored."""

    def shown_by_divergence(self, order: float, value: float) -> float:  # noqa: ARG002
        """Return the parameter proved by a divergence of `value` nats; 0.0 if it proves none."""
        return 0.0

    @abstractmethod
    def group(self, k: int) -> Guarantee:
        """Return the guarantee for inputs at distance `k`.

        Raises ClaimError if there is no rule for this notion, or nothing is left to promise.
        """

    @property
    def label(self) -> str:
        """The guarantee as text without spaces, for ids of tests: ``eps=1.0-delta=1e-05``."""
        return str(self).replace(", ", "-")

    @property
    def _parameter_words(self) -> tuple[str, str]:
        """The name of the parameter, and the words after its number."""
        return ("loss", " times the claim") if self.parameter == "scale" else (self.parameter, "")

    def write_claim(self, number: str) -> str:
        """Return the claim as text, its parameter written as `number`: ``eps = 1.0``.

        A curve is written as its label, without the number.
        """
        if self.parameter == "scale":
            return self.label
        return self.write_comparison("=", number) + (
            f", delta = {self.delta:g}" if self.delta else ""
        )

    def write_comparison(self, sign: str, number: str) -> str:
        """Return the parameter compared with a number, as text: ``eps >= 1.3``.

        Of a curve: ``loss >= 1.3 times the claim``.
        """
        name, behind = self._parameter_words
        return f"{name} {sign} {number}{behind}"

    def text_of_range(self, low: str, high: str) -> str:
        """Return a range of the parameter as text, such as ``mu of 0.9 to 1.3``."""
        name, behind = self._parameter_words
        name = "a loss" if self.parameter in ("eps", "scale") else name
        return f"{name} of {low} to {high}{behind}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to pickle, without cached values."""
        said = {stated.name for stated in fields(cast("Any", self))}
        return {name: value for name, value in vars(self).items() if name in said}

    def __str__(self) -> str:
        """Return the guarantee as keywords of a claim: ``eps=1.0, delta=1e-05``."""
        beside = f", delta={self.delta!r}" if self.delta else ""
        return f"{self.parameter}={self.claimed!r}{beside}"


def as_given(like: Number, values: Floats) -> Number:
    """Return a float if `values` have no axes, else the array; typed as `like` is."""
    del like  # for its type
    return cast("Number", values if values.ndim else float(values))


def name_argument(name: str) -> str:
    """Return a guarantee's name as the last argument in code; empty without a name."""
    return f", name={name!r}" if name else ""


@dataclass(frozen=True)
class WithoutEps(Guarantee):
    """A guarantee without an eps of its own."""

    eps: None = field(default=None, init=False, repr=False, compare=False)
    delta: float = field(default=0.0, init=False, repr=False, compare=False)


class Curve(WithoutEps):
    """A guarantee that is computed from its region, a curve."""

    @cached_property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        return tuple(HockeyStick(eps, delta) for eps, delta in self.region.few_sticks())

    def delta_at(self, eps: float) -> float:
        return self.region.delta_at(eps)

    def largest_probability(self, q: Number) -> Number:
        import numpy as np

        return as_given(q, self.region.largest_probability(np.asarray(q, float)))
