"""Few rows of a large dataset that stand for all, found by column rather than row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from random import Random
from typing import Any

from pytest_dp.data.conversion import length
from pytest_dp.data.ordering import in_turn, representative_cells
from pytest_dp.data.types import type_of
from pytest_dp.data.units import group_by_unit, owners

KEPT_ROWS = 1_000
"""Rows that are kept of a large one. With fewer, what few rows have is seen in none; with more,
the first pair comes later."""
MAX_TELLING = KEPT_ROWS // 2
"""Rows that are kept for their values; the others are random."""
MAX_LOOKED = 100_000
"""Rows whose values are looked at. With more, datasets of millions of rows take longer; with fewer,
extremes of these are missed."""
MAX_COLUMNS = 32
"""Columns whose values are looked at. With more, wide datasets take longer."""
SEED = 0


def kept_rows(dataset: Any, unit: Any = None) -> list[int]:
    """Return the rows of a large dataset that stand for all, in order.

    These are extremes of each column, one row of each category, and random rows; where a `unit`
    owns rows, all of those of some units, and of the largest one.
    """
    data = type_of(dataset)
    assert data is not None
    order = Random(SEED).sample(range(length(dataset)), min(length(dataset), MAX_LOOKED))
    looked = sorted(order)
    columns = islice(data.by_column(dataset), MAX_COLUMNS)
    found = in_turn([_telling_rows(column, looked) for column in columns])
    telling = islice(dict.fromkeys(found), MAX_TELLING)
    wanted = dict.fromkeys(chain(telling, order[:KEPT_ROWS]))
    if unit is None:
        return sorted(islice(wanted, KEPT_ROWS))
    return sorted(_whole_units(_owners(dataset, unit), wanted))


def _telling_rows(column: Any, looked: Sequence[int]) -> list[int]:
    """Return the rows of extremes of a column, of each type, and of few different values."""
    values = column.tolist() if hasattr(column, "tolist") else column
    cells = values if len(looked) == len(values) else [values[at] for at in looked]
    return [looked[at] for at in representative_cells(cells)]


def _whole_units(units: Any, wanted: Iterable[int]) -> Iterator[int]:
    """Yield all rows of the largest unit and the smallest one, and of those of the wanted rows."""
    groups = sorted(group_by_unit(units).values(), key=len)
    group_of = {row: number for number, rows in enumerate(groups) for row in rows}
    left = KEPT_ROWS
    for number in dict.fromkeys([len(groups) - 1, 0, *map(group_of.__getitem__, wanted)]):
        rows = groups[number]
        if len(rows) <= left or number in (len(groups) - 1, 0):
            left -= len(rows)
            yield from rows


def _owners(dataset: Any, unit: Any) -> Any:
    """Return the unit of each row: a column where it has the name of one."""
    data = type_of(dataset)
    assert data is not None
    names = data.columns(dataset)
    if names is not None and not callable(unit) and unit in names:
        column = next(islice(data.by_column(dataset), names.index(unit), None), None)
        if column is not None:
            return column.tolist() if hasattr(column, "tolist") else column
    return owners(dataset, data.records(dataset), unit)
