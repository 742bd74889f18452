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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pytest_dp.outputs.contents import Read, attributes
from pytest_dp.outputs.leaves import NUMBERS
from pytest_dp.outputs.outcome import Raised
from pytest_dp.reprs import shown

MAX_DENSE = 4_096
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

Labels = tuple[str, ...] | None
"""What is written behind a container to reach each element; None for ``[0]``, ``[1]``, ...

In ``sorted(\0)[0]``, what the container is written as stands where ``\0`` does.
"""
Inside = tuple[Labels, Sequence[Any]]
"""What a container holds, and how each element is reached."""


AS_MANY = -1
"""The length of what has as many elements as it says."""


class Head(NamedTuple):
    """A container apart from its elements."""

    kind: str
    labels: Labels
    form: tuple[Aspect, ...]
    length: int | None


def opened(thing: Any) -> tuple[Head, Sequence[Any]] | None:
    """A container of any type and its elements; None if it is none, or breaks its promises."""
    kind = kind_of(thing)
    form: list[Aspect] = [("", "type", kind)]
    try:
        kinds: Any = type(thing), thing.__class__
        for opener in _openers(*kinds):
            found = opener(thing, form)
            if found is not None:
                return Head(kind, found[0], tuple(form), _length_of(thing)), found[1]
    except Exception:
        pass
    return None


def _length_of(thing: Any) -> int | None:
    try:
        return len(thing) if hasattr(type(thing), "__len__") else None
    except TypeError:
        return None


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


@lru_cache(maxsize=64)
def _text_of(dtype: np.dtype[Any]) -> str:
    return str(dtype)  # which takes long


def order(keys: tuple[Any, ...]) -> list[Aspect]:
    """In which order a mapping gives its keys."""
    return [("", "order", tuple(map(shown, keys)))] if keys else []


def _moments(thing: Any) -> list[tuple[str, Any]] | None:
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


Opener = Callable[[Any, list[Aspect]], Inside | None]
"""What opens a container, and adds to its form; None if it is none after all."""


def _labelled(pairs: Callable[[Any, list[Aspect]], Iterator[tuple[Any, str]]]) -> Opener:
    """An opener, from what gives elements and their labels one after another."""

    def opener(thing: Any, form: list[Aspect]) -> Inside:
        found = list(pairs(thing, form))
        return tuple(label for _, label in found), [value for value, _ in found]

    return opener


@lru_cache(maxsize=64)
def indices(shape: tuple[int, ...]) -> Labels:
    """How the elements of an array are reached."""
    if len(shape) == 1:
        return None
    return tuple(f"[{', '.join(map(str, index))}]" for index in np.ndindex(shape))


def _in_array(thing: Any, form: list[Aspect]) -> Inside:
    if not thing.ndim and thing.dtype.names is None:  # as good as what it holds
        form.pop()
        return ("",), [thing.item()]
    form.append(("", "dtype", _text_of(thing.dtype)))
    if not thing.ndim:
        return ("",), [thing[()]]
    if is_plain(thing.dtype):
        return indices(thing.shape), thing.ravel().tolist()
    return indices(thing.shape), [thing[at] for at in np.ndindex(thing.shape)]


def _in_structure(thing: Any, _: list[Aspect]) -> Inside | None:
    """The fields of one element of a structured array."""
    names = thing.dtype.names
    if names is None:
        return None
    return tuple(f"[{name!r}]" for name in names), [thing[name] for name in names]


def _in_moment(thing: Any, _: list[Aspect]) -> Inside | None:
    found = _moments(thing)
    return None if found is None else (tuple(label for label, _ in found), [x for _, x in found])


def _in_pandas(thing: Any, form: list[Aspect]) -> Iterator[tuple[Any, str]]:
    """A pandas object: its values, its names, and its index unless that only counts."""
    if hasattr(thing, "columns"):
        for j, column in enumerate(thing.columns):
            where = f"[{column!r}]"
            values = thing.iloc[:, j]
            form.append((where, "dtype", _dtype(values)))
            for i, value in enumerate(values.tolist()):
                yield value, f"{where}.iloc[{i}]"
        yield from _names(thing.columns, ".columns", form)
    else:
        form.append(("", "dtype", _dtype(thing)))
        at = ".iloc" if hasattr(thing, "iloc") else ""
        for i, value in enumerate(thing.tolist()):
            yield value, f"{at}[{i}]"
        if thing.name is not None:
            yield thing.name, ".name"
    if hasattr(thing, "index"):
        yield from _names(thing.index, ".index", form)


