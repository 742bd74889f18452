"""Smaller pairs of neighbouring inputs that still break a claim.

First fewer records, then simpler ones, as in delta debugging: whatever is left out or replaced, the
pair stays one of neighbours, and is kept if it still breaks the claim on new samples.

References
----------
Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pytest_dp.datasets import key, rebuilt, records_of
from pytest_dp.datasets.query_relations import OfQueries
from pytest_dp.datasets.relations import AddRemoveOne, OfRecords, Pair, Relation

Breaks = Callable[[Pair], bool]
Rows = tuple[list[Any], list[Any]]
"""Records of D and of D'."""
Columns = dict[Hashable, dict[Hashable, Any]]
"""Values by the name, or the place, of a field, and by their content."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A pair as its records: those that D and D' share, and each one's own.

    Attributes
    ----------
    rows1, rows2 : tuple
        Records of D and of D'.
    common : tuple of (int, int)
        Positions of records that both have, in D and in D'.
    """

    rows1: tuple[Any, ...]
    rows2: tuple[Any, ...]
    common: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pair: Pair) -> Cut:
        """The records of a pair; equal ones are taken to be shared, from the front."""
        rows1, rows2 = tuple(records_of(pair.d1)), tuple(records_of(pair.d2))
        where: dict[Hashable, list[int]] = {}
        for at, row in enumerate(rows2):
            where.setdefault(key(row), []).append(at)
        places = {content: iter(found) for content, found in where.items()}
        left = Counter({content: len(found) for content, found in where.items()})
        common = []
        for at, row in enumerate(rows1):
            content = key(row)
            if left[content] > 0:
                left[content] -= 1
                common.append((at, next(places[content])))
        return cls(rows1, rows2, tuple(common))

    def without(self, some: tuple[tuple[int, int], ...]) -> tuple[list[Any], list[Any]]:
        """The records of both without some that they share."""
        gone1, gone2 = ({two[side] for two in some} for side in (0, 1))
        return (
            [row for at, row in enumerate(self.rows1) if at not in gone1],
            [row for at, row in enumerate(self.rows2) if at not in gone2],
        )


def shrunk(pair: Pair, relation: Relation, breaks: Breaks) -> Pair:
    """The smallest pair that was found by leaving out and simplifying records.

    Parameters
    ----------
    pair : Pair
        One that breaks the claim.
    relation : Relation
        What makes two inputs neighbours.
    breaks : callable
        ``breaks(pair)``: whether a pair breaks the claim too. It may answer no to everything once
        there is no more time.

    Returns
    -------
    Pair
        The pair itself if nothing smaller breaks the claim.
    """
    seen: set[Hashable] = set()
    columns = _columns(pair) if isinstance(relation, OfRecords) else {}
    while True:
        for smaller in _smaller(pair, relation, columns):
            content = key(smaller.d1), key(smaller.d2)
            if content not in seen:
                seen.add(content)
                if breaks(smaller):
                    pair = smaller
                    break
        else:
            return pair


def _columns(pair: Pair) -> Columns:
    """All values that the records of a pair hold."""
    rows = [*records_of(pair.d1), *records_of(pair.d2)]
    columns: Columns = {}
    for row in rows:
        for name, value in _fields(row):
            columns.setdefault(name, {}).setdefault(key(value), value)
    return columns


def _smaller(pair: Pair, relation: Relation, columns: Columns) -> Iterator[Pair]:
    """Pairs of neighbours that are smaller, those ahead that are much smaller."""
    smaller: Iterator[Rows] = iter(())
    if isinstance(relation, OfRecords):
        cut = Cut.of(pair)
        # How many records there are may be relied on where they are only replaced.
        fewer = _fewer(cut) if isinstance(relation, AddRemoveOne) else ()
        smaller = chain(fewer, _simpler(cut, columns))
    elif isinstance(relation, OfQueries):  # the order matters, and the length is given
        answers = records_of(pair.d1), records_of(pair.d2)
        smaller = _simpler_answers(*answers)
    for rows1, rows2 in smaller:
        try:
            d1, d2 = rebuilt(pair.d1, rows1), rebuilt(pair.d2, rows2)
        except (TypeError, ValueError, OverflowError):  # such as 0 in a column of dates
            continue
        if isinstance(relation, OfQueries) and counts(pair.d1, pair.d2) and not counts(d1, d2):
            continue
        if not relation.fault(d1, d2):
            difference = relation.difference(d1, d2)
            yield replace(pair, d1=d1, d2=d2, difference=difference, opposite="")


def counts(*vectors: Any) -> bool:
    """Whether no answer is negative: counting queries have no such answers."""
    return all(answer >= 0 for vector in vectors for answer in records_of(vector))


