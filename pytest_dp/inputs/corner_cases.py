"""Which of many pairs are corner cases: those come first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_dp.datasets import is_real, key, kind_of, records_of
from pytest_dp.datasets.ordering import in_turn
from pytest_dp.datasets.relations import Pair
from pytest_dp.limits import DOZENS, SEVERAL

Cell = tuple[Hashable, Any]
"""A column of a record, and the value that it holds there."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The records of a pair on either side, and the cells of those that only one side has."""

    sides: tuple[Counter[Hashable], Counter[Hashable]]
    cells: list[Cell]
    """Of the records that only one side has, and the parameters."""

    @property
    def size(self) -> int:
        return sum(side.total() for side in self.sides)

    def cases(self) -> Iterator[Hashable]:
        """The corner cases that the pair shows as a whole."""
        sizes = [side.total() for side in self.sides]
        if 0 in sizes:
            yield "empty"
        if 1 in sizes:
            yield "one record"
        if any(side.total() > 1 == len(side) for side in self.sides):
            yield "all equal"
        d1, d2 = self.sides
        if (d1 - d2).keys() & d2.keys() or (d2 - d1).keys() & d1.keys():
            yield "once more"


def ordered(pairs: Sequence[Pair]) -> list[Pair]:
    """The same pairs, corner cases first.

    As wholes: empty, one record, all records equal, a record once more. Of the record in which D
    and D' differ, column by column in turn: NaN, infinities, the smallest and the largest number,
    and each of a few values, such as categories; of parameters alike. Each case is shown by the
    smallest pair.
    """
    looks = [_look(pair) for pair in pairs]
    by_size = sorted(range(len(pairs)), key=lambda at: looks[at].size)
    cases: dict[Hashable, int] = {}
    values: dict[Hashable, dict[Hashable, int]] = {}
    numbers: dict[Hashable, list[tuple[float, int]]] = {}
    for at in by_size:
        for case in looks[at].cases():
            cases.setdefault(case, at)
        for column, value in looks[at].cells:
            values.setdefault(column, {}).setdefault(key(value), at)
            if is_real(value):
                numbers.setdefault(column, []).append((value, at))
    columns = [_column_cases(values[column], numbers.get(column, [])) for column in values]
    chosen = dict.fromkeys([*cases.values(), *in_turn(columns)])
    corners = dict.fromkeys(list(chosen)[: 3 * DOZENS // 4])
    return [pairs[at] for at in corners | dict.fromkeys(range(len(pairs)))]


def _column_cases(values: Mapping[Hashable, int], numbers: list[tuple[float, int]]) -> list[int]:
    """The pairs that show the cases of one column."""
    special = [key(math.nan), key(math.inf), key(-math.inf)]
    shown = [values[case] for case in special if case in values]
    finite = [(value, at) for value, at in numbers if abs(value) < math.inf]
    if finite:
        shown += [min(finite)[1], max(finite)[1]]
    return shown + (list(values.values()) if len(values) <= 2 * SEVERAL else [])


def _look(pair: Pair) -> _Look:
    sides = []
    known: dict[Hashable, Any] = {}
    for data in (pair.d1, pair.d2):
        records = records_of(data) if kind_of(data) else [data]
        keys = list(map(key, records))
        known.update(zip(keys, records, strict=True))
        sides.append(Counter(keys))
    d1, d2 = sides
    different = (d1 - d2) + (d2 - d1)
    cells = [cell for record in different for cell in _cells(known[record])]
    return _Look((d1, d2), [*cells, *((("with", name), v) for name, v in pair.params.items())])


def _cells(record: Any) -> Iterator[Cell]:
    if isinstance(record, Mapping):
        yield from record.items()
    elif isinstance(record, list | tuple):
        yield from enumerate(record)
    else:
        yield None, record
