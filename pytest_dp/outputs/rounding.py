"""Values of features: numbers that are equal but for rounding, that recur, or that come alone.

The last digits of floats are no output of their own: ``0.1 + 0.2`` and ``0.3`` are one number to
whoever wrote the mechanism, and two doubles. Which of them comes out may depend on the input, and
so tell two inputs apart that the same mechanism over real numbers would not. Unless a claim asks
for that (``floating_point=True``), numbers count as equal up to a `Tolerance`. It is so small that
nothing else is lost: some errors of doubles, or of single precision if all numbers have that.
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
"""Relative error of single precision, or of a long sum. Larger misses small steps; smaller takes
rounding for steps."""
ROUNDINGS = 8
"""Operations whose rounding adds up. More miss small differences; fewer take rounding for one."""
MAX_SAMPLED = 2_000
"""Numbers that show how outputs are rounded. More take longer; fewer miss it."""
TIMES_USUAL = 4
"""Multiple of the usual count at which a value recurs. Larger misses such values; smaller: by
chance."""
MIN_COUNT = 5
"""Outputs that a recurring value has. Fewer may be chance; more: rare ones are missed."""
NEARLY_ALL = 0.9
"""Share of the outputs that are numbers, or different ones."""
MAX_SPECIAL = 64
"""Special values, and places, that are used. More learn noise by heart; fewer miss rare ones."""

DOUBLE, SINGLE = 2.0**-53, 2.0**-24
"""Relative errors of one operation, given by doubles and by single precision."""
_GOLDEN_SECTION = 0.3819660112501051
"""Where to cut between two numbers. Derived: on no grid that both numbers lie on."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A distance up to which numbers count as equal: a constant plus a share of their size."""

    constant: float = 0.0
    share: float = 0.0

    def at(self, numbers: Floats | float) -> Floats:
        """Return the distance for each number; 0 where the distance is not finite."""
        with np.errstate(invalid="ignore", over="ignore"):
            distance = self.constant + self.share * np.abs(numbers)
        return np.where(np.isfinite(distance), distance, 0.0)


EXACT = Tolerance()


def feature_tolerance(feature: Feature, table: Table) -> Tolerance:
    """Return the rounding tolerance of a feature's values; `EXACT` for exact values."""
    parts = feature.operands(table)
    if parts is None:
        return EXACT
    numbers, codes = feature.columns(table)
    return tolerance_of_numbers(numbers[codes == NUMBER], *parts)


def tolerance_of_numbers(numbers: Floats, *made_of: Floats) -> Tolerance:
    """Return the rounding tolerance of numbers, given arrays of their operands.

    `EXACT` for whole numbers, for fewer than two finite ones, and if all are 0.
    """
    finite = _finite_sample(numbers)
    if len(finite) < 2:
        return EXACT
    low, high = np.quantile(finite, (0.05, 0.95))
    if not high > low:
        low, high = finite.min(), finite.max()
    with np.errstate(over="ignore"):
        spread = float(high - low)
    parts = [finite, *map(_finite_sample, made_of)]
    size = max(map(_median_size, parts))
    if not 0 < size < np.inf or (_are_whole(finite) and _are_whole(numbers)):
        return EXACT
    if all(map(_are_single, parts)):
        error, of_spread = SINGLE, 2.0**-12
    else:
        error, of_spread = DOUBLE, SINGLE_ERRORS
    constant = max(ROUNDINGS * error * size, min(2.0**10 * error * size, of_spread * spread))
    return Tolerance(constant, ROUNDINGS * error)


def _finite_sample(numbers: Floats) -> Floats:
    """Return the finite ones of about `MAX_SAMPLED` evenly spaced numbers."""
    sample = numbers[:: max(1, len(numbers) // (MAX_SAMPLED))]
    return sample[np.isfinite(sample)]


def _median_size(numbers: Floats) -> float:
    """Return the median absolute value of the numbers other than 0; 0.0 without any."""
    sizes = np.abs(numbers[numbers != 0])
    return float(np.median(sizes)) if len(sizes) else 0.0


def _are_whole(numbers: Floats) -> bool:
    """Return whether all finite numbers are integers below `MAX_EXACT` in size."""
    with np.errstate(invalid="ignore"):
        is_integer = (numbers == np.round(numbers)) & (np.abs(numbers) < MAX_EXACT)
    return bool(np.all(is_integer | ~np.isfinite(numbers)))


def _are_single(numbers: Floats) -> bool:
    """Return whether numbers look like single precision; True for no numbers.

    Single precision has to hold all of them, with its last bit set in more than a fifth.
    """
    if not len(numbers):
        return True
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    if not np.array_equal(single, numbers):
        return False
    return bool(np.mean(single.view(np.uint32) & np.uint32(1)) > 0.2)


@dataclass(frozen=True, slots=True)
class Clusters:
    """A partition of numbers into clusters that are equal but for rounding, in increasing order."""

    values: Floats
    """The commonest number of each cluster, shape (k,)."""
    ends: Floats
    """The lowest and the highest number of each cluster, shape (2, k)."""

    @property
    def reach(self) -> Floats:
        """The distance from each value to the farther end of its cluster; 0 for infinities."""
        with np.errstate(invalid="ignore"):
            farthest = np.maximum(self.ends[1] - self.values, self.values - self.ends[0])
        return np.asarray(np.nan_to_num(farthest), np.float64)

    def index(self, numbers: Floats) -> Ints:
        """Return the index of the cluster that each number belongs to; -1 for none."""
        if not len(self.values):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self.ends[1], numbers), len(self.values) - 1)
        return np.where((numbers >= self.ends[0][at]) & (numbers <= self.ends[1][at]), at, -1)

    def replace_by_values(self, numbers: Floats) -> Floats:
        """Return the numbers, each in a cluster replaced by the cluster's value."""
        at = self.index(numbers)
        return np.where(at >= 0, self.values[at], numbers) if len(self.values) else numbers

    def part(self, which: Bools | Ints) -> Clusters:
        """Return some of the clusters, by a mask or by positions."""
        return Clusters(self.values[which], self.ends[:, which])


