"""Draws as numbers and arrays that keep track of what they are added to and compared with.

They behave as plain numbers. While they are only added, subtracted, scaled and compared, each is
known as a sum of draws; a `TrackedRun` keeps every sum and comparison. Other operations give plain
numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from pytest_dp.basics.arrays import Ints

MAX_SUMMANDS = 1000
"""Draws in one tracked sum. Fewer: sums over vectors of noise are plain numbers sooner."""

Form = tuple[tuple[int, float], ...]
"""Coefficients by the numbers of draws, in ascending order."""


class DrawSum:
    """A sum of multiples of draws, and a constant; arrays of these do arithmetic as of objects."""

    __slots__ = ("constant", "form")

    def __init__(self, form: Form, constant: float) -> None:
        self.form, self.constant = form, constant

    def __add__(self, other: Any) -> Any:
        if isinstance(other, DrawSum):
            return add_up([self, other])
        return NotImplemented if isinstance(other, np.ndarray) else self + as_sum(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, factor: Any) -> Any:
        if not isinstance(factor, int | float | np.number) or not math.isfinite(factor):
            return NotImplemented
        form = tuple((at, by * float(factor)) for at, by in self.form if by * factor)
        return DrawSum(form, self.constant * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, DrawSum | np.ndarray) or not other:
            return NotImplemented
        return self * (1 / other)

    def __neg__(self) -> DrawSum:
        return DrawSum(tuple((at, -by) for at, by in self.form), -self.constant)

    def __pos__(self) -> DrawSum:
        return self


def as_sum(value: Any) -> DrawSum:
    """Return a number as a sum of no draws; raise TypeError or ValueError for other objects."""
    return value if isinstance(value, DrawSum) else DrawSum((), float(value))


def add_up(summands: Sequence[DrawSum]) -> Any:
    """Return the sum of sums of draws; NotImplemented if it is of too many draws."""
    form: dict[int, float] = {}
    for each in summands:
        for at, by in each.form:
            form[at] = form.get(at, 0.0) + by
    if len(form) > MAX_SUMMANDS:
        return NotImplemented
    constant = math.fsum(each.constant for each in summands)
    return DrawSum(tuple(sorted((at, by) for at, by in form.items() if by)), constant)


@dataclass(slots=True)
class TrackedRun:
    """The sums that a run made of its draws, and its comparisons."""

    sums: list[DrawSum] = field(default_factory=list)
    comparisons: list[tuple[DrawSum, DrawSum, bool]] = field(default_factory=list)
    """Pairs of sums, and whether the first is above the second, or not below it."""

    @property
    def path(self) -> tuple[tuple[Form, Form, bool], ...]:
        """The forms that were compared, and the results."""
        return tuple((one.form, other.form, result) for one, other, result in self.comparisons)

    def add_comparisons(self, left: Any, right: Any, results: Any) -> None:
        """Record comparisons of sums, numbers, or arrays of these, element by element."""
        sides = (np.asarray(side, object) for side in (left, right))
        self.comparisons += [
            (as_sum(one), as_sum(other), bool(result))
            for one, other, result in np.broadcast(*sides, results)
        ]


class TrackedArray(np.ndarray[Any, Any]):
    """An array of sums of draws, which tracks in a record what is computed from it.

    An array of plain numbers if `record` is None.
    """

    record: TrackedRun | None
    sums: Any

    def __array_finalize__(self, _: object) -> None:
        self.record = None

    @classmethod
    def of(cls, values: Any, record: TrackedRun, sums: Any) -> Self:
        """Return an array of values, with the sums of draws that each of them is."""
        array = np.asarray(values).view(cls)
        array.record, array.sums = record, np.broadcast_to(sums, array.shape)
        return array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return _apply_ufunc(ufunc, method, inputs, keywords)

    def _rearrange(self, move: Callable[[Any], Any]) -> Any:
        """Return the array after a change of places, with its sums in their new places."""
        values = move(np.asarray(self))
        return values if self.record is None else _track(values, self.record, move(self.sums))

    def __getitem__(self, key: Any) -> Any:
        return self._rearrange(lambda array: array[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        return self._rearrange(lambda array: array.reshape(*shape, **keywords))

    def ravel(self, *args: Any) -> Any:
        return self._rearrange(lambda array: array.ravel(*args))

    def flatten(self, *args: Any) -> Any:
        return self._rearrange(lambda array: array.flatten(*args))

    def copy(self, *args: Any) -> Any:
        return self._rearrange(lambda array: array.copy(*args))

    def item(self, *args: Any) -> Any:
        return self.reshape(-1)[args[0] if args else 0] if len(args) < 2 else super().item(*args)

    def tolist(self) -> Any:
        return [each.tolist() if isinstance(each, TrackedArray) else each for each in self]

    def sum(self, *args: Any, **keywords: Any) -> Any:
        """Return the sum, tracked if it is over all elements and not of too many draws."""
        value = np.asarray(self).sum(*args, **keywords)
        if _are_given(args, keywords) or self.record is None:
            return value
        added = add_up(self.sums.ravel())
        return value if added is NotImplemented else _track(value, self.record, added)

    def _record_pick(self, picked: Any, *given: Any, highest: bool) -> Any:
        """Return a place, and record that its number was compared with all other numbers.

        Nothing is recorded if `given` has arguments, such as an axis, or the array is not a row.
        """
        if self.record is not None and self.ndim == 1 and not _are_given(*given):
            chosen, others = self.sums[picked], np.delete(self.sums, picked)
            pairs = ((chosen, other) if highest else (other, chosen) for other in others)
            self.record.comparisons += [(*pair, True) for pair in pairs]
        return picked

    def argmax(self, *args: Any, **keywords: Any) -> Any:
        """Return the place of the largest number, and record its comparisons."""
        picked = np.asarray(self).argmax(*args, **keywords)
        return self._record_pick(picked, args, keywords, highest=True)

    def argmin(self, *args: Any, **keywords: Any) -> Any:
        """Return the place of the smallest number, and record its comparisons."""
        picked = np.asarray(self).argmin(*args, **keywords)
        return self._record_pick(picked, args, keywords, highest=False)

    def max(self, *args: Any, **keywords: Any) -> Any:
        """Return the largest number, tracked if the array is a row."""
        if _are_given(args, keywords) or self.ndim != 1:
            return np.asarray(self).max(*args, **keywords)
        return self[int(self.argmax())]


def _tracked_operator(by: Callable[[Any, Any], Any], *, swapped: bool = False) -> Any:
    """Return the method for an operator; `swapped`, for the number on its right."""

    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float | np.generic | np.ndarray):
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        return _track_result(by, left, right, by(_as_untracked(left), _as_untracked(right)))

    return operate


_ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
    np.positive: operator.pos,
}
_COMPARISONS: dict[Any, Callable[..., Any]] = {
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
}
"""Functions of numpy that are followed, by the operators that they stand for."""


def _as_untracked(value: Any) -> Any:
    """Return a tracked number or array as one of numpy; other values as they are."""
    if isinstance(value, TrackedFloat):
        return np.float64(np.float64.__float__(value))
    if isinstance(value, TrackedInt):
        return np.int64(np.int64.__int__(value))
    return np.asarray(value) if isinstance(value, TrackedArray) else value


def _negative(self: Any) -> Any:
    return _track_result(operator.neg, self, None, -_as_untracked(self))


_OF_SCALARS: dict[str, Any] = {
    "__array_ufunc__": TrackedArray.__array_ufunc__,
    **{
        f"__{name}__": _tracked_operator(getattr(operator, name))
        for name in ("add", "sub", "mul", "truediv", "gt", "ge", "lt", "le")
    },
    **{
        f"__r{name}__": _tracked_operator(getattr(operator, name), swapped=True)
        for name in ("add", "sub", "mul")
    },
    "__neg__": _negative,
    "__reduce__": lambda self: (operator.pos, (_as_untracked(self),)),
    "item": lambda self, *_: self,
}
"""What tracked numbers do otherwise. Not by a class above them: numpy knows the type of a scalar
by its first base, and crashes where it is another."""
TrackedFloat: Any = type("TrackedFloat", (np.float64,), _OF_SCALARS)
TrackedInt: Any = type("TrackedInt", (np.int64,), _OF_SCALARS)


def tracked_draws(values: Any, record: TrackedRun, numbers: Ints, loc: Any) -> Any:
    """Return draws as tracked numbers, and record their sums with locations that are not 0.

    `numbers` are those of the draws, as of `Form`.
    """
    sums = np.frompyfunc(lambda at, by: DrawSum(((at, 1.0),), float(by)), 2, 1)(numbers, loc)
    if np.any(np.asarray(loc) != 0):
        record.sums += np.ravel(sums).tolist()
    return _track(values, record, sums)


def is_tracked(value: Any) -> bool:
    """Return whether a value is a tracked number or an array of them."""
    return isinstance(value, TrackedFloat | TrackedInt) or (
        isinstance(value, TrackedArray) and value.record is not None
    )


def _are_given(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether a method of an array gets more than its defaults."""
    return any(value is not None for value in (*args, *keywords.values()))


