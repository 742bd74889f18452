"""Units of privacy that own several records, such as users."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from pytest_dp.datasets.describing import describe
from pytest_dp.datasets.equality import equality_key
from pytest_dp.datasets.fields import fields_of, with_field
from pytest_dp.datasets.types import type_of
from pytest_dp.errors import ClaimError

Read = Callable[[Any], Any]
"""From a record to its unit."""


def owners(dataset: Any, records: Sequence[Any], unit: Any) -> list[Any]:
    """The unit of each of some records of a dataset, which are in the form of `records_of`.

    `unit` is the name of a column, a key of dicts, an attribute, the index in tuples, or a
    function. Raises ClaimError if records have none of this name.
    """
    read = reader(dataset, unit)
    return [_read(read, record, dataset, unit) for record in records]


def reader(example: Any, unit: Any) -> Read:
    """What reads the unit of a record of such a dataset."""
    if callable(unit):
        read: Read = unit
        return read
    columns = _columns(example)
    if columns is None:
        return lambda record: _entry(record, unit)
    if unit not in columns:
        raise _no_column(example, columns, unit)
    at = columns.index(unit)
    return lambda record: record[at]


def moved_to(example: Any, record: Any, unit: Any, owner: Any) -> Any:
    """The record as one of another unit; None where a function tells units apart."""
    if callable(unit):
        return None
    columns = _columns(example)
    at: Any = unit if columns is None else columns.index(unit)
    if fields_of(record).keys() != {None}:
        return with_field(record, at, owner)
    moved = copy.copy(record)
    setattr(moved, at, owner)
    return moved


def name_of(unit: Any, owner: Any) -> str:
    """A unit in words: ``user_id=7``."""
    if callable(unit):
        name = getattr(unit, "__name__", "unit")
        name = "unit" if name == "<lambda>" else name
    else:
        name = f"record[{unit}]" if isinstance(unit, int) else str(unit)
    return f"{name}={describe(owner, 30)}"


def grouped(units: Iterable[Any]) -> dict[Hashable, list[int]]:
    """The positions of each unit, in the order in which they come."""
    groups: dict[Hashable, list[int]] = {}
    for at, owner in enumerate(units):
        groups.setdefault(equality_key(owner), []).append(at)
    return groups


def too_many(units: Sequence[Any], unit: Any, limit: int | None) -> str:
    """The first unit that has more rows than that, in words; empty if none has."""
    for positions in grouped(units).values():
        if limit is not None and len(positions) > limit:
            name = name_of(unit, units[positions[0]])
            return f"{name} has {len(positions):,} rows, more than rows={limit}"
    return ""


def _columns(example: Any) -> list[Any] | None:
    data = type_of(example)
    return None if data is None else data.columns(example)


def _entry(record: Any, unit: Any) -> Any:
    if isinstance(record, dict) or (isinstance(unit, int) and isinstance(record, list | tuple)):
        return record[unit]
    if isinstance(unit, str):
        return getattr(record, unit)
    raise TypeError


def _read(read: Read, record: Any, dataset: Any, unit: Any) -> Any:
    try:
        return read(record)
    except Exception as error:
        shown = f"the record {describe(record)} of {describe(dataset)}"
        if callable(unit):
            said = f"{type(error).__name__}: {error}"
            raise ClaimError(
                f"unit={name_of(unit, 0).partition('=')[0]} raised {said} for {shown}. It is "
                "called with one record, and returns the unit that owns it."
            ) from error
        hint = _suggestion(unit, _names(record))
        raise ClaimError(
            f"unit={unit!r}: {shown} has no such entry. {hint}Allowed: the name of "
            "a column, a key of records that are dicts, an attribute of others, the index in "
            "tuples (unit=0), or a function from a record to its unit."
        ) from error


def _names(record: Any) -> list[str]:
    if isinstance(record, dict):
        return [name for name in record if isinstance(name, str)]
    return [*getattr(record, "_fields", ()), *getattr(record, "__dict__", ())]


def _no_column(example: Any, columns: Sequence[Any], unit: Any) -> ClaimError:
    index = getattr(getattr(example, "index", None), "names", ())
    if unit in list(index):
        hint = "It is the index, which is no data. Write frame.reset_index(). "
    else:
        hint = _suggestion(unit, [name for name in columns if isinstance(name, str)])
    return ClaimError(
        f"unit={unit!r}: there is no such column in {describe(example)}. {hint}Its columns: "
        f"{', '.join(map(repr, columns))}."
    )


def _suggestion(name: Any, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, 3) if isinstance(name, str) else []
    return f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
