"""The space of inputs that a claim speaks of, and how to get from one of them to others.

Datasets are of the type of the examples, and made of records like theirs: some are dropped,
repeated, changed, or made of constants. Answers of queries are datasets of certain lengths, with
one column in which any number may stand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, cycle, islice
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, rebuilt, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import equality_key
from pytest_dp.data.fields import columns_of, fields_of, with_known
from pytest_dp.data.ordering import distinct
from pytest_dp.data.relations import Relation
from pytest_dp.declaration import Queries
from pytest_dp.proposers.columns import MOVES, any_of, choice, column_of, described
from pytest_dp.proposers.constants import Constant

LONG_DATASET = 300
"""Records of a dataset that is proposed, at most. Longer ones reach more, and make runs slower."""
COPIES = (2, 3, 10)
"""How often a record is repeated. More reach more, and make runs slower."""
MAX_REPEATED = 8
"""Records of the examples that are repeated. More share the search; fewer may miss the one that
leaks."""
MAX_MUTATIONS = 8
"""Mutations of an input at a time, at most one less. More: inputs are far off; fewer: several
conditions are not met."""
ATTEMPTS = 3
"""Attempts to mutate a record within what examples have in common. More take longer; fewer leave
it as it is."""

Records = list[Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input that may be proposed, and where it comes from."""

    data: Any
    origin: str = "a mutation of another input"
    """``"a constant in stats.py:14"``."""
    value: Any = None
    """What was put into it, if that is a single number or string."""

    def origin_of(self, d1: Any, d2: Any) -> str:
        """Where a pair of neighbours around the input comes from."""
        if self.value is None:
            return f"D is {self.origin}, or next to it"
        holder = next((name for name, d in (("D", d1), ("D'", d2)) if _holds(d, self.value)), "")
        return f"{holder or 'the search'} {'holds' if holder else 'tried'} {self.origin}"


@dataclass(frozen=True, slots=True)
class Walk:
    """So many inputs, each a neighbour of the next, which are made as they are needed."""

    inputs: int
    at: Callable[[int], Any]