def _track(values: Any, record: TrackedRun, sums: Any) -> Any:
    """Return values with their sums of draws, as a tracked number or array; texts as they are."""
    if isinstance(values, np.ndarray) and values.ndim:
        return TrackedArray.of(values, record, sums)
    value = np.asarray(values)[()]
    if value.dtype.kind not in "fiu":
        return values
    number = (TrackedFloat if value.dtype.kind == "f" else TrackedInt)(value)
    number.record, number.sums = record, np.asarray(sums, object)[()]
    return number


def _apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return a function of numpy, tracked if it is a sum of draws."""
    out = keywords.pop("out", None) or ()
    into = {"out": tuple(map(_as_untracked, out))} if out else {}
    values = getattr(ufunc, method)(*map(_as_untracked, inputs), **keywords, **into)
    by = {**_ARITHMETIC, **_COMPARISONS}.get(ufunc)
    if by is None or method != "__call__" or keywords:
        return values
    left, right = (*inputs, None)[:2]
    result = _track_result(by, left, right, values)
    if out and isinstance(out[0], TrackedArray):
        out[0].record = getattr(result, "record", None)
        out[0].sums = getattr(result, "sums", None)
        return out[0]
    return result


def _track_result(by: Callable[..., Any], left: Any, right: Any, values: Any) -> Any:
    """Return values by an operator, tracked if they are sums; record comparisons and sums."""
    record = next((each.record for each in (left, right) if is_tracked(each)), None)
    if record is None:
        return values
    one, other = (each.sums if is_tracked(each) else each for each in (left, right))
    try:
        if by in _COMPARISONS.values():
            is_above = by in (operator.gt, operator.ge)
            record.add_comparisons(one, other, np.asarray(values) == is_above)
            return values if np.ndim(values) else bool(values)
        sums = by(one) if right is None else by(one, other)
    except (TypeError, ValueError, ZeroDivisionError):  # with what is no number, or no sum
        return values
    if by in (operator.add, operator.sub):
        record.sums += np.ravel(np.asarray(sums, object)).tolist()
    return _track(values, record, sums)
