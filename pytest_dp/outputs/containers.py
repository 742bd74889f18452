"""How containers of any type are opened: what is in them, and how each is reached.

Besides their leaves, outputs differ in their *form*: the types of the containers in them, the
types of the elements of arrays, and the order of keys.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.outputs.leaves import NUMBERS, type_name
from pytest_dp.outputs.raised import IteratorElements, Raised, attributes

Aspect = tuple[str, str, Any]
"""A place, what is observed there (a key of `ASPECT_TEXTS`), and the value that is observed."""
ASPECT_TEXTS = {
    "type": "type({}) is {}",
    "dtype": "{}.dtype == {!r}",
    "order": "list({}) == [{}]",
}
"""Templates of the text of an aspect, for its place and its value."""

Labels = tuple[str, ...] | None
"""Python code that reaches each element, behind a container's expression; None for ``[0]``, ...

In ``sorted(\0)[0]``, the container's expression replaces ``\0``.
"""
Inside = tuple[Labels, Sequence[Any]]
"""How each element of a container is reached, and the elements."""

ALL_ELEMENTS = -1
"""Length in the head of a list or tuple: as many as it has elements."""


class Head(NamedTuple):
    """A description of a container without its elements: its type, labels, form and length."""

    kind: str
    labels: Labels
    form: tuple[Aspect, ...]
    length: int | None


PLAIN_HEADS: dict[Any, Head] = {
    kind: Head(kind.__name__, None, (("", "type", kind.__name__),), ALL_ELEMENTS)
    for kind in (list, tuple)
}
"""Of the commonest containers."""


def open_container(container: Any) -> tuple[Head, Sequence[Any]] | None:
    """Return the head and the elements of a container.

    None for an object that is no container and, noting the error, for one whose code raises.
    """
    if type(container) in PLAIN_HEADS:
        return PLAIN_HEADS[type(container)], container
    kind = container_name(container)
    form: list[Aspect] = [("", "type", kind)]
    try:
        if type(container) is dict:
            head, keys = _head_of(kind, tuple(container))
            return head, [container[key] for key in keys]
        for opener in _openers(type(container)):  # type: ignore[arg-type]
            inside = opener(container, form)
            if inside is not None:
                return Head(kind, inside[0], tuple(form), _length_of(container)), inside[1]
    except Exception as error:
        note_fault(error, "looking into an output")
    return None


def _length_of(container: Any) -> int | None:
    """Return ``len(container)``; None for containers without a length."""
    try:
        return len(container) if hasattr(type(container), "__len__") else None
    except TypeError:
        return None


def container_name(container: Any) -> str:
    """Return the name of a container's type; for elements of an iterator, that of the iterator."""
    return container.kind if isinstance(container, IteratorElements) else type_name(type(container))


