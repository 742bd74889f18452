"""Deferred numbers: what those have in common on which arithmetic is done in one way."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pytest_dp.oracles.monotone import applied, elementwise, is_draw, of_draws
from pytest_dp.running.requests import is_diagnostic
from pytest_dp.running.stand_ins import Instrument

Function = Callable[[Any, Any], Any]


def is_constant(value: Any) -> bool:
    """Return whether a value is a plain number."""
    plain = isinstance(value, bool | int | float | np.generic) and not isinstance(value, np.void)
    return plain and not is_draw(value)


def operators(function: Function, by: str = "combined") -> tuple[Function, Function]:
    """Return methods for an operator: with the number on its left, and with it on its right."""
    ask = operator.attrgetter(by)
    return (
        lambda self, other: ask(self)(other, function),
        lambda self, other: ask(self)(other, lambda right, left: function(left, right)),
    )


class Deferred:
    """A function of draws; what it is not made for, it refuses."""

    __slots__ = ("instrument",)
    _is_draw = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument

    def combined(self, other: Any, function: Function) -> Any:
        """Return a function of the number and another one; NotImplemented if that is none."""
        raise NotImplementedError

    __add__, __radd__ = operators(operator.add)
    __sub__, __rsub__ = operators(operator.sub)
    __mul__, __rmul__ = operators(operator.mul)
    __truediv__, __rtruediv__ = operators(operator.truediv)
    __floordiv__, __rfloordiv__ = operators(operator.floordiv)
    __mod__, __rmod__ = operators(operator.mod)
    __pow__, __rpow__ = operators(operator.pow)

    def is_above(self, *, equal: bool) -> bool:
        """Decide whether it is above 0, or at least 0."""
        raise NotImplementedError

    def _compared(self, other: Any, *, swapped: bool, equal: bool) -> Any:
        by: Function = (lambda mine, theirs: theirs - mine) if swapped else operator.sub
        difference = self.combined(other, by)
        if difference is NotImplemented:
            return difference
        return difference.is_above(equal=equal)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, swapped=False, equal=False)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, swapped=False, equal=True)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, swapped=True, equal=False)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, swapped=True, equal=True)

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return equal if equal is NotImplemented else not equal

    def __bool__(self) -> bool:
        return bool(self.__ne__(0))

    def value(self, reason: str) -> NoReturn:
        """Refuse to be a plain number."""
        self.instrument.refuse(reason)

    def __pos__(self) -> Any:
        return self

    def __float__(self) -> float:
        self.value("a draw is converted to a float")

    def __int__(self) -> int:
        self.value("a draw is rounded")

    __index__ = __trunc__ = __floor__ = __ceil__ = __int__

    def __round__(self, digits: int | None = None) -> Any:
        self.value("a draw is rounded")

    def __abs__(self) -> Any:
        self.value("the size of a draw is taken")

    def __converted__(self, kind: type) -> Any:
        """Return it in a type of Python."""
        self.value(f"a draw is converted to {kind.__name__}")

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:  # noqa: ARG002
        """Return an increasing function of Python, such as ``math.log``, defined from `lowest`."""
        self.value("a function of a draw is no sum of draws")

    def __str__(self) -> str:
        return "<a draw>" if is_diagnostic() else self.value("a draw is written as text")

    def __format__(self, how: str) -> str:
        return str(self)

    __repr__ = __str__

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.value("a draw is pickled")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def item(self) -> Any:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return a function of numpy by the operator that it stands for."""
        if method != "__call__" or keywords.keys() - {"dtype", "casting"}:
            self.value(f"np.{ufunc.__name__} of a draw by {method}")
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            return of_draws(elementwise(ufunc, *inputs))
        plain = [value[()] if isinstance(value, np.ndarray) else value for value in inputs]
        result = applied(ufunc.__name__, self, plain)
        return self.value(f"np.{ufunc.__name__} of a draw") if result is NotImplemented else result
