"""Draws that are known only as far as they were asked, and what is computed from one of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pytest_dp.exact.draw_arrays import each
from pytest_dp.exact.drawn import Drawn
from pytest_dp.exact.functions import UNARY, applied, unary

HELD, HASHED, TWO = (
    "output holds a continuous draw",
    "hash of a draw",
    "two continuous draws compared",
)
BITWISE = "bits of a draw"
PLAIN = "a continuous draw as a plain float"
COMBINED = "arithmetic of two continuous draws"
MAX_WHOLE = 1 << 16
"""Values of a draw of whole numbers that it may be split into, one by one."""


def _same(value: Any) -> Any:
    return value


def _at_most(of: Callable[[Any], Any], most: Any) -> Callable[[Any], Any]:
    return lambda x: of(x) <= most


def _below(of: Callable[[Any], Any], bound: Any) -> Callable[[Any], Any]:
    return lambda x: of(x) < bound


class Lazy:
    """A monotone function of one draw: asking it anything splits what the draw may be.

    Parameters
    ----------
    drawn : Drawn
    of : callable, optional
        The function, of Python's or numpy's numbers.
    whole : bool
        Whether it has few values, such as whole numbers, so that it may be used in any way.
    """

    __slots__ = ("_drawn", "_of", "whole")
    __array_priority__ = 1000
    _is_draw = True

    def __init__(
        self, drawn: Drawn, of: Callable[[Any], Any] = _same, *, whole: bool = False
    ) -> None:
        self._drawn, self._of, self.whole = drawn, of, whole

    # What it looks like.

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._of(self._drawn.domain.value(self._drawn.start)))

    def __deepcopy__(self, memo: Any) -> Lazy:
        return self

    def __copy__(self) -> Lazy:
        return self

    def __reduce__(self) -> Any:
        self._refuse("copy of a draw")

    def _refuse(self, reason: str) -> NoReturn:
        self._drawn.chooser.refuse(reason)

    def of_type(self, kind: type) -> Lazy:
        """A whole number that is one of Python's, or one of numpy's."""
        return self if kind is int else Lazy(self._drawn, kind, whole=True)

    # Its value.

    def value(self, reason: str) -> Any:
        """Its value, where it has few: each is a way to go.

        Parameters
        ----------
        reason : str
            Why this is no mechanism to enumerate, where it has not.
        """
        drawn, of = self._drawn, self._of
        while True:
            at_start, at_end = drawn.ends(of)
            if at_start == at_end:
                return at_start
            if not self.whole or (drawn.is_whole and abs(at_end - at_start) > MAX_WHOLE):
                self._refuse(reason)
            if drawn.split_again():
                continue
            smallest, largest = sorted((at_start, at_end))
            middle = of(drawn.domain.value(drawn.domain.middle(drawn.start, drawn.stop)))
            left = drawn.stop - drawn.start
            between = smallest <= middle < largest
            drawn.holds(_at_most(of, middle) if between else _below(of, largest))
            if drawn.stop - drawn.start == left:
                self._refuse("a draw that may not be a number")

    def __hash__(self) -> int:
        return hash(self.value(HASHED))

    def __index__(self) -> int:
        return operator.index(self.value("index by a draw"))

    def __float__(self) -> float:
        return float(self.value(PLAIN))

    def __str__(self) -> str:
        return str(self.value("text of a continuous draw"))

    def __repr__(self) -> str:
        return repr(self.value("text of a continuous draw"))

    def __format__(self, how: str) -> str:
        return format(self.value("text of a continuous draw"), how)

    def __int__(self) -> int:
        return int(self.__trunc__().value(HELD))

    def __bool__(self) -> bool:
        return bool(self != 0)

    # Comparisons.

    def _compare(self, by: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if other is self:  # as sorting does
            return by(0, 0)
        if type(other) is Lazy:
            other = self._one_of_two(other, TWO)
        of = self._of
        held = self._drawn.holds(lambda x: by(of(x), other))
        numpys = isinstance(other, np.generic) or issubclass(self.__class__, np.generic)
        return np.bool_(held) if numpys else held

    def _one_of_two(self, other: Lazy, reason: str) -> Any:
        """The value of another draw beside this one, if it has few."""
        if not other.whole:
            self._refuse(reason)
        return other.value(reason)

    def __lt__(self, other: Any) -> Any:
        if type(other) is Lazy and self.whole and not other.whole:
            return other > self
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        if type(other) is Lazy and self.whole and not other.whole:
            return other >= self
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        if type(other) is Lazy and self.whole and not other.whole:
            return other < self
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        if type(other) is Lazy and self.whole and not other.whole:
            return other <= self
        return self._compare(operator.ge, other)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, int | float | np.number):
            return False
        below = self < other
        return type(below)(False) if below else self <= other

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return equal if equal is NotImplemented else type(equal)(not equal)

    # Arithmetic.

    def _then(self, function: Callable[[Any], Any], *, whole: bool = False) -> Lazy:
        of, drawn = self._of, self._drawn
        result = Lazy(drawn, lambda x: function(of(x)), whole=self.whole or whole)
        at_start, at_end = result.ends()  # raises what it would, as for a division by 0
        # No number: as infinity times 0 at the end of a logarithm. Anywhere else it would be all.
        if at_start != at_start and drawn.stop - drawn.start > 1:
            drawn.apart(drawn.start)
        if at_end != at_end and drawn.stop - drawn.start > 1:
            drawn.apart(drawn.stop - 1)
        return result

    def combined(self, by: Callable[[Any, Any], Any], other: Any, *, left: bool = True) -> Any:
        """An operation with a number, or with a draw of few values; `left`: this one is first."""
        if isinstance(other, np.ndarray) or not isinstance(other, int | float | np.number | Lazy):
            return NotImplemented
        if type(other) is Lazy:
            if self.whole and not other.whole:
                return other.combined(by, self.value(COMBINED), left=not left)
            other = self._one_of_two(other, COMBINED)
        return self._then((lambda x: by(x, other)) if left else (lambda x: by(other, x)))

    def __add__(self, other: Any) -> Any:
        return self.combined(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self.combined(operator.add, other, left=False)

    def __sub__(self, other: Any) -> Any:
        return self.combined(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self.combined(operator.sub, other, left=False)

    def __mul__(self, other: Any) -> Any:
        return self.combined(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self.combined(operator.mul, other, left=False)

    def __truediv__(self, other: Any) -> Any:
        return self.combined(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        known = self._away_from_zero()
        if not isinstance(known, Lazy):
            return other / known
        return known.combined(operator.truediv, other, left=False)

    def __floordiv__(self, other: Any) -> Any:
        result = self.combined(operator.floordiv, other)
        if type(result) is Lazy:
            result.whole = True
        return result

    def __mod__(self, other: Any) -> Any:
        if type(other) is Lazy or not isinstance(other, int | float | np.number):
            return NotImplemented
        if self._of in (_same, np.int64) and isinstance(other, int) and other > 0:
            remainder = self._drawn.residue(other)
            if remainder is not None:
                return self._of(remainder)
        (self // other).value(HELD)  # on each of its values, what remains is monotone
        return self.combined(operator.mod, other)

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
        if not isinstance(known, Lazy):
            return known**other
        return known.combined(operator.pow, other)

    def __rpow__(self, other: Any) -> Any:
        return self.combined(operator.pow, other, left=False)

    def __neg__(self) -> Any:
        return self._then(operator.neg)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __trunc__(self) -> Any:
        return self._then(_if_finite(int), whole=True)

    def __floor__(self) -> Any:
        return self._then(_if_finite(math.floor), whole=True)

    def __ceil__(self) -> Any:
        return self._then(_if_finite(math.ceil), whole=True)

    def __round__(self, digits: int | None = None) -> Any:
        return self._then(_if_finite(lambda x: round(x, digits)), whole=True)

    def _away_from_zero(self) -> Any:
        """Itself, known to be below or above 0; or 0."""
        if self < 0:
            return self
        return self if self > 0 else self._drawn.ends(self._of)[0]

    # Functions of numpy.

    def __getattr__(self, name: str) -> Any:
        """What numpy looks for on objects in arrays; anything else, numbers have not either."""
        if name in UNARY:
            return lambda: unary(name, self)
        if name in ("real", "item", "conjugate"):
            return self if name == "real" else lambda: self
        if name == "round":
            return lambda decimals=0, out=None: self._rounded(decimals)  # noqa: ARG005
        if self.whole and not name.startswith("__"):
            return getattr(self.value(f".{name} of a draw"), name)
        raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")

    def _rounded(self, decimals: int) -> Any:
        return self._then(lambda x: np.round(x, decimals), whole=True)

    def increasing(self, function: Callable[[Any], Any], *, whole: bool = False) -> Lazy:
        """An increasing function of it; `whole` if it has few values."""
        return self._then(function, whole=whole)

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:
        """Through an increasing function of Python's, such as ``math.log``, that begins somewhere.

        At its beginning, and where it is too large for a float, it is infinite.
        """
        if lowest is not None and self < lowest:
            return function(self._drawn.ends(self._of)[0])  # raises, as it would
        return self._then(_unlimited(function))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__" or set(keywords) - {"dtype", "casting", "where"}:
            self._refuse(f"np.{ufunc.__name__}.{method} of a draw")
        if any(isinstance(given, np.ndarray) and given.ndim for given in inputs):
            return each(ufunc, list(inputs))
        plain = [given[()] if isinstance(given, np.ndarray) else given for given in inputs]
        result = applied(ufunc.__name__, self, plain)
        if result is NotImplemented:
            self._refuse(f"np.{ufunc.__name__} of a draw")
        return result

    def ends(self) -> tuple[Any, Any]:
        """Its values at both ends of what the draw may be."""
        return self._drawn.ends(self._of)


def _if_finite(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if math.isfinite(x) else x


def _unlimited(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        try:
            return function(x)
        except ValueError:  # as math.log does at 0
            return -math.inf
        except OverflowError:
            return math.inf

    return apply
