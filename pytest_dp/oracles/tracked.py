"""Draws as numbers and arrays that tell what they are added to and compared with.

They behave as plain numbers. As long as they are only added, subtracted, scaled and compared, each
remembers that it is a sum of draws, by coefficients, and a constant; a `Record` keeps every sum
and every comparison. Other operations give plain numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.oracles.sums import Form, Record, ScalarSum, Sum, Terms

MAX_SUMMANDS = 1000
"""Draws in one tracked sum. More make each later operation slower; with fewer, sums over vectors
of noise are plain numbers sooner."""
_ARITHMETIC: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
    np.negative: "negative",
    np.positive: "positive",
}
_COMPARISONS: dict[Any, bool] = {
    np.greater: True,
    np.greater_equal: True,
    np.less: False,
    np.less_equal: False,
}
"""Functions of numpy, and whether the left side is above where they hold."""


class TrackedArray(np.ndarray[Any, Any]):
    """An array of sums of draws; one of plain numbers where `record` is None."""

    record: Record | None
    terms: Terms
    constants: Floats

    def __array_finalize__(self, _: object) -> None:
        self.record = None

    @classmethod
    def of(cls, values: Any, record: Record, terms: Terms, constants: Any) -> Self:
        """An array of these values, which are the sums that the terms and constants say."""
        array = np.asarray(values).view(cls)
        shape = array.shape
        array.record = record
        array.terms = [(np.broadcast_to(at, shape), np.broadcast_to(by, shape)) for at, by in terms]
        array.constants = np.broadcast_to(np.asarray(constants, float), shape)
        return array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return _computed(ufunc, method, inputs, keywords)

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        """The same after a change of places."""
        values = move(np.asarray(self))
        if self.record is None:
            return values
        terms = [(move(at), move(by)) for at, by in self.terms]
        return _tracked(values, self.record, terms, move(self.constants))

    def __getitem__(self, key: Any) -> Any:
        return self._moved(lambda array: array[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        return self._moved(lambda array: array.reshape(*shape, **keywords))

    def ravel(self, *args: Any) -> Any:
        return self._moved(lambda array: array.ravel(*args))

    def flatten(self, *args: Any) -> Any:
        return self._moved(lambda array: array.flatten(*args))

    def copy(self, *args: Any) -> Any:
        return self._moved(lambda array: array.copy(*args))

    def item(self, *args: Any) -> Any:
        return self.reshape(-1)[args[0] if args else 0] if len(args) < 2 else super().item(*args)

    def tolist(self) -> Any:
        return [each.tolist() if isinstance(each, TrackedArray) else each for each in self]

    def sum(self, *args: Any, **keywords: Any) -> Any:
        if _given(args, keywords) or self.record is None or self.size > MAX_SUMMANDS:
            return np.asarray(self).sum(*args, **keywords)
        terms: Terms = [
            (np.asarray(one), np.asarray(factor))
            for at, by in self.terms
            for one, factor in zip(at.ravel(), by.ravel(), strict=True)
        ]
        return _tracked(np.asarray(self).sum(), self.record, terms, self.constants.sum())

    def _picked(self, picked: Any, sign: float) -> Any:
        """The result of `argmax`, after the winner was compared with all others."""
        if self.record is not None and self.ndim == 1:
            self.record.compared.append(Sum(self.terms, self.constants))
            best = self._moved(lambda array: array[[int(picked)] * self.size])
            difference = _computed(np.subtract, "__call__", (best, self), {})
            _computed(np.greater_equal, "__call__", (sign * difference, 0.0), {})
        return picked

    def argmax(self, *args: Any, **keywords: Any) -> Any:
        picked = np.asarray(self).argmax(*args, **keywords)
        return picked if _given(args, keywords) else self._picked(picked, 1.0)

    def argmin(self, *args: Any, **keywords: Any) -> Any:
        picked = np.asarray(self).argmin(*args, **keywords)
        return picked if _given(args, keywords) else self._picked(picked, -1.0)

    def max(self, *args: Any, **keywords: Any) -> Any:
        if _given(args, keywords) or self.ndim != 1:
            return np.asarray(self).max(*args, **keywords)
        return self[int(self.argmax())]

    def argsort(self, *args: Any, **keywords: Any) -> Any:
        order = np.asarray(self).argsort(*args, **keywords)
        if self.record is not None and self.ndim == 1 and self.size > 1:
            self.record.compared.append(Sum(self.terms, self.constants))
            ordered = self._moved(lambda array: array[order])
            difference = _computed(np.subtract, "__call__", (ordered[1:], ordered[:-1]), {})
            _computed(np.greater_equal, "__call__", (difference, 0.0), {})
        return order


_FAST: dict[Any, tuple[Callable[[Any, Any], Any], float]] = {
    np.add: (operator.add, 1.0),
    np.subtract: (operator.sub, -1.0),
}
_FAST_COMPARISONS: dict[Any, tuple[Callable[[Any, Any], bool], bool]] = {
    np.greater: (operator.gt, True),
    np.greater_equal: (operator.ge, True),
    np.less: (operator.lt, False),
    np.less_equal: (operator.le, False),
}
_PLAIN = {int, float, bool, np.float64, np.int64}


def _scalar_operator(ufunc: Any, *, swapped: bool = False) -> Any:
    def operate(self: Any, other: Any) -> Any:
        if type(other) in _PLAIN or isinstance(other, TrackedFloat | TrackedInt):
            left, right = (other, self) if swapped else (self, other)
            if ufunc in _FAST:
                return _added(left, right, *_FAST[ufunc])
            if ufunc in _FAST_COMPARISONS:
                return _compared(left, right, *_FAST_COMPARISONS[ufunc])
        if not isinstance(other, int | float | np.generic | np.ndarray):
            return NotImplemented
        inputs = (other, self) if swapped else (self, other)
        return _computed(ufunc, "__call__", inputs, {})

    return operate


def _number(value: Any) -> tuple[Any, Form, float]:
    """Return a plain number, its form and its constant."""
    if isinstance(value, TrackedFloat):
        return np.float64.__float__(value), value.form, value.constants
    if isinstance(value, TrackedInt):
        return np.int64.__int__(value), value.form, value.constants
    return value, (), float(value)


def _combined(one: Form, other: Form, sign: float) -> Form:
    if not other:
        return one
    form = dict(one)
    for at, by in other:
        form[at] = form.get(at, 0.0) + sign * by
    return tuple(sorted((at, by) for at, by in form.items() if by))


def _added(left: Any, right: Any, add: Callable[[Any, Any], Any], sign: float) -> Any:
    one, form1, constant1 = _number(left)
    other, form2, constant2 = _number(right)
    record = (left if form1 or isinstance(left, TrackedFloat | TrackedInt) else right).record
    form, constant = _combined(form1, form2, sign), constant1 + sign * constant2
    record.sums.append(ScalarSum(form, constant))
    return _scalar(add(one, other), record, form, constant)


def _compared(left: Any, right: Any, compare: Callable[[Any, Any], bool], is_above: bool) -> bool:
    one, form1, constant1 = _number(left)
    other, form2, constant2 = _number(right)
    record = (left if form1 or isinstance(left, TrackedFloat | TrackedInt) else right).record
    holds = bool(compare(one, other))
    form = _combined(form1, form2, -1.0)
    record.comparisons.append(ScalarSum(form, constant1 - constant2, holds is is_above))
    record.compared += [
        ScalarSum(own, constant)
        for own, constant in ((form1, constant1), (form2, constant2))
        if own
    ]
    return holds


def _scalar(value: Any, record: Record, form: Form, constant: float) -> Any:
    number = (TrackedFloat if isinstance(value, float) else TrackedInt)(value)
    number.record, number.form, number.constants = record, form, constant
    return number


def _negative(self: Any) -> Any:
    return _computed(np.negative, "__call__", (self,), {})


def _reduced(self: Any) -> Any:
    return operator.pos, (_plain(self),)


_OF_SCALARS: dict[str, Any] = {
    "__array_ufunc__": TrackedArray.__array_ufunc__,
    "__add__": _scalar_operator(np.add),
    "__radd__": _scalar_operator(np.add, swapped=True),
    "__sub__": _scalar_operator(np.subtract),
    "__rsub__": _scalar_operator(np.subtract, swapped=True),
    "__mul__": _scalar_operator(np.multiply),
    "__rmul__": _scalar_operator(np.multiply, swapped=True),
    "__truediv__": _scalar_operator(np.true_divide),
    "__gt__": _scalar_operator(np.greater),
    "__ge__": _scalar_operator(np.greater_equal),
    "__lt__": _scalar_operator(np.less),
    "__le__": _scalar_operator(np.less_equal),
    "__neg__": _negative,
    "__reduce__": _reduced,
    "item": lambda self, *_: self,
}
"""What tracked numbers do otherwise. Not by a class above them: numpy knows the type of a scalar
by its first base, and crashes where it is another."""
TrackedFloat: Any = type("TrackedFloat", (np.float64,), _OF_SCALARS)
TrackedInt: Any = type("TrackedInt", (np.int64,), _OF_SCALARS)


def tracked_draws(values: Any, record: Record, numbers: Ints, loc: Any) -> Any:
    """Return draws that are tracked, each with its number, around their locations."""
    if not np.ndim(values):
        form = ((int(numbers), 1.0),)
        if loc:
            record.sums.append(ScalarSum(form, float(loc)))
        value = float(values) if values.dtype.kind == "f" else int(values)
        return _scalar(value, record, form, float(loc))
    drawn = _tracked(values, record, [(numbers, np.ones(numbers.shape))], loc)
    if np.any(np.asarray(loc) != 0):
        record.sums.append(Sum([(numbers, np.ones(numbers.shape))], _full(loc, numbers.shape)))
    return drawn


def is_tracked(value: Any) -> bool:
    """Return whether a value is a tracked number or an array of them."""
    return isinstance(value, TrackedFloat | TrackedInt) or (
        isinstance(value, TrackedArray) and value.record is not None
    )


def _given(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether a method of an array gets more than its defaults."""
    return any(value is not None for value in (*args, *keywords.values()))


