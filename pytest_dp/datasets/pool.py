"""Pools of records, of which datasets are made by the positions of their records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from pytest_dp.datasets.conversion import rebuilt
from pytest_dp.datasets.equality import digest, equality_key, key
from pytest_dp.datasets.ordering import ends_first
from pytest_dp.datasets.types import DataType, type_of

Positions = tuple[int, ...]


class Pool:
    """The records of datasets of one kind; another dataset is a tuple of positions in it.

    `records` are those of all datasets, one after the other, and those that were added; `same` has
    for each position the first one that holds an equal record. `example` is one of the datasets,
    with records if any has.
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self._type: DataType = type_of(datasets[0])  # type: ignore[assignment]
        filled = [dataset for dataset in datasets if self._type.length(dataset)] or datasets[:1]
        self.example, self._rows = filled[0], self._type.joined(filled)
        if self.unique or len(filled) == 1:
            self.records = [record for dataset in filled for record in self._type.records(dataset)]
        else:  # as they are once joined: 1 is 1.0 among floats
            runs = range(sum(map(self._type.length, filled)))
            self.records = self._type.records(self._type.taken(self._rows, runs))
        self._native = len(self.records)
        self._first: dict[Hashable, int] = {}
        self.same = [self._entered(record, at) for at, record in enumerate(self.records)]
        self._rank: dict[int, int] = {}

    def _entered(self, record: Any, at: int) -> int:
        same = equality_key if self.unique else key  # as in a set itself
        return self._first.setdefault(same(record), at)

    def add(self, record: Any) -> int:
        """The position of a record, which is a new one if no dataset holds it."""
        at = self._entered(record, len(self.records))
        if at == len(self.records):
            self.records.append(record)
            self.same.append(at)
        return at

    @property
    def rank(self) -> dict[int, int]:
        """The first position of each distinct record, smallest and largest ahead; and how far."""
        if len(self._rank) != len(self._first):
            seen = list(self._first.values())
            orders = ends_first([self.records[at] for at in seen])
            self._rank = {seen[order]: rank for rank, order in enumerate(orders)}
        return self._rank

    @property
    def unique(self) -> bool:
        """Whether a dataset holds a record at most once."""
        return self._type.unique

    def dataset(self, positions: Positions) -> Any:
        """The dataset at these positions, always a new object."""
        added = sorted({at for at in positions if at >= self._native})
        if not added:
            return self._type.taken(self._rows, positions)
        # Added records come from no dataset, and are converted to the types of the example.
        added_rows = rebuilt(self.example, [self.records[at] for at in added])
        natives = [at for at in positions if at < self._native]
        rows = self._type.joined([*self._parts(natives), added_rows])
        place = {at: len(natives) + row for row, at in enumerate(added)}
        native_rows = iter(range(len(natives)))
        order = [place[at] if at in place else next(native_rows) for at in positions]
        return self._type.taken(rows, order)

    def _parts(self, natives: Sequence[int]) -> list[Any]:
        return [self._type.taken(self._rows, natives)] if natives else []

    def content(self, positions: Positions) -> bytes:
        """Equal for equal datasets: a hash, since the content itself would fill the memory."""
        values = [self.same[at] for at in positions]
        return digest((id(self), *(sorted(values) if self.unique else values)))