def _fewer(cut: Cut) -> Iterator[Rows]:
    """Without records that both inputs share: all, halves, quarters, ... each of them."""
    size = len(cut.common)
    while size >= 1:
        for start in range(0, len(cut.common), size):
            yield cut.without(cut.common[start : start + size])
        size //= 2


def _simpler(cut: Cut, columns: Columns) -> Iterator[Rows]:
    """With one value simplified wherever it occurs, then in one record after the other.

    Numbers stay between those that the pair held at first, and other values are among them: nothing
    is known of what else the mechanism takes.
    """
    rows = cut.rows1, cut.rows2
    now = {(name, key(v)): v for row in chain(*rows) for name, v in _fields(row)}
    simpler = {
        (name, content): simpler_values(value, columns[name].values())
        for (name, content), value in now.items()
    }
    for (name, content), values in simpler.items():
        for new in values:
            yield _everywhere(rows[0], name, content, new), _everywhere(rows[1], name, content, new)
    shared = [{two[side]: two for two in cut.common} for side in (0, 1)]
    places = [*cut.common]
    places += [(at, -1) for at in range(len(rows[0])) if at not in shared[0]]
    places += [(-1, at) for at in range(len(rows[1])) if at not in shared[1]]
    for at1, at2 in places:
        row = rows[0][at1] if at1 >= 0 else rows[1][at2]
        for name, value in _fields(row):
            for new in simpler[name, key(value)]:
                other = _put(row, name, new)
                yield _at(rows[0], at1, other), _at(rows[1], at2, other)


def _simpler_answers(rows1: list[Any], rows2: list[Any]) -> Iterator[Rows]:
    """With both answers at a place moved by as much; first at all places where they agree."""
    places = list(enumerate(zip(rows1, rows2, strict=True)))
    agree = {at for at, (a, b) in places if a == b}
    for same in (0, 1):
        if any(_rank(same) < _rank(rows1[at]) for at in agree):
            yield (
                [type(a)(same) if at in agree else a for at, a in enumerate(rows1)],
                [type(b)(same) if at in agree else b for at, b in enumerate(rows2)],
            )
    for at, (a, b) in places:
        for new in sorted(set(simpler_numbers(a)), key=_rank):
            if _rank(new) < _rank(a):
                yield _at(rows1, at, type(a)(new)), _at(rows2, at, type(b)(new + (b - a)))


def simpler_values(value: Any, seen: Collection[Any]) -> list[Any]:
    """Simpler values of the same type, the simplest first: none for the simplest.

    Parameters
    ----------
    value : object
    seen : collection
        Numbers stay between the numbers among these; anything else becomes one of these.
    """
    if type(value) is str:
        return sorted({v for v in seen if type(v) is str and (len(v), v) < (len(value), value)})
    if type(value) not in (int, float) or not math.isfinite(value):
        return []
    numbers = [v for v in seen if type(v) in (int, float) and v == v]
    towards: list[float] = [*simpler_numbers(value), *numbers]
    kept = {type(value)(v) for v in towards if min(numbers) <= v <= max(numbers)}
    return sorted((v for v in kept if _rank(v) < _rank(value)), key=_rank)


def simpler_numbers(value: float) -> list[float]:
    """Towards 0, in steps that are halved, with fewer digits and no sign."""
    whole = int(value)
    halved = [whole - int(whole / 2**k) for k in range(1, 12)]
    return [0, 1, *halved, whole - 1 if value > 0 else whole + 1, whole, -value, round(value, 1)]


def _rank(number: float) -> tuple[int, float, bool]:
    """Smaller for simpler numbers: whole ones first, then by size, then by sign."""
    if not math.isfinite(number):
        return (100, 0.0, number < 0)
    return (0 if number == int(number) else len(repr(number)), abs(number), number < 0)


def _fields(row: Any) -> list[tuple[Hashable, Any]]:
    """The names, or places, of the values of a record, with the values."""
    if isinstance(row, dict):
        return list(row.items())
    return list(enumerate(row)) if type(row) in (list, tuple) else [(None, row)]


def _put(row: Any, name: Any, value: Any) -> Any:
    """A record with one value replaced."""
    if isinstance(row, dict):
        return {**row, name: value}
    if type(row) in (list, tuple):
        return type(row)([*row[:name], value, *row[name + 1 :]])
    return value


def _everywhere(rows: Sequence[Any], name: Hashable, content: Hashable, new: Any) -> list[Any]:
    """Records with a value replaced in all that have it."""
    return [
        _put(row, name, new)
        if any(n == name and key(v) == content for n, v in _fields(row))
        else row
        for row in rows
    ]


def _at(rows: Sequence[Any], at: int, row: Any) -> list[Any]:
    """Records with one of them replaced; none if its place is below 0."""
    return [*rows[:at], row, *rows[at + 1 :]] if at >= 0 else list(rows)