def _pandas_dtype(column: Any) -> str:
    """Return the dtype of a pandas object as text."""
    return str(column.dtype) if isinstance(column.dtype, np.dtype) else repr(column.dtype)


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Return whether ``tolist`` of arrays of a type gives Python objects equal to the elements."""
    return dtype.kind in "biufOUS" and not (dtype.kind == "f" and dtype.itemsize > 8)


@lru_cache(maxsize=64)
def _dtype_text(dtype: np.dtype[Any]) -> str:
    """Return ``str(dtype)`` from a cache."""
    return str(dtype)


def _sort(elements: Any) -> list[Any]:
    """Return keys or elements of a set, sorted by ``<``, or by type and repr if ``<`` fails."""
    if not any(isinstance(element, set | frozenset) for element in elements):  # < is "subset of"
        try:
            return sorted(elements)
        except TypeError:
            pass
    return sorted(elements, key=lambda element: (type(element).__name__, safe_repr(element)))


Opener = Callable[[Any, list[Aspect]], Inside | None]
"""A function that returns the labels and elements of a container, and appends aspects to its form;
None for an object that it does not open."""


def _opener_of(elements: Callable[[Any, list[Aspect]], Iterator[tuple[str, Any]]]) -> Opener:
    """Return an opener made from a generator of labels and elements."""
    return lambda container, form: _by_label(elements(container, form))


def _by_label(labelled: Iterable[tuple[str, Any]]) -> Inside:
    pairs = list(labelled)
    return tuple(label for label, _ in pairs), [element for _, element in pairs]


@lru_cache(maxsize=64)
def indices(shape: tuple[int, ...]) -> Labels:
    """Return the labels of all elements of arrays of a shape; None for one axis."""
    if len(shape) == 1:
        return None
    return tuple(f"[{', '.join(map(str, index))}]" for index in np.ndindex(shape))


def _open_array(array: Any, form: list[Aspect]) -> Inside:
    """Return labels and elements of an array; of one without axes, its single value."""
    if not array.ndim and array.dtype.names is None:  # as good as what it holds
        form.pop()
        return ("",), [array.item()]
    form.append(("", "dtype", _dtype_text(array.dtype)))
    if not array.ndim:
        return ("",), [array[()]]
    if is_plain(array.dtype):
        return indices(array.shape), array.ravel().tolist()
    return indices(array.shape), [array[at] for at in np.ndindex(array.shape)]


def _open_structure(record: Any, _: list[Aspect]) -> Inside | None:
    """Return labels and values of the fields of a structured element; None for other voids."""
    names = record.dtype.names
    if names is None:
        return None
    return _by_label((f"[{name!r}]", record[name]) for name in names)


def _open_moment(moment: Any, _: list[Aspect]) -> Inside | None:
    """Return a date, time or span of time as numbers, with its unit or time zone; None for NaT."""
    if isinstance(moment, np.datetime64 | np.timedelta64):
        ticks = math.nan if np.isnat(moment) else int(moment.astype(np.int64))
        return (".astype(int)", ".dtype"), [ticks, str(moment.dtype)]
    if moment != moment:  # pandas.NaT
        return None
    if isinstance(moment, dt.timedelta):
        return (".total_seconds()",), [moment.total_seconds()]
    if not isinstance(moment, dt.datetime):
        return (".toordinal()",), [moment.toordinal()]
    if moment.tzinfo is None:
        seconds = (moment - dt.datetime(1970, 1, 1)).total_seconds()
        return (".replace(tzinfo=utc).timestamp()",), [seconds]
    return (".timestamp()", ".tzinfo"), [moment.timestamp(), str(moment.tzinfo)]


def _open_pandas(data: Any, form: list[Aspect]) -> Iterator[tuple[str, Any]]:
    """Yield values, names, attributes and indexes of a pandas object; appends its dtypes."""
    if hasattr(data, "columns"):
        for j, column in enumerate(data.columns):
            where = f"[{column!r}]"
            values = data.iloc[:, j]
            form.append((where, "dtype", _pandas_dtype(values)))
            for i, value in enumerate(values.tolist()):
                yield f"{where}.iloc[{i}]", value
        yield from _labels_of_axis(data.columns, ".columns", form)
    else:
        form.append(("", "dtype", _pandas_dtype(data)))
        at = ".iloc" if hasattr(data, "iloc") else ""
        for i, value in enumerate(data.tolist()):
            yield f"{at}[{i}]", value
        if getattr(data, "name", None) is not None:
            yield ".name", data.name
    if hasattr(data, "index"):
        yield from _labels_of_axis(data.index, ".index", form)
    if getattr(data, "attrs", None):
        yield ".attrs", dict(data.attrs)


def _open_columns(table: Any, form: list[Aspect]) -> Iterator[tuple[str, Any]]:
    """Yield values of a polars or PyArrow table by column, or of a polars series."""
    columns = [("", table)]
    if hasattr(table, "column_names"):
        columns = list(zip(table.column_names, table.columns, strict=True))
    elif hasattr(table, "iter_columns"):
        columns = list(zip(table.columns, table.iter_columns(), strict=True))
    elif table.name:
        yield ".name", table.name
    for name, column in columns:
        where = f"[{name!r}]" if column is not table else ""
        form.append((where, "dtype", str(getattr(column, "type", None) or column.dtype)))
        values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        for i, value in enumerate(values):
            yield f"{where}[{i}]", value


def _labels_of_axis(index: Any, place: str, form: list[Aspect]) -> Iterator[tuple[str, Any]]:
    """Yield the name and labels of a pandas index, unless 0, 1, ...; appends its type to `form`."""
    form.append((place, "type", container_name(index)))
    if index.name is not None:
        yield f"{place}.name", index.name
    if container_name(index) == "RangeIndex" and (index.start, index.step) == (0, 1):
        return
    for i, value in enumerate(index.tolist()):
        yield f"{place}[{i}]", value


def _open_mapping(mapping: Any, form: list[Aspect]) -> Inside:
    """Return labels and values of a mapping, sorted by key; appends the order of keys to `form`."""
    head, keys = _head_of(container_name(mapping), tuple(mapping))
    form += head.form[1:]
    return head.labels, [mapping[key] for key in keys]


def _head_of(kind: str, given: tuple[Any, ...]) -> tuple[Head, list[Any]]:
    """Return the head of a mapping with keys in this order, and its keys sorted by `_sort`."""
    one_way = {str, int, bytes}.issuperset(map(type, given))  # equal keys are written alike
    return (_head_of_keys if one_way else _head_of_keys.__wrapped__)(kind, given)


@lru_cache(maxsize=512)
def _head_of_keys(kind: str, given: tuple[Any, ...]) -> tuple[Head, list[Any]]:
    """Return `_head_of`, from a cache for keys that are equal only if their texts are."""
    keys = _sort(given)
    order: list[Aspect] = [("", "order", tuple(map(safe_repr, given)))] if given else []
    labels = tuple(f"[{key!r}]" for key in keys)
    return Head(kind, labels, (("", "type", kind), *order), len(given)), keys


@lru_cache(maxsize=64)
def _attribute_labels(names: tuple[str, ...]) -> Labels:
    return tuple(f".{name}" for name in names)


def _open_dataclass(instance: Any, _: list[Aspect]) -> Inside:
    """Return labels and values of all fields of a dataclass; raises if one has no value."""
    names = _fields_of(instance.__class__)
    return _attribute_labels(names), [getattr(instance, name) for name in names]


@lru_cache(maxsize=64)
def _fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _open_sequence(sequence: Any, _: list[Aspect]) -> Inside:
    """Return labels and elements of a sequence; of a named tuple, by its names."""
    names, values = getattr(sequence, "_fields", None), list(sequence)
    return _attribute_labels(tuple(names[i] for i in range(len(values)))) if names else None, values


def _open_set(members: Any, _: list[Aspect]) -> Inside:
    """Return labels and elements of a set, sorted by `_sort`."""
    return _by_label((f"sorted(\0)[{i}]", value) for i, value in enumerate(_sort(members)))


def _open_object(instance: Any, _: list[Aspect]) -> Inside | None:
    """Return labels and values of an object's attributes; None if `attributes` reads none."""
    fields = attributes(instance)
    return None if fields is None else (_attribute_labels(tuple(fields)), list(fields.values()))


