"""Units of privacy: each record, or all rows of what owns several, such as a user."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

from pytest_dp.basics.errors import ClaimError, did_you_mean
from pytest_dp.basics.reprs import plural
from pytest_dp.data.describing import describe
from pytest_dp.data.equality import equality_key
from pytest_dp.data.fields import fields_of, with_field
from pytest_dp.data.ordering import in_turn, representatives
from pytest_dp.data.record_pool import Positions, RecordPool
from pytest_dp.data.types import type_of

MAX_FIRST_ROWS = 16
"""Representative rows of a large dataset. Fewer: a unit that differs is not seen."""
MAX_MEMBERS = 8
"""Rows of a unit, and units, that pairs are made of. Fewer may miss the unit that leaks."""
MAX_SUGGESTIONS = 3
"""Names that an error suggests. More hide the right one."""
Read = Callable[[Any], Any]
"""A function that returns the unit of a record."""
_NOBODY = object()
"""The unit of null records and of gaps, which nobody owns."""


@dataclass(frozen=True, slots=True)
class Member:
    """One unit of privacy of a dataset."""

    key: Hashable
    """A key that is equal for equal records, or for rows of one unit."""
    at: Positions
    """Indices into the positions of a dataset; of a unit to be added, positions in the pool."""
    name: str = ""
    """``"user_id=7"``; empty for a record."""


class Step(NamedTuple):
    """A change of one unit between D and D': it left, came, or has other rows.

    `unit` has `rows` rows in D, and is empty if it came; `by` has `by_rows` rows in D', and is
    empty if no unit came. Records are units without a name.
    """

    unit: str = ""
    rows: int = 1
    by: str = ""
    by_rows: int = 0

    @property
    def name(self) -> str:
        """The name of the unit that left, else of the one that came; empty for a record."""
        return self.unit or self.by

    def reverse(self) -> Step:
        """Return the step from D' to D."""
        return Step(self.by, self.by_rows, self.unit, self.rows)

    def verb(self, verbs: tuple[str, str]) -> str:
        """Return "replaced", or of two verbs the first if a unit left, the second if one came."""
        return "replaced" if self.rows and self.by_rows else verbs[not self.rows]

    def in_words(self, verbs: tuple[str, str]) -> str:
        """Return the change of a unit in words, such as ``"both rows of id=7 removed"``."""
        rows = self.rows or self.by_rows
        whose = {1: "the one row", 2: "both rows"}.get(rows, f"all {rows:,} rows")
        text = f"{whose} of {self.name} {self.verb(verbs)}"
        if self.unit and self.by not in ("", self.unit):
            return f"{text} by the {self.by_rows:,} of {self.by}"
        return f"{text} by {self.by_rows:,}" if self.by_rows not in (0, rows) else text


def difference_in_words(steps: Sequence[Step], verbs: tuple[str, str]) -> str:
    """Return how D' differs from D in words, such as ``"one record removed"``."""
    if steps[0].name:
        shown = [step.in_words(verbs) for step in steps[:2]]
        more = len(steps) - len(shown)
        return " and ".join([*shown, *([f"{more} more units"] if more else [])])
    return " and ".join(
        f"one record {verb}" if times == 1 else f"{times} records {verb}"
        for verb, times in Counter(step.verb(verbs) for step in steps).items()
    )


def surplus(gone: int, new: int, what: str = "record") -> str:
    """Return how many records, or units (`what`), are only in D and only in D', in words."""
    return f"{plural(gone, what)} only in D and {plural(new, what)} only in D'"


class UnitChange(NamedTuple):
    """A neighbour's positions, and the units that left and that came in."""

    positions: Positions
    left: Member | None = None
    came: Member | None = None

    @property
    def step(self) -> Step:
        """The change as a step from D to D'."""
        left, came = self.left, self.came
        before = (left.name, len(left.at)) if left else ("", 0)
        return Step(*before, *((came.name, len(came.at)) if came else ("", 0)))


