"""What outputs are made of: how a container is taken apart, and what tells two categories apart.

Besides their leaves, outputs differ in their *form*: the types of the containers in them, the
types of the elements of arrays, and the order of keys.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.outputs.contents import Read, attributes
from pytest_dp.outputs.digits import SHORTEST, without_last_digits
from pytest_dp.outputs.outcome import Raised
from pytest_dp.reprs import shown

LITERAL = {bool, str, bytes, type(None), Raised}
"""Types whose objects are categories of their own, told apart by ``==``."""
NO_CONTAINERS = frozenset(
    {*LITERAL, int, float, Decimal, Fraction}
    | {np.bool_, np.float64, np.float32, np.int64, np.int32}
)
"""The commonest types that are never taken apart."""
NUMBERS = (int, float, np.floating, np.integer, Decimal, Fraction)
"""Types of numbers; of those that NumPy counts among its integers, spans of time are not."""
NEVER_OPENED = (*NUMBERS, str, bytes, Raised, type)
MOST_DEPTH = 20
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


def category(leaf: Any) -> tuple[str, Hashable]:
    """What tells two categories apart: the type, and the value or, of most objects, its repr."""
    if isinstance(leaf, np.bool_ | np.str_ | np.bytes_):
        leaf = leaf.item()
    if type(leaf) in LITERAL:
        return type(leaf).__name__, _as_said(leaf)
    try:
        address = " at 0x" in repr(leaf)
    except Exception:  # a repr that fails says as little as an address
        address = True
    return type(leaf).__name__, "" if address else without_last_digits(shown(leaf))


def _as_said(leaf: Any) -> Any:
    """A text, or the message of an exception, without the last digits of doubles in it."""
    match leaf:
        case str():
            return without_last_digits(leaf)
        case bytes() if len(leaf) >= SHORTEST:
            return without_last_digits(leaf.decode("latin-1")).encode("latin-1")
        case Raised():
            return dataclasses.replace(leaf, message=without_last_digits(leaf.message))
    return leaf


def written(category: tuple[str, Hashable]) -> str:
    """A category as Python would write it; the name of its type where it has no value."""
    kind, value = category
    if kind == "str" or not isinstance(value, str):
        return repr(value)
    return value or kind


def exactly(number: Any) -> tuple[str, Hashable]:
    """The category of a whole number that is too large for a float to hold exactly."""
    return "int", int(number)


def unread(categories: Iterable[tuple[str, Hashable]]) -> list[str]:
    """The types of which objects are all alike here, since nothing shows what they hold."""
    return sorted({kind for kind, value in categories if value == "" and kind != "str"})


@dataclasses.dataclass(slots=True)
class Parts:
    """The leaves of one output, how each is reached, and its form."""

    places: list[str] = dataclasses.field(default_factory=list)
    leaves: list[Any] = dataclasses.field(default_factory=list)
    form: list[Aspect] = dataclasses.field(default_factory=list)

    def take(self, thing: Any, place: str, above: tuple[Any, ...] = ()) -> None:
        """Take something apart that is inside of others; what resists is a leaf itself."""
        if type(thing) in NO_CONTAINERS:
            self.places.append(place)
            self.leaves.append(thing)
            return
        if any(thing is one for one in above):  # it holds itself
            thing = ...
        before = len(self.places), len(self.leaves), len(self.form)
        try:
            if len(above) <= MOST_DEPTH:
                opened = self._open(thing, place, (*above, thing))
                if opened and (not above or len(self.leaves) > before[1]):
                    return  # an inner container without leaves is one itself
        except Exception:  # a container that breaks its promises
            pass
        del self.places[before[0] :], self.leaves[before[1] :], self.form[before[2] :]
        self.places.append(place)
        self.leaves.append(thing)

    def _open(self, thing: Any, place: str, above: tuple[Any, ...]) -> bool:
        self.form.append((place, "type", kind_of(thing)))
        pandas = sys.modules.get("pandas")
        if isinstance(thing, NEVER_OPENED) and not isinstance(thing, np.timedelta64):
            return False
        if isinstance(thing, complex | np.complexfloating):
            self.take(thing.real, f"{place}.real", above)
            self.take(thing.imag, f"{place}.imag", above)
        elif isinstance(thing, np.ndarray) and not thing.ndim and thing.dtype.names is None:
            self.form.pop()
            self.take(thing.item(), place, above)
        elif isinstance(thing, np.ndarray) or (isinstance(thing, np.void) and thing.dtype.names):
            self._array(thing, place, above)
        elif (moment := moments(thing)) is not None:
            for attribute, value in moment:
                self.take(value, f"{place}{attribute}", above)
        elif pandas is not None and isinstance(
            thing, pandas.DataFrame | pandas.Series | pandas.Index
        ):
            self._labelled(thing, place, above)
        elif is_sparse(thing):
            self._sparse(thing, place, above)
        elif isinstance(thing, Mapping):
            self.form += order(place, tuple(thing))
            for key in in_order(thing):
                self.take(thing[key], f"{place}[{key!r}]", above)
        elif dataclasses.is_dataclass(thing):
            for field in dataclasses.fields(thing):
                self.take(getattr(thing, field.name), f"{place}.{field.name}", above)
        elif isinstance(thing, Sequence):
            names = getattr(thing, "_fields", None)
            for i, value in enumerate(thing):
                self.take(value, f"{place}.{names[i]}" if names else f"{place}[{i}]", above)
        elif isinstance(thing, AbstractSet):
            for i, value in enumerate(in_order(thing)):
                self.take(value, f"sorted({place})[{i}]", above)
        elif hasattr(type(thing), "__array__") and not isinstance(thing, np.generic):
            self.take(np.asarray(thing), place, above)
        elif (inside := attributes(thing)) is not None:
            for name, value in inside.items():
                self.take(value, f"{place}.{name}", above)
        else:
            return False
        return True

    def _array(self, thing: Any, place: str, above: tuple[Any, ...]) -> None:
        if isinstance(thing, np.void):
            for name in thing.dtype.names or ():
                self.take(thing[name], f"{place}[{name!r}]", above)
            return
        self.form.append((place, "dtype", str(thing.dtype)))
        if not thing.ndim:
            self.take(thing[()], place, above)
            return
        plain = is_plain(thing.dtype)
        values = thing.ravel().tolist() if plain else (thing[at] for at in np.ndindex(thing.shape))
        for index, value in zip(np.ndindex(thing.shape), values, strict=True):
            self.take(value, f"{place}[{', '.join(map(str, index))}]", above)

    def _labelled(self, thing: Any, place: str, above: tuple[Any, ...]) -> None:
        """A pandas object: its values, its names, and its index unless that only counts."""
        if hasattr(thing, "columns"):
            for j, column in enumerate(thing.columns):
                where = f"{place}[{column!r}]"
                values = thing.iloc[:, j]
                self.form.append((where, "dtype", _dtype(values)))
                for i, value in enumerate(values.tolist()):
                    self.take(value, f"{where}.iloc[{i}]", above)
            self._names(thing.columns, f"{place}.columns", above)
        else:
            self.form.append((place, "dtype", _dtype(thing)))
            at = ".iloc" if hasattr(thing, "iloc") else ""
            for i, value in enumerate(thing.tolist()):
                self.take(value, f"{place}{at}[{i}]", above)
            if thing.name is not None:
                self.take(thing.name, f"{place}.name", above)
        if hasattr(thing, "index"):
            self._names(thing.index, f"{place}.index", above)

    def _names(self, index: Any, place: str, above: tuple[Any, ...]) -> None:
        """What the rows or columns of a pandas object are called."""
        self.form.append((place, "type", kind_of(index)))
        if index.name is not None:
            self.take(index.name, f"{place}.name", above)
        if kind_of(index) == "RangeIndex" and (index.start, index.step) == (0, 1):
            return
        for i, value in enumerate(index.tolist()):
            self.take(value, f"{place}[{i}]", above)

    def _sparse(self, thing: Any, place: str, above: tuple[Any, ...]) -> None:
        self.form += [(place, "dtype", str(thing.dtype)), (place, "shape", tuple(thing.shape))]
        self.take(int(thing.nnz), f"{place}.nnz", above)
        if math.prod(thing.shape) <= MOST_DENSE:
            dense = thing.toarray()
            found = [(index, dense[index]) for index in np.ndindex(dense.shape)]
        else:
            stored = thing.tocoo()
            found = sorted(zip(zip(*stored.coords, strict=True), stored.data, strict=True))
        for index, value in found:
            self.take(value, f"{place}.toarray()[{', '.join(map(str, index))}]", above)


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