def _full(value: Any, shape: tuple[int, ...]) -> Floats:
    return np.array(np.broadcast_to(np.asarray(value, float), shape))


def _tracked(values: Any, record: Record, terms: Terms, constants: Any) -> Any:
    if isinstance(values, np.ndarray) and values.ndim:
        return TrackedArray.of(values, record, terms, constants)
    value = np.asarray(values)[()]
    if value.dtype.kind not in "fiu":
        return values
    ((form, constant, _),) = Sum(terms, np.asarray(constants, float)).rows()
    return _scalar(value if value.dtype.kind == "f" else int(value), record, form, constant)


def _terms_of(value: Any) -> Terms:
    """Return the terms of a tracked number or array."""
    if isinstance(value, TrackedArray):
        return value.terms
    return [(np.asarray(at), np.asarray(by)) for at, by in value.form]


def _plain(value: Any) -> Any:
    if isinstance(value, TrackedFloat):
        return np.float64(np.float64.__float__(value))
    if isinstance(value, TrackedInt):
        return np.int64(np.int64.__int__(value))
    return np.asarray(value) if isinstance(value, TrackedArray) else value


def _computed(ufunc: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The result of a function of numpy, tracked where it is a sum of draws."""
    out = tuple(map(_plain, keywords.get("out") or ()))
    others = {name: value for name, value in keywords.items() if name != "out"}
    values = getattr(ufunc, method)(
        *map(_plain, inputs), **(others | ({"out": out} if out else {}))
    )
    if method != "__call__" or others or len(inputs) > 2:
        return values
    if ufunc in _ARITHMETIC:
        result = _arithmetic(_ARITHMETIC[ufunc], inputs, values)
        if out and isinstance(target := keywords["out"][0], TrackedArray):
            known = isinstance(result, TrackedArray) and result.record is not None
            target.record = result.record if known else None
            if known:
                target.terms, target.constants = result.terms, result.constants
            return target
        return result
    if ufunc in _COMPARISONS:
        _compare(inputs, values, above=_COMPARISONS[ufunc])
    return values


def _arithmetic(name: str, inputs: tuple[Any, ...], values: Any) -> Any:
    tracked = [each for each in inputs if is_tracked(each)]
    if not tracked or np.asarray(values).dtype.kind not in "fiu":
        return values
    record = tracked[0].record
    if name in ("negative", "positive"):
        sign = -1.0 if name == "negative" else 1.0
        (one,) = tracked
        terms = [(at, sign * by) for at, by in _terms_of(one)]
        return _tracked(values, record, terms, sign * np.asarray(one.constants))
    left, right = inputs
    if name in ("add", "subtract"):
        sign = 1.0 if name == "add" else -1.0
        terms, constants = _joined(left, right, sign, np.shape(values))
        if len(terms) > MAX_SUMMANDS:
            return values
        record.sums.append(Sum(terms, constants))
        return _tracked(values, record, terms, constants)
    if len(tracked) == 2 or (name == "divide" and is_tracked(right)):
        return values
    factor = np.asarray(right if is_tracked(left) else left, float)
    factor = 1 / factor if name == "divide" else factor
    if not np.isfinite(factor).all():
        return values
    (one,) = tracked
    terms = [(at, by * factor) for at, by in _terms_of(one)]
    return _tracked(values, record, terms, np.asarray(one.constants) * factor)


def _joined(left: Any, right: Any, sign: float, shape: tuple[int, ...]) -> tuple[Terms, Floats]:
    """The terms and constants of ``left + sign * right``."""
    terms: Terms = list(_terms_of(left)) if is_tracked(left) else []
    terms += [(at, sign * by) for at, by in _terms_of(right)] if is_tracked(right) else []
    parts = [
        np.asarray(each.constants if is_tracked(each) else each, float) for each in (left, right)
    ]
    spread = [(np.broadcast_to(at, shape), np.broadcast_to(by, shape)) for at, by in terms]
    return spread, _full(parts[0] + sign * parts[1], shape)


def _compare(inputs: tuple[Any, ...], values: Any, *, above: bool) -> None:
    """Record a comparison as one of a sum with 0, which is above where the result is true."""
    tracked = [each for each in inputs if is_tracked(each)]
    try:
        terms, constants = _joined(inputs[0], inputs[1], -1.0, np.shape(values))
    except (TypeError, ValueError):  # compared with what is no number
        return
    results = np.asarray(values) if above else ~np.asarray(values)
    if tracked:
        record = tracked[0].record
        record.comparisons.append(Sum(terms, constants, results))
        record.compared += [
            Sum(_terms_of(each), np.asarray(each.constants, float)) for each in tracked
        ]
