"""Lazy draws: numbers that are computed from a draw whose value is known as far as needed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.oracles.deferred import (
    COMBINED,
    COMPARED,
    HELD,
    UNARY,
    Deferred,
    is_draw,
    operators,
    unary,
)
from pytest_dp.oracles.domains import OpenDraw

MAX_WHOLE_NUMBERS = 65_536
"""Whole numbers of a range that a draw may be split into. More: enumeration never ends; fewer:
losses are not known."""

BITWISE = "bits of a draw"
"""The reason why a mechanism that mixes the bits of draws is not enumerated."""
Function = Callable[[Any], Any]
Operator = Callable[[Any, Any], Any]


def _identity(value: Any) -> Any:
    return value


class Lazy(Deferred):
    """A monotone function of one draw: whatever is asked of it splits what the draw may be.

    It is of Python's or numpy's numbers. `discrete` says whether it has few values, such as whole
    numbers, each of which may become a branch.
    """

    __slots__ = ("_draw", "_function", "discrete")

    def __init__(
        self, draw: OpenDraw, function: Function = _identity, *, discrete: bool = False
    ) -> None:
        super().__init__(draw.instrument)
        self._draw, self._function, self.discrete = draw, function, discrete

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.ends()[0])

    def _settled(self, reason: str) -> Any:
        """A number as in a real run, which is not enumerated any more."""
        self.instrument.note(reason)
        return self.plain()

    def of_type(self, kind: type) -> Lazy:
        """A whole number in another type: one of Python, or one of numpy."""
        return self if kind is int else Lazy(self._draw, kind, discrete=True)

    def value(self, reason: str) -> Any:
        """Its value, where it has few: there is a branch for each.

        Where it has many, the mechanism cannot be enumerated, for the `reason` given.
        """
        while True:
            if self.instrument.is_over():  # perhaps by the last split, which changed nothing
                return self._settled(reason)
            at_start, at_end = self.ends()
            if at_start == at_end:
                return at_start
            if not self.discrete or (
                self._draw.is_whole and abs(at_end - at_start) > MAX_WHOLE_NUMBERS
            ):
                return self._settled(reason)
            if not self._draw.parted(self._function):
                return self._settled("a draw that may not be a number")

    __hash__ = Deferred.__hash__

    def compared(self, other: Any, by: Operator) -> Any:
        """A comparison with a number, or a draw of few values."""
        if isinstance(other, np.ndarray) or (is_draw(other) and type(other) is not Lazy):
            return NotImplemented
        if other is self:  # as sorting does
            return by(0, 0)
        if type(other) is Lazy:
            if self.discrete and not other.discrete:  # the continuous one compares
                return other.compared(self, lambda right, left: by(left, right))
            other = other.value(COMPARED)
        function = self._function
        near = other if function is _identity and isinstance(other, int | float) else None
        holds = self._draw.holds(lambda x: by(function(x), other), near)
        is_numpy = isinstance(other, np.generic) or issubclass(self.__class__, np.generic)
        return np.bool_(holds) if is_numpy else holds

    def __eq__(self, other: object) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, int | float | np.number):
            return False
        below = self < other
        if not below:
            return self <= other
        return np.bool_(False) if isinstance(below, np.bool_) else False

    def increasing(self, function: Function, *, discrete: bool = False) -> Lazy:
        """A monotone function of it; `discrete` if that has few values."""
        inner, draw = self._function, self._draw
        result = Lazy(draw, lambda x: function(inner(x)), discrete=self.discrete or discrete)
        # This raises what it would, as for a division by 0. An end may be NaN, such as infinity
        # times 0 at the end of a logarithm: it is split off.
        draw.split_off(*(end != end for end in result.ends()))
        return result

    def plain(self) -> Any:
        """Its value as in a real run, once this one is refused."""
        self._draw.settle()
        return self.ends()[0]

    def combined(self, other: Any, by: Operator) -> Any:
        """A function of it and of a number, or of a draw of few values."""
        if isinstance(other, np.ndarray) or not isinstance(other, int | float | np.number | Lazy):
            return NotImplemented
        if type(other) is Lazy:
            if self.discrete and not other.discrete:
                return other.combined(self.value(COMBINED), lambda right, left: by(left, right))
            other = other.value(COMBINED)
        return self.increasing(lambda x: by(x, other))

    __truediv__, _inverted = operators(operator.truediv)
    _power, __rpow__ = operators(operator.pow)

    def __rtruediv__(self, other: Any) -> Any:
        known = self._away_from_zero()
        return known._inverted(other) if isinstance(known, Lazy) else other / known

    def __floordiv__(self, other: Any) -> Any:
        result = self.combined(other, operator.floordiv)
        if type(result) is Lazy:
            result.discrete = True
        return result

    def __mod__(self, other: Any) -> Any:
        if type(other) is Lazy or not isinstance(other, int | float | np.number):
            return NotImplemented
        (self // other).value(HELD)  # for each value of the quotient, the remainder is monotone
        return self.combined(other, operator.mod)

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.value(COMBINED)

    def __rmod__(self, other: Any) -> Any:
        return other % self.value(COMBINED)

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other)

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other)

    def __and__(self, other: Any) -> Any:
        if isinstance(other, int) and other > 0 and not other & (other + 1):
            return self % (other + 1)
        return self.value(BITWISE) & other

    def __or__(self, other: Any) -> Any:
        return self.value(BITWISE) | other

    def __xor__(self, other: Any) -> Any:
        return self.value(BITWISE) ^ other

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __pow__(self, other: Any) -> Any:
        known = self._away_from_zero()
        return known._power(other) if isinstance(known, Lazy) else known**other

    def __neg__(self) -> Any:
        return self.increasing(operator.neg)

    def __converted__(self, kind: type) -> Any:
        """In a type of Python."""
        return self.increasing(kind, discrete=kind is int)

    def __trunc__(self) -> Any:
        return self.increasing(_if_finite(int), discrete=True)

    def __floor__(self) -> Any:
        return self.increasing(_if_finite(math.floor), discrete=True)

    def __ceil__(self) -> Any:
        return self.increasing(_if_finite(math.ceil), discrete=True)

    def __round__(self, digits: int | None = None) -> Any:
        return self.increasing(_if_finite(lambda x: round(x, digits)), discrete=True)

    def _away_from_zero(self) -> Any:
        """Itself, known to be below or above 0; or 0."""
        if self < 0:
            return self
        return self if self > 0 else self.ends()[0]

    def __getattr__(self, name: str) -> Any:
        """Attributes that numpy looks for on objects in arrays, and those of few values."""
        if name in UNARY:
            return lambda: unary(name, self)
        if name == "round":
            return lambda decimals=0, out=None: self.increasing(  # noqa: ARG005
                lambda x: np.round(x, decimals), discrete=True
            )
        if self.discrete and not name.startswith("__"):
            return getattr(self.value(f".{name} of a draw"), name)
        raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")

    def through(self, function: Function, lowest: float | None) -> Any:
        """An increasing function of Python, such as ``math.log``, defined from `lowest` on.

        It is infinite at the start of its domain, and where it is too large for a float.
        """
        if lowest is not None and self < lowest:
            return function(self.ends()[0])  # raises, as it would
        return self.increasing(_unlimited(function))

    def ends(self) -> tuple[Any, Any]:
        """Its values at both ends of what the draw may be."""
        return self._draw.ends(self._function)


def _if_finite(function: Function) -> Function:
    return lambda x: function(x) if math.isfinite(x) else x


def _unlimited(function: Function) -> Function:
    def apply(x: Any) -> Any:
        try:
            return function(x)
        except ValueError:  # as math.log does at 0
            return -math.inf
        except OverflowError:
            return math.inf

    return apply
