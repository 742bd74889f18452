"""Smaller pairs of neighbouring inputs that still break a claim.

Fewer records come first, then simpler ones, as in delta debugging; a smaller pair is taken if it
breaks the claim on new samples.

Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any

from pytest_dp.basics.reprs import LABEL_LENGTH
from pytest_dp.data import key, rebuild, records_of
from pytest_dp.data.fields import align_records, columns_of, fields_of, with_known
from pytest_dp.data.relations import AddRemoveOne, OfRecords, Pair, Relation
from pytest_dp.declaration import Queries
from pytest_dp.outputs.leaves import as_float
from pytest_dp.running.deadline import OutOfTime

MAX_SIMPLER = 24
"""Simpler values of a field that are tried. With fewer, values stay."""

Breaks = Callable[[Pair], bool]
Columns = dict[Hashable, dict[Hashable, Any]]
"""Values by the name, or the place, of a field, and by their content."""


@dataclass(frozen=True, slots=True)
class PairRecords:
    """The records of a pair: those of D, then those of D'."""

    rows: tuple[Any, ...]
    of_d1: int
    """How many of them are those of D."""
    common: tuple[tuple[int, ...], ...]
    """Positions of records that both have, in D and in D'."""

    @classmethod
    def of(cls, pair: Pair) -> PairRecords:
        """Return the records of a pair; equal records of D and D' are one, from the front."""
        rows1, rows2 = records_of(pair.d1), records_of(pair.d2)
        common = tuple((at1, len(rows1) + at2) for at1, at2 in align_records(rows1, rows2))
        return cls((*rows1, *rows2), len(rows1), common)

    @property
    def records(self) -> list[tuple[int, ...]]:
        """The positions of each record: two if both D and D' have it."""
        shared = set(chain.from_iterable(self.common))
        return [*self.common, *((at,) for at in range(len(self.rows)) if at not in shared)]

    def without(self, left_out: Sequence[tuple[int, ...]]) -> PairRecords:
        """Return the records without those at these positions."""
        gone = set(chain.from_iterable(left_out))
        kept = [at for at in range(len(self.rows)) if at not in gone]
        of_d1 = sum(at < self.of_d1 for at in kept)
        return PairRecords(tuple(self.rows[at] for at in kept), of_d1, ())

    def with_rows(self, new: Mapping[int, Any]) -> PairRecords:
        """Return the records with `new` records, by their positions."""
        return replace(self, rows=tuple(new.get(at, row) for at, row in enumerate(self.rows)))

    def with_values(self, values: Mapping[Hashable, Any], places: Iterable[int]) -> PairRecords:
        """Return the records with other values, by field, in the records at some positions."""

        def held(row: Any) -> Any:
            return reduce(lambda made, field: with_known(made, *field), values.items(), row)

        return self.with_rows({at: held(self.rows[at]) for at in places})

    def pair(self, like: Pair, relation: Relation) -> Pair | None:
        """Return the records as a pair like a given one; None if they make no neighbours.

        None also if a dataset of this type cannot hold them.
        """
        try:
            d1 = rebuild(like.d1, self.rows[: self.of_d1])
            d2 = rebuild(like.d2, self.rows[self.of_d1 :])
        except (TypeError, ValueError, OverflowError):  # such as 0 in a column of dates
            return None
        if relation.of is Queries and may_be_counts(like.d1, like.d2) and not may_be_counts(d1, d2):
            return None
        made = relation.pair(d1, d2)
        return made and replace(made, params=like.params, origin=like.origin, beyond=like.beyond)


def shrink_records(pair: Pair, relation: Relation, breaks: Breaks, *, mixes: bool = True) -> Pair:
    """Call `breaks` on ever smaller pairs; return the smallest that breaks the claim, or `pair`.

    Records are left out and simplified. If ``breaks(pair)`` raises OutOfTime, the search ends.
    `mixes` is whether records of several fields may become records that no dataset holds; then
    whole columns get one value first.
    """
    seen: set[Hashable] = set()
    columns: Columns = {}
    if isinstance(relation, OfRecords):
        columns = columns_of(PairRecords.of(pair).rows)
    if not mixes and len(columns) > 1:
        columns = {}
    with suppress(OutOfTime):
        while True:
            for records in _smaller_records(PairRecords.of(pair), relation, columns):
                smaller = records.pair(pair, relation)
                content = smaller and (key(smaller.d1), key(smaller.d2))
                if smaller is not None and content not in seen:
                    seen.add(content)
                    if breaks(smaller):
                        pair = smaller
                        break
            else:
                break
    return pair


def _smaller_records(
    records: PairRecords, relation: Relation, columns: Columns
) -> Iterator[PairRecords]:
    """Yield smaller records, much smaller ones first; nothing for other relations than of records.

    Answers of queries become simpler, too.
    """
    if relation.of is Queries:  # the order matters, and the length is part of the claim
        yield from _simpler_answers(records)
    if not isinstance(relation, OfRecords):
        return
    if isinstance(relation, AddRemoveOne):
        # Where records are only replaced, the mechanism may rely on their number.
        yield from map(records.without, _halves(records.common))
    if columns:
        yield from _with_constant_columns(records, columns)
        yield from _with_simpler_values(records, columns)


