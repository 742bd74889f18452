"""Values of features: numbers that are equal but for rounding, that recur, or that come alone.

The last digits of floats are no output of their own: ``0.1 + 0.2`` and ``0.3`` are one number to
whoever wrote the mechanism, and two doubles. Which of them comes out may depend on the input, and
so tell two inputs apart that the same mechanism over real numbers would not. Unless a claim asks
for that (``floating_point=True``), numbers count as equal up to `Room`. It is so small that nothing
else is lost: some errors of doubles, or of single precision where all numbers come from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.leaves import MAX_EXACT, NUMBER
from pytest_dp.outputs.table import Table, hashes

SINGLE_ERRORS = 2.0**-20
"""Relative error of single precision, or of a long sum. Larger: small steps are missed; smaller:
rounding makes steps."""
ROUNDINGS = 8
"""Operations whose rounding adds up. More: small differences are missed; fewer: rounding makes
one."""
MAX_SAMPLED = 2_000
"""Numbers that show how outputs are rounded. More take longer; fewer miss it."""
TIMES_USUAL = 4
"""Multiple of the usual count at which a value recurs. Larger: recurring values are missed;
smaller: chance makes one."""
MIN_COUNT = 5
"""Outputs that a recurring value has. Fewer may be chance; more: rare ones are missed."""
NEARLY_ALL = 0.9
"""Share of the outputs that are numbers, or different ones. Larger and smaller: hardly any
difference."""
MAX_SPECIAL = 64
"""Values that are special, and places of outputs that are looked at. More learn noise by heart;
fewer miss rare ones."""

DOUBLE, SINGLE = 2.0**-53, 2.0**-24
"""Relative errors of one operation, given by doubles and by single precision."""
_GOLDEN_SECTION = 0.3819660112501051
"""Where to cut between two numbers. Derived: the golden section is on no grid that both lie on."""


@dataclass(frozen=True, slots=True)
class Room:
    """The distance up to which numbers are equal: a constant, and a share of their size."""

    plain: float = 0.0
    share: float = 0.0

    def at(self, numbers: Floats | float) -> Floats:
        """Return the distance for each number."""
        with np.errstate(invalid="ignore", over="ignore"):
            distance = self.plain + self.share * np.abs(numbers)
        return np.where(np.isfinite(distance), distance, 0.0)


NO_ROOM = Room()


def room(feature: Feature, table: Table) -> Room:
    """Return the distance up to which two values of a feature are equal but for rounding."""
    parts = feature.parts(table)
    if parts is None:
        return NO_ROOM
    numbers, codes = feature.columns(table)
    return tolerance_of(numbers[codes == NUMBER], *parts)


def tolerance_of(numbers: Floats, *made_of: Floats) -> Room:
    """Return the rounding tolerance of numbers, given their operands."""
    finite = _finite_sample(numbers)
    if len(finite) < 2:
        return NO_ROOM
    low, high = np.quantile(finite, (0.05, 0.95))
    if not high > low:
        low, high = finite.min(), finite.max()
    with np.errstate(over="ignore"):
        spread = float(high - low)
    parts = [finite, *map(_finite_sample, made_of)]
    size = max(map(_size, parts))
    if not 0 < size < np.inf or (_are_whole(finite) and _are_whole(numbers)):
        return NO_ROOM
    if all(map(_are_single, parts)):
        error, of_spread = SINGLE, 2.0**-12
    else:
        error, of_spread = DOUBLE, SINGLE_ERRORS
    plain = max(ROUNDINGS * error * size, min(2.0**10 * error * size, of_spread * spread))
    return Room(plain, ROUNDINGS * error)


def _finite_sample(numbers: Floats) -> Floats:
    sample = numbers[:: max(1, len(numbers) // (MAX_SAMPLED))]
    return sample[np.isfinite(sample)]


def _size(numbers: Floats) -> float:
    """Return the median size of numbers that are not 0."""
    sizes = np.abs(numbers[numbers != 0])
    return float(np.median(sizes)) if len(sizes) else 0.0


def _are_whole(numbers: Floats) -> bool:
    """Return whether all numbers are integers, and small enough to be exact."""
    with np.errstate(invalid="ignore"):
        is_integer = (numbers == np.round(numbers)) & (np.abs(numbers) < MAX_EXACT)
    return bool(np.all(is_integer | ~np.isfinite(numbers)))


def _are_single(numbers: Floats) -> bool:
    """Return whether numbers were computed in single precision: their last digits are in use."""
    if not len(numbers):
        return True
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    if not np.array_equal(single, numbers):
        return False
    return bool(np.mean(single.view(np.uint32) & np.uint32(1)) > 0.2)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Values that are equal but for rounding, as one each, in increasing order."""

    values: Floats
    """One of each."""
    ends: Floats
    """The smallest and the largest number that counts as equal, shape (2, k)."""

    @property
    def reach(self) -> Floats:
        """How far from each value the farthest number is that counts as equal."""
        with np.errstate(invalid="ignore"):
            farthest = np.maximum(self.ends[1] - self.values, self.values - self.ends[0])
        return np.asarray(np.nan_to_num(farthest), np.float64)  # of infinities

    def index(self, numbers: Floats) -> Ints:
        """Return the position of the value that each number equals; -1 if there is none."""
        if not len(self.values):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self.ends[1], numbers), len(self.values) - 1)
        return np.where((numbers >= self.ends[0][at]) & (numbers <= self.ends[1][at]), at, -1)

    def merged(self, numbers: Floats) -> Floats:
        """Return numbers, each replaced by the value that it equals up to rounding, if any."""
        at = self.index(numbers)
        return np.where(at >= 0, self.values[at], numbers) if len(self.values) else numbers

    def part(self, which: Bools | Ints) -> Clusters:
        return Clusters(self.values[which], self.ends[:, which])


