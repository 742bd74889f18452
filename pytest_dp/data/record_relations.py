"""Relations of datasets that differ in a record, or in all rows of a unit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from pytest_dp.basics.reprs import plural
from pytest_dp.data.conversion import (
    describe_non_dataset,
    kind_of,
    length,
    null_of,
    records_of,
    refuse_several_tables,
)
from pytest_dp.data.equality import equality_key, key
from pytest_dp.data.neighbours import Pair, Relation, different_kinds
from pytest_dp.data.ordering import diagonally, distinct, in_turn
from pytest_dp.data.record_pool import Positions, RecordPool
from pytest_dp.data.units import (
    Member,
    Members,
    Step,
    UnitChange,
    difference_in_words,
    exchange_positions,
    group_by_unit,
    name_of,
    owners,
    surplus,
)
from pytest_dp.declaration import Neighbors

Keys = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class OfRecords(Relation):
    """Datasets that differ in records, or in units that own some, whatever their order."""

    unit: Any = None
    """The owner of records, as in `pytest_dp.data.units`; None if each record is a unit."""
    rows: int | None = None
    """The largest number of rows of a unit; None if there is no limit."""
    group: int = 1
    """The largest number of units that may differ; derived neighbours differ in this number."""

    keeps_length: ClassVar[bool] = False
    verbs: ClassVar[tuple[str, str]] = ("removed", "added")
    needs: ClassVar[str]
    """What examples have to hold so that pairs follow from them, in words."""

    @property
    def arguments(self) -> dict[str, Any]:
        group = self.group if self.group > 1 else None
        said = {"unit": self.unit, "rows": self.rows, "group": group}
        return self._record() | {name: value for name, value in said.items() if value is not None}

    def _record(self) -> dict[str, Any]:
        """Return the null record that a claim gives, as a keyword; empty if there is none."""
        return {}

    def covers(self, other: Relation) -> bool:
        """Return whether the other relation has this rule, and at most as many rows in a unit."""
        if not isinstance(other, OfRecords):
            return False
        rows = math.inf if self.rows is None else self.rows
        of_any = replace(self, group=other.group, rows=other.rows)
        return of_any == other and rows >= (other.rows or math.inf)

    def _difference_words(self, record: str, rows: str, records: str = "records") -> str:
        """Return the words for a difference: of a group, else `record` or, with units, `rows`."""
        if self.group > 1:
            return f"at most {self.group} {'units' if self.unit is not None else records}"
        return record if self.unit is None else rows

    def check(self, dataset: Any) -> str:
        if self.unit is None:
            return ""
        refuse_several_tables("an input", dataset, self.unit)
        _, units = self._real(dataset)  # raises if the records have none
        for positions in group_by_unit(units).values():
            if self.rows is not None and len(positions) > self.rows:
                name = name_of(self.unit, units[positions[0]])
                return f"{name} has {len(positions):,} rows, more than rows={self.rows}"
        return ""

    def between(self, d1: Any, d2: Any) -> Pair | str:
        """Return two datasets as a pair if at most `group` units differ; else the reason."""
        for name, dataset in (("D", d1), ("D'", d2)):
            if not kind_of(dataset):
                return f"{name} is {describe_non_dataset(dataset).replace(', is', ', which is')}"
            unfit = self.check(dataset)
            if unfit:
                return f"in {name}, {unfit}"
        if kind_of(d1) != kind_of(d2):
            return different_kinds(d1, d2)
        if self.keeps_length and length(d1) != length(d2):
            return f"D has {plural(length(d1), 'record')} and D' {plural(length(d2), 'record')}"
        # Records that are equal are one, unless nothing else differs: 1 and True, 0.0 and -0.0.
        ways = (self._steps(self._changed_units(d1, d2, same)) for same in (equality_key, key))
        steps = next((way for way in ways if way), "they hold the same records")
        if isinstance(steps, str):
            return steps
        return self.pair_of(d1, d2, steps) if len(steps) <= self.group else self._too_far(steps)

    def _changed_units(self, d1: Any, d2: Any, same: Callable[[Any], Hashable]) -> list[Step]:
        """Return a step for each unit of which D and D' hold different rows, by the key `same`.

        Without units, a step for each record that only D holds, then for each that only D' holds.
        """
        rows1, rows2 = self.rows_of_units(d1, same), self.rows_of_units(d2, same)
        if self.unit is None:
            counts1, counts2 = rows1.get(None, _NO_ROWS)[0], rows2.get(None, _NO_ROWS)[0]
            gone, new = (counts1 - counts2).total(), (counts2 - counts1).total()
            return [Step()] * gone + [Step(rows=0, by_rows=1)] * new
        changed = []
        for unit in {**rows1, **rows2}:
            counts1, name1 = rows1.get(unit, _NO_ROWS)
            counts2, name2 = rows2.get(unit, _NO_ROWS)
            if counts1 != counts2:
                changed.append(Step(name1, counts1.total(), name2, counts2.total()))
        return changed

    def _steps(self, changed: list[Step]) -> list[Step] | str:
        """Return the steps from D to D', or a text why they are no neighbours.

        By default, a unit comes or goes with all of its rows; a unit with other rows is the reason.
        """
        for step in changed:
            if step.rows and step.by_rows:
                rows = f"{step.rows} rows in D and {step.by_rows} in D'"
                return f"{step.unit} has {rows}, not all of the same"
        return changed

    def rows_of_units(
        self, dataset: Any, same: Callable[[Any], Hashable]
    ) -> dict[Hashable, tuple[Counter[Hashable], str]]:
        """Return for each unit how often each of its records occurs, and its name.

        Without units, all records are of the unit None. Raises ClaimError if records have no unit.
        """
        records, owners = self._real(dataset)
        if self.unit is None:
            return {None: (Counter(map(same, records)), "")}
        return {
            unit: (Counter(same(records[at]) for at in rows), name_of(self.unit, owners[rows[0]]))
            for unit, rows in group_by_unit(owners).items()
        }

    def _real(self, dataset: Any) -> tuple[list[Any], list[Any]]:
        """Return the records except null records, and the unit of each; [] without `unit`."""
        records = records_of(dataset)
        null = self.null_key(dataset)
        if null is not _NO_NULL:
            records = [record for record in records if equality_key(record) != null]
        return records, [] if self.unit is None else owners(dataset, records, self.unit)

    def null_key(self, example: Any) -> Hashable:  # noqa: ARG002
        """Return the key of the null record; `_NO_NULL` if the relation has none."""
        return _NO_NULL

    def _null_in(self, pool: RecordPool) -> int | None:  # noqa: ARG002
        """Return the position of the null record in a pool; None if the relation has none."""
        return None

    def _too_far(self, steps: Sequence[Step]) -> str:
        """Return the reason why datasets are no neighbours that too many steps separate."""
        if steps[0].name:
            shown = ", ".join(step.name for step in steps[:3])
            return f"{len(steps)} units differ: {shown}{', ...' if len(steps) > 3 else ''}"
        gone, new = sum(step.rows for step in steps), sum(step.by_rows for step in steps)
        return surplus(gone, new) + ", null records apart" * self.keeps_length

    def pair_of(self, d1: Any, d2: Any, steps: Sequence[Step]) -> Pair:
        """Return a pair whose difference in words describes the steps from D to D'."""
        back = [step.reverse() for step in steps]
        return Pair(
            d1, d2, difference_in_words(steps, self.verbs), difference_in_words(back, self.verbs)
        )

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Yield the pairs of a dataset with neighbours that differ in `group` units."""
        positions = tuple(range(len(records_of(dataset))))
        pool = RecordPool([dataset])
        offered = tuple(map(pool.add, records))
        d1 = pool.dataset(positions)
        made = self.neighbour_positions(pool, positions, [offered])
        known, content = [pool.content(positions)], key(d1)
        for moved, steps in distinct(made, lambda one: pool.content(one[0]), known):
            d2 = pool.dataset(moved)
            if key(d2) != content:  # a new record may turn into one that is there: 1 into 1.0
                yield self.pair_of(d1, d2, steps)

    def neighbour_positions(
        self, pool: RecordPool, positions: Positions, sources: Sequence[Positions]
    ) -> Iterator[tuple[Positions, tuple[Step, ...]]]:
        """Yield the positions of each neighbour, with the steps that lead to it; some may repeat.

        `sources` are positions of datasets whose records, or units, may come into the neighbour.
        """
        units = self._units(pool)
        new = units.new_members(sources)

        def walk(
            positions: Positions, left: int, done: tuple[Step, ...], out: Keys, into: Keys
        ) -> Iterator[tuple[Positions, tuple[Step, ...]]]:
            if not left:
                yield positions, done
                return
            known: set[tuple[Keys, Keys]] = set()
            yield from in_turn(
                walk(move.positions, left - 1, (*done, move.step), *keys)
                for move in self._unit_changes(units, positions, new)
                if self._note_if_new(keys := _extend_keys(move, out, into), known)
            )

        return walk(positions, self.group, (), (), ())

    def representative_positions(self, pool: RecordPool, positions: Positions) -> Positions:
        """Return the positions of few representative records, or of all rows of few units."""
        return self._units(pool).representative_positions(positions)

    def members(self, pool: RecordPool, positions: Positions) -> Iterator[Member]:
        """Yield the records or units of a dataset, those with extreme rows first."""
        return chain.from_iterable(self._units(pool).rounds(positions))

    def _units(self, pool: RecordPool) -> Members:
        return Members(pool, self._null_in(pool), self.unit, self.rows)

    def _note_if_new(self, keys: tuple[Keys, Keys], known: set[tuple[Keys, Keys]]) -> bool:
        """Note the units that left and came in; return whether they make a new neighbour.

        False also if a unit leaves and comes in, or leaves twice. Always true for a group of one.
        """
        if self.group == 1:
            return True
        out, into = keys
        if set(out) & set(into) or (self.unit is not None and len({*out}) < len(out)):
            return False
        fresh = keys not in known
        known.add(keys)
        return fresh

    @abstractmethod
    def _unit_changes(
        self, units: Members, positions: Positions, new: Sequence[Member]
    ) -> Iterator[UnitChange]:
        """Yield the changes of one unit that lead to a neighbour, those of extreme rows first."""


def _extend_keys(move: UnitChange, out: Keys, into: Keys) -> tuple[Keys, Keys]:
    """Return the keys of units that left or changed, and that came in, after one more change."""
    left, came = move.left, move.came
    if left and came and left.key == came.key:  # other rows of its own
        return (*out, left.key), into
    return (*out, left.key) if left else out, (*into, came.key) if came else into


class AddRemoveOne(OfRecords):
    """One record more, or one less; or all rows of one unit."""

    __slots__ = ()
    name = "add_remove_one"
    example = "([1, 0], [1])"
    needs = "a record"

    @property
    def required(self) -> str:
        what = self._difference_words("exactly one record", "all rows of exactly one unit")
        return f"D' is D with {what} removed or added, in any order"

    def _unit_changes(
        self, units: Members, positions: Positions, new: Sequence[Member]
    ) -> Iterator[UnitChange]:
        """Yield removals of each unit, and additions of each new one, in turn."""
        rounds = units.rounds(positions)
        removed = (
            UnitChange(exchange_positions(positions, unit.at), left=unit) for unit in chain(*rounds)
        )
        added = (
            UnitChange((*positions, *unit.at), came=unit) for unit in units.addable(rounds, new)
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
        what = self._difference_words(
            "exactly one of them", "the rows of exactly one of them", "of them"
        )
        many = "records" if self.unit is None else "units"
        return f"D and D' have the same number of {many} and {what} differs, in any order"

    def _steps(self, changed: list[Step]) -> list[Step] | str:
        """Return a step for each unit and its replacement; a reason if their numbers differ."""
        gone = [step for step in changed if not step.by_rows]
        new = [step for step in changed if not step.rows]
        if len(gone) != len(new):
            return surplus(len(gone), len(new), "record" if self.unit is None else "unit")
        replaced = [step for step in changed if step.rows and step.by_rows]
        both = zip(gone, new, strict=True)
        return replaced + [Step(a.unit, a.rows, b.by, b.by_rows) for a, b in both]

    def _unit_changes(
        self, units: Members, positions: Positions, new: Sequence[Member]
    ) -> Iterator[UnitChange]:
        """Yield replacements of each unit by each new one, or by other rows of its own."""
        rounds = units.rounds(positions)
        if self.unit is None:
            new = units.addable(rounds, new)
        for leaving, offered in chain.from_iterable(diagonally(members, new) for members in rounds):
            for coming in units.replacements(leaving, offered, positions):
                yield UnitChange(
                    exchange_positions(positions, leaving.at, coming.at), leaving, coming
                )


@dataclass(frozen=True, slots=True)
class ReplaceSpecial(OfRecords):
    """One record is the null record; or all rows of one unit are."""

    null: Neighbors | None = None
    """``replace_special(record)``; None if the null record has missing values."""

    keeps_length = True
    name = "replace_special"
    verbs = ("nulled", "restored")
    example = "([1, 0], [1, None])"
    needs = "a record other than the null record"

    @property
    def required(self) -> str:
        what = self._difference_words("exactly one record", "all rows of exactly one unit")
        return f"D' is D with {what} turned into the null record, or back"

    def _record(self) -> dict[str, Any]:
        return {} if self.null is None else self.null.said

    def _null(self, example: Any) -> Any:
        """Return the null record; raise ClaimError if datasets like the example cannot hold it."""
        return null_of(example, self._record().get("record"))

    def null_key(self, example: Any) -> Hashable:
        return equality_key(self._null(example))

    def _null_in(self, pool: RecordPool) -> int:
        return pool.add(self._null(pool.example))

    def _unit_changes(
        self, units: Members, positions: Positions, new: Sequence[Member]
    ) -> Iterator[UnitChange]:
        """Yield units whose rows become null, and new units in place of null records, in turn."""
        pool = units.pool
        null = self._null_in(pool)
        blank = tuple(index for index, at in enumerate(positions) if pool.same[at] == null)
        rounds = units.rounds(positions)
        nulled = (
            UnitChange(exchange_positions(positions, unit.at, (null,) * len(unit.at)), left=unit)
            for unit in chain(*rounds)
            if not pool.unique or (len(unit.at) == 1 and not blank)
        )
        restored = (
            UnitChange(exchange_positions(positions, blank[: len(unit.at)], unit.at), came=unit)
            for unit in units.addable(rounds, new)
            if len(unit.at) <= len(blank)
        )
        return in_turn((nulled, restored))


_NO_NULL = object()
"""Stands for the null record of relations that have none."""
_NO_ROWS: tuple[Counter[Hashable], str] = (Counter(), "")
"""The records of a unit, and its name, in a dataset without it."""
