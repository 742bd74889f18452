"""Properties that each example has, and a dataset made of several examples' records need not have.

A mechanism may rely on them: a file holds one week, rows have one length, a day comes once for each
user, events are in the order of time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

MAX_FIELDS = 8
"""Fields of which two are compared. With fewer, what others have in common is missed."""
MAX_ORDERS = 3
"""Fields by which records are in order. More take longer; fewer: an order is missed."""


Row = dict[Hashable, Hashable]
"""The contents of a record by the names, or places, of its fields."""

Key = tuple[Hashable, ...]
"""Columns whose values do not come together again."""
FIELDS = ("fields",)
"""In place of a name: which fields a record has."""
_MISSING = ("missing",)


def find_uniform_columns(datasets: Sequence[Sequence[Row]]) -> frozenset[Hashable]:
    """Return columns with one value in each dataset, and different values in different datasets.

    Datasets of one record may have that by chance, so two of several records have to differ. For
    `FIELDS`, one dataset of several records is enough.
    """
    found = set()
    for name in (FIELDS, *_names(datasets)):
        values = [_values(name, rows) for rows in datasets]
        if max(map(len, values), default=0) > 1 or len(set[Hashable]().union(*values)) < 2:
            continue
        several = [v for v, rows in zip(values, datasets, strict=True) if len(rows) > 1]
        if len(set[Hashable]().union(*several)) > (name != FIELDS):
            found.add(name)
    return frozenset(found)


def find_mixed_column(
    names: Iterable[Hashable], rows: Sequence[Row]
) -> tuple[Hashable, int] | None:
    """Return the first named column with several values, and the row of the second; else None."""
    for name in names:
        contents = [_content(name, row) for row in rows]
        for at, content in enumerate(contents):
            if content != contents[0]:
                return name, at
    return None


def find_key_columns(datasets: Sequence[Sequence[Row]]) -> list[Key]:
    """Return the keys, of one or two columns, that never repeat in any dataset.

    Empty if no dataset has two rows.
    """
    if max(map(len, datasets)) < 2:
        return []
    names = _names(datasets)
    single = [(name,) for name in names if _is_key((name,), datasets)]
    left = [name for name in names if (name,) not in single]
    two = combinations(left[:MAX_FIELDS], 2)
    return [*single, *(columns for columns in two if _is_key(columns, datasets))]


def _is_key(columns: Key, datasets: Sequence[Sequence[Row]]) -> bool:
    """Return whether no dataset has two rows with equal values in all of these columns."""
    return all(find_repetition(columns, rows) is None for rows in datasets)


def find_repetition(columns: Key, rows: Sequence[Row]) -> int | None:
    """Return the position of the first row that repeats values of columns; None if none does."""
    seen = set()
    for at, row in enumerate(rows):
        if all(name in row for name in columns):
            values = tuple(row[name] for name in columns)
            if values in seen:
                return at
            seen.add(values)
    return None


Order = tuple[tuple[Hashable, int], ...]
"""Columns that sort one after the other, and whether rising (1) or falling (-1)."""


def find_orders(datasets: Sequence[Sequence[dict[Hashable, Any]]]) -> Iterator[Order]:
    """Yield the orders in which every dataset is sorted, each of them visible in at least one."""
    names = list(dict.fromkeys(name for rows in datasets for row in rows for name in row))
    yield from _extend_order((), names, datasets)


def _extend_order(
    order: Order, names: list[Hashable], datasets: Sequence[Sequence[dict[Hashable, Any]]]
) -> Iterator[Order]:
    """Yield orders that begin with `order`, and sort its ties by further columns."""
    tied = [
        (a, b)
        for rows in datasets
        for a, b in pairwise(rows)
        if all(_are_equal(a.get(name), b.get(name)) for name, _ in order)
    ]
    used = [name for name, _ in order]
    for name in names if tied and len(order) < MAX_ORDERS else ():
        two = [(a.get(name), b.get(name)) for a, b in tied]
        if name in used or all(_are_equal(a, b) for a, b in two):
            continue
        for sign in (1, -1):
            if all(in_order(a, b, sign) for a, b in two):
                yield (*order, (name, sign))
                yield from _extend_order((*order, (name, sign)), names, datasets)


def find_unsorted(order: Order, rows: Sequence[dict[Hashable, Any]]) -> int | None:
    """Return the position of the first record that breaks an order; None if all are sorted."""
    for at, (a, b) in enumerate(pairwise(rows)):
        for name, sign in order:
            before, after = a.get(name), b.get(name)
            if not in_order(before, after, sign):
                return at + 1
            if not _are_equal(before, after):
                break
    return None


def in_order(before: Any, after: Any, sign: int) -> bool:
    """Return whether one value may stand before another: rising (`sign` 1) or falling (-1).

    False for values that have no order.
    """
    try:
        return bool(before <= after if sign > 0 else before >= after)
    except Exception:  # of objects of users, of which anything may be raised
        return False


def _are_equal(a: Any, b: Any) -> bool:
    return in_order(a, b, 1) and in_order(a, b, -1)


def _names(datasets: Sequence[Sequence[Row]]) -> list[Hashable]:
    names = dict.fromkeys(name for rows in datasets for row in rows for name in row)
    return [name for name in names if name is not None]


def _values(name: Hashable, rows: Sequence[Row]) -> set[Hashable]:
    return {_content(name, row) for row in rows}


def _content(name: Hashable, row: Row) -> Hashable:
    """Return the content of a field, of `FIELDS` the names of all fields."""
    return frozenset(row) if name == FIELDS else row.get(name, _MISSING)
