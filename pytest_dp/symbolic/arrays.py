"""Arrays of stand-ins, and functions of numpy and Python that would make plain values of them.

Arrays hold objects, on which numpy does what Python's operators do: comparisons are decided element
by element.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pytest_dp.limits import HUNDREDS
from pytest_dp.randomness.modules import Replacements
from pytest_dp.sampling.shadowing import StandsFor
from pytest_dp.symbolic.numbers import Number, Truth, is_symbolic, number, plain
from pytest_dp.symbolic.texts import Text
from pytest_dp.symbolic.trace import Trace

_array, _HISTOGRAM, _NESTED = np.array, np.histogram, (np.concatenate, np.stack)


class Cells(np.ndarray):
    """An array of objects, some of which are stand-ins."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return of_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return applied(function, args, keywords)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:  # noqa: ARG002
        return converted(self, np.dtype(dtype))

    def mean(self, *args: Any, **keywords: Any) -> Any:
        return np.mean(self, *args, **keywords)


class Rows(list[Any]):
    """A list of records that knows a formula for its length."""

    size: Any = None


def cells(values: Any) -> Any:
    """An array of objects as one of stand-ins; itself if it holds none."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        if not values.ndim:
            return values.item()
        if any(map(is_symbolic, values.flat)):
            return values.view(Cells)
        try:
            return _array(values.tolist())
        except ValueError:
            return values
    return values


def _objects(value: Any) -> Any:
    if isinstance(value, Cells):
        return value.view(np.ndarray)
    if is_symbolic(value) and not isinstance(value, str):
        array = np.empty((), object)
        array[()] = value
        return array
    return value


def of_ufunc(ufunc: Any, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """A function of numpy, of each element, or a sum by one."""
    keywords = {name: value for name, value in keywords.items() if name not in ("dtype", "casting")}
    out = keywords.pop("out", None)
    made = cells(getattr(ufunc, method)(*map(_objects, inputs), **keywords))
    if out is None:
        return made
    place = out[0]
    if place.dtype == object:
        place.view(np.ndarray)[...] = made
    else:
        place[...] = values_of(made)
    return place


def applied(function: Any, args: Any, keywords: dict[str, Any]) -> Any:
    """Any other function of numpy; of plain numbers if it takes no objects."""
    if function is _HISTOGRAM:
        return _histogram(*args, **keywords)
    given = [_inside(value, _objects) for value in args]
    named = {name: _inside(value, _objects) for name, value in keywords.items()}
    try:
        return cells(function(*given, **named))
    except TypeError:
        note(args, f"np.{function.__name__}")
        named = {name: values_of(value) for name, value in keywords.items()}
        return function(*map(values_of, args), **named)


def _inside(value: Any, function: Callable[[Any], Any]) -> Any:
    return type(value)(map(function, value)) if type(value) in (list, tuple) else function(value)


def values_of(data: Any) -> Any:
    """Plain values in place of stand-ins."""
    if isinstance(data, np.ndarray):
        return _array([plain(value) for value in data.flat]).reshape(data.shape)
    if type(data) in (list, tuple, Rows):
        return [values_of(value) for value in data]
    return plain(data)


def found_in(data: Any, depth: int = 3) -> Any:
    """Any stand-in inside of lists, tuples and arrays; None if there is none."""
    if is_symbolic(data):
        return data
    if isinstance(data, Cells):
        return next(filter(is_symbolic, data.flat), None)
    if isinstance(data, list | tuple) and depth:
        inner = (found_in(value, depth - 1) for value in data[:HUNDREDS])
        return next((value for value in inner if value is not None), None)
    return None


def note(data: Any, what: str) -> None:
    """Note that stand-ins in some data became concrete."""
    found = found_in(data)
    if found is not None:
        found.trace.note(what)


def array_of(data: Any, dtype: Any = None) -> Any:
    """An array of lists of stand-ins."""
    values = _array(data, dtype=object)
    made = values.view(Cells) if values.ndim else values.item()
    return made if dtype is None or not values.ndim else converted(made, np.dtype(dtype))


def converted(values: Any, dtype: np.dtype[Any]) -> Any:
    """An array in another type; whole numbers that are too large for it wrap around."""
    kind: Any = {"f": float, "i": int, "u": int, "b": bool}.get(dtype.kind)
    if dtype.kind == "O":
        return values.copy()
    if kind in (None, bool):
        return values_of(values).astype(dtype) if kind is None else _decided(values)
    made = np.empty(values.shape, object)
    for place, value in np.ndenumerate(values.view(np.ndarray)):
        made[place] = _wrapped(_in_type(value, kind), dtype)
    return made.view(Cells)


def _decided(values: Any) -> Any:
    return _array([bool(value) for value in values.flat]).reshape(values.shape)


def _in_type(value: Any, kind: type) -> Any:
    return value.converted(kind) if is_symbolic(value) else kind(value)


def _wrapped(value: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind not in "iu" or dtype.itemsize >= 8:
        return value
    info = np.iinfo(dtype)
    return (value - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)


def _histogram(data: Any, bins: Any = 10, *args: Any, **keywords: Any) -> Any:
    edges = np.asarray(values_of(bins))
    if not edges.ndim or args or keywords:
        note(data, "np.histogram")
        return _HISTOGRAM(values_of(data), bins, *args, **keywords)
    values = list(np.ravel(array_of(data)).view(np.ndarray))
    counts = np.empty(len(edges) - 1, object)
    for at, (low, high) in enumerate(zip(edges.tolist(), edges.tolist()[1:], strict=False)):
        last = at == len(counts) - 1
        within = [(x >= low) & ((x <= high) if last else (x < high)) for x in values]
        counts[at] = sum(within)
    return cells(counts), edges


_MAKING = ("array", "asarray", "asanyarray")
_TAKING = (
    *("sum", "mean", "any", "all", "max", "min", "amax", "amin", "median", "std", "var", "prod"),
    *("clip", "sort", "where", "histogram", "cumsum", "diff", "dot", "round", "around", "argmax"),
    *("argmin", "average", "percentile", "quantile", "count_nonzero", "ptp", "argsort", "maximum"),
    *("minimum", "abs", "sign", "floor", "ceil", "sqrt", "log", "exp", "concatenate", "stack"),
)


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(data: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        if found_in(data) is None:
            return function(data, dtype, *args, **keywords)
        return array_of(data, dtype)

    return make


def _taking(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def take(*args: Any, **keywords: Any) -> Any:
        lists = [isinstance(x, list | tuple) and found_in(x) is not None for x in args]
        if not any(lists):
            return function(*args, **keywords)
        nested = function in _NESTED
        given = [
            ([array_of(part) for part in x] if nested else array_of(x)) if is_list else x
            for x, is_list in zip(args, lists, strict=True)
        ]
        return function(*given, **keywords)

    return take


def _matching(how: str) -> Callable[..., Any]:
    original = getattr(re, how)

    @functools.wraps(original)
    def match(pattern: Any, string: Any, flags: Any = 0) -> Any:
        if not isinstance(string, Text):
            return original(pattern, string, flags)
        return string.matched(re.compile(pattern, flags), how)

    return match


@functools.cache
def functions_of_stand_ins() -> Replacements:
    """Functions of numpy and of `re` that take stand-ins; of others they are what they were."""
    places: list[tuple[Any, str, Any]] = []
    places += [(np, name, _making(getattr(np, name))) for name in _MAKING]
    taking = [name for name in _TAKING if not isinstance(getattr(np, name), np.ufunc)]
    places += [(np, name, _taking(getattr(np, name))) for name in taking]
    places += [(re, how, _matching(how)) for how in ("match", "fullmatch", "search")]
    return Replacements(places)


class Pattern:
    """A compiled regular expression that takes stand-ins."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        plainly = getattr(self._pattern, name)
        if name not in ("match", "fullmatch", "search"):
            return plainly

        def match(string: Any, *span: Any) -> Any:
            if not isinstance(string, Text) or span:
                return plainly(string, *span)
            return string.matched(self._pattern, name)

        return match


class _Converting(StandsFor):
    """A stand-in for a type of Python that leaves formulas in place where it can."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Number | Truth | Text) and is_symbolic(args[0]):
            return args[0].converted(self.plain)
        return self.plain(*args, **keywords)


def _length(data: Any) -> Any:
    if type(data) is Text:
        return data.length()
    if type(data) is Rows and data.size is not None:
        trace, formula = data.size
        return number(trace, len(data), formula)
    return len(data)


NAMES = {"float": _Converting.of(float), "int": _Converting.of(int), "len": _length}
"""Python's own functions by their names, as a mechanism finds them."""


def released(output: Any, depth: int = 4) -> Iterable[Truth]:
    """Truths in an output that nothing decided."""
    if type(output) is Truth:
        yield output
    elif depth and isinstance(output, list | tuple | dict | Cells):
        values = output.values() if isinstance(output, dict) else output
        for value in values:
            yield from released(value, depth - 1)


def sized(rows: Rows, trace: Trace, formula: Any) -> Rows:
    """A list of records with a formula for its length."""
    rows.size = trace, formula
    return rows
