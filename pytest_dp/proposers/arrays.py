"""Arrays of stand-ins: numpy does with objects what Python's operators do.

Comparisons are decided element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.proposers.stand_ins import is_symbolic, plain

MAX_ELEMENTS = 256
"""Elements of an array whose formulas are looked for. More take longer; fewer miss late ones."""

_array, _HISTOGRAM = np.array, np.histogram


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
    if isinstance(data, list | tuple):
        return [values_of(value) for value in data]
    return plain(data)


def found_in(data: Any, depth: int = 3) -> Any:
    """Any stand-in inside of lists, tuples and arrays; None if there is none."""
    if is_symbolic(data):
        return data
    if isinstance(data, Cells):
        return next(filter(is_symbolic, data.flat), None)
    if isinstance(data, list | tuple) and depth:
        inner = (found_in(value, depth - 1) for value in data[:MAX_ELEMENTS])
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
    return value.__converted__(kind) if is_symbolic(value) else kind(value)


def _wrapped(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number in a type of whole numbers; whether it is too large counts as a decision."""
    if dtype.kind not in "iu" or dtype.itemsize >= np.dtype(int).itemsize:
        return value
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


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