def _names(index: Any, place: str, form: list[Aspect]) -> Iterator[tuple[Any, str]]:
    """What the rows or columns of a pandas object are called."""
    form.append((place, "type", kind_of(index)))
    if index.name is not None:
        yield index.name, f"{place}.name"
    if kind_of(index) == "RangeIndex" and (index.start, index.step) == (0, 1):
        return
    for i, value in enumerate(index.tolist()):
        yield value, f"{place}[{i}]"


def _in_sparse(thing: Any, form: list[Aspect]) -> Iterator[tuple[Any, str]]:
    form += [("", "dtype", str(thing.dtype)), ("", "shape", tuple(thing.shape))]
    yield int(thing.nnz), ".nnz"
    if math.prod(thing.shape) <= MAX_DENSE:
        dense = thing.toarray()
        found = [(index, dense[index]) for index in np.ndindex(dense.shape)]
    else:
        stored = thing.tocoo()
        found = sorted(zip(zip(*stored.coords, strict=True), stored.data, strict=True))
    for index, value in found:
        yield value, f".toarray()[{', '.join(map(str, index))}]"


def _in_mapping(thing: Any, form: list[Aspect]) -> Inside:
    form += order(tuple(thing))
    keys = in_order(thing)
    return tuple(f"[{key!r}]" for key in keys), [thing[key] for key in keys]


def _in_dataclass(thing: Any, _: list[Aspect]) -> Inside:
    names = [field.name for field in dataclasses.fields(thing)]
    return tuple(f".{name}" for name in names), [getattr(thing, name) for name in names]


def _in_sequence(thing: Any, _: list[Aspect]) -> Inside:
    names = getattr(thing, "_fields", None)
    values = list(thing)
    return tuple(f".{names[i]}" for i in range(len(values))) if names else None, values


def _in_set(thing: Any, _: list[Aspect]) -> Inside:
    values = in_order(thing)
    return tuple(f"sorted(\0)[{i}]" for i in range(len(values))), values


def _in_object(thing: Any, _: list[Aspect]) -> Inside | None:
    found = attributes(thing)
    return None if found is None else (tuple(f".{name}" for name in found), list(found.values()))


@lru_cache(maxsize=512)
def _openers(kind: Any, said: Any) -> tuple[Opener, ...]:
    """What may open containers of a type that say that they are of another one, or the same."""
    if any(
        issubclass(each, _NEVER) and not issubclass(each, np.timedelta64) for each in (kind, said)
    ):
        return ()
    return tuple(opener for fits, opener in _CONTAINERS if fits(kind) or fits(said))


def _of(*kinds: Any) -> Callable[[Any], bool]:
    return lambda kind: issubclass(kind, kinds)


def _is_pandas(kind: Any) -> bool:
    pandas = sys.modules.get("pandas")
    kinds = () if pandas is None else (pandas.DataFrame, pandas.Series, pandas.Index)
    return issubclass(kind, kinds)


def _is_sparse(kind: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and issubclass(kind, sparse.spmatrix | sparse.sparray)


def _is_array_like(kind: Any) -> bool:
    return hasattr(kind, "__array__") and not issubclass(kind, np.generic)


_NEVER = (*NUMBERS, str, bytes, Raised, type)
"""Types of what is never opened, but for spans of time, which NumPy counts among its integers."""
_CONTAINERS: tuple[tuple[Callable[[Any], bool], Opener], ...] = (
    (_of(complex, np.complexfloating), lambda z, _: ((".real", ".imag"), [z.real, z.imag])),
    (_of(np.ndarray), _in_array),
    (_of(np.void), _in_structure),
    (_of(dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64), _in_moment),
    (_is_pandas, _labelled(_in_pandas)),
    (_is_sparse, _labelled(_in_sparse)),
    (_of(Mapping), _in_mapping),
    (dataclasses.is_dataclass, _in_dataclass),
    (_of(Sequence), _in_sequence),
    (_of(AbstractSet), _in_set),
    (_is_array_like, lambda thing, _: (("",), [np.asarray(thing)])),
    (_of(object), _in_object),
)
"""How containers are opened: by the first whose types fit, and that does not give None."""
