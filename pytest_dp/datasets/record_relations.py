"""Relations of datasets that differ in a record, or in all rows of a unit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from pytest_dp.datasets.conversion import kind_of, length, no_dataset, null_of, records_of
from pytest_dp.datasets.equality import equality_key, key
from pytest_dp.datasets.interleaving import diagonally, in_turn
from pytest_dp.datasets.members import Member, Records, Units, addable, exchanged
from pytest_dp.datasets.neighbours import Pair, Relation, different_kinds
from pytest_dp.datasets.pool import Pool, Positions
from pytest_dp.datasets.steps import Step, counted, in_words, surplus, too_far
from pytest_dp.datasets.units import grouped, name_of, owners, too_many
from pytest_dp.declaration import Neighbors

Keys = tuple[Hashable, ...]
Move = tuple[Positions, Step, Keys, Keys]
"""A neighbour's positions, what was done, and the keys of what left and of what came in."""


@dataclass(frozen=True, slots=True)
class OfRecords(Relation):
    """Datasets that differ in records, or in units that own some, whatever their order."""

    unit: Any = None
    """What owns records, as for `pytest_dp.datasets.units`; None if each is a unit of its own."""
    rows: int | None = None
    """How many rows a unit has at most."""
    group: int = 1
    """How many units may differ at most; so many do where neighbours are derived."""

    keeps_length: ClassVar[bool] = False
    needs: ClassVar[str]
    """What examples have to hold for a pair to follow from them."""

    @property
    def said(self) -> dict[str, Any]:
        group = self.group if self.group > 1 else None
        said = {"unit": self.unit, "rows": self.rows, "group": group}
        return self._record() | {name: value for name, value in said.items() if value is not None}

    def _record(self) -> dict[str, Any]:
        """The null record that a claim gives."""
        return {}

    def covers(self, other: Relation) -> bool:
        if not isinstance(other, OfRecords):
            return False
        rows = math.inf if self.rows is None else self.rows
        of_any = replace(self, group=other.group, rows=other.rows)
        return of_any == other and rows >= (other.rows or math.inf)

    def check(self, dataset: Any) -> str:
        if self.unit is None:
            return ""
        _, units = self._real(dataset)  # raises if the records have none
        return too_many(units, self.unit, self.rows)

    # What makes two inputs neighbours

    def fault(self, d1: Any, d2: Any) -> str:
        for name, dataset in (("D", d1), ("D'", d2)):
            if not kind_of(dataset):
                return f"{name} is {no_dataset(dataset).replace(', is', ', which is')}"
            unfit = self.check(dataset)
            if unfit:
                return f"in {name}, {unfit}"
        if kind_of(d1) != kind_of(d2):
            return different_kinds(d1, d2)
        steps = self._between(d1, d2)
        if isinstance(steps, str):
            return steps
        if not steps:
            return "they hold the same records"
        return "" if len(steps) <= self.group else too_far(steps)

    def difference(self, d1: Any, d2: Any) -> str:
        steps = self._between(d1, d2)
        return steps if isinstance(steps, str) else in_words(steps)

    def _between(self, d1: Any, d2: Any) -> list[Step] | str:
        """The least steps that lead from D to D', or why none do.

        Records that are equal are one, unless nothing else differs: 1 and True, 0.0 and -0.0.
        """
        return self._steps_between(d1, d2, equality_key) or self._steps_between(d1, d2, key)

    def _steps_between(self, d1: Any, d2: Any, same: Callable[[Any], Hashable]) -> list[Step] | str:
        if self.keeps_length and length(d1) != length(d2):
            return f"D has {counted(length(d1))} and D' {counted(length(d2))}"
        rows1, rows2 = self._rows(d1, same), self._rows(d2, same)
        if self.unit is None:
            counts1, counts2 = (rows.get(None, _NO_ROWS)[0] for rows in (rows1, rows2))
            return self._record_steps((counts1 - counts2).total(), (counts2 - counts1).total())
        changed: list[tuple[str, int, int]] = []
        for unit in {**rows1, **rows2}:
            counts1, name1 = rows1.get(unit, _NO_ROWS)
            counts2, name2 = rows2.get(unit, _NO_ROWS)
            if counts1 != counts2:
                changed.append((name1 or name2, counts1.total(), counts2.total()))
        return self._unit_steps(changed)

    def _rows(
        self, dataset: Any, same: Callable[[Any], Hashable]
    ) -> dict[Hashable, tuple[Counter[Hashable], str]]:
        """For each unit how often each of its records occurs, and its name."""
        records, owners = self._real(dataset)
        if self.unit is None:
            return {None: (Counter(map(same, records)), "")}
        return {
            unit: (Counter(same(records[at]) for at in rows), name_of(self.unit, owners[rows[0]]))
            for unit, rows in grouped(owners).items()
        }

    def _real(self, dataset: Any) -> tuple[list[Any], list[Any]]:
        """The records apart from null records, and the unit of each."""
        records = records_of(dataset)
        null = self.null_key(dataset)
        if null is not _NO_NULL:
            records = [record for record in records if equality_key(record) != null]
        return records, [] if self.unit is None else owners(dataset, records, self.unit)

    def null_key(self, example: Any) -> Hashable:  # noqa: ARG002
        """What is equal for the null record, where there is one."""
        return _NO_NULL

    def _null_in(self, pool: Pool) -> int | None:  # noqa: ARG002
        """The position of the null record, where there is one."""
        return None

    @abstractmethod
    def _record_steps(self, only1: int, only2: int) -> list[Step] | str:
        """The steps between datasets with so many records only in D, and only in D'."""

    @abstractmethod
    def _unit_steps(self, changed: Sequence[tuple[str, int, int]]) -> list[Step] | str:
        """The steps between datasets of which these units differ: name, rows in D and in D'."""

    # The neighbours of a dataset

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        positions = tuple(range(len(records_of(dataset))))
        pool = Pool([dataset])
        offered = tuple(map(pool.add, records))
        d1 = pool.dataset(positions)
        seen = {pool.content(positions)}
        for moved, steps in self.moves(pool, positions, [offered]):
            content = pool.content(moved)
            if content not in seen:
                seen.add(content)
                d2 = pool.dataset(moved)
                if key(d2) != key(d1):  # a new record may turn into one that is there: 1 into 1.0
                    yield pair_of(d1, d2, steps)

    def moves(
        self, pool: Pool, positions: Positions, sources: Sequence[Positions]
    ) -> Iterator[tuple[Positions, tuple[Step, ...]]]:
        """The positions of each neighbour, and the steps that lead to it; some may repeat.

        `sources` are datasets whose records, or units, may come into it.
        """
        units = self._units(pool)
        new = units.new(sources)

        def walk(
            positions: Positions, left: int, done: tuple[Step, ...], out: Keys, into: Keys
        ) -> Iterator[tuple[Positions, tuple[Step, ...]]]:
            if not left:
                yield positions, done
                return
            known: set[tuple[Keys, Keys]] = set()
            yield from in_turn(
                walk(moved, left - 1, (*done, step), (*out, *leave), (*into, *come))
                for moved, step, leave, come in self._moves(units, positions, new)
                if self._leads_away((*out, *leave), (*into, *come), known)
            )

        return walk(positions, self.group, (), (), ())

    def part(self, pool: Pool, positions: Positions) -> Positions:
        """The few positions of a large dataset that matter most; with units, all of their rows."""
        return self._units(pool).part(positions)

    def _units(self, pool: Pool) -> Records | Units:
        null = self._null_in(pool)
        if self.unit is None:
            return Records(pool, null)
        return Units(pool, null, self.unit, self.rows)

    def _leads_away(self, out: Keys, into: Keys, known: set[tuple[Keys, Keys]]) -> bool:
        """Whether a step leads further away from D, and to no neighbour that was reached before."""
        if self.group == 1:
            return True
        if set(out) & set(into) or (self.unit is not None and len({*out}) < len(out)):
            return False
        fresh = (out, into) not in known
        known.add((out, into))
        return fresh

    @abstractmethod
    def _moves(
        self, units: Records | Units, positions: Positions, new: Sequence[Member]
    ) -> Iterator[Move]:
        """One step away."""


