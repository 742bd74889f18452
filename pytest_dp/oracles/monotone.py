"""Functions of numpy on draws and arrays of draws: those that are monotone, at least in parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt


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


def is_draw(value: Any) -> bool:
    """Whether something is a deferred number (whose classes import this)."""
    return getattr(type(value), "_is_draw", False)


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
