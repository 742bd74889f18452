"""What traced numbers have in common; what Python and numpy do with numbers is mostly refused."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pytest_dp.analytic.trace import Trace


def is_constant(value: Any) -> bool:
    """Whether a value is a plain number."""
    return isinstance(value, bool | int | float | np.generic) and not isinstance(value, np.void)


def simplest(value: Any) -> Any:
    """A number by its values, if it is traced and has few; nothing is decided."""
    return value.simplest() if isinstance(value, Traced) else value


class Traced:
    """A function of draws.

    Attributes
    ----------
    trace : Trace
    """

    __slots__ = ("trace",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return self.trace.of_ufunc(self.trace, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self.trace.of_function(self.trace, function, args, keywords)

    def _refuse(self, what: str) -> NoReturn:
        self.trace.refuse(what)

    def simplest(self) -> Any:
        """The same number in a simpler form, if it has one."""
        return self

    def item(self) -> Any:
        return self

    def __pos__(self) -> Any:
        return self

    def __float__(self) -> float:
        self._refuse("a draw is converted to a float that cannot be traced")

    def __int__(self) -> int:
        self._refuse("a draw is rounded to a whole number")

    __index__ = __trunc__ = __floor__ = __ceil__ = __int__

    def __round__(self, digits: int | None = None) -> Any:
        self._refuse("a draw is rounded")

    def __pow__(self, other: Any) -> Any:
        self._refuse("a power of a draw is no sum of draws")

    __rpow__ = __pow__

    def __complex__(self) -> complex:
        self._refuse("a draw becomes a complex number")

    def __str__(self) -> str:
        self._refuse("a draw is written as text")

    def __format__(self, how: str) -> str:
        self._refuse("a draw is written as text")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self
