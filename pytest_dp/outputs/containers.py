"""How containers of any type are opened: what is in them, and how each is reached.

Besides their leaves, outputs differ in their *form*: the types of the containers in them, the
types of the elements of arrays, and the order of keys.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from pytest_dp.outputs.contents import Read, attributes
from pytest_dp.reprs import shown

MOST_DENSE = 4_096
"""Places of a sparse matrix up to which all of them are read, zeros too."""

Aspect = tuple[str, str, Any]
"""A place, what is observed of it (see `SEEN`), and what that is."""
SEEN = {
    "type": "type({}) is {}",
    "dtype": "{}.dtype == {!r}",
    "index": "type({}.index) is {}",
    "shape": "{}.shape == {!r}",
    "order": "list({}) == [{}]",
}
"""How aspects of a form are written."""

Inside = Iterator[tuple[Any, str]]
"""What a thing holds, and how each is reached."""


def inside(thing: Any, place: str, form: list[Aspect]) -> Inside | None:
    """What a container holds, with the place of each; None if it is none. Adds to the `form`."""
    opened = next((opened for fits, opened in _CONTAINERS if fits(thing)), None)
    return None if opened is None else opened(thing, place, form)


def kind_of(thing: Any) -> str:
    """The name of the type of a container; of what was read out, that of the iterator."""
    return thing.kind if isinstance(thing, Read) else named(type(thing))


def named(kind: type) -> str:
    """The name of a type. NumPy's double and the like are as good as Python's."""
    return _AS_GOOD_AS.get(kind, kind.__name__)


_AS_GOOD_AS: dict[type, str] = {np.float64: "float", np.int64: "int", np.complex128: "complex"}


def _dtype(column: Any) -> str:
    """The type of what is in a pandas object; of categories, which ones there may be."""
    return str(column.dtype) if isinstance(column.dtype, np.dtype) else repr(column.dtype)


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether elements of arrays of this type are as good as the Python objects for them."""
    return dtype.kind in "biufOUS" and not (dtype.kind == "f" and dtype.itemsize > 8)


def order(place: str, keys: tuple[Any, ...]) -> list[Aspect]:
    """In which order a mapping gives its keys."""
    return [(place, "order", tuple(map(shown, keys)))] if keys else []