class Members:
    """A view of the units of a pool's datasets, which may leave a dataset or come into it.

    Without a `unit`, each record is a unit. The record at position `null` belongs to none. Of a
    unit, at most `max_rows` rows come in.
    """

    def __init__(
        self, pool: RecordPool, null: int | None, unit: Any = None, max_rows: int | None = None
    ) -> None:
        self.pool, self._null, self._unit, self._max_rows = pool, null, unit, max_rows
        self._read: Read | None = None if unit is None else reader(pool.example, unit)
        self._owners: dict[int, Hashable] = {}

    def _owner(self, at: int) -> Hashable:
        """Return the key of the unit of the record at a position; `_NOBODY` for nulls and gaps."""
        same = self.pool.same[at]
        if same == self._null or at in self.pool.gaps:
            return _NOBODY
        if self._read is None:
            return same
        if at not in self._owners:
            self._owners[at] = equality_key(self._read(self.pool.records[at]))
        return self._owners[at]

    def rounds(self, positions: Positions) -> list[list[Member]]:
        """Return the units of a dataset in rounds, of which later ones hold repeated records."""
        times: Counter[Hashable] = Counter()
        groups: dict[tuple[int, Hashable], list[int]] = {}
        for index, at in enumerate(positions):
            owner = self._owner(at)
            if owner is not _NOBODY:
                groups.setdefault((times[owner], owner), []).append(index)
                times[owner] += self._unit is None
        rounds: dict[int, list[Member]] = {}
        for (number, owner), indices in groups.items():
            name = self._name(positions[indices[0]])
            rounds.setdefault(number, []).append(Member(owner, tuple(indices), name))
        return [self._order(members, positions) for members in rounds.values()]

    def _name(self, at: int) -> str:
        """Return the name of the unit of the record at a position; empty without units."""
        if self._read is None:
            return ""
        return name_of(self._unit, self._read(self.pool.records[at]))

    def _order(self, members: Sequence[Member], positions: Sequence[int]) -> list[Member]:
        """Return members in turn: with most rows, with fewest rows, and with extreme rows."""
        rank, same = self.pool.rank, self.pool.same

        def best_rank(member: Member) -> int:
            return min(rank[same[positions[index]]] for index in member.at)

        extreme = sorted(members, key=best_rank)
        rising = sorted(extreme, key=lambda member: len(member.at))
        if not rising or len(rising[0].at) == len(rising[-1].at):
            return extreme
        return list(dict.fromkeys(in_turn((rising[::-1], rising, extreme))))

    def new_members(self, sources: Sequence[Positions]) -> list[Member]:
        """Return the different members of datasets at these positions, to be added elsewhere."""
        same = self.pool.same
        if self._unit is None:
            sources = [tuple({same[at] for at in chain.from_iterable(sources)})]
        distinct: dict[Hashable, Member] = {}
        for source in sources:
            for member in chain.from_iterable(self.rounds(source)):
                rows = tuple(source[index] for index in member.at[: self._max_rows])
                content = (member.key, *(same[at] for at in rows))
                distinct[content] = Member(member.key, rows, member.name)
        return self._order(list(distinct.values()), range(len(same)))

    def addable(
        self, rounds: Sequence[Sequence[Member]], new: Sequence[Member]
    ) -> Sequence[Member]:
        """Return the `new` members that may be added: no record twice in a set, no unit twice."""
        if not self.pool.unique and self._unit is None:
            return new
        held = {member.key for members in rounds for member in members}
        return [member for member in new if member.key not in held]

    def replacements(self, leaving: Member, coming: Member, positions: Positions) -> list[Member]:
        """Return members that may replace a unit: the coming one, or its rows as the leaving one.

        Rows of the second kind are added to the pool. Empty for an equal record, or if neither is
        new.
        """
        if self._read is None:
            return [coming] * (coming.key != leaving.key)
        options = [] if coming.key in {self._owner(at) for at in positions} else [coming]
        owner = self._read(self.pool.records[positions[leaving.at[0]]])
        moved = [
            moved_to(self.pool.example, self.pool.records[at], self._unit, owner)
            for at in coming.at
        ]
        if None not in moved:
            at = tuple(map(self.pool.add, moved))
            before = Counter(self.pool.same[positions[index]] for index in leaving.at)
            if Counter(self.pool.same[position] for position in at) != before:
                options.append(Member(leaving.key, at, leaving.name))
        return options

    def representative_positions(self, positions: Positions) -> Positions:
        """Return the positions of representative rows of a large dataset, in their order.

        Of units, they are all rows of at most `MAX_MEMBERS` units: of large ones, and of those with
        representative rows.
        """
        records = [self.pool.records[at] for at in positions]
        telling: Iterable[int] = representatives(records, MAX_FIRST_ROWS)
        if self._unit is not None:
            members = [member.at for member in chain.from_iterable(self.rounds(positions))]
            owner = {index: rows for rows in members for index in rows}
            representative = (owner[index] for index in telling if index in owner)
            few = dict.fromkeys(in_turn((members[:MAX_MEMBERS], representative)))
            telling = chain.from_iterable(islice(few, MAX_MEMBERS))
        return tuple(positions[index] for index in sorted(telling))


