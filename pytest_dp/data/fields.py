"""The named values of records: entries of dicts, attributes, places in tuples and lists."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any

from pytest_dp.data.equality import key

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