@lru_cache(maxsize=512)
def _openers(kind: Any) -> tuple[Opener, ...]:
    """Return the openers to try for a type, in order; none for types that are never opened."""
    if issubclass(kind, _NEVER) and not issubclass(kind, np.timedelta64):
        return ()
    return tuple(opener for fits, opener in _CONTAINERS if fits(kind))


def _is_subclass_of(*kinds: Any) -> Callable[[Any], bool]:
    return lambda kind: issubclass(kind, kinds)


def _is_pandas(kind: Any) -> bool:
    """Return whether a type is one of pandas's containers; False while pandas is not imported."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return False
    kinds = (pandas.DataFrame, pandas.Series, pandas.Index, pandas.Categorical)
    return issubclass(kind, kinds)


def _has_columns(kind: Any) -> bool:
    """Return whether a type is a table of polars or PyArrow, or a polars series; else False."""
    polars, arrow = (sys.modules.get(name) for name in ("polars", "pyarrow"))
    kinds = (polars.DataFrame, polars.Series) if polars is not None else ()
    return issubclass(kind, (*kinds, arrow.Table) if arrow is not None else kinds)


def _is_array_like(kind: Any) -> bool:
    """Return whether a type has ``__array__``, and is no scalar type of NumPy."""
    return hasattr(kind, "__array__") and not issubclass(kind, np.generic)


_NEVER = (*NUMBERS, str, bytes, Raised, type)
"""Types that are never opened; of NumPy's integers, spans of time are opened all the same."""
_CONTAINERS: tuple[tuple[Callable[[Any], bool], Opener], ...] = (
    (
        _is_subclass_of(complex, np.complexfloating),
        lambda z, _: ((".real", ".imag"), [z.real, z.imag]),
    ),
    (_is_subclass_of(np.ndarray), _open_array),
    (_is_subclass_of(np.void), _open_structure),
    (_is_subclass_of(dt.date, dt.timedelta, np.datetime64, np.timedelta64), _open_moment),
    (_is_pandas, _opener_of(_open_pandas)),
    (_has_columns, _opener_of(_open_columns)),
    (_is_subclass_of(Mapping), _open_mapping),
    (dataclasses.is_dataclass, _open_dataclass),
    (_is_subclass_of(Sequence), _open_sequence),
    (_is_subclass_of(AbstractSet), _open_set),
    (_is_array_like, lambda container, _: (("",), [np.asarray(container)])),
    (_is_subclass_of(object), _open_object),
)
"""Predicates of types, and openers: the first that fits and does not return None is taken."""