def exchange_positions(
    positions: Positions, leaving: Positions, coming: Positions = ()
) -> Positions:
    """Return positions without the `leaving` ones, with `coming` in the place of the first.

    `leaving` are indices into `positions`, in rising order; at least one.
    """
    if len(leaving) == 1:  # of thousands, quickly
        return (*positions[: leaving[0]], *coming, *positions[leaving[0] + 1 :])
    gone = set(leaving)
    rest = tuple(at for index, at in enumerate(positions) if index not in gone)
    return (*rest[: leaving[0]], *coming, *rest[leaving[0] :])


def owners(dataset: Any, records: Sequence[Any], unit: Any) -> list[Any]:
    """Return the unit of each of some records of a dataset, which are in the form of `records_of`.

    `unit` is the name of a column, a key of dicts, an attribute, the index in tuples, or a
    function. Raises ClaimError if records have none of this name, or if the function raises.
    """
    read = reader(dataset, unit)
    units = []
    for record in records:
        try:
            units.append(read(record))
        except Exception as error:
            raise _without_unit(record, dataset, unit, error) from error
    return units


def reader(example: Any, unit: Any) -> Read:
    """Return a function that reads the unit of a record; raise ClaimError without such a column."""
    if callable(unit):
        read: Read = unit
        return read
    columns = _columns(example)
    if columns is None:
        return lambda record: _entry(record, unit)
    if unit not in columns:
        raise _no_column(example, columns, unit)
    at = columns.index(unit)
    return lambda record: record[at]


def moved_to(example: Any, record: Any, unit: Any, owner: Any) -> Any:
    """Return a copy of a record that belongs to another unit; None if the unit is a function."""
    if callable(unit):
        return None
    columns = _columns(example)
    at: Any = unit if columns is None else columns.index(unit)
    if fields_of(record).keys() != {None}:
        return with_field(record, at, owner)
    moved = copy.copy(record)
    setattr(moved, at, owner)
    return moved


def name_of(unit: Any, owner: Any) -> str:
    """Return a unit in words: ``user_id=7``."""
    if callable(unit):
        name = getattr(unit, "__name__", "unit")
        name = "unit" if name == "<lambda>" else name
    else:
        name = f"record[{unit}]" if isinstance(unit, int) else str(unit)
    return f"{name}={describe(owner, 30)}"


def group_by_unit(units: Iterable[Any]) -> dict[Hashable, list[int]]:
    """Return the positions of each unit, in the order in which they come."""
    groups: dict[Hashable, list[int]] = {}
    for at, owner in enumerate(units):
        groups.setdefault(equality_key(owner), []).append(at)
    return groups


def _columns(example: Any) -> list[Any] | None:
    """Return the names of the columns of a dataset; None if it has none."""
    data = type_of(example)
    return None if data is None else data.columns(example)


def _entry(record: Any, unit: Any) -> Any:
    """Return the entry or attribute of a record that is its unit; raise an error without one."""
    if isinstance(record, dict) or (isinstance(unit, int) and isinstance(record, list | tuple)):
        return record[unit]
    if isinstance(unit, str):
        return getattr(record, unit)
    raise TypeError


def _without_unit(record: Any, dataset: Any, unit: Any, error: Exception) -> ClaimError:
    """Return the ClaimError on a record of which no unit can be read."""
    shown = f"the record {describe(record)} of {describe(dataset)}"
    if callable(unit):
        said = f"{type(error).__name__}: {error}"
        return ClaimError(
            f"unit={name_of(unit, 0).partition('=')[0]} raised {said} for {shown}. It is "
            "called with one record, and returns the unit that owns it."
        )
    hint = _hint(unit, [*fields_of(record), *getattr(record, "__dict__", ())])
    return ClaimError(
        f"unit={unit!r}: {shown} has no such entry.{hint} Allowed: the name of "
        "a column, a key of records that are dicts, an attribute of others, the index in "
        "tuples (unit=0), or a function from a record to its unit."
    )


def _no_column(example: Any, columns: Sequence[Any], unit: Any) -> ClaimError:
    """Return the ClaimError on a unit that is no column of a table."""
    return ClaimError(
        f"unit={unit!r}: there is no such column in {describe(example)}.{_hint(unit, columns)} "
        f"Its columns: {', '.join(map(repr, columns))}. The index is not data: write "
        "frame.reset_index()."
    )


def _hint(unit: Any, names: Iterable[Any]) -> str:
    return did_you_mean(unit, [name for name in names if isinstance(name, str)], MAX_SUGGESTIONS)
