"""Arrays of traced numbers: sums and comparisons by numpy; its other functions are refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.known.affine import Affine
from pytest_dp.known.finite import Finite, joined
from pytest_dp.known.monotone import (
    COMPARISONS,
    IN_PARTS,
    UNARY,
    applied,
    elementwise,
    is_draw,
    objects,
)
from pytest_dp.known.trace import Trace, Traced, is_constant, plain_once_refused, simplest

ALLOWED = {
    *(np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.matmul),
    *(np.floor_divide, np.remainder, np.maximum, np.minimum),
}
"""Elementwise functions that are computed by the operators of the elements."""
LOGICAL = {
    np.logical_and: np.bitwise_and,
    np.logical_or: np.bitwise_or,
    np.logical_xor: np.bitwise_xor,
    np.logical_not: np.invert,
}
"""Replacements for functions that would decide each element."""
LARGEST: dict[Any, tuple[float, bool]] = {
    np.argmax: (1.0, True),
    np.argmin: (-1.0, True),
    np.max: (1.0, False),
    np.min: (-1.0, False),
    np.amax: (1.0, False),
    np.amin: (-1.0, False),
}
"""Functions of the largest element: a sign, -1 for the smallest; and whether they return its index.
"""


_CLIPS = (np.positive, np.maximum, np.minimum)
"""What is done with the arguments of ``np.clip``."""


def _by_numpy(function: Any) -> Any:
    """The method that numpy has a function for."""
    return lambda self, *args, **keywords: function(self, *args, **keywords)


@plain_once_refused
class TracedArray(np.ndarray):
    """An array of objects, some of which are traced."""

    traced: Trace

    def __array_finalize__(self, source: Any) -> None:
        if source is not None:
            self.traced = getattr(source, "traced", None)  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return of_ufunc(self.traced, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return of_function(self.traced, function, args, keywords)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:  # noqa: ARG002
        """The same numbers in another type, where that changes none."""
        kind = np.dtype(dtype).kind
        if keeps(dtype):
            return self.copy()
        narrow = kind in "iu" and np.dtype(dtype).itemsize < 8
        if kind not in "iub" or (narrow and not all(map(_is_bit, self.ravel().tolist()))):
            self.traced.refuse(f"draws are converted to {np.dtype(dtype)}")
        to = bool if kind == "b" else int
        return array_of(self.traced, elementwise(lambda value: _converted(value, to), self))

    argmax, argmin, max, min, round, clip = map(
        _by_numpy, (np.argmax, np.argmin, np.max, np.min, np.round, np.clip)
    )

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


def keeps(dtype: Any) -> bool:
    """Whether numbers stay what they are in an array of this type."""
    kind = np.dtype(dtype).kind
    return bool(kind == "O" or (kind == "f" and np.dtype(dtype).itemsize >= 8))


def _is_bit(value: Any) -> bool:
    values = value.values if isinstance(value, Finite) else [value]
    return all(isinstance(element, bool) for element in values)


def _converted(value: Any, kind: type) -> Any:
    value = simplest(value) if isinstance(value, Affine) else value
    return value.__converted__(kind) if is_draw(value) else kind(value)


def array_of(trace: Trace, values: Any) -> Any:
    """An array of objects as one that is traced; itself if it has no axes."""
    if not isinstance(values, np.ndarray) or values.dtype != object:
        return values
    if values.ndim == 0:
        return values.item()
    made = values.view(TracedArray)
    made.traced = trace
    return made


def of_ufunc(trace: Trace, ufunc: Any, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """An elementwise function, or a sum by one."""
    ufunc = LOGICAL.get(ufunc, ufunc)
    if ufunc not in ALLOWED:
        if method == "__call__" and not keywords and ufunc.__name__ in UNARY | IN_PARTS.keys():
            return array_of(trace, elementwise(partial(_applied, ufunc), *map(objects, inputs)))
        trace.refuse(f"np.{ufunc.__name__} of a draw is no sum of draws")
    out = keywords.pop("out", ())
    dtype = keywords.pop("dtype", None)
    if dtype is not None and not keeps(dtype):
        trace.refuse(f"draws are converted to {np.dtype(dtype)}")
    if method == "__call__" and ufunc.__name__ in COMPARISONS:
        keywords["dtype"] = object
    plain = [objects(value) if not isinstance(value, slice) else value for value in inputs]
    if method == "__call__" and ufunc in {np.maximum, np.minimum}:
        plain = _of_one_type(plain)
    if method == "at":
        trace.refuse(f"np.{ufunc.__name__}.at changes draws in place")
    made = getattr(ufunc, method)(*plain, **keywords)
    if out:
        return _written(trace, out[0], made)
    return array_of(trace, made)


def _written(trace: Trace, place: Any, values: Any) -> Any:
    if not isinstance(place, np.ndarray) or place.dtype != object:
        trace.refuse("draws are written into an array of floats")
    place.view(np.ndarray)[...] = values
    return place


def of_function(trace: Trace, function: Any, args: Any, keywords: dict[str, Any]) -> Any:
    """A function of numpy; most are called with arrays of objects."""
    if function is np.where and len(args) == 3:
        return array_of(trace, elementwise(_where, *map(objects, args)))
    if function in {np.round, np.around, np.fix}:
        plainly = np.trunc if function is np.fix else partial(np.round, **keywords)
        values = elementwise(lambda x, *by: _applied(plainly, x, *by), *map(objects, args))
        return array_of(trace, values)
    if function in LARGEST and len(args) == 1 and not keywords:
        values = objects(args[0])
        sign, wants_index = LARGEST[function]
        index = largest_at(trace, sign * values)
        return index if wants_index else values.ravel()[index]
    if function is np.clip and len(args) == 3 and not keywords:
        given = [
            (objects(value), by)
            for value, by in zip(args, _CLIPS, strict=True)
            if value is not None
        ]
        numbers = _of_one_type([value for value, _ in given])
        clipped = numbers[0]
        for bound, (_, choose) in zip(numbers[1:], given[1:], strict=True):
            clipped = choose(clipped, bound)
        return array_of(trace, objects(clipped))
    plain = [_plain(value) for value in args]
    named = {name: _plain(value) for name, value in keywords.items()}
    if function is np.copyto or isinstance(named.get("out"), np.ndarray):
        trace.refuse(f"np.{function.__name__} writes draws into an array")
    return array_of(trace, function(*plain, **named))


def _of_one_type(arrays: list[Any]) -> list[Any]:
    """Arrays whose numbers are floats if any of them is, as numpy makes them before it chooses."""
    numbers = [number for array in arrays for number in array.flat]
    if all(number.is_whole for number in numbers if isinstance(number, Affine)):
        return arrays
    return [elementwise(lambda x: float(x) if type(x) is int else x, array) for array in arrays]


def largest_at(trace: Trace, values: npt.NDArray[Any]) -> int:
    """The index of the largest of several numbers; the mechanism is run once for each index."""
    numbers = values.ravel()
    count = len(numbers)
    if not all(isinstance(number, Affine) and len(number.terms) == 1 for number in numbers):
        trace.refuse("the largest of several numbers, of which not all are single draws")
    at = trace.path.choose([1 / count] * count)
    for other, number in enumerate(numbers):
        if other != at:
            difference = numbers[at] - number
            if not isinstance(difference, Affine) or len(difference.terms) != 2:
                trace.refuse("the largest of several numbers that share a draw")
            trace.require(difference.terms, difference.constant)
    return at


def _plain(value: Any) -> Any:
    if isinstance(value, Traced):
        return objects(value)
    if isinstance(value, TracedArray):
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    return value


def _applied(function: Any, value: Any, *args: Any) -> Any:
    """A function of numpy that is monotone, at least in parts."""
    if isinstance(value, Finite):
        return value.map(lambda each: function(each, *args))
    if not is_draw(value):
        return function(value, *args)
    monotone = value.monotone() if isinstance(value, Affine) else value
    if isinstance(function, np.ufunc):
        return applied(function.__name__, monotone, [monotone])
    return monotone.increasing(lambda x: function(x, *args), discrete=True)


def _where(condition: Any, if_true: Any, if_false: Any) -> Any:
    """One of two by a condition, which is decided only if one of them is a sum of draws."""
    options = [simplest(if_true), simplest(if_false)]
    finite = [option for option in options if isinstance(option, Finite)]
    undecided = isinstance(condition, Finite) and all(
        isinstance(option, Finite) or is_constant(option) for option in options
    )
    if not undecided:
        return if_true if condition else if_false

    def choose(truth: Any, *values: Any) -> Any:
        known = iter(values)
        both = [next(known) if isinstance(option, Finite) else option for option in options]
        return both[0] if truth else both[1]

    return joined(condition.trace, choose, condition, *finite)
