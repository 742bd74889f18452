"""Pools of records, of which datasets are made by the positions of their records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate, chain, islice, pairwise
from typing import Any

from pytest_dp.data.conversion import length, rebuild
from pytest_dp.data.equality import digest, equality_key, key
from pytest_dp.data.ordering import ends_first
from pytest_dp.data.types import DataType, type_of

Positions = tuple[int, ...]


class RecordPool:
    """A pool of the records of datasets of one kind; a tuple of positions in it makes a dataset.

    `records` are those of all datasets, one after the other, and those that were added. `given` are
    the positions of each of the datasets. `same` has for each position the first position of an
    equal record. `example` is one of the datasets, with records if any has.
    """

    gaps: frozenset[int] = frozenset()
    """Positions that each stand for many rows, of which no records are made."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self._type: DataType = type_of(datasets[0])  # type: ignore[assignment]
        filled = [dataset for dataset in datasets if self._type.length(dataset)] or datasets[:1]
        self.example, self._rows = filled[0], self._type.join_rows(filled)
        if self.unique or len(filled) == 1:
            self.records = [record for dataset in filled for record in self._type.records(dataset)]
        else:  # as they are once joined: 1 is 1.0 among floats
            runs = range(sum(map(self._type.length, filled)))
            self.records = self._type.records(self._type.take_rows(self._rows, runs))
        self._native = len(self.records)
        ends = [0, *accumulate(map(self._type.length, datasets))]
        self.given = [tuple(range(start, end)) for start, end in pairwise(ends)]
        self._first: dict[Hashable, int] = {}
        self.same = [self._enter(record, at) for at, record in enumerate(self.records)]
        self._rank: dict[int, int] = {}

    def _enter(self, record: Any, at: int) -> int:
        """Remember a record at a position, and return the first position of an equal record."""
        same = equality_key if self.unique else key  # as in a set itself
        return self._first.setdefault(same(record), at)

    def add(self, record: Any) -> int:
        """Return the position of a record; add the record if the pool does not hold it."""
        at = self._enter(record, len(self.records))
        if at == len(self.records):
            self.records.append(record)
            self.same.append(at)
        return at

    @property
    def rank(self) -> dict[int, int]:
        """The rank of each distinct record, by its first position: extreme records rank first."""
        if len(self._rank) != len(self._first):
            seen = list(self._first.values())
            orders = ends_first([self.records[at] for at in seen])
            self._rank = {seen[order]: rank for rank, order in enumerate(orders)}
        return self._rank

    @property
    def unique(self) -> bool:
        """True if a dataset holds a record at most once."""
        return self._type.unique

    def _span(self, at: int) -> range:
        """Return the rows that a position of the datasets stands for."""
        return range(at, at + 1)

    def dataset(self, positions: Positions) -> Any:
        """Return a new dataset of these positions; raise ClaimError if a record does not fit in."""
        spans = map(self._span, (at for at in positions if at < self._native))
        natives = list(chain.from_iterable(spans))
        added = sorted({at for at in positions if at >= self._native})
        if not added:
            return self._type.take_rows(self._rows, natives)
        # Added records come from no dataset, and are converted to the types of the example.
        parts = [self._type.take_rows(self._rows, natives)] if natives else []
        added_rows = rebuild(self.example, [self.records[at] for at in added])
        rows = self._type.join_rows([*parts, added_rows])
        place = {at: len(natives) + row for row, at in enumerate(added)}
        native_rows = iter(range(len(natives)))
        order: list[int] = []
        for at in positions:
            order += [place[at]] if at in place else islice(native_rows, len(self._span(at)))
        return self._type.take_rows(rows, order)

    def drop_gaps(self, positions: Positions) -> Positions:
        """Return the positions without gaps: those of which the pool has the records."""
        return positions

    def length(self, positions: Positions) -> int:
        """Return the number of rows of the dataset at these positions."""
        return len(positions)

    def content(self, positions: Positions) -> bytes:
        """Return a hash that is equal for equal datasets of this pool."""
        values = [self.same[at] for at in positions]
        return digest((id(self), *(sorted(values) if self.unique else values)))


class ThinPool(RecordPool):
    """A pool of large datasets that has the records of their `kept` rows only.

    `kept` are the numbers of these rows in each dataset; None for all rows. The rows between two
    kept rows are one position, a gap, so that a dataset of a million rows is a tuple of few
    positions. At least one dataset has records.
    """

    def __init__(self, datasets: Sequence[Any], kept: Sequence[Sequence[int] | None]) -> None:
        of_all = (range(length(dataset)) for dataset in datasets)
        rows_of = [
            all_rows if rows is None else rows for all_rows, rows in zip(of_all, kept, strict=True)
        ]
        self._type = type_of(datasets[0])  # type: ignore[assignment]
        self._rows = self._type.join_rows([data for data in datasets if self._type.length(data)])
        self.given = []
        self._spans: list[tuple[int, int]] = []
        self._whole: dict[Positions, Any] = {}
        read: list[int] = []
        start = 0
        for dataset, rows in zip(datasets, rows_of, strict=True):
            at, first = start, len(self._spans)
            for row in rows:
                self._spans += [(at, start + row)] * (at < start + row)
                self._spans.append((start + row, start + row + 1))
                read.append(len(self._spans) - 1)
                at = start + row + 1
            end = start + length(dataset)
            self._spans += [(at, end)] * (at < end)
            positions = tuple(range(first, len(self._spans)))
            self._whole[positions] = dataset
            self.given.append(positions)
            start = end
        self._native, self._rank = len(self._spans), {}
        self.gaps = frozenset(range(self._native)).difference(read)
        self.example = self._type.take_rows(self._rows, [self._spans[at][0] for at in read])
        self.records = [None] * self._native
        self.same = list(range(self._native))
        self._first = {}
        for at, record in zip(read, self._type.records(self.example), strict=True):
            self.records[at] = record
            self.same[at] = self._enter(record, at)

    def drop_gaps(self, positions: Positions) -> Positions:
        return tuple(at for at in positions if at not in self.gaps)

    def length(self, positions: Positions) -> int:
        spans = (self._spans[at] for at in positions if at < self._native)
        added = sum(at >= self._native for at in positions)
        return added + sum(end - start for start, end in spans)

    def _span(self, at: int) -> range:
        return range(*self._spans[at])

    def dataset(self, positions: Positions) -> Any:
        """Return the dataset at these positions: a given object if it has all, else a new one."""
        return self._whole[positions] if positions in self._whole else super().dataset(positions)
