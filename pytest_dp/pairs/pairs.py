"""Pairs of neighbours by the thousand, each made when it is asked for, all inside the claim."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pytest_dp.data import key
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import in_turn, representatives
from pytest_dp.data.record_relations import AddRemoveOne
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.data.types import DataType, type_of
from pytest_dp.data.units import Step, group_by_unit, name_of, owners

MAX_ROWS = 2_000
"""Rows of a large example that small datasets are made of. More show rarer rows, and take longer
to read."""
MAX_KINDS = 300
"""Rows that stand for all of an example: of each, the example without it and the row alone are
tried. With fewer, a rare value may never be left out."""
MAX_SUBSET = 24
"""Rows of a random part of an example. Longer parts take longer to make, and reach thresholds that
shorter ones do not."""

Group = tuple[int, ...]
"""Positions of the rows of one unit, or of one row."""


def can_take_parts(relation: Relation | None) -> bool:
    """Return whether parts of an example are inside a claim under this relation."""
    return isinstance(relation, AddRemoveOne) and relation.group == 1


def parts_of(
    examples: Sequence[Any], relation: AddRemoveOne, rng: np.random.Generator
) -> Iterator[Pair]:
    """Yield parts of examples, each with the same part without one unit; without end.

    First the empty dataset beside each kind of unit, and the whole beside itself without each, in
    turn; then random parts. All keep the order of the example.
    """
    sources = [_Parts(example, relation, rng) for example in examples if _length(example)]
    yield from in_turn(chain.from_iterable((s.alone(), s.left_out()) for s in sources))
    while sources:
        for source in sources:
            yield from source.random()


def _length(example: Any) -> int:
    data = type_of(example)
    return 0 if data is None else data.length(example)


class _Parts:
    """Makes pairs of parts of one example."""

    def __init__(self, example: Any, relation: AddRemoveOne, rng: np.random.Generator) -> None:
        self._type: DataType = type_of(example)  # type: ignore[assignment]
        self._relation, self._rng = relation, rng
        self._rows = self._type.join_rows([example])
        self._length = self._type.length(example)
        at = np.arange(self._length)
        if self._length > MAX_ROWS:
            at = np.sort(rng.choice(self._length, MAX_ROWS, replace=False))
        self._few = self._length > MAX_ROWS
        self._at: list[int] = at.tolist()
        part = self._type.take_rows(self._rows, self._at) if self._few else example
        self._records = self._type.records(part)
        self._names: dict[Group, str] = {}
        self._groups = self._group(part)
        self._columns: dict[Hashable, dict[Hashable, list[Group]]] | None = None

    def _group(self, part: Any) -> list[Group]:
        """Return the rows of each unit among those that were read."""
        unit = self._relation.unit
        if unit is None:
            return [(at,) for at in range(len(self._at))]
        of_rows = owners(part, self._records, unit)
        groups = [tuple(rows) for rows in group_by_unit(of_rows).values()]
        self._names = {group: name_of(unit, of_rows[group[0]]) for group in groups}
        return groups

    @property
    def _kinds(self) -> list[Group]:
        """The units that stand for all."""
        if len(self._groups) <= MAX_KINDS:
            return self._groups
        chosen = set(representatives(self._records, MAX_KINDS))
        return [group for group in self._groups if not chosen.isdisjoint(group)][:MAX_KINDS]

    def alone(self) -> Iterator[Pair]:
        """Yield each kind of unit beside the empty dataset."""
        empty = self._taken([])
        return (self._named(group, self._taken(group), empty) for group in self._kinds)

    def left_out(self) -> Iterator[Pair]:
        """Yield the whole example beside itself without each kind of unit."""
        if self._few and self._relation.unit is not None:
            return  # rows of a unit may stand among those that were not read
        whole = self._type.take_rows(self._rows, range(self._length))
        for group in self._kinds:
            gone = {self._at[row] for row in group}
            rest = [at for at in range(self._length) if at not in gone]
            yield self._named(group, whole, self._type.take_rows(self._rows, rest))

    def random(self) -> Iterator[Pair]:
        """Yield a random part that loses one unit after the other, each beside the one before.

        Half of the time these are units that share a value.
        """
        rng, groups = self._rng, self._groups
        if rng.random() < 0.5:
            groups = self._sharing()
        size = int(rng.integers(1, min(len(groups), MAX_SUBSET) + 1))
        chosen = [groups[at] for at in rng.choice(len(groups), size, replace=False).tolist()]
        rows = sorted(chain.from_iterable(chosen))
        data = self._taken(rows)
        for group in chosen:
            gone = set(group)
            rows = [row for row in rows if row not in gone]
            before, data = data, self._taken(rows)
            yield self._named(group, before, data)

    def _taken(self, rows: Sequence[int]) -> Any:
        return self._type.take_rows(self._rows, [self._at[row] for row in rows])

    def _sharing(self) -> list[Group]:
        """Return the units that have one value in common with a random one."""
        if self._columns is None:
            self._columns = {}
            for group in self._groups:
                for name, value in fields_of(self._records[group[0]]).items():
                    self._columns.setdefault(name, {}).setdefault(key(value), []).append(group)
        column = list(self._columns.values())[int(self._rng.integers(len(self._columns)))]
        return list(column.values())[int(self._rng.integers(len(column)))]

    def _named(self, leaving: Group, d1: Any, d2: Any) -> Pair:
        step = Step(self._names.get(leaving, ""), len(leaving))
        return self._relation.pair_of(d1, d2, [step])


def any_two(pairs: Sequence[Pair], rng: np.random.Generator) -> Iterator[Pair]:
    """Yield any two of the values of some pairs, without end unless all are equal."""
    values = [(data, pair.params) for pair in pairs for data in (pair.d1, pair.d2)]
    if len({key(data) for data, _ in values}) < 2:
        return
    while True:
        (a, params), (b, _) = (values[int(at)] for at in rng.integers(len(values), size=2))
        if key(a) != key(b):
            yield Pair(a, b, "any two values", params=params)
