"""Deferred numbers: draws, and functions of draws, whose values are not known yet.

Functions of numpy and Python on them, and on arrays of them, are written in terms of operators and
of increasing functions; what a kind of deferred number cannot do, it refuses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.running.generator_stand_ins import Instrument

HELD, HASHED, COMPARED = (
    "output holds a continuous draw",
    "hash of a draw",
    "two continuous draws compared",
)
PLAIN = "a continuous draw as a plain float"
COMBINED = "arithmetic of two continuous draws"
TEXT = "text of a continuous draw"
"""Reasons why a mechanism cannot be enumerated, as they are shown."""
NO_SUM = "a function of a draw is not a sum of draws"

Function = Callable[[Any, Any], Any]


def is_draw(value: Any) -> bool:
    """Return whether a value is a deferred number, though its ``__class__`` is float or int."""
    return issubclass(type(value), Deferred)


def is_plain_number(value: Any) -> bool:
    """Return whether a value is a number of Python or numpy, and no deferred number."""
    plain = isinstance(value, bool | int | float | np.generic) and not isinstance(value, np.void)
    return plain and not is_draw(value)


def operators(function: Function, by: str = "combine") -> tuple[Function, Function]:
    """Return the methods for an operator, with the number on its left and on its right.

    They call the method named `by` of the number, with the other number and the operator.
    """
    ask = operator.attrgetter(by)
    return (
        lambda self, other: ask(self)(other, function),
        lambda self, other: ask(self)(other, lambda right, left: function(left, right)),
    )


class Deferred:
    """A function of draws, which refuses operations that need a value of it.

    To refuse is to give the run up: it goes on with plain numbers, or CannotInstrument ends it.
    """

    __slots__ = ("instrument",)
    __array_priority__ = 1000

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument

    # Methods of subclasses

    def value(self, reason: str) -> Any:
        """Refuse the run for a reason, and return a plain number to go on with.

        Raises CannotInstrument if the number has no value at all.
        """
        self.instrument.refuse(reason)

    def combine(self, other: Any, function: Function) -> Any:
        """Return a function of this number and another; NotImplemented for other objects."""
        raise NotImplementedError

    def is_above(self, *, equal: bool) -> bool:
        """Return whether the number is above 0 (with `equal`, at least 0), perhaps by a branch."""
        raise NotImplementedError

    def compare(self, other: Any, by: Function) -> Any:
        """Return the result of an operator such as ``<``; NotImplemented for other objects."""
        is_greater = bool(by(1, 0))
        minus = operator.sub if is_greater else (lambda mine, theirs: theirs - mine)
        difference = self.combine(other, minus)
        if difference is NotImplemented:
            return difference
        return difference.is_above(equal=bool(by(0, 0)))

    def by_value(self, other: Any, function: Function) -> Any:
        """Refuse the run, and return a function of a plain number and another number."""
        return function(self.value(f"{function.__name__.strip('_')} of a draw"), other)

    def __trunc__(self) -> Any:
        return math.trunc(self.value("a draw is rounded"))

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value("a draw is rounded"), digits)

    # What follows from these

    __add__, __radd__ = operators(operator.add)
    __sub__, __rsub__ = operators(operator.sub)
    __mul__, __rmul__ = operators(operator.mul)
    __truediv__, __rtruediv__ = operators(operator.truediv)
    __floordiv__, __rfloordiv__ = operators(operator.floordiv)
    __mod__, __rmod__ = operators(operator.mod)
    __pow__, __rpow__ = operators(operator.pow)
    __and__, __rand__ = operators(operator.and_, "by_value")
    __or__, __ror__ = operators(operator.or_, "by_value")
    __xor__, __rxor__ = operators(operator.xor, "by_value")
    __lshift__, __rlshift__ = operators(operator.lshift, "by_value")
    __rshift__, __rrshift__ = operators(operator.rshift, "by_value")
    __divmod__, __rdivmod__ = operators(divmod, "by_value")
    __lt__, __gt__ = operators(operator.lt, "compare")
    __le__, __ge__ = operators(operator.le, "compare")

    def __ne__(self, other: object) -> Any:
        equal = self == other
        if equal is NotImplemented:
            return equal
        return np.bool_(not equal) if isinstance(equal, np.bool_) else not equal

    def __hash__(self) -> int:
        return hash(self.value(HASHED))

    def __bool__(self) -> bool:
        return bool(self.__ne__(0))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self  # type: ignore[operator]

    def __float__(self) -> float:
        return float(self.value(PLAIN))

    def __int__(self) -> int:
        whole = self.__trunc__()
        return int(whole.value(HELD) if is_draw(whole) else whole)

    def __index__(self) -> int:
        return operator.index(self.value("index by a draw"))

    def __repr__(self) -> str:
        return repr(self.value(TEXT))

    def __format__(self, how: str) -> str:
        return format(self.value(TEXT), how)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return operator.pos, (self.value("copy of a draw"),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def item(self) -> Any:
        return self

    conjugate = item
    real = property(item)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return a function of numpy, applied by Python's operators; refuse other functions."""
        name = ufunc.__name__
        if method == "__call__" and not keywords.keys() - {"dtype", "casting", "where"}:
            if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
                return as_draw_array(elementwise(ufunc, *inputs))
            if name in OF_FEW_VALUES:
                return np.float64(OF_FEW_VALUES[name](self))
            if name in BY_OPERATORS:
                return ufunc(*map(objects, inputs))
        plain = [each.value(f"np.{name} of a draw") if is_draw(each) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **keywords)


OF_FEW_VALUES: dict[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "rint": round,
    "trunc": math.trunc,
    "sign": lambda draw: float(draw > 0) - float(draw < 0),
}
"""Functions of numpy with few values, by those of Python."""
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
BY_OPERATORS = COMPARISONS | {
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"),
    *("negative", "absolute", "reciprocal", "maximum", "minimum", "fmax", "fmin", "clip"),
}
"""Functions of numpy that apply operators of Python to objects."""


# Arrays of draws


class DrawArray(np.ndarray):
    """An array of objects, some of which are draws: functions are applied to each element."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, DrawArray) else x for x in inputs]
        out = keywords.pop("out", None)
        if method != "__call__" or ufunc.nout != 1 or keywords:
            return getattr(ufunc, method)(*plain, **keywords)  # by Python's operators
        result = as_draw_array(elementwise(ufunc, *plain))
        if out is None:
            return result
        out[0][...] = result
        return out[0]


def as_draw_array(values: Any) -> Any:
    """Return an array of objects as a `DrawArray`; as one of numbers if it holds no draws."""
    if any(map(is_draw, values.flat)):
        return values.view(DrawArray)
    if not values.size:
        return values.astype(float)
    return np.array(values.tolist()).reshape(values.shape)


def elementwise(function: Callable[..., Any], *inputs: Any) -> Any:
    """Return an array of objects: a function of the elements of arrays that are broadcast."""
    return np.vectorize(function, otypes=[object])(*map(objects, inputs))


def objects(value: Any) -> npt.NDArray[np.object_]:
    """Return a number or array as an array of objects, with Python's numbers in it."""
    if not is_draw(value):
        return np.asarray(value).astype(object)
    array = np.empty((), object)
    array[()] = value
    return array
