"""Few rows of a large dataset that stand for all, found by column rather than row by row."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Ints
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import equality_key
from pytest_dp.data.ordering import in_turn
from pytest_dp.data.types import type_of
from pytest_dp.data.units import owners

KEPT_ROWS = 1_000
"""Rows that are kept of a large one. With fewer, what few rows have is seen in none; with more,
the first pair comes later."""
MAX_TELLING = KEPT_ROWS // 2
"""Rows that are kept for their values; the others are random."""
MAX_COLUMNS = 32
"""Columns whose values are looked at. With more, wide datasets take longer."""
MAX_CATEGORIES = 100
"""Distinct values of a column of which a row of each is kept. With more, columns of names take the
place of others."""
SEED = 0


def kept_rows(dataset: Any, unit: Any = None) -> list[int]:
    """Return the rows of a large dataset that stand for all, in order.

    These are extremes of each column, one row of each category, and random rows; where a `unit`
    owns rows, all of those of some units, and of the largest one.
    """
    size = length(dataset)
    data = type_of(dataset)
    assert data is not None
    rng = np.random.default_rng(SEED)
    order = rng.permutation(size)
    sample = order[:KEPT_ROWS].tolist()
    columns = islice(data.by_column(dataset), MAX_COLUMNS)
    found = in_turn([list(_telling_rows(column)) for column in columns])
    telling = list(islice(dict.fromkeys(found), MAX_TELLING))
    if unit is None:
        return sorted(islice(dict.fromkeys(chain(telling, sample)), KEPT_ROWS))
    return _whole_units(_codes(_owners(dataset, unit)), telling, order)


def _whole_units(codes: Ints, telling: Sequence[int], order: Ints) -> list[int]:
    """Return all rows of the largest unit, of those of the telling rows, and of random ones."""
    sizes = np.bincount(codes)
    ends = [int(np.argmax(sizes)), int(np.argmin(sizes))]
    chosen: dict[int, None] = {}
    rows = 0
    for code in chain(ends, codes[list(telling)].tolist(), codes[order[:KEPT_ROWS]].tolist()):
        if code not in chosen and (len(chosen) < 2 or rows + sizes[code] <= KEPT_ROWS):
            chosen[code] = None
            rows += int(sizes[code])
    kept: list[int] = np.flatnonzero(np.isin(codes, list(chosen))).tolist()
    return kept


def _owners(dataset: Any, unit: Any) -> Any:
    """Return the unit of each row: a column where it has the name of one."""
    data = type_of(dataset)
    assert data is not None
    names = data.columns(dataset)
    if names is not None and not callable(unit) and unit in names:
        column = next(islice(data.by_column(dataset), names.index(unit), None), None)
        if column is not None:
            return column
    return owners(dataset, data.records(dataset), unit)


def _codes(units: Any) -> Ints:
    """Return a number for each row, equal for rows of equal owners."""
    if isinstance(units, np.ndarray) and units.dtype.kind in "biufMm":
        return np.asarray(np.unique(units, return_inverse=True)[1], int)
    units = units.tolist() if isinstance(units, np.ndarray) else list(units)
    if set(map(type, units)) - {int, str}:
        units = list(map(equality_key, units))
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(unit, len(numbers)) for unit in units], int)


def _telling_rows(column: Any) -> Iterator[int]:
    """Yield a row of each extreme of a column, of each type in it, and of each of few values."""
    numbers, cells = _numbers(column), column
    if isinstance(column, np.ndarray):
        cells = column.tolist()
    if numbers is not None:
        known = np.flatnonzero(~np.isnan(numbers))
        if len(known):
            yield from (int(known[pick(numbers[known])]) for pick in (np.argmin, np.argmax))
        if len(known) < len(numbers):
            yield int(np.argmax(np.isnan(numbers)))
    is_object = not isinstance(column, np.ndarray) or column.dtype.kind == "O"
    kinds = _first_of_each(list(map(type, cells))) if is_object else {}
    if len(kinds) > 1:
        yield from islice(kinds.values(), MAX_CATEGORIES)
    categories = _first_of_each(cells)
    if len(categories) <= MAX_CATEGORIES:
        yield from categories.values()
    elif numbers is None and kinds and str not in kinds:
        with suppress(Exception):  # values that cannot be compared
            yield from (cells.index(pick(cells)) for pick in (min, max))


def _first_of_each(values: Sequence[Any]) -> dict[Hashable, int]:
    """Return the first positions of different values, NaN apart; of a few more than are kept."""
    first: dict[Hashable, int] = {}
    with suppress(Exception):  # values that cannot be hashed, or compared
        for at, value in enumerate(values):
            if value == value:
                first.setdefault(value, at)
            if len(first) > MAX_CATEGORIES:
                break
        return first
    return {}


def _numbers(column: Any) -> Any:
    """Return the values as floats; None where they are no numbers."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "Mm":
            numbers = column.astype("int64").astype(float)
            return np.where(np.isnat(column), np.nan, numbers)
        if column.dtype.kind in "biuf":
            return column.astype(float, copy=False)
        if column.dtype.kind != "O":
            return None
    if any(isinstance(cell, str) for cell in column[:MAX_CATEGORIES]):
        return None
    with suppress(Exception):
        return np.array(column, float)
    return None
