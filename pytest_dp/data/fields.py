"""The named values of records: entries of dicts, attributes, places in tuples and lists.

The cells of a dataset are its columns as arrays.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain, repeat
from numbers import Real
from typing import Any

from pytest_dp.basics.reprs import LABEL_LENGTH
from pytest_dp.data.describing import MAX_DEPTH
from pytest_dp.data.equality import key
from pytest_dp.data.types import type_of

MAX_FIRST = 100
"""First records whose fields name the columns. More take longer; fewer miss rare fields."""
MAX_COMPARED = 1_000
"""Records compared one by one. More take longer; fewer: differences are not named."""
ABSENT = type("Absent", (), {"__repr__": lambda _: "nothing"})()
"""Stands for a value or a record that only the other dataset, or other records, have."""


def fields_of(record: Any) -> dict[Hashable, Any]:
    """Return the values of a record by their names or places; a record without any by None."""
    if isinstance(record, dict):
        return record
    if is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in fields(record)}
    names = getattr(record, "_fields", None)  # of a named tuple
    if isinstance(record, tuple) and names:
        return dict(zip(names, record, strict=True))
    return dict(enumerate(record)) if isinstance(record, list | tuple) else {None: record}


def with_field(record: Any, name: Any, value: Any) -> Any:
    """Return a copy of a record with one value replaced; the value, if the record has no fields."""
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
    """Return a copy of a record with one value replaced; the record if it lacks the field."""
    return with_field(record, name, value) if name in fields_of(record) else record


def columns_of(records: Iterable[Any]) -> dict[Hashable, dict[Hashable, Any]]:
    """Return the distinct values of each field, by the field's name or place and by `key`."""
    columns: dict[Hashable, dict[Hashable, Any]] = {}
    for record in records:
        for name, value in fields_of(record).items():
            columns.setdefault(name, {}).setdefault(key(value), value)
    return columns