def clusters(values: Floats, counts: Ints, around: Room) -> tuple[Clusters, Ints]:
    """Return clusters of different values, given in increasing order, and their counts."""
    if around == NO_ROOM or len(values) < 1:
        return Clusters(values, np.stack([values, values])), counts
    with np.errstate(invalid="ignore"):
        reach = around.at(values)
        apart = np.diff(values) > reach[1:] + reach[:-1]
    starts = np.flatnonzero(np.concatenate([[True], apart]))
    stops = np.append(starts[1:], len(values)) - 1
    totals = np.add.reduceat(counts, starts)
    if len(starts) == len(values):
        names = values
    else:  # the commonest, as it is the one that is written
        order = np.lexsort((-counts, np.cumsum(np.concatenate([[0], apart]))))
        names = values[order[starts]]
    ends = np.stack([values[starts], values[stops]])
    with np.errstate(over="ignore"):
        ends = ends + np.stack([-around.at(ends[0]), around.at(ends[1])])
    return Clusters(names, ends), totals


def separating_number(low: Floats, high: Floats) -> Floats:
    """Return a number above `low`, and at most `high`."""
    with np.errstate(all="ignore"):
        cut = low * (1 - _GOLDEN_SECTION) + high * _GOLDEN_SECTION
        return np.where((cut > low) & (cut <= high), cut, high)


Merging = tuple[tuple[str, Clusters], ...]
"""What is equal but for rounding, by place."""


def find_clusters(table: Table) -> Merging:
    """Find clusters of numbers that are equal but for rounding, at each place of the outputs."""
    if table.is_extract or len(table.places) > MAX_SPECIAL:
        return ()
    by_place = []
    for place in table.places:
        numbers, codes = table.leaf(place)
        values, counts = np.unique(numbers[codes == NUMBER], return_counts=True)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        around = tolerance_of(np.repeat(values, counts))
        if len(values) < 2 or around == NO_ROOM:
            continue
        near = clusters(values, counts, around)[0]
        by_place.append((place, near))
    return tuple(by_place)


