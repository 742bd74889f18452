"""Deferred numbers: draws, and functions of draws, whose values are not known yet.

Functions of numpy and Python on them, and on arrays of them, are written in terms of operators and
of increasing functions; what a kind of deferred number cannot do, it refuses.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.running.modules import Replacements
from pytest_dp.running.requests import is_diagnostic
from pytest_dp.running.shadowing import StandsFor
from pytest_dp.running.stand_ins import Instrument

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
    """Return whether something is a deferred number (which says that it is of another class)."""
    return issubclass(type(value), Deferred)


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


def plain_inputs(inputs: Iterable[Any], reason: str) -> list[Any]:
    """Return inputs of a function, with a number in place of each draw, if it has one."""
    return [value.value(reason) if is_draw(value) else value for value in inputs]


class Deferred:
    """A function of draws; what it is not made for, it refuses."""

    __slots__ = ("instrument",)
    __array_priority__ = 1000

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument

    # What kinds of deferred numbers do in their own ways

    def value(self, reason: str) -> Any:
        """Return a plain number where it can be one; else refuse, for the reason given."""
        self.instrument.refuse(reason)

    def combined(self, other: Any, function: Function) -> Any:
        """Return a function of the number and another one; NotImplemented if that is none."""
        raise NotImplementedError

    def is_above(self, *, equal: bool) -> bool:
        """Decide whether it is above 0, or at least 0."""
        raise NotImplementedError

    def compared(self, other: Any, by: Function) -> Any:
        """Decide how it compares with another number, by an operator."""
        is_greater = bool(by(1, 0))
        minus = operator.sub if is_greater else (lambda mine, theirs: theirs - mine)
        difference = self.combined(other, minus)
        if difference is NotImplemented:
            return difference
        return difference.is_above(equal=bool(by(0, 0)))

    def increasing(self, function: Callable[[Any], Any], *, discrete: bool = False) -> Any:  # noqa: ARG002
        """Return an increasing function of it; `discrete` if that has few values."""
        return self.value(NO_SUM)

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:  # noqa: ARG002
        """Return an increasing function of Python, such as ``math.log``, defined from `lowest`."""
        return self.value(NO_SUM)

    def __trunc__(self) -> Any:
        return self.value("a draw is rounded")

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: int | None = None) -> Any:
        return self.value("a draw is rounded")

    def __converted__(self, kind: type) -> Any:
        """Return it in a type of Python."""
        return self.value(f"a draw is converted to {kind.__name__}")

    # What follows from these

    __add__, __radd__ = operators(operator.add)
    __sub__, __rsub__ = operators(operator.sub)
    __mul__, __rmul__ = operators(operator.mul)
    __truediv__, __rtruediv__ = operators(operator.truediv)
    __floordiv__, __rfloordiv__ = operators(operator.floordiv)
    __mod__, __rmod__ = operators(operator.mod)
    __pow__, __rpow__ = operators(operator.pow)
    __lt__, __gt__ = operators(operator.lt, "compared")
    __le__, __ge__ = operators(operator.le, "compared")

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
        return int(self.__trunc__().value(HELD))

    def __index__(self) -> int:
        return operator.index(self.value("index by a draw"))

    def __str__(self) -> str:
        return "<a draw>" if is_diagnostic() else repr(self.value(TEXT))

    __repr__ = __str__

    def __format__(self, how: str) -> str:
        return str(self) if is_diagnostic() else format(self.value(TEXT), how)

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
        """Return a function of numpy by the operators that it stands for."""
        reason = f"np.{ufunc.__name__} of a draw"
        if method != "__call__" or keywords.keys() - {"dtype", "casting", "where"}:
            return getattr(ufunc, method)(
                *plain_inputs(inputs, f"{reason} by {method}"), **keywords
            )
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            return of_draws(elementwise(ufunc, *inputs))
        plain = [value[()] if isinstance(value, np.ndarray) else value for value in inputs]
        result = applied(ufunc.__name__, self, plain)
        return ufunc(*plain_inputs(plain, reason)) if result is NotImplemented else result


# Functions of numpy that are monotone, at least in parts


def applied(name: str, draw: Any, inputs: list[Any]) -> Any:
    """A ufunc of inputs among which there is a draw; NotImplemented where it is not monotone."""
    if name in UNARY:
        return unary(name, draw)
    if name in BINARY:
        left, right = inputs
        if left is draw or name in CHOICES:
            result = BINARY[name](left, right)
        else:  # a number of numpy, whose method would call this again
            result = getattr(draw, REFLECTED[name])(left)
        return np.bool_(result) if name in COMPARISONS else result
    if name in IN_PARTS:
        return IN_PARTS[name](draw)
    if name == "clip":
        value, low, high = inputs
        return _larger(low, _smaller(high, value))
    return NotImplemented


def unary(name: str, draw: Any) -> Any:
    """An increasing function of a draw."""
    if name == "negative":
        return -draw
    low = LOWEST.get(name)
    if low is not None and draw < low:
        return np.float64(math.nan)
    return draw.increasing(getattr(np, name), discrete=name in ROUNDING)


def _is_nan(draw: Any) -> Any:
    return NotImplemented if any(map(math.isnan, draw.ends())) else np.False_


def _is_finite(draw: Any) -> Any:
    if any(map(math.isnan, draw.ends())):
        return NotImplemented
    return np.bool_(draw > -math.inf and draw < math.inf)


def _is_infinite(draw: Any) -> Any:
    finite = _is_finite(draw)
    return finite if finite is NotImplemented else ~finite


def _sign(draw: Any) -> Any:
    return np.float64(-1.0 if draw < 0 else 1.0 if draw > 0 else 0.0)


def _larger(left: Any, right: Any) -> Any:
    return left if left >= right else right


def _smaller(left: Any, right: Any) -> Any:
    return left if left <= right else right


ROUNDING = {"floor", "ceil", "rint", "trunc"}
INCREASING = {"exp", "exp2", "expm1", "tanh", "arctan", "sinh", "arcsinh", "cbrt", "positive"}
LOWEST: dict[str, float] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), 0.0),
    "log1p": -1.0,
}
"""Increasing functions, with the start of their domains: below, they are NaN."""
IN_PARTS: dict[str, Callable[[Any], Any]] = {
    "absolute": abs,
    "fabs": abs,
    "isnan": _is_nan,
    "isfinite": _is_finite,
    "isinf": _is_infinite,
    "sign": _sign,
    "square": lambda draw: draw**2,
    "reciprocal": lambda draw: 1.0 / draw,
}
"""Functions of one argument that are monotone in parts; a draw is split where these meet."""
UNARY = ROUNDING | INCREASING | LOWEST.keys() | {"negative"}
"""Functions of one argument that are monotone."""
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
CHOICES: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": _larger,
    "minimum": _smaller,
    "fmax": _larger,
    "fmin": _smaller,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "float_power": operator.pow,
}
BINARY = {**COMPARISONS, **ARITHMETIC, **CHOICES}
"""Functions of two arguments, with the operators that they stand for."""
REFLECTED = {
    **{name: f"__r{by.__name__}__" for name, by in ARITHMETIC.items()},
    "less": "__gt__",
    "less_equal": "__ge__",
    "equal": "__eq__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "not_equal": "__ne__",
}
"""Methods of the right input, where the left one is a number."""


# Arrays of draws


class DrawArray(np.ndarray):
    """An array of objects, some of which are draws: functions are applied to each element."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, DrawArray) else x for x in inputs]
        out = keywords.pop("out", None)
        if method != "__call__" or ufunc.nout != 1 or keywords:
            return getattr(ufunc, method)(*plain, **keywords)  # by Python's operators
        result = of_draws(elementwise(ufunc, *plain))
        if out is None:
            return result
        out[0][...] = result
        return out[0]


