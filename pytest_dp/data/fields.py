"""The named values of records: entries of dicts, attributes, places in tuples and lists.

The cells of a dataset are its columns as arrays: what compares a table with one record.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import chain, repeat
from typing import Any

from pytest_dp.data.equality import key
from pytest_dp.data.types import type_of

MAX_FIRST = 100
"""Records that are asked for the names of their fields, where columns are read as a whole."""


def fields_of(record: Any) -> dict[Hashable, Any]:
    """Return the values of a record by their names, or places; that of one without any by None."""
    if isinstance(record, dict):
        return record
    if is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in fields(record)}
    names = getattr(record, "_fields", None)  # of a named tuple
    if isinstance(record, tuple) and names:
        return dict(zip(names, record, strict=True))
    return dict(enumerate(record)) if isinstance(record, list | tuple) else {None: record}


def with_field(record: Any, name: Any, value: Any) -> Any:
    """Return a record with one value replaced."""
    if isinstance(record, dict):
        return {**record, name: value}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{name: value})
    if hasattr(record, "_replace"):  # a named tuple
        return record._replace(**{record._fields[name] if isinstance(name, int) else name: value})
    if isinstance(record, list | tuple):
        return type(record)([*record[:name], value, *record[name + 1 :]])
    return value


def with_known(record: Any, name: Any, value: Any) -> Any:
    """Set a field of a record that has it; return other records as they are."""
    return with_field(record, name, value) if name in fields_of(record) else record


def columns_of(records: Iterable[Any]) -> dict[Hashable, dict[Hashable, Any]]:
    """Return the distinct values of each field, by the field's name or place and by content."""
    columns: dict[Hashable, dict[Hashable, Any]] = {}
    for record in records:
        for name, value in fields_of(record).items():
            columns.setdefault(name, {}).setdefault(key(value), value)
    return columns


_ABSENT: Any = type("Absent", (), {})()
"""Stands for a field that a record lacks."""


def columns_of_records(records: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the columns of records of Python's own types, as the first ones name their fields."""
    few = records[:MAX_FIRST]
    first = few[0] if len(few) else None
    if isinstance(first, dict):
        names = dict.fromkeys(chain.from_iterable(r for r in few if isinstance(r, dict)))
        with suppress(AttributeError):  # of records of several types
            for name in names:
                yield [record.get(name, _ABSENT) for record in records]
        return
    if isinstance(first, list | tuple):
        with suppress(IndexError, TypeError):
            for at in range(len(first)):
                yield [record[at] for record in records]
        return
    names_of_fields = getattr(first, "__dataclass_fields__", None)
    if names_of_fields is None:
        yield list(records)
        return
    with suppress(AttributeError):
        for name in names_of_fields:
            yield [getattr(record, name) for record in records]


Cells = dict[Hashable, Any]
"""Arrays by the name of a column, or its place; None stands for that of records without named
values."""


def cells_of(dataset: Any) -> Cells | None:
    """Return the columns of a dataset: of floats where all are numbers, of objects otherwise.

    None of what is no dataset, is empty or a text, or has records with other values each.
    """
    import numpy as np  # which small examples do without

    kind = type_of(dataset)
    if kind is None or kind.unique or isinstance(dataset, str) or not kind.length(dataset):
        return None
    if hasattr(dataset, "to_numpy") and (names := kind.columns(dataset)) is not None:
        return {name: _array(dataset[name].to_numpy()) for name in names}
    if isinstance(dataset, np.ndarray) and dataset.dtype.names is None and dataset.ndim <= 2:
        columns = map(_array, dataset.reshape(len(dataset), -1).T)
        return {None: next(columns)} if dataset.ndim == 1 else dict(enumerate(columns))
    if isinstance(dataset, dict):
        return {name: _array(column) for name, column in dataset.items()}
    records = list(map(_fields, kind.records(dataset), repeat(kind.columns(dataset))))
    if any(record.keys() != records[0].keys() for record in records):
        return None
    return {name: _array([record[name] for record in records]) for name in records[0]}


def record_cells(dataset: Any, at: int) -> dict[Hashable, Any]:
    """Return the values of one record of a dataset that has `cells_of`."""
    cells = cells_of(dataset)
    assert cells is not None
    return {name: column[at] for name, column in cells.items()}


def _fields(record: Any, names: Sequence[Any] | None) -> dict[Hashable, Any]:
    fields = fields_of(record)
    if names is None or len(names) != len(fields):
        return fields
    return dict(zip(names, fields.values(), strict=True))


def _array(column: Any) -> Any:
    import numpy as np

    try:
        array = np.asarray(column)
    except ValueError:  # lists that are not as long
        array = np.empty(())
    if array.dtype.kind in "biuf" and array.ndim == 1:
        return array.astype(np.float64)
    objects = np.empty(len(column), object)
    for at, value in enumerate(column):  # each a value, though it may be a list
        objects[at] = value
    return objects