class _Appearing(OfRecords):
    """Records that come and go by themselves, or are null while they are away."""

    __slots__ = ()
    verbs: ClassVar[tuple[str, str]]

    def _record_steps(self, only1: int, only2: int) -> list[Step] | str:
        return [Step(self.verbs[0])] * only1 + [Step(self.verbs[1])] * only2

    def _unit_steps(self, changed: Sequence[tuple[str, int, int]]) -> list[Step] | str:
        for name, rows1, rows2 in changed:
            if rows1 and rows2:
                return f"{name} has {rows1} rows in D and {rows2} in D', not all of the same"
        return [
            Step(self.verbs[0], name, rows1) if rows1 else Step(self.verbs[1], name, rows2)
            for name, rows1, rows2 in changed
        ]


class AddRemoveOne(_Appearing):
    """One record more, or one less; or all rows of one unit."""

    __slots__ = ()
    name = "add_remove_one"
    verbs = ("removed", "added")
    example = "([1, 0], [1])"
    needs = "a record"

    @property
    def required(self) -> str:
        what = _differing(self, "exactly one record", "all rows of exactly one unit", "records")
        return f"D' is D with {what} removed or added, in any order"

    def _moves(
        self, units: Records | Units, positions: Positions, new: Sequence[Member]
    ) -> Iterator[Move]:
        rounds = units.rounds(positions)
        removed = (
            _left("removed", member, exchanged(positions, member.at)) for member in chain(*rounds)
        )
        added = (
            _came("added", member, (*positions, *member.at))
            for member in addable(units, rounds, new)
        )
        return in_turn((removed, added))