def cluster_numbers(values: Floats, counts: Ints, around: Tolerance) -> tuple[Clusters, Ints]:
    """Return clusters of different, increasing numbers, and the sum of `counts` in each.

    `counts` says how often each number came. Neighbours join a cluster if the sum of their
    tolerances by `around` spans their distance.
    """
    if around == EXACT or len(values) < 1:
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
    """Return a number above `low` and at most `high` for each pair, shape (k,)."""
    with np.errstate(all="ignore"):
        cut = low * (1 - _GOLDEN_SECTION) + high * _GOLDEN_SECTION
        return np.where((cut > low) & (cut <= high), cut, high)


Merging = tuple[tuple[str, Clusters], ...]
"""Places, and the clusters of the numbers there."""


def find_clusters(table: Table) -> Merging:
    """Return the clusters of the finite numbers at each place.

    None for extracts, and for outputs with more than `MAX_SPECIAL` places. Places without a
    rounding tolerance, or with a single number, are left out.
    """
    if table.is_extract or len(table.places) > MAX_SPECIAL:
        return ()
    by_place = []
    for place in table.places:
        numbers, codes = table.leaf(place)
        values, counts = np.unique(numbers[codes == NUMBER], return_counts=True)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        around = tolerance_of_numbers(np.repeat(values, counts))
        if len(values) < 2 or around == EXACT:
            continue
        near = cluster_numbers(values, counts, around)[0]
        by_place.append((place, near))
    return tuple(by_place)


def merge_clusters(table: Table, near: Merging) -> Table:
    """Return a table with the numbers of each cluster made equal; an extract, as it is."""
    if not near or table.is_extract:
        return table
    numbers = table.numbers.copy()
    for place, known in near:
        leaves = table.find_leaves(place)[1]
        numbers[leaves] = known.replace_by_values(numbers[leaves])
    return replace(table, numbers=numbers)


@dataclass(frozen=True, slots=True)
class WholeOutputs:
    """A set of whole outputs, recognised by their hashes."""

    known_hashes: tuple[int, ...]
    """The hashes, in increasing order."""
    near: Merging = field(default=(), compare=False)
    """Clusters of numbers that count as equal, by place."""
    typed: bool = True
    """Whether outputs that differ only in types of numbers or forms have different hashes."""

    ordered_count: ClassVar[int] = 0
    """How many of the `codes` stand in increasing order: none."""

    @classmethod
    def of_table(cls, table: Table, *, exact: bool = False) -> Self:
        """Return the set of all outputs of a table; with `exact`, rounding makes a difference."""
        near = () if exact else find_clusters(table)
        marks = np.unique(hashes(merge_clusters(table, near)))
        return cls(tuple(marks.tolist()), near, table.is_typed)

    @property
    def width(self) -> int:
        """The number of codes; the last code is for outputs that are not in the set."""
        return len(self.known_hashes) + 1

    def codes(self, table: Table) -> Ints:
        """Return the index of each output in the set, shape (n,); the set's size for all others."""
        found = hashes(merge_clusters(table, self.near), self.typed)
        at = np.searchsorted(self.known_hashes, found)
        same = np.append(self.known_hashes, 0)[at] == found
        return np.where(same & (at < len(self.known_hashes)), at, len(self.known_hashes))

    def mask(self, table: Table) -> Bools:
        """Return which outputs are in the set, shape (n,)."""
        return self.codes(table) < len(self.known_hashes)


def find_recurring(counts: Ints, share: float) -> Bools:
    """Return which values come more often than chance explains, by counts in order of value.

    Values that make up more than `share` of all outputs, in at least `MIN_COUNT`; and values that
    come `MIN_COUNT` times and more than `TIMES_USUAL` times as often as ten neighbours on either
    side.
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


def has_one_sided_value(numbers: Floats, codes: Ints, on_d: Bools, times: int) -> bool:
    """Return whether a special value came `times` times on one input, and never on the other.

    Numbers and codes are those of one place, shape (n,). NaN and categories are special, and so are
    numbers that recur where hardly any number does. False unless nearly all leaves are numbers.
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