class Space:
    """Inputs like the examples of a claim, at least one of which has a record.

    `records` is what datasets are made of, in the form of `records_of`.
    """

    def __init__(self, examples: Sequence[Any], relation: Relation) -> None:
        datasets = sorted(map(records_of, examples), key=len)
        self._relation, self._like = relation, max(examples, key=length)
        free = relation.of is Queries
        self.records = list(distinct(chain(*datasets)))
        cells = columns_of(self.records)
        self._columns = {at: column_of(list(cells[at].values()), free=free) for at in cells}
        self._names = list(self._columns)
        # Where records are only replaced, the mechanism may rely on their number.
        self._lengths: Sequence[int] | None = None
        if free:
            self._lengths = sorted(set(map(len, datasets)))
        elif relation.name.startswith("replace"):
            self._lengths = range(len(datasets[0]), len(datasets[-1]) + 1)
        self._bases = [[0] * n for n in self._lengths or ()] if free else datasets[-1:]
        """Inputs into which constants are put."""

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:
        """Corner cases, at which any code may go wrong: some with these values.

        No record, one, many of the same, all with the same value at one place, and extremes.
        """
        base = self._bases[-1]
        yield from self._far_everywhere(base)
        yield from self._alike(base)
        for at, column in self._columns.items():
            for value in column.far():
                origin = f"{value!r}, far outside of the examples", value
                yield from self._holding(base, at, value, origin)
        for constant in values:
            for base in self._bases:
                for at, column in self._columns.items():
                    for value in column.beside(constant)[:1]:
                        origin = described(value, constant)
                        yield from self._made([*base, with_known(base[-1], at, value)], *origin)
                        yield from self._made(_all_changed(base, at, value), *origin)

    def _far_everywhere(self, base: Records) -> Iterator[Candidate]:
        """A record with a number far outside in each column: of wide tables, few are looked at."""
        far = {at: column.far() for at, column in self._columns.items() if column.far()}
        for end in (0, 1) if len(far) > 1 else ():
            record = base[-1]
            for at, values in far.items():
                record = with_known(record, at, values[end])
            origin = "numbers far outside of the examples"
            yield from self._made([*base, record], origin)
            yield from self._made([*base[:-1], record], origin)

    def _alike(self, base: Records) -> Iterator[Candidate]:
        """Corner cases without constants: datasets of equal records, or of records with a value."""
        records = self.records[:MAX_REPEATED]
        for times in (0, 1, *COPIES):
            for record in records if times else records[:1]:
                text = "repeated" if times > 1 else "all of it" if times else "left out"
                yield from self._made([record] * times, f"one record {text}")
        for times in COPIES:
            yield from self._made([*base, *records[:1] * times], "records that repeat")
        if None not in self._columns:
            for at in self._names:
                for record in records[:2]:
                    same = _all_changed(base, at, fields_of(record).get(at))
                    yield from self._made(same, "records that share a value")
        for at, column in self._columns.items():
            for end in (column.values[0], column.values[-1]):
                yield from self._made(_all_changed(base, at, end), "records with the same value")

    def placed(self, constant: Constant) -> Iterator[Candidate]:
        """Datasets with a constant, or a value beside it, in a record, in all, or as their sum.

        Or as their length.
        """
        for base in self._bases:
            for at, column in self._columns.items():
                for value in column.beside(constant):
                    yield from self._holding(base, at, value, described(value, constant))
        value = constant.value
        if isinstance(value, int) and 0 < value <= LONG_DATASET:
            for long in (value, value + 1):
                records = list(islice(cycle(self._bases[-1]), long))
                yield from self._made(records, f"{long} records: {described(value, constant)[0]}")

    def _holding(
        self, base: Records, at: Hashable, value: Any, origin: tuple[str, Any]
    ) -> Iterator[Candidate]:
        """Datasets with a value in one column of a record, of several, of all; or as their sum."""
        record = with_known(base[-1], at, value)
        yield from self._made([*base, record], *origin)
        yield from self._made([record], *origin)
        yield from self._made([with_known(base[0], at, value), *base[1:]], *origin)
        yield from self._made(_all_changed(base, at, value), *origin)
        for times in COPIES[1:]:
            yield from self._made([*base, *[record] * times], *origin)
        shares = self._columns[at].summing(value, len(base))
        if shares:
            records = [with_known(r, at, share) for r, share in zip(base, shares, strict=True)]
            yield from self._made(records, f"a dataset with the sum {value!r}")

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:
        """An input with several constants."""
        candidate = Candidate(rebuilt(self._like, choice(self._bases, rng)))
        for _ in range(int(rng.integers(1, MAX_MUTATIONS))):
            records = records_of(candidate.data)
            made = self._with_constant(records, constants, rng) if records else iter(())
            candidate = next(made, candidate)
        return candidate

    def inserted(
        self, data: Any, constant: Constant, rng: np.random.Generator
    ) -> Iterator[Candidate]:
        """The input with a constant in a half of its records, and in the others; or in one more."""
        records = records_of(data)
        for at, column in self._columns.items() if records else ():
            for value in column.beside(constant)[::2]:  # and the one above
                origin = described(value, constant)
                for _ in range(ATTEMPTS):
                    half = rng.random(len(records)) < 0.5
                    for places in (half, ~half):
                        yield from self._made(_changed(records, places, at, value), *origin)
                one = with_known(choice(records, rng), at, value)
                yield from self._made([*records, one], *origin)

    def mutated(
        self, data: Any, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        """An input with something changed; what cannot be stays as it is."""
        records = records_of(data)
        at, place = int(rng.integers(len(records) or 1)), choice(self._names, rng)
        column = self._columns[place]
        # The length of answers of queries stays as it is.
        match int(rng.integers(4 * column.free, 9)) if records else 0:
            case 0:
                records.append(choice(self.records, rng))
            case 1:
                del records[at]
            case 2 if len(records) < LONG_DATASET:
                records += [choice(records, rng)] * choice((1, *COPIES), rng)
            case 3:
                records = [record for record in records if rng.random() < 0.5]
            case 4:
                return next(self._with_constant(records, constants, rng), Candidate(data))
            case 5:
                value = fields_of(choice(records, rng)).get(place)
                records[at] = with_known(records[at], place, value)
            case 6 if column.free:
                step = choice(MOVES, rng)
                records = [answer + step for answer in records]
            case _:
                value = column.mutated(fields_of(records[at]).get(place), rng)
                records[at] = with_known(records[at], place, value)
        return next(self._made(records), Candidate(data))

    def _with_constant(
        self, records: Records, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Iterator[Candidate]:
        """With a constant in one record more, in one of them, or in a random half."""
        place, constant = choice(self._names, rng), choice(constants, rng)
        value = any_of(self._columns[place].beside(constant), rng)
        if value is None:
            return
        origin = described(value, constant)
        if self._lengths is None and rng.random() < 0.5:
            yield from self._made(
                [*records, with_known(choice(records, rng), place, value)], *origin
            )
            return
        # What the other records hold may matter just as well.
        in_half = rng.random() < 0.5
        n = len(records)
        places = rng.random(n) < 0.5 if in_half else rng.permutation(n) == 0
        yield from self._made(_changed(records, places, place, value), *origin)

    def walk(self, start: Any, end: Any) -> Walk | None:
        """From one input to another through neighbours; None if no way is known.

        Records are removed and added, or replaced, one by one; answers move by 1.
        """
        before, after = records_of(start), records_of(end)
        if self._relation.of is Queries:
            return _moving(before, after)
        if self._relation.name == "replace_one" and len(before) == len(after):
            changed = [i for i, record in enumerate(before) if key(record) != key(after[i])]
            steps = [before, *([*after[: i + 1], *before[i + 1 :]] for i in changed)]
        elif self._relation.name == "add_remove_one":
            steps = _removing_and_adding(before, after)
        else:
            return None
        return Walk(len(steps), lambda step: rebuilt(self._like, steps[step]))

    def _made(self, records: Records, origin: str = "", value: Any = None) -> Iterator[Candidate]:
        """A candidate with these records, if there can be such a dataset."""
        if self._lengths is not None and len(records) not in self._lengths:
            return
        try:
            data = rebuilt(self._like, records)
        except ClaimError:  # such as 6.5 in a column of whole numbers
            return
        yield Candidate(data, origin, value) if origin else Candidate(data)


def _changed(records: Records, places: Iterable[bool], at: Hashable, value: Any) -> Records:
    """Records with a value in one column of some of them."""
    return [
        with_known(record, at, value) if here else record
        for record, here in zip(records, places, strict=True)
    ]


def _all_changed(records: Records, at: Hashable, value: Any) -> Records:
    return _changed(records, [True] * len(records), at, value)


def _moving(start: Records, end: Records) -> Walk | None:
    """From one vector to another in steps of 1, answer by answer."""
    if len(start) != len(end):
        return None
    steps = [math.ceil(abs(b - a)) for a, b in zip(start, end, strict=True)]
    done = [0, *accumulate(steps)]

    def after(step: int) -> Records:
        return [
            b if step >= since + most else a + max(step - since, 0) * (1 if b > a else -1)
            for a, b, most, since in zip(start, end, steps, done, strict=False)
        ]

    return Walk(done[-1] + 1, after)


def _removing_and_adding(before: Records, after: Records) -> list[Records]:
    """Datasets in a row: records are removed that are too many, then missing ones are added."""
    removed, added = _without(before, after), _without(after[::-1], before)[::-1]
    shared = _without(before, removed)
    removing = [[*removed[i:], *shared] for i in range(len(removed) + 1)]
    return [*removing, *([*shared, *added[: i + 1]] for i in range(len(added)))]


def _without(records: Records, others: Records) -> Records:
    """The records that are left once each of the others has taken an equal one away."""
    taken, left = Counter(map(key, others)), []
    for record in records:
        if taken[key(record)] > 0:
            taken[key(record)] -= 1
        else:
            left.append(record)
    return left


def _holds(data: Any, value: Any) -> bool:
    records = records_of(data)
    values = chain.from_iterable(fields_of(record).values() for record in records)
    return equality_key(value) in set(map(equality_key, values))
