"""Smaller pairs of neighbouring inputs that still break a claim.

Fewer records come first, then simpler ones, as in delta debugging: whatever is left out or
replaced, the inputs stay neighbours, and the smaller pair is taken if it breaks the claim on new
samples.

Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pytest_dp.datasets import key, rebuilt, records_of
from pytest_dp.datasets.differences import aligned
from pytest_dp.datasets.fields import columns_of, fields_of, with_field, with_known
from pytest_dp.datasets.relations import AddRemoveOne, OfRecords, Pair, Relation
from pytest_dp.declaration import Queries
from pytest_dp.limits import DOZENS, LABEL
from pytest_dp.outputs.leaves import as_float
from pytest_dp.sampling.deadline import OutOfTime

Breaks = Callable[[Pair], bool]
Rows = tuple[list[Any], list[Any]]
"""Records of D and of D'."""
Columns = dict[Hashable, dict[Hashable, Any]]
"""Values by the name, or the place, of a field, and by their content."""


@dataclass(frozen=True, slots=True)
class PairRecords:
    """The records of a pair, those of D and those of D'."""

    rows1: tuple[Any, ...]
    rows2: tuple[Any, ...]
    common: tuple[tuple[int, int], ...]
    """Positions of records that both have, in D and in D'."""

    @classmethod
    def of(cls, pair: Pair) -> PairRecords:
        """The records of a pair; equal ones are taken to be shared, from the front."""
        rows1, rows2 = tuple(records_of(pair.d1)), tuple(records_of(pair.d2))
        return cls(rows1, rows2, tuple(aligned(rows1, rows2)))

    def without(self, left_out: tuple[tuple[int, int], ...]) -> Rows:
        """The records of both without some that they share."""
        left_out1, left_out2 = ({places[side] for places in left_out} for side in (0, 1))
        return (
            [row for at, row in enumerate(self.rows1) if at not in left_out1],
            [row for at, row in enumerate(self.rows2) if at not in left_out2],
        )


def shrunk(pair: Pair, relation: Relation, breaks: Breaks, *, mixes: bool = True) -> Pair:
    """A smaller pair that breaks a claim, by leaving out and simplifying records.

    It is the pair itself, which breaks the claim, if nothing smaller does. ``breaks(pair)`` may
    raise OutOfTime, which ends it. `mixes` tells whether records of several fields may become ones
    that no dataset holds; then whole columns get one value first.
    """
    seen: set[Hashable] = set()
    columns: Columns = {}
    if isinstance(relation, OfRecords):
        columns = columns_of(chain(records_of(pair.d1), records_of(pair.d2)))
    if not mixes and len(columns) > 1:
        columns = {}
    with suppress(OutOfTime):
        while True:
            for smaller in _smaller(pair, relation, columns):
                content = key(smaller.d1), key(smaller.d2)
                if content not in seen:
                    seen.add(content)
                    if breaks(smaller):
                        pair = smaller
                        break
            else:
                break
    return pair


def _smaller(pair: Pair, relation: Relation, columns: Columns) -> Iterator[Pair]:
    """Smaller pairs of neighbours; those that are much smaller come first."""
    rows: Iterator[Rows] = iter(())
    if isinstance(relation, OfRecords):
        records = PairRecords.of(pair)
        # Where records are only replaced, the mechanism may rely on their number.
        fewer = _fewer(records) if isinstance(relation, AddRemoveOne) else ()
        rows = chain(fewer, _constant(records, columns), _simpler(records, columns))
    elif relation.of is Queries:  # the order matters, and the length is part of the claim
        answers = records_of(pair.d1), records_of(pair.d2)
        rows = _simpler_answers(*answers)
    for rows1, rows2 in rows:
        try:
            d1, d2 = rebuilt(pair.d1, rows1), rebuilt(pair.d2, rows2)
        except (TypeError, ValueError, OverflowError):  # such as 0 in a column of dates
            continue
        if relation.of is Queries and counts(pair.d1, pair.d2) and not counts(d1, d2):
            continue
        smaller = relation.pair(d1, d2)
        if smaller:
            yield replace(smaller, params=pair.params, origin=pair.origin, beyond=pair.beyond)


def counts(*vectors: Any) -> bool:
    """Whether no answer is negative: counting queries have no such answers."""
    return all(answer >= 0 for vector in vectors for answer in records_of(vector))


def _fewer(records: PairRecords) -> Iterator[Rows]:
    """Without records that both inputs share: all of them, halves, quarters, ..., single ones."""
    return map(records.without, _halves(records.common))


