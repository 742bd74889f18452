"""StatDP's event families: every event worth a look for two sets of outputs, with its counts.

The five families of the paper (categories or numbers, of fixed or variable length, and mixtures)
come out of one rule: speak about every quantity that these outputs have (`features`), and, where
outputs mix categories and numbers, also about numbers among the outputs of one category pattern.
Events are looked for on samples that are never used to test them, so this may be as heuristic as
it likes. Thresholds are rounded here, before any test, so that they are easy to read.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
section 4.4 (Algorithm 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.outputs.columns import ABSENT, NUMBER
from pytest_dp.outputs.events import (
    Between,
    Condition,
    Equals,
    Event,
    Is,
    IsNumber,
    Leaf,
    OneOf,
    Pattern,
)
from pytest_dp.outputs.features import Feature, features
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.quantities import recurring
from pytest_dp.outputs.readings import Reading
from pytest_dp.outputs.rounding import NONE, Merging, Room, clusters, merged, merging, room
from pytest_dp.outputs.table import Table
from pytest_dp.reprs import shown

Rank = Callable[[Ints, Ints], Floats]
"""``rank(c1, c2)``: how promising events with these counts are; higher is better."""

LEVELS = np.array([0.002, 0.005, 0.01, *np.linspace(0.02, 0.98, 49), 0.99, 0.995, 0.998])
"""Quantiles at which thresholds are placed."""
MOST_ATOMS = 48
CONSTANT = frozenset({"relation", "remainder"})
"""Kinds that take few values: single ones are what a person would speak of."""
MOST_PATTERNS = 256
MOST_IN_A_SET = 5
RARE = 0.01
"""Share of outputs below which a single value is rare."""
MOST_CONTEXTS = 6
COST = {"form": 0.3, "interval": 0.5, "set": 0.5, "conjunction": 1.0}
"""What an event that is harder to read must be better by, in units of rank."""


@dataclass(frozen=True, slots=True)
class Found:
    """An event, its counts on the samples it was found on, and its rank."""

    event: Event
    c1: int
    c2: int
    rank: float


@dataclass(frozen=True, slots=True)
class _Block:
    """Many events of one kind: counts on either side, and how to build the k-th."""

    c1: Ints
    c2: Ints
    build: Callable[[int], Condition]
    cost: float | Floats = 0.0
    is_single: bool = False
    """Whether each event is a single value or category of a feature."""


def search(
    table: Table,
    first: Bools,
    rank: Rank,
    references: list[Any],
    most: int = 8,
    about: list[Feature] | None = None,
    *,
    rare: bool = False,
) -> list[Found]:
    """The most promising events that tell the outputs in `first` from the others.

    Parameters
    ----------
    table : Table
        Outputs of both inputs.
    first : ndarray of bool, shape (n,)
        Which of them are outputs on the first input.
    rank : callable
    references : list
        Noiseless answers.
    most : int
        How many to return, best first.
    about : list of Feature, optional
        The quantities to speak about; by default those of `features`.
    rare : bool
        Whether to add, for either input, the rare value or category that speaks most for it: a
        value that is released once in a thousand runs tells everything, but not yet.
    """
    about = features(table, references, first) if about is None else about
    exact = any(feature.exact for feature in about)
    blocks = _whole(table, first, exact)  # of equals, what comes first wins: the easiest to read
    blocks += [block for feature in about for block in _about(feature, table, first)]
    found = _best(blocks, rank, (), most)
    numbers = table.codes == NUMBER
    if (numbers.any() and not numbers.all()) or len(table.structures) > 1:
        for context in _contexts(about, table, first, rank):
            inside = context.mask(table)
            part, sides = table.rows(inside), first[inside]
            inner = [
                block
                for feature in about
                if feature.kind in ("leaf", "last")
                for block in _numbers(feature, part, sides)
            ]
            found += _best(inner, rank, (context,), most, COST["conjunction"])
    found = sorted(found, key=lambda f: -f.rank)[:most]
    if rare:
        singles = [block for block in blocks if block.is_single]
        for more in (_rarely_on(True, len(table)), _rarely_on(False, len(table))):
            found += _best(singles, more, (), 1)
    return found


def _rarely_on(first: bool, runs: int) -> Rank:
    """Standard errors by which rare events come more often on an input; two at least."""

    def rank(c1: Ints, c2: Ints) -> Floats:
        more, less = (c1, c2) if first else (c2, c1)
        apart = (more - less) / np.sqrt(c1 + c2 + 1.0)
        return np.where((apart >= 2.0) & (c1 + c2 < RARE * runs), apart, -np.inf)

    return rank


def _best(
    blocks: list[_Block], rank: Rank, context: tuple[Condition, ...], most: int, cost: float = 0.0
) -> list[Found]:
    found = []
    for block in blocks:
        if not len(block.c1):
            continue
        ranks = rank(block.c1, block.c2) - block.cost - cost
        for k in np.argsort(-ranks, kind="stable")[: min(most, 3)]:
            if ranks[k] > -math.inf:
                counts = int(block.c1[k]), int(block.c2[k])
                found.append((float(ranks[k]), counts, block, int(k)))
    found.sort(key=lambda f: -f[0])
    return [
        Found(Event((*context, block.build(k))), c1, c2, r)
        for r, (c1, c2), block, k in found[:most]
    ]


def _about(feature: Feature, table: Table, first: Bools) -> Iterator[_Block]:
    yield from _numbers(feature, table, first)
    yield from _categories(feature, table, first)


def _numbers(feature: Feature, table: Table, first: Bools) -> Iterator[_Block]:
    """Half-lines, intervals and recurring values of a numeric feature."""
    numbers, codes = feature.columns(table)
    is_number = codes == NUMBER
    nan = is_number & np.isnan(numbers)
    if nan.any():
        c1, c2 = _count(nan, first)
        yield _Block(c1, c2, lambda k: Equals(feature, math.nan), is_single=True)  # noqa: ARG005
    valid = is_number & ~nan
    if not valid.any():
        return
    if feature.kind == "test":
        yield from _truth(feature, numbers[valid], first[valid])
        return
    one, two = np.sort(numbers[valid & first]), np.sort(numbers[valid & ~first])
    around = room(feature, table)
    if feature.kind in CONSTANT:
        yield from _recurring(feature, one, two, around)
    cuts = thresholds(np.concatenate([one, two]), around)
    below1, below2 = (np.searchsorted(side, cuts - around.at(cuts)) for side in (one, two))
    rooms = around.at(cuts).tolist()

    def half_line(**ends: int) -> Between:
        at = {name: float(cuts[k]) for name, k in ends.items()}
        return Between(feature, **at, room=max(rooms[k] for k in ends.values()))

    yield _Block(below1, below2, lambda k: half_line(high=k))
    yield _Block(len(one) - below1, len(two) - below2, lambda k: half_line(low=k))
    some = np.unique(np.linspace(0, len(cuts) - 1, min(len(cuts), 28)).astype(int))
    i, j = np.triu_indices(len(some), 1)
    low, high = some[i], some[j]
    yield _Block(
        below1[high] - below1[low],
        below2[high] - below2[low],
        lambda k: half_line(low=int(low[k]), high=int(high[k])),
        COST["interval"],
    )
    if feature.kind not in CONSTANT:
        yield from _recurring(feature, one, two, around)


def _recurring(feature: Feature, one: Floats, two: Floats, around: Room) -> Iterator[_Block]:
    """Single values that come more often than chance explains; numbers of either side, sorted."""
    every = np.unique(np.concatenate([one, two]), return_counts=True)
    found, counts = clusters(*every, around)
    c1, c2 = (
        np.searchsorted(side, found.ends[1], "right") - np.searchsorted(side, found.ends[0])
        for side in (one, two)
    )
    # Outputs on both inputs may share their noise: then all numbers come twice, once on each.
    often = recurring(counts, 0.002) | recurring(np.maximum(c1, counts - c1), 1.0)
    at = np.flatnonzero(often)[np.argsort(-counts[often], kind="stable")[:MOST_ATOMS]]
    if len(at):
        atoms, rooms = found.values[at], found.reach[at]
        yield _Block(
            c1[at],
            c2[at],
            lambda k: Equals(feature, float(atoms[k]), float(rooms[k])),
            is_single=True,
        )


def _truth(feature: Feature, numbers: Floats, first: Bools) -> Iterator[_Block]:
    """What is true, and what is not."""
    cost = 0.0 if isinstance(feature.argument, Reading) else COST["form"]
    for value in (1.0, 0.0):
        c1, c2 = _count(numbers == value, first)
        yield _Block(c1, c2, lambda k, v=value: Equals(feature, v), cost)  # type: ignore[misc]  # noqa: ARG005


def thresholds(numbers: Floats, around: Room = NONE) -> Floats:
    """Cut points for sorted or unsorted numbers: few digits, no more than the spread deserves."""
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return np.unique(numbers)
    values = clusters(*np.unique(finite, return_counts=True), around)[0].values
    if len(values) <= MOST_ATOMS and len(values) < 0.2 * len(finite):
        return values
    with np.errstate(all="ignore"):
        cuts = np.quantile(finite, LEVELS)
        cuts = cuts[np.isfinite(cuts)]
        spread = float(np.quantile(finite, 0.9) - np.quantile(finite, 0.1))
    if spread / 60 > 0 and math.isfinite(spread):
        digits = -math.floor(math.log10(spread / 60))
        cuts = np.array([round(float(cut), digits) for cut in cuts])
    return np.unique(cuts) + 0.0


def _categories(feature: Feature, table: Table, first: Bools) -> Iterator[_Block]:
    """Each category of a feature, and everything but it."""
    if feature.kind not in ("leaf", "last"):
        return
    codes = feature.columns(table)[1]
    present = codes != ABSENT
    names = {code: level for level, code in table.levels.items()}
    found, counts = np.unique(codes[codes >= 0], return_counts=True)
    if not len(found):
        return
    found = found[np.argsort(-counts, kind="stable")[:MOST_ATOMS]]
    in_first = np.array([np.sum((codes == code) & first) for code in found])
    in_second = np.array([np.sum((codes == code) & ~first) for code in found])
    all1, all2 = _count(present, first)
    yield _Block(in_first, in_second, lambda k: Is(feature, names[int(found[k])]), is_single=True)
    yield _Block(
        all1 - in_first,
        all2 - in_second,
        lambda k: Is(feature, names[int(found[k])], negated=True),
    )
    if np.any(codes == NUMBER):
        c1, c2 = _count(codes == NUMBER, first)
        yield _Block(c1, c2, lambda k: IsNumber(feature))  # noqa: ARG005


def _whole(table: Table, first: Bools, exact: bool) -> list[_Block]:
    """Single outputs, and sets of the few that tell the sides apart best, if outputs recur."""
    if table.is_extract:  # an output that is gone cannot be written down
        return []
    near = () if exact else merging(table)
    table = merged(table, near)
    values, index, inverse = np.unique(hashes(table), return_index=True, return_inverse=True)
    if len(values) > min(MOST_PATTERNS, max(8, len(table) // 8)):
        return []
    c1 = np.bincount(inverse[first], minlength=len(values))
    c2 = np.bincount(inverse[~first], minlength=len(values))

    def pattern(k: int) -> Pattern:
        return pattern_of(table, int(index[k]), near)

    blocks = [_Block(c1, c2, lambda k: OneOf((pattern(k),)))]
    for order in (np.argsort(-(c1 + 0.5) / (c2 + 0.5)), np.argsort(-(c2 + 0.5) / (c1 + 0.5))):
        # A person reads a set of five outputs; the likeliest ones carry the weight.
        common = [k for k in order if c1[k] + c2[k] >= 0.01 * len(table)][:MOST_IN_A_SET]
        if len(common) > 1:
            sizes = np.arange(2, len(common) + 1)
            blocks.append(
                _Block(
                    np.cumsum(c1[common])[1:],
                    np.cumsum(c2[common])[1:],
                    lambda k, common=common: OneOf(tuple(map(pattern, sorted(common[: k + 2])))),  # type: ignore[misc]
                    COST["set"] * sizes.astype(np.float64),
                )
            )
    return blocks


def pattern_of(table: Table, row: int, near: Merging = ()) -> Pattern:
    """The pattern that matches exactly the outputs equal to one in the table."""
    names = {code: level for level, code in table.levels.items()}
    at = range(int(table.offsets[row]), int(table.offsets[row + 1]))
    leaves: tuple[Leaf, ...] = tuple(
        ("number", float(table.numbers[i]))
        if table.codes[i] == NUMBER
        else names[int(table.codes[i])]
        for i in at
    )
    structure = table.structures[table.structure[row]]
    output = table.raw[row]
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    types = tuple(table.types.names[table.types.which[i]] for i in at)
    form = table.forms.names[table.forms.which[row]]
    varied = len(table.types.names) > 1 or len(table.forms.names) > 1
    text = shown(output)
    reaches = {place: known.reach_of(table.leaf(place)[0][row]) for place, known in near}
    rooms = tuple(reaches.get(place, 0.0) for place in structure.places)
    return Pattern(structure.kind, structure.places, leaves, types, form, text, varied, rooms)


def _contexts(about: list[Feature], table: Table, first: Bools, rank: Rank) -> list[Condition]:
    """Lengths and counts among which numbers are worth a look of their own: the best few."""
    seen: list[tuple[float, Condition]] = []
    for feature in about:
        if feature.kind not in ("count", "len"):
            continue
        for block in _numbers(feature, table, first):
            total = block.c1 + block.c2
            often = (total > 0.01 * len(table)) & (total < 0.995 * len(table))
            ranks = np.where(often, rank(block.c1, block.c2) - block.cost, -np.inf)
            seen += [
                (float(ranks[k]), block.build(int(k)))
                for k in np.argsort(-ranks, kind="stable")[:MOST_CONTEXTS]
                if ranks[k] > -math.inf
            ]
    seen.sort(key=lambda pair: -pair[0])
    return [condition for _, condition in seen[:MOST_CONTEXTS]]


def _count(mask: Bools, first: Bools) -> tuple[Ints, Ints]:
    return np.array([np.sum(mask & first)]), np.array([np.sum(mask & ~first)])
