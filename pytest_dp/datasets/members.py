"""What may leave a dataset, or come into it: a record, or all rows of a unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pytest_dp.datasets.equality import equality_key
from pytest_dp.datasets.interleaving import in_turn
from pytest_dp.datasets.pool import Pool, Positions
from pytest_dp.datasets.records import representatives
from pytest_dp.datasets.units import moved_to, name_of, reader
from pytest_dp.limits import SEVERAL

_NOBODY = object()
"""The unit of null records, which are no one's."""


@dataclass(frozen=True, slots=True)
class Member:
    """One unit of privacy of a dataset."""

    key: Hashable
    """Equal for equal records, or for rows of one unit."""
    at: Positions
    """Indices into the positions of a dataset; of newcomers, positions in the pool."""
    name: str = ""
    """``"user_id=7"``; empty for a record."""


class Records:
    """Each record is a unit by itself, but for the one at position `null`."""

    def __init__(self, pool: Pool, null: int | None) -> None:
        self.pool, self._null = pool, null

    def rounds(self, positions: Positions) -> list[list[Member]]:
        """The members of a dataset, extreme ones ahead; first one of each, then its repetitions.

        What repetitions add matters to few mechanisms.
        """
        same, rank = self.pool.same, {at: order for order, at in enumerate(self.pool.distinct)}
        times: Counter[int] = Counter()
        rounds: dict[int, list[Member]] = {}
        for index, at in enumerate(positions):
            if same[at] == self._null:
                continue
            times[same[at]] += 1
            rounds.setdefault(times[same[at]], []).append(Member(same[at], (index,)))
        for members in rounds.values():
            members.sort(key=lambda member: rank[member.key])  # type: ignore[index]
        return list(rounds.values())

    def new(self, sources: Iterable[Positions]) -> list[Member]:
        """What datasets have to offer, extreme records ahead."""
        offered = {self.pool.same[at] for at in chain.from_iterable(sources)} - {self._null}
        return [Member(at, (at,)) for at in self.pool.distinct if at in offered]

    def part(self, positions: Positions) -> Positions:
        """The positions that tell most of a large dataset, in their order."""
        rows = representatives([self.pool.records[at] for at in positions], 2 * SEVERAL)
        return tuple(positions[index] for index in sorted(rows))

    def instead(self, leaving: Member, coming: Member, positions: Positions) -> list[Member]:  # noqa: ARG002
        """What may take the place of a member."""
        return [] if coming.key == leaving.key else [coming]


class Units:
    """All rows of a unit go together, but for the record at position `null`, which is of no unit.

    At most `max_rows` rows of a unit come in.
    """

    def __init__(self, pool: Pool, null: int | None, unit: Any, max_rows: int | None) -> None:
        self.pool, self._null, self._unit, self._max_rows = pool, null, unit, max_rows
        self._read: Callable[[Any], Any] = reader(pool.example, unit)
        self._keys: dict[int, Hashable] = {}

    def _key(self, at: int) -> Hashable:
        if at not in self._keys:
            nobody = self.pool.same[at] == self._null
            self._keys[at] = _NOBODY if nobody else equality_key(self._read(self.pool.records[at]))
        return self._keys[at]

    def _members(self, positions: Positions) -> list[Member]:
        """The units of a dataset, with indices: those of most, of fewest, of extreme rows ahead."""
        rank = {at: order for order, at in enumerate(self.pool.distinct)}
        groups: dict[Hashable, list[int]] = {}
        for index, at in enumerate(positions):
            groups.setdefault(self._key(at), []).append(index)
        groups.pop(_NOBODY, None)
        best_rank = {
            unit: min(rank[self.pool.same[positions[index]]] for index in indices)
            for unit, indices in groups.items()
        }
        extreme = sorted(groups, key=best_rank.__getitem__)
        rising = sorted(extreme, key=lambda unit: len(groups[unit]))
        return [
            Member(unit, tuple(groups[unit]), self._name(positions[groups[unit][0]]))
            for unit in dict.fromkeys(in_turn((rising[::-1], rising, extreme)))
        ]

    def _name(self, at: int) -> str:
        return name_of(self._unit, self._read(self.pool.records[at]))

    def rounds(self, positions: Positions) -> list[list[Member]]:
        """The units of a dataset."""
        return [self._members(positions)]

    def new(self, sources: Sequence[Positions]) -> list[Member]:
        """The units of datasets, those of each in turn."""
        offered = [[self._newcomer(m, source) for m in self._members(source)] for source in sources]
        by_rows = {self._content(member): member for member in in_turn(offered)}
        return list(by_rows.values())

    def _newcomer(self, member: Member, source: Positions) -> Member:
        """A member of another dataset, by its positions in the pool."""
        rows = tuple(source[index] for index in member.at[: self._max_rows])
        return Member(member.key, rows, member.name)

    def _content(self, member: Member) -> tuple[Hashable, ...]:
        """What is equal for members of one unit with equal rows."""
        return (member.key, *(self.pool.same[at] for at in member.at))

    def part(self, positions: Positions) -> Positions:
        """All rows of the largest units, and of those that tell most, in their order."""
        members = self._members(positions)
        owner = {index: member for member in members for index in member.at}
        rows = representatives([self.pool.records[at] for at in positions], 2 * SEVERAL)
        representative = (owner[index] for index in rows if index in owner)
        few = list(dict.fromkeys(in_turn((members[:SEVERAL], representative))))[:SEVERAL]
        kept_rows = sorted(chain.from_iterable(member.at for member in few))
        return tuple(positions[index] for index in kept_rows)

    def instead(self, leaving: Member, coming: Member, positions: Positions) -> list[Member]:
        """The rows of the other unit: as its own if the dataset has none, and as of this one."""
        options = [] if coming.key in {self._key(at) for at in positions} else [coming]
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


def exchanged(positions: Positions, leaving: Positions, coming: Positions = ()) -> Positions:
    """The positions without those at the indices `leaving`, and `coming` at the first of these."""
    if len(leaving) == 1:  # of thousands, quickly
        return (*positions[: leaving[0]], *coming, *positions[leaving[0] + 1 :])
    gone = set(leaving)
    rest = tuple(at for index, at in enumerate(positions) if index not in gone)
    return (*rest[: leaving[0]], *coming, *rest[leaving[0] :])


def addable(
    units: Records | Units, rounds: Sequence[Sequence[Member]], new: Sequence[Member]
) -> Sequence[Member]:
    """What may come in: a set cannot hold a record twice, nor a dataset one unit."""
    if not units.pool.unique and isinstance(units, Records):
        return new
    held = {member.key for members in rounds for member in members}
    return [member for member in new if member.key not in held]