def of_draws(values: Any) -> Any:
    """An array of objects as a `DrawArray` if it holds draws, else as one of numbers."""
    if any(map(is_draw, values.flat)):
        return values.view(DrawArray)
    if not values.size:
        return values.astype(float)
    return np.array(values.tolist()).reshape(values.shape)


def elementwise(function: Callable[..., Any], *inputs: Any) -> Any:
    """The array of a function of the elements of arrays that are broadcast."""
    arrays = np.broadcast_arrays(*map(_as_array, inputs))
    values = np.empty(arrays[0].shape, object)
    for place in np.ndindex(values.shape):
        values[place] = function(*(array[place] for array in arrays))
    return values


def _as_array(value: Any) -> npt.NDArray[Any]:
    if not is_draw(value):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array


def objects(value: Any) -> npt.NDArray[np.object_]:
    """Anything as a plain array of objects, whose numbers are Python's."""
    return _as_array(value).astype(object)


# Functions of Python that would turn draws into plain numbers


@functools.cache
def functions_of_draws() -> Replacements:
    """Functions of `math` that take draws; of other arguments they are what they were."""
    names = {name.replace("arc", "a") for name in INCREASING} | LOWEST.keys() | {"erf"}
    return Replacements(
        (math, name, _taking_draws(vars(math)[name], LOWEST.get(name)))
        for name in sorted(names & vars(math).keys())
    )


def _taking_draws(function: Callable[..., Any], lowest: float | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *base: Any) -> Any:
        if not is_draw(x):
            return function(x, *base)
        return x.through(lambda value: function(value, *base), lowest)

    return apply


FLOAT, INT = ({kind.__name__: StandsFor.of(kind)} for kind in (float, int))
"""Stand-ins for types by the names under which a mechanism finds them."""