def _halves(things: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    size = len(things)
    while size >= 1:
        yield from (tuple(things[at : at + size]) for at in range(0, len(things), size))
        size //= 2


def _constant(records: PairRecords, columns: Columns) -> Iterator[Rows]:
    """With one value in all records: in all fields that have more, half of these, ..., one."""
    now = columns_of(chain(records.rows1, records.rows2)) if len(columns) > 1 else {}
    for names in _halves([name for name, values in now.items() if len(values) > 1]):
        rows1, rows2 = list(records.rows1), list(records.rows2)
        for name in names:
            value = simplest(list(columns[name].values()))
            rows1, rows2 = ([with_known(r, name, value) for r in rows] for rows in (rows1, rows2))
        yield rows1, rows2


def _simpler(records: PairRecords, columns: Columns) -> Iterator[Rows]:
    """With a value simplified wherever it occurs, then in one record after the other.

    Numbers stay between those that the pair held before it was shrunk, and other values are among
    these, but for the beginnings of long texts: nothing is known of what else the mechanism takes.
    """
    if not columns:
        return
    rows1, rows2 = records.rows1, records.rows2
    known: dict[Hashable, list[Any]] = {}

    def simpler(name: Hashable, value: Any) -> list[Any]:
        content = name, key(value)
        if content not in known:
            known[content] = simpler_values(value, columns[name].values())
        return known[content]

    now = {(name, key(v)): v for row in chain(rows1, rows2) for name, v in fields_of(row).items()}
    for (name, content), value in now.items():
        for new in simpler(name, value):
            yield _everywhere(rows1, name, content, new), _everywhere(rows2, name, content, new)
    shared1, shared2 = ({places[side] for places in records.common} for side in (0, 1))
    places = [*records.common]
    places += [(at, -1) for at in range(len(rows1)) if at not in shared1]
    places += [(-1, at) for at in range(len(rows2)) if at not in shared2]
    for at1, at2 in places:
        row = rows1[at1] if at1 >= 0 else rows2[at2]
        for name, value in fields_of(row).items():
            for new in simpler(name, value):
                simpler_row = with_field(row, name, new)
                yield _at(rows1, at1, simpler_row), _at(rows2, at2, simpler_row)


def _simpler_answers(rows1: list[Any], rows2: list[Any]) -> Iterator[Rows]:
    """With simpler numbers at all places where both agree; then with both answers moved at one."""
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
    """A few simpler values of the same type, the simplest first: none for the simplest.

    Numbers stay between the numbers among `seen`. Anything else becomes one of these, and long
    texts their beginnings as well.
    """
    if type(value) is str:
        texts = {v for v in seen if type(v) is str and (len(v), v) < (len(value), value)}
        if len(value) > LABEL:
            texts |= {value[: len(value) >> k] for k in range(1, len(value).bit_length())}
        return sorted(texts, key=lambda text: (len(text), text))[:DOZENS]
    if type(value) not in (int, float) or not _is_finite(value):
        return []
    numbers = [v for v in seen if type(v) in (int, float) and v == v]
    as_type = int if type(value) is int else as_float
    towards: list[float] = [*simpler_numbers(value), *sorted(numbers, key=_rank)[:DOZENS]]
    inside = {as_type(v) for v in towards if min(numbers) <= v <= max(numbers) and _is_finite(v)}
    return sorted((v for v in inside if _rank(v) < _rank(value)), key=_rank)


def simplest(values: Sequence[Any]) -> Any:
    """The simplest of some values: a number or a text if there is one, else the first."""
    numbers = [v for v in values if type(v) in (int, float) and _is_finite(v)]
    texts = [v for v in values if type(v) is str]
    if numbers:
        return min(numbers, key=_rank)
    return min(texts, key=lambda text: (len(text), text)) if texts else values[0]


def simpler_numbers(value: float) -> list[float]:
    """Numbers between it and 0, nearer and nearer to it; with fewer digits, or another sign."""
    whole = int(value)
    sign = 1 if whole > 0 else -1
    halved = [whole - sign * (abs(whole) >> k) for k in range(1, 12)]
    return [0, 1, *halved, whole - 1 if value > 0 else whole + 1, whole, -value, round(value, 1)]


def _rank(number: float) -> tuple[int, float, bool]:
    """Smaller for simpler numbers: whole ones come first, then by size, then by sign."""
    if not _is_finite(number):
        return (100, 0.0, number < 0)
    return (0 if number == int(number) else len(repr(number)), abs(number), number < 0)


def _is_finite(number: float) -> bool:
    """Also of integers that no float holds."""
    return isinstance(number, int) or math.isfinite(number)


def _everywhere(rows: Sequence[Any], name: Hashable, content: Hashable, new: Any) -> list[Any]:
    """Records with a value replaced in all that have it."""
    return [
        with_field(row, name, new)
        if any(n == name and key(v) == content for n, v in fields_of(row).items())
        else row
        for row in rows
    ]


def _at(rows: Sequence[Any], at: int, row: Any) -> list[Any]:
    """Records with the one at a place replaced; none is if that is below 0."""
    return [*rows[:at], row, *rows[at + 1 :]] if at >= 0 else list(rows)