def columns_of_records(records: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield a list of values, `ABSENT` for gaps, for each field of the first `MAX_FIRST`."""
    rows = list(map(fields_of, records))
    for name in dict.fromkeys(chain.from_iterable(rows[:MAX_FIRST])):
        yield [row.get(name, ABSENT) for row in rows]


Cells = dict[Hashable, Any]
"""Arrays by the name or place of a column; by None for records without named values."""


def cells_of(dataset: Any) -> Cells | None:
    """Return the columns of a dataset: arrays of floats if all values are numbers, else of objects.

    None if the object is no dataset, a set, empty or a text, or if its records differ in fields.
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
    """Return the values of one record of a dataset for which `cells_of` is not None."""
    cells = cells_of(dataset)
    assert cells is not None
    return {name: column[at] for name, column in cells.items()}


def _fields(record: Any, names: Sequence[Any] | None) -> dict[Hashable, Any]:
    """Return the values of a record by the names of columns, if there is one for each."""
    fields = fields_of(record)
    if names is None or len(names) != len(fields):
        return fields
    return dict(zip(names, fields.values(), strict=True))


def _array(column: Any) -> Any:
    """Return a column as an array of floats, or of objects if it does not hold numbers."""
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


@dataclass(frozen=True, slots=True)
class Change:
    """A record that differs between D and D', or that only one of them has.

    `before` is the record in D and `after` that in D'; `ABSENT` if there is none.
    """

    at1: int | None
    """Its position in D; None if only D' has it."""
    at2: int | None
    """Its position in D'; None if only D has it."""
    before: Any
    after: Any

    @property
    def at(self) -> int:
        """Its position in D, or in D' if only D' has it."""
        return (self.at2 or 0) if self.at1 is None else self.at1


def align_records(rows1: Sequence[Any], rows2: Sequence[Any]) -> list[tuple[int, int]]:
    """Return pairs of positions of equal records, as many as possible.

    If both lists are as long, records at the same position come first. Others follow in their
    order.
    """
    keys1, keys2 = list(map(key, rows1)), list(map(key, rows2))
    stay = set()
    if len(rows1) == len(rows2):  # else all behind one that was removed have another place
        stay = {at for at, both in enumerate(zip(keys1, keys2, strict=True)) if both[0] == both[1]}
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for at, content in enumerate(keys2):
        if at not in stay:
            places[content].append(at)
    return [
        (at, at if at in stay else places[content].popleft())
        for at, content in enumerate(keys1)
        if at in stay or places[content]
    ]


def changed_records(d1: Any, d2: Any) -> list[Change] | None:
    """Return the records in which two datasets of one type differ; None for other objects.

    A record that only D has is paired with one that only D' has: that with most fields in common.
    Texts give None, too.
    """
    data = type_of(d1)
    if data is None or data is not type_of(d2) or isinstance(d1, str):
        return None
    rows1, rows2 = data.records(d1), data.records(d2)
    common = align_records(rows1, rows2)
    both1, both2 = ({places[side] for places in common} for side in (0, 1))
    only1, only2 = (
        [at for at in range(len(rows)) if at not in both]
        for rows, both in ((rows1, both1), (rows2, both2))
    )
    found = []
    for at1 in only1:
        at2 = _nearest(rows1, at1, rows2, only2)
        if at2 is not None:
            only2.remove(at2)
        after = ABSENT if at2 is None else rows2[at2]
        found.append(Change(at1, at2, rows1[at1], after))
    return found + [Change(None, at2, ABSENT, rows2[at2]) for at2 in only2]


def _nearest(
    rows1: Sequence[Any], at1: int, rows2: Sequence[Any], others: Sequence[int]
) -> int | None:
    """Return the position, of the `others`, of the record with most equal fields; None if none.

    Of several, returns the same position as `at1`. Returns the first of more than `MAX_COMPARED`
    others.
    """
    if len(others) > MAX_COMPARED:
        return others[0]
    mine = fields_of(rows1[at1])

    def distance(at2: int) -> tuple[int, bool]:
        theirs = fields_of(rows2[at2])
        same = sum(name in theirs and key(theirs[name]) == key(mine[name]) for name in mine)
        return -same, at1 != at2

    return min(others, key=distance, default=None)


def record_of(dataset: Any, record: Any) -> Any:
    """Return a record as a dict by the names of the dataset's columns; as it is if it has none."""
    data = type_of(dataset)
    columns = data.columns(dataset) if data is not None and record is not ABSENT else None
    if not columns or len(set(map(key, columns))) < len(columns):
        return record
    return dict(zip(columns, record, strict=True))


def value_differences(before: Any, after: Any, depth: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Yield differences inside of two values: the subscript, "" for all, and both parts there."""
    if key(before) == key(after):
        return
    for place, one, other in _inside(before, after, depth) or [("", ABSENT, ABSENT)]:
        if not place:
            yield place, before, after
        for inner, *both in value_differences(one, other, depth + 1) if place else ():
            yield f"{place}{inner}", *both


def _inside(before: Any, after: Any, depth: int) -> list[tuple[str, Any, Any]]:
    """Return subscripts and parts of two values that differ; empty if they differ as a whole."""
    if type(before) is str and type(after) is str and len(before + after) > LABEL_LENGTH:
        lines = before.splitlines(), after.splitlines()
        others = (changed_records(*lines) if min(map(len, lines)) > 1 else None) or []
        return [(f".splitlines()[{line.at}]", line.before, line.after) for line in others]
    if type(before) is not type(after) or isinstance(before, str) or depth > MAX_DEPTH:
        return []
    if isinstance(before, dict):
        pairs = {
            name: (before.get(name, ABSENT), after.get(name, ABSENT)) for name in before | after
        }
        differing = [
            (f"[{name!r}]", *both) for name, both in pairs.items() if len({*map(key, both)}) > 1
        ]
        return differing or [("", before, after)]  # in another order
    mine, theirs = fields_of(before), fields_of(after)
    if not isinstance(before, list) and mine.keys() == theirs.keys() and None not in mine:
        places = [f".{name}" if isinstance(name, str) else f"[{name!r}]" for name in mine]
        return list(zip(places, mine.values(), theirs.values(), strict=True))
    data, found = type_of(before), changed_records(before, after)
    if data is None or not found:
        return []
    is_row = isinstance(before, list) and len(before) == len(after)
    if is_row and all(isinstance(number, Real) for number in before + after):
        return [(data.place(at), *both) for at, both in enumerate(zip(before, after, strict=True))]
    return [(data.place(change.at), change.before, change.after) for change in found]