def merge_clusters(table: Table, near: Merging) -> Table:
    """Return a table in which numbers that are equal but for rounding are the same."""
    if not near or table.is_extract:
        return table
    numbers = table.numbers.copy()
    for place, known in near:
        leaves = table.having(place)[1]
        numbers[leaves] = known.merged(numbers[leaves])
    return replace(table, numbers=numbers)


@dataclass(frozen=True, slots=True)
class WholeOutputs:
    """Some whole outputs, told by their hashes."""

    marks: tuple[int, ...]
    """In increasing order."""
    near: Merging = field(default=(), compare=False)
    """What is equal but for rounding."""
    typed: bool = True
    """Whether types of numbers and forms tell them apart; see `Table.is_typed`."""

    ordered: ClassVar[int] = 0
    """How many of the `codes` stand in increasing order: none."""

    @classmethod
    def of(cls, table: Table, *, exact: bool = False) -> Self:
        """Return all outputs of a table; `exact` as in `Feature`."""
        near = () if exact else find_clusters(table)
        marks = np.unique(hashes(merge_clusters(table, near)))
        return cls(tuple(marks.tolist()), near, table.is_typed)

    @property
    def width(self) -> int:
        """How many codes there are; the last one is for any other output."""
        return len(self.marks) + 1

    def codes(self, table: Table) -> Ints:
        """Return the position of each output among these, shape (n,); their count for others."""
        found = hashes(merge_clusters(table, self.near), self.typed)
        at = np.searchsorted(self.marks, found)
        same = np.append(self.marks, 0)[at] == found
        return np.where(same & (at < len(self.marks)), at, len(self.marks))

    def mask(self, table: Table) -> Bools:
        """Return which outputs are among these, shape (n,)."""
        return self.codes(table) < len(self.marks)


def find_recurring(counts: Ints, share: float) -> Bools:
    """Return which values come more often than chance explains; counts are in order of value.

    Those are values that make up more than a share of all outputs, and among continuous ones any
    that comes five times, and more than four times as often as its neighbours.
    """
    often: Bools = counts > max(MIN_COUNT - 1, share * counts.sum())
    candidates = np.flatnonzero(~often & (counts >= MIN_COUNT))
    if len(candidates) and len(counts) > 2 * 10:
        sums = np.concatenate([[0], np.cumsum(counts)])
        means = []
        for low, high in ((-10, 0), (1, 10 + 1)):
            ends = [np.clip(candidates + end, 0, len(counts)) for end in (low, high)]
            means.append((sums[ends[1]] - sums[ends[0]]) / np.maximum(ends[1] - ends[0], 1))
        usual = np.maximum(np.minimum(*means), 1.0)  # a neighbour may itself come often
        often[candidates] = counts[candidates] > TIMES_USUAL * usual
    return often


def comes_alone(numbers: Floats, codes: Ints, on_d: Bools, times: int) -> bool:
    """Return whether a special value came `times` times on one input, and never on the other.

    Special are a number that recurs where hardly any others do, and NaN and any category where most
    are numbers.
    """
    missing = np.isnan(numbers) & (codes == NUMBER)
    is_number = (codes == NUMBER) & ~missing
    if is_number.mean() < NEARLY_ALL:
        return False
    special = [
        missing,
        *(codes == code for code in np.unique(codes[codes != NUMBER])[:MAX_SPECIAL]),
    ]
    for side in (on_d, ~on_d):  # outputs on both may share their noise, and be equal
        values, counts = np.unique(numbers[is_number & side], return_counts=True)
        if len(values) > NEARLY_ALL * (is_number & side).sum():
            recur = values[counts >= times]
            special += [numbers == value for value in recur[:MAX_SPECIAL]]
    for mask in special:
        c1, c2 = int(np.sum(mask & on_d)), int(np.sum(mask & ~on_d))
        if min(c1, c2) == 0 and max(c1, c2) >= times:
            return True
    return False
