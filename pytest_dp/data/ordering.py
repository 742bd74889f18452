"""Orders in which many possibilities are tried: extremes first, and several sources in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from numbers import Real
from typing import Any, TypeVar

from pytest_dp.data.describing import describe
from pytest_dp.data.equality import key
from pytest_dp.data.fields import fields_of

MAX_COLUMNS = 16
"""Columns by which records are ordered. Fewer: extremes of later columns are not tried."""
MAX_CATEGORIES = 24
"""Different values of a column of categories. More: identifiers count as categories."""
T = TypeVar("T")
U = TypeVar("U")


def in_turn(iterables: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield the first item of each iterable, then the second of each, and so on, until all end."""
    waiting: deque[Iterator[T]] = deque()
    for iterator in chain(map(iter, iterables), _pop_all(waiting)):
        for item in islice(iterator, 1):
            yield item
            waiting.append(iterator)


def _pop_all(waiting: deque[T]) -> Iterator[T]:
    """Remove and yield the first item of a queue until it is empty."""
    while waiting:
        yield waiting.popleft()


def distinct(
    items: Iterable[T], by: Callable[[T], Hashable] = key, known: Iterable[Hashable] = ()
) -> Iterator[T]:
    """Yield the items whose key did not come before, and is not among the `known` keys."""
    seen = set(known)
    for item in items:
        content = by(item)
        if content not in seen:
            seen.add(content)
            yield item


def accept_until(items: Iterable[T], accept: Callable[[T], U | None], most: int) -> Iterator[U]:
    """Yield each `accept(item)` that is not None; end once `most` in a row are None."""
    refused = 0
    for item in items:
        made = accept(item)
        if made is not None:
            refused = 0
            yield made
        elif (refused := refused + 1) >= most:
            return


def diagonally(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield all combinations of two sequences, those of early elements first."""
    for total in range(len(left) + len(right) - 1):
        for at in range(max(0, total - len(right) + 1), min(total + 1, len(left))):
            yield left[at], right[total - at]


def is_real(value: object) -> bool:
    """Return whether a value is a number, and not NaN."""
    return isinstance(value, Real) and bool(value == value)


def set_order(record: Any) -> tuple[int, Any, str]:
    """Return the sort key of a record of a set: numbers first by size, others by type and text."""
    if is_real(record):
        return (0, record, "")
    return (1, type(record).__name__, describe(record, 1000))


def _columns(records: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the first `MAX_COLUMNS` columns of records; one column if these have no fields."""
    table = (fields_of(record).values() for record in records)
    return islice(zip(*table, strict=False), MAX_COLUMNS)


def ends_first(records: list[Any]) -> list[int]:
    """Return the indices of all records, those with the extremes of each numeric column first.

    Numbers are one column; NaN and values that are no numbers count as largest. Records without
    numbers keep their order.
    """
    orders = []
    for column in _columns(records):
        if any(map(is_real, column)):
            sizes = [(0, value) if is_real(value) else (1, 0) for value in column]
            rising = sorted(range(len(sizes)), key=sizes.__getitem__)
            orders.append(
                [rising[-(at + 1) // 2 if at % 2 else at // 2] for at in range(len(sizes))]
            )
    in_turn = (index for batch in zip(*orders, strict=True) for index in batch)
    return list(dict.fromkeys(in_turn)) or list(range(len(records)))


def representatives(records: Sequence[Any], limit: int) -> list[int]:
    """Return at most `limit` indices of records: extremes, and one record of each category.

    Numbers, dates and the like have extremes. The values of a column with at most `MAX_CATEGORIES`
    values are categories. Columns take turns. If there are fewer than half of `limit`, records at
    equal distances are added.
    """
    candidates = dict.fromkeys(in_turn(map(representative_cells, _columns(records))))
    chosen = dict.fromkeys(islice(candidates, limit))
    for other in range(0, len(records), max(len(records) // limit, 1)):
        if len(chosen) < limit // 2:
            chosen[other] = None
    return list(chosen)


def representative_cells(cells: Sequence[Any]) -> list[int]:
    """Return indices of cells: the extremes and the first of each type, and each of few values.

    Few are at most `MAX_CATEGORIES` different values.
    """
    first_index: dict[Hashable, int] = {}
    for index, cell in enumerate(cells):
        first_index.setdefault(key(cell), index)
    ends: list[int] = []
    by_type: dict[Any, list[int]] = {}
    for content, index in first_index.items():
        kind = "number" if is_real(cells[index]) else type(cells[index])
        by_type.setdefault(content if content == ("nan",) else kind, []).append(index)
    for kind, indices in by_type.items():
        ends.append(indices[0])
        if kind is not str and len(indices) > 1:
            with suppress(Exception):  # not everything has an order
                ends += [pick(indices, key=cells.__getitem__) for pick in (min, max)]
    categories = len(first_index) if len(first_index) <= MAX_CATEGORIES else 0
    return list(dict.fromkeys([*ends, *islice(first_index.values(), categories)]))