class ReplaceOne(OfRecords):
    """One record is another; or the rows of one unit are others."""

    __slots__ = ()
    name = "replace_one"
    example = "([1, 0], [1, 1])"
    needs = "two different records"

    @property
    def required(self) -> str:
        what = _differing(self, "exactly one of them", "the rows of exactly one of them", "of them")
        many = "records" if self.unit is None else "units"
        return f"D and D' have as many {many} and {what} differs, in any order"

    def _record_steps(self, only1: int, only2: int) -> list[Step] | str:
        return [Step("replaced")] * only1 if only1 == only2 else surplus(only1, only2)

    def _unit_steps(self, changed: Sequence[tuple[str, int, int]]) -> list[Step] | str:
        replaced = [Step("replaced", name, n, "", m) for name, n, m in changed if n and m]
        left = [(name, n) for name, n, m in changed if not m]
        came = [(name, m) for name, n, m in changed if not n]
        if len(left) != len(came):
            return surplus(len(left), len(came), "unit")
        return replaced + [Step("replaced", *a, *b) for a, b in zip(left, came, strict=True)]

    def _moves(
        self, units: Records | Units, positions: Positions, new: Sequence[Member]
    ) -> Iterator[Move]:
        rounds = units.rounds(positions)
        if self.unit is None:
            new = addable(units, rounds, new)
        for leaving, offered in chain.from_iterable(diagonally(members, new) for members in rounds):
            for coming in units.instead(leaving, offered, positions):
                step = Step("replaced", leaving.name)
                if leaving.name:
                    by = "" if coming.key == leaving.key else coming.name
                    step = Step("replaced", leaving.name, len(leaving.at), by, len(coming.at))
                into = (coming.key,) if coming.key != leaving.key else ()
                yield exchanged(positions, leaving.at, coming.at), step, (leaving.key,), into


@dataclass(frozen=True, slots=True)
class ReplaceSpecial(_Appearing):
    """One record is the null record; or all rows of one unit are."""

    null: Neighbors | None = None
    """As ``replace_special(record)``; None stands for a record of missing values."""

    keeps_length = True
    name = "replace_special"
    verbs = ("nulled", "restored")
    example = "([1, 0], [1, None])"
    needs = "a record other than the null record"

    @property
    def required(self) -> str:
        what = _differing(self, "exactly one record", "all rows of exactly one unit", "records")
        return f"D' is D with {what} turned into the null record, or back"

    def _record(self) -> dict[str, Any]:
        return {} if self.null is None else self.null.said

    def _null(self, example: Any) -> Any:
        return null_of(example, self._record().get("record"))

    def null_key(self, example: Any) -> Hashable:
        return equality_key(self._null(example))

    def _null_in(self, pool: Pool) -> int:
        return pool.add(self._null(pool.example))

    def _moves(
        self, units: Records | Units, positions: Positions, new: Sequence[Member]
    ) -> Iterator[Move]:
        pool = units.pool
        null = self._null_in(pool)
        blank = tuple(index for index, at in enumerate(positions) if pool.same[at] == null)
        rounds = units.rounds(positions)
        nulled = (
            _left("nulled", member, exchanged(positions, member.at, (null,) * len(member.at)))
            for member in chain(*rounds)
            if not pool.unique or (len(member.at) == 1 and not blank)
        )
        restored = (
            _came("restored", member, exchanged(positions, blank[: len(member.at)], member.at))
            for member in addable(units, rounds, new)
            if len(member.at) <= len(blank)
        )
        return in_turn((nulled, restored))


def _left(verb: str, member: Member, positions: Positions) -> Move:
    """A move to positions that a member has left."""
    return positions, Step(verb, member.name, len(member.at)), (member.key,), ()


def _came(verb: str, member: Member, positions: Positions) -> Move:
    """A move to positions with one member more."""
    return positions, Step(verb, member.name, len(member.at)), (), (member.key,)


def pair_of(d1: Any, d2: Any, steps: Sequence[Step]) -> Pair:
    """A pair with what was done, in words."""
    return Pair(d1, d2, in_words(steps), in_words([step.reversed() for step in steps]))


def _differing(relation: OfRecords, record: str, rows: str, records: str) -> str:
    if relation.group > 1:
        return f"at most {relation.group} {'units' if relation.unit is not None else records}"
    return record if relation.unit is None else rows


_NO_NULL = object()
"""Stands for the null record of relations that have none."""
_NO_ROWS: tuple[Counter[Hashable], str] = (Counter(), "")
"""The records of a unit, and its name, in a dataset without it."""