def is_sparse(thing: Any) -> bool:
    """Whether this is a sparse matrix or array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(thing))


def moments(thing: Any) -> list[tuple[str, Any]] | None:
    """Dates, times and spans of time in numbers, by attribute, and their zone; None for others."""
    if isinstance(thing, np.datetime64 | np.timedelta64):
        return _ticks(thing)
    if not isinstance(thing, dt.date | dt.time | dt.timedelta) or thing != thing:  # pandas.NaT
        return None
    found: list[tuple[str, Any]]
    if isinstance(thing, dt.timedelta):
        found = [(".total_seconds()", thing.total_seconds())]
    elif isinstance(thing, dt.datetime) and thing.tzinfo is None:
        seconds = (thing - dt.datetime(1970, 1, 1)).total_seconds()
        found = [(".replace(tzinfo=utc).timestamp()", seconds)]
    elif isinstance(thing, dt.datetime):
        found = [(".timestamp()", thing.timestamp())]
    elif isinstance(thing, dt.date):
        found = [(".toordinal()", thing.toordinal())]
    else:
        parts = "hour", "minute", "second", "microsecond"
        found = [(f".{name}", getattr(thing, name)) for name in parts]
    for name in ("nanosecond", "nanoseconds"):  # of pandas
        if hasattr(thing, name):
            found.append((f".{name}", getattr(thing, name)))
    zone = getattr(thing, "tzinfo", None)
    return found if zone is None else [*found, (".tzinfo", str(zone))]


def _ticks(thing: Any) -> list[tuple[str, Any]]:
    """A number of NumPy's units of time; the finest ones in two parts, as floats are exact."""
    unit, factor = np.datetime_data(thing.dtype)
    written = ".astype(int)"
    if np.isnat(thing):
        return [(written, math.nan), (".dtype", str(thing.dtype))]
    count = int(thing.astype(np.int64)) * factor
    found: list[tuple[str, Any]] = [(written, count)]
    if unit in ("ns", "ps", "fs", "as"):
        found = [(f"{written} // 1000", count // 1000), (f"{written} % 1000", count % 1000)]
    return [*found, (".dtype", str(thing.dtype))]


def in_order(things: Any) -> list[Any]:
    """Dictionary keys and set elements in an order that does not depend on hashing."""
    if not any(isinstance(thing, set | frozenset) for thing in things):  # < means "is a subset"
        try:
            return sorted(things)
        except TypeError:
            pass
    return sorted(things, key=lambda thing: (type(thing).__name__, shown(thing)))


def _in_complex(thing: Any, place: str, _: list[Aspect]) -> Inside:
    yield thing.real, f"{place}.real"
    yield thing.imag, f"{place}.imag"


def _in_scalar(thing: Any, place: str, form: list[Aspect]) -> Inside:
    """What an array without axes holds, which is as good as that itself."""
    form.pop()
    yield thing.item(), place


def _in_array(thing: Any, place: str, form: list[Aspect]) -> Inside:
    form.append((place, "dtype", str(thing.dtype)))
    if not thing.ndim:
        yield thing[()], place
        return
    plain = is_plain(thing.dtype)
    values = thing.ravel().tolist() if plain else (thing[at] for at in np.ndindex(thing.shape))
    for index, value in zip(np.ndindex(thing.shape), values, strict=True):
        yield value, f"{place}[{', '.join(map(str, index))}]"


def _in_structure(thing: Any, place: str, _: list[Aspect]) -> Inside:
    """The fields of one element of a structured array."""
    for name in thing.dtype.names:
        yield thing[name], f"{place}[{name!r}]"


def _in_moment(thing: Any, place: str, _: list[Aspect]) -> Inside:
    for attribute, value in moments(thing) or ():
        yield value, f"{place}{attribute}"


def _in_pandas(thing: Any, place: str, form: list[Aspect]) -> Inside:
    """A pandas object: its values, its names, and its index unless that only counts."""
    if hasattr(thing, "columns"):
        for j, column in enumerate(thing.columns):
            where = f"{place}[{column!r}]"
            values = thing.iloc[:, j]
            form.append((where, "dtype", _dtype(values)))
            for i, value in enumerate(values.tolist()):
                yield value, f"{where}.iloc[{i}]"
        yield from _names(thing.columns, f"{place}.columns", form)
    else:
        form.append((place, "dtype", _dtype(thing)))
        at = ".iloc" if hasattr(thing, "iloc") else ""
        for i, value in enumerate(thing.tolist()):
            yield value, f"{place}{at}[{i}]"
        if thing.name is not None:
            yield thing.name, f"{place}.name"
    if hasattr(thing, "index"):
        yield from _names(thing.index, f"{place}.index", form)


def _names(index: Any, place: str, form: list[Aspect]) -> Inside:
    """What the rows or columns of a pandas object are called."""
    form.append((place, "type", kind_of(index)))
    if index.name is not None:
        yield index.name, f"{place}.name"
    if kind_of(index) == "RangeIndex" and (index.start, index.step) == (0, 1):
        return
    for i, value in enumerate(index.tolist()):
        yield value, f"{place}[{i}]"


def _in_sparse(thing: Any, place: str, form: list[Aspect]) -> Inside:
    form += [(place, "dtype", str(thing.dtype)), (place, "shape", tuple(thing.shape))]
    yield int(thing.nnz), f"{place}.nnz"
    if math.prod(thing.shape) <= MOST_DENSE:
        dense = thing.toarray()
        found = [(index, dense[index]) for index in np.ndindex(dense.shape)]
    else:
        stored = thing.tocoo()
        found = sorted(zip(zip(*stored.coords, strict=True), stored.data, strict=True))
    for index, value in found:
        yield value, f"{place}.toarray()[{', '.join(map(str, index))}]"


def _in_mapping(thing: Any, place: str, form: list[Aspect]) -> Inside:
    form += order(place, tuple(thing))
    for key in in_order(thing):
        yield thing[key], f"{place}[{key!r}]"


def _in_dataclass(thing: Any, place: str, _: list[Aspect]) -> Inside:
    for field in dataclasses.fields(thing):
        yield getattr(thing, field.name), f"{place}.{field.name}"


def _in_sequence(thing: Any, place: str, _: list[Aspect]) -> Inside:
    names = getattr(thing, "_fields", None)
    for i, value in enumerate(thing):
        yield value, f"{place}.{names[i]}" if names else f"{place}[{i}]"


def _in_set(thing: Any, place: str, _: list[Aspect]) -> Inside:
    for i, value in enumerate(in_order(thing)):
        yield value, f"sorted({place})[{i}]"


def _in_what_is_like_an_array(thing: Any, place: str, _: list[Aspect]) -> Inside:
    yield np.asarray(thing), place


def _in_object(thing: Any, place: str, _: list[Aspect]) -> Inside:
    for name, value in (attributes(thing) or {}).items():
        yield value, f"{place}.{name}"


def _is_pandas(thing: Any) -> bool:
    pandas = sys.modules.get("pandas")
    kinds = () if pandas is None else (pandas.DataFrame, pandas.Series, pandas.Index)
    return isinstance(thing, kinds)


def _is_array_like(thing: Any) -> bool:
    return hasattr(type(thing), "__array__") and not isinstance(thing, np.generic)


_CONTAINERS: tuple[
    tuple[Callable[[Any], bool], Callable[[Any, str, list[Aspect]], Inside]], ...
] = (
    (lambda thing: isinstance(thing, complex | np.complexfloating), _in_complex),
    (
        lambda thing: (
            isinstance(thing, np.ndarray) and not thing.ndim and thing.dtype.names is None
        ),
        _in_scalar,
    ),
    (lambda thing: isinstance(thing, np.ndarray), _in_array),
    (lambda thing: isinstance(thing, np.void) and thing.dtype.names is not None, _in_structure),
    (lambda thing: moments(thing) is not None, _in_moment),
    (_is_pandas, _in_pandas),
    (is_sparse, _in_sparse),
    (lambda thing: isinstance(thing, Mapping), _in_mapping),
    (dataclasses.is_dataclass, _in_dataclass),
    (lambda thing: isinstance(thing, Sequence), _in_sequence),
    (lambda thing: isinstance(thing, AbstractSet), _in_set),
    (_is_array_like, _in_what_is_like_an_array),
    (lambda thing: attributes(thing) is not None, _in_object),
)
"""How containers are opened: by the first whose test they pass."""