def may_be_counts(*vectors: Any) -> bool:
    """Return whether vectors may be answers of counting queries: whether none is negative."""
    return all(answer >= 0 for vector in vectors for answer in records_of(vector))


def _halves(things: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield all things, each half, each quarter, ..., each single thing."""
    size = len(things)
    while size >= 1:
        yield from (tuple(things[at : at + size]) for at in range(0, len(things), size))
        size //= 2


def _with_constant_columns(records: PairRecords, columns: Columns) -> Iterator[PairRecords]:
    """Yield records with one value in all varying fields, in half of these, ..., in one."""
    now = columns_of(records.rows) if len(columns) > 1 else {}
    for names in _halves([name for name, values in now.items() if len(values) > 1]):
        new = {name: simplest_value(list(columns[name].values())) for name in names}
        yield records.with_values(new, range(len(records.rows)))


def _with_simpler_values(records: PairRecords, columns: Columns) -> Iterator[PairRecords]:
    """Yield records with a value simplified wherever it occurs, then in one record at a time.

    Numbers stay between those that the pair held before it was shrunk, and other values are among
    these, but for the beginnings of long texts: nothing is known of what else the mechanism takes.
    """
    cells: dict[tuple[Hashable, Hashable], tuple[Any, list[int]]] = {}
    for at, row in enumerate(records.rows):
        for name, value in fields_of(row).items():
            cells.setdefault((name, key(value)), (value, []))[1].append(at)
    everywhere = ((name, value, places) for (name, _), (value, places) in cells.items())
    each = (
        (name, value, places)
        for places in records.records
        for name, value in fields_of(records.rows[places[0]]).items()
    )
    known: dict[tuple[Hashable, Hashable], list[Any]] = {}
    for name, value, places in chain(everywhere, each):
        content = name, key(value)
        if content not in known:
            known[content] = simpler_values(value, columns[name].values())
        for new in known[content]:
            yield records.with_values({name: new}, places)


def _simpler_answers(records: PairRecords) -> Iterator[PairRecords]:
    """Yield records with simpler equal answers, then with both answers moved at one place."""
    rows, n = records.rows, records.of_d1
    agree = [at for at in range(n) if rows[at] == rows[n + at]]
    for same in (0, 1):
        if any(_rank(same) < _rank(rows[at]) for at in agree):
            both = (*agree, *(n + at for at in agree))
            yield records.with_rows({at: type(rows[at])(same) for at in both})
    for at in range(n):
        a, b = rows[at], rows[n + at]
        for new in sorted(set(simpler_numbers(a)), key=_rank):
            if _rank(new) < _rank(a):
                yield records.with_rows({at: type(a)(new), n + at: type(b)(new + (b - a))})


def simpler_values(value: Any, seen: Collection[Any]) -> list[Any]:
    """Return a few simpler values of the type of one, the simplest first; empty for the simplest.

    Numbers stay between the numbers among `seen`. Texts become shorter ones among `seen`, and long
    texts their beginnings as well. Values of other types stay.
    """
    if type(value) is str:
        texts = {v for v in seen if type(v) is str and (len(v), v) < (len(value), value)}
        if len(value) > LABEL_LENGTH:
            texts |= {value[: len(value) >> k] for k in range(1, len(value).bit_length())}
        return sorted(texts, key=lambda text: (len(text), text))[:MAX_SIMPLER]
    if type(value) not in (int, float) or not _is_finite(value):
        return []
    numbers = [v for v in seen if type(v) in (int, float) and v == v]
    as_type = int if type(value) is int else as_float
    towards: list[float] = [*simpler_numbers(value), *sorted(numbers, key=_rank)[:MAX_SIMPLER]]
    inside = {as_type(v) for v in towards if min(numbers) <= v <= max(numbers) and _is_finite(v)}
    return sorted((v for v in inside if _rank(v) < _rank(value)), key=_rank)


def simplest_value(values: Sequence[Any]) -> Any:
    """Return the simplest number among the values, else the shortest text, else the first."""
    numbers = [v for v in values if type(v) in (int, float) and _is_finite(v)]
    texts = [v for v in values if type(v) is str]
    if numbers:
        return min(numbers, key=_rank)
    return min(texts, key=lambda text: (len(text), text)) if texts else values[0]


def simpler_numbers(value: float) -> list[float]:
    """Return numbers that may be simpler: nearer to 0, with fewer digits, of the other sign."""
    whole = int(value)
    sign = 1 if whole > 0 else -1
    halved = [whole - sign * (abs(whole) >> k) for k in range(1, 12)]
    return [0, 1, *halved, whole - 1 if value > 0 else whole + 1, whole, -value, round(value, 1)]


def _rank(number: float) -> tuple[int, float, bool]:
    """Return a key by which simpler numbers come first: whole ones, then small, then positive."""
    if not _is_finite(number):
        return (100, 0.0, number < 0)
    return (0 if number == int(number) else len(repr(number)), abs(number), number < 0)


def _is_finite(number: float) -> bool:
    """Return whether a number is finite, also for integers that no float holds."""
    return isinstance(number, int) or math.isfinite(number)
