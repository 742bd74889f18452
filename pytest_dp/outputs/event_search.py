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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.outputs.events import (
    Between,
    Condition,
    Equals,
    Event,
    Is,
    OneOf,
)
from pytest_dp.outputs.feature import COST, Feature
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.rounding import (
    EXACT,
    Tolerance,
    WholeOutputs,
    cluster_numbers,
    feature_tolerance,
    find_recurring,
)
from pytest_dp.outputs.table import Table

MAX_VALUES = 48
"""Different values, or categories, that are events by themselves. More take longer; fewer leave out
rare ones."""
MAX_OF_A_KIND = 3
"""Events of one kind of one feature. More take longer; fewer leave out a second one."""
MAX_SET = 256
"""Categories of a set, at most. More: events are unreadable; fewer: leaks over many categories are
missed."""
RARE_SHARE = 0.01
"""Share of the outputs below which an event is rare. Larger: common events take their places;
smaller: leaks of rare outputs are missed."""
THRESHOLDS = (0.002, 0.005, 0.01, *(k / 50 for k in range(1, 50)), 0.99, 0.995, 0.998)
"""Quantiles at which a number is cut. More take longer; with fewer, cuts lie farther from the
best."""

Rank = Callable[[Ints, Ints], Floats]
"""``rank(c1, c2)``: how promising events are, by their counts on D and on D', shape (k,); higher is
better."""

MAX_CONTEXTS = 6
"""Lengths and counts for which numbers are searched again, among outputs of that length or count.
Each costs as much time as the search itself; fewer may miss a leak that only shows there.
Measured: without any, StatDP takes 1.75 times the samples where a label says which number leaks."""


@dataclass(frozen=True, slots=True)
class RankedEvent:
    """An event, its counts in the outputs it was found in, and its rank."""

    event: Event
    c1: int
    c2: int
    rank: float

    @classmethod
    def from_event(cls, event: Event, table: Table, on_d: Bools, rank: Rank) -> Self:
        """Return an event with its counts in the outputs of a table, and its rank."""
        inside = event.mask(table)
        c1, c2 = (np.array([np.sum(inside & side)]) for side in (on_d, ~on_d))
        return cls(event, int(c1[0]), int(c2[0]), float(rank(c1, c2)[0]))


@dataclass(frozen=True, slots=True)
class _Block:
    """A group of events of one kind: counts on D and on D', and a function that builds an event."""

    c1: Ints
    c2: Ints
    build: Callable[[int], Condition]
    cost: float | Floats = 0.0
    """Taken off the rank of each event."""
    is_single: bool = False
    """Whether each event is a single value or category of a feature."""


def search(
    table: Table,
    on_d: Bools,
    rank: Rank,
    about: list[Feature],
    limit: int = 8,
    *,
    rare: bool = False,
) -> list[RankedEvent]:
    """Return events that separate outputs on D from outputs on D', best first, at most `limit`.

    `on_d` says which outputs are on D; events are about the features in `about`, or single outputs.
    With `rare`, up to two more follow: for either input, the rare value or category, not sure yet,
    that points to it most.
    """
    exact = any(feature.exact for feature in about)
    # Of equals, what comes first wins: the easiest to read.
    blocks = _single_outputs(table, on_d, exact)
    for feature in about:
        blocks += [*_number_events(feature, table, on_d), *_category_events(feature, table, on_d)]
    events = _best_events(blocks, rank, (), limit)
    numbers = table.codes == NUMBER
    if (numbers.any() and not numbers.all()) or len(table.structures) > 1:
        for context in _contexts(about, table, on_d, rank):
            inside = context.mask(table)
            part, sides = table.rows(inside), on_d[inside]
            inner = [
                block
                for feature in about
                if feature.of_kind.categories
                for block in _number_events(feature, part, sides)
            ]
            events += _best_events(inner, rank, (context,), limit, COST["conjunction"])
    events = sorted(events, key=lambda f: -f.rank)[:limit]
    if rare:
        singles = [block for block in blocks if block.is_single]
        for rarity in (_rank_rare_events(True, len(table)), _rank_rare_events(False, len(table))):
            events += _best_events(singles, rarity, (), 1)
    return events


def _rank_rare_events(on_d: bool, runs: int) -> Rank:
    """Return a rank: by how many standard errors an event favours one input; `-inf` below 2.

    Also `-inf` for events of at least `RARE_SHARE` of the outputs, `runs` in all.
    """

    def rank(c1: Ints, c2: Ints) -> Floats:
        more, less = (c1, c2) if on_d else (c2, c1)
        apart = (more - less) / np.sqrt(c1 + c2 + 1.0)
        return np.where((apart >= 2.0) & (c1 + c2 < RARE_SHARE * runs), apart, -np.inf)

    return rank


def _best_events(
    blocks: list[_Block], rank: Rank, context: tuple[Condition, ...], limit: int, cost: float = 0.0
) -> list[RankedEvent]:
    """Return at most `limit` events by falling rank, at most `MAX_OF_A_KIND` of a block.

    Each is conjoined with `context`. `cost` is taken off every rank; `-inf` leaves an event out.
    """
    if not blocks:
        return []
    all_ranks = rank(*(np.concatenate([getattr(b, side) for b in blocks]) for side in ("c1", "c2")))
    ends = np.cumsum([len(block.c1) for block in blocks])[:-1]
    ranked = []
    for block, plain in zip(blocks, np.split(all_ranks, ends), strict=True):
        ranks = plain - block.cost - cost
        ranked += [(ranks[k], block, k) for k in _highest(ranks, min(limit, MAX_OF_A_KIND))]
    ranked.sort(key=lambda entry: -entry[0])
    return [
        RankedEvent(
            Event((*context, block.build(k))), int(block.c1[k]), int(block.c2[k]), float(value)
        )
        for value, block, k in ranked[:limit]
    ]


def _highest(ranks: Floats, limit: int) -> list[int]:
    """Return the indices of the `limit` highest ranks, without ranks of minus infinity."""
    order: list[int] = np.argsort(-ranks, kind="stable")[:limit].tolist()
    return [k for k in order if ranks[k] > -math.inf]


def _number_events(feature: Feature, table: Table, on_d: Bools) -> Iterator[_Block]:
    """Yield events about a feature's numbers: NaN, half-lines, intervals, recurring values."""
    numbers, codes = feature.columns(table)
    is_number = codes == NUMBER
    nan = is_number & np.isnan(numbers)
    if nan.any():
        yield _Block(*_count(nan, on_d), lambda _: Equals(feature, math.nan), is_single=True)
    valid = is_number & ~nan
    if not valid.any():
        return
    if feature.of_kind.test:
        truths = [Equals(feature, truth) for truth in (1.0, 0.0)]
        both = [_count(valid & (numbers == test.value), on_d) for test in truths]
        c1, c2 = (np.concatenate(counts) for counts in zip(*both, strict=True))
        yield _Block(c1, c2, truths.__getitem__, feature.of_kind.cost)
        return
    sides = np.sort(numbers[valid & on_d]), np.sort(numbers[valid & ~on_d])
    around = feature_tolerance(feature, table)
    if feature.of_kind.discrete:
        yield from _recurring_values(feature, *sides, around)
    cuts = thresholds(np.concatenate(sides), around)
    tolerances = around.at(cuts)
    below1, below2 = (np.searchsorted(side, cuts - tolerances) for side in sides)

    def half_line(**ends: int) -> Between:
        at = {name: float(cuts[k]) for name, k in ends.items()}
        return Between(feature, **at, tolerance=float(max(tolerances[k] for k in ends.values())))

    cost = feature.of_kind.cost
    yield _Block(below1, below2, lambda k: half_line(high=k), cost)
    above1, above2 = (
        len(side) - below for side, below in zip(sides, (below1, below2), strict=True)
    )
    yield _Block(above1, above2, lambda k: half_line(low=k), cost)
    ends = min(len(cuts), 28)
    chosen = np.unique(np.linspace(0, len(cuts) - 1, ends).astype(int))
    i, j = np.triu_indices(len(chosen), 1)
    low, high = chosen[i], chosen[j]
    yield _Block(
        below1[high] - below1[low],
        below2[high] - below2[low],
        lambda k: half_line(low=int(low[k]), high=int(high[k])),
        cost + COST["interval"],
    )
    if not feature.of_kind.discrete:
        yield from _recurring_values(feature, *sides, around)


def _recurring_values(
    feature: Feature, numbers1: Floats, numbers2: Floats, around: Tolerance
) -> Iterator[_Block]:
    """Yield events for at most `MAX_VALUES` values that recur more often than chance explains.

    `numbers1` and `numbers2` are the sorted numbers on D and on D'; `around` is their tolerance.
    """
    distinct = np.unique(np.concatenate([numbers1, numbers2]), return_counts=True)
    values, counts = cluster_numbers(*distinct, around)
    c1, c2 = (
        np.searchsorted(side, values.ends[1], "right") - np.searchsorted(side, values.ends[0])
        for side in (numbers1, numbers2)
    )
    # Where outputs on both inputs share their noise, all numbers may come twice, once on each.
    often = find_recurring(counts, 0.002) | find_recurring(np.maximum(c1, counts - c1), 1.0)
    at = np.flatnonzero(often)[np.argsort(-counts[often], kind="stable")[:MAX_VALUES]]
    commonest, reach = values.values[at], values.reach[at]

    def equals(k: int) -> Equals:
        return Equals(feature, float(commonest[k]), float(reach[k]))

    yield _Block(c1[at], c2[at], equals, feature.of_kind.cost, is_single=True)


def thresholds(numbers: Floats, around: Tolerance = EXACT) -> Floats:
    """Return sorted cut points for numbers: all values if there are few, else rounded quantiles.

    `around` is the distance up to which numbers count as equal. Infinities are cut points only if
    no number is finite.
    """
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return np.unique(numbers)
    values = cluster_numbers(*np.unique(finite, return_counts=True), around)[0].values
    if len(values) <= MAX_VALUES and len(values) < 0.2 * len(finite):
        return values
    with np.errstate(all="ignore"):
        *levels, low, high = np.quantile(finite, (*THRESHOLDS, 0.1, 0.9))
        cuts = np.array(levels)
        cuts = cuts[np.isfinite(cuts)]
        spread = float(high - low)
    if spread / 60 > 0 and math.isfinite(spread):
        digits = -math.floor(math.log10(spread / 60))
        cuts = np.array([round(float(cut), digits) for cut in cuts])
    return np.unique(cuts) + 0.0


def _category_events(feature: Feature, table: Table, on_d: Bools) -> Iterator[_Block]:
    """Yield events for the commonest categories of a feature, and for their complements."""
    if not feature.of_kind.categories:
        return
    codes = feature.columns(table)[1]
    levels = list(table.levels)
    counts1, counts2 = (
        np.bincount(codes[side & (codes >= 0)], minlength=len(levels)) for side in (on_d, ~on_d)
    )
    common = np.argsort(-(counts1 + counts2), kind="stable")[:MAX_VALUES]
    common = common[(counts1 + counts2)[common] > 0]
    if not len(common):
        return
    c1, c2 = counts1[common], counts2[common]
    yield _Block(c1, c2, lambda k: Is(feature, levels[common[k]]), is_single=True)
    all1, all2 = _count(codes != ABSENT, on_d)
    yield _Block(all1 - c1, all2 - c2, lambda k: Is(feature, levels[common[k]], negated=True))


def _single_outputs(table: Table, on_d: Bools, exact: bool) -> list[_Block]:
    """Return events for single outputs, and for sets of outputs that are likelier on one input.

    Empty for extracts, and if more different outputs came than `MAX_SET`, or than 8 and an eighth
    of all. With `exact`, rounding errors count as differences.
    """
    if table.is_extract:  # an output that is gone cannot be written down
        return []
    known = WholeOutputs.of_table(table, exact=exact)
    size = len(known.known_hashes)
    if size > min(MAX_SET, max(8, len(table) // 8)):
        return []
    codes = known.codes(table)
    first = np.unique(codes, return_index=True)[1]
    c1, c2 = (np.bincount(codes[side], minlength=size) for side in (on_d, ~on_d))

    def among(chosen: list[int]) -> OneOf:
        hashes = tuple(known.known_hashes[k] for k in chosen)
        return one_of(table, first[chosen].tolist(), replace(known, known_hashes=hashes))

    blocks = [_Block(c1, c2, lambda k: among([k]))]
    for order in (np.argsort(-(c1 + 0.5) / (c2 + 0.5)), np.argsort(-(c2 + 0.5) / (c1 + 0.5))):
        # The likeliest outputs show most, and a set of many is hard to read.
        common = [k for k in order if c1[k] + c2[k] >= 0.01 * len(table)][:5]
        if len(common) > 1:
            sizes = np.arange(2, len(common) + 1)
            blocks.append(
                _Block(
                    np.cumsum(c1[common])[1:],
                    np.cumsum(c2[common])[1:],
                    lambda k, common=common: among(sorted(common[: k + 2])),  # type: ignore[misc]
                    COST["set"] * sizes.astype(np.float64),
                )
            )
    return blocks


def one_of(table: Table, rows: Sequence[int], outcomes: WholeOutputs) -> OneOf:
    """Return the event that an output is one of `outcomes`, shown by the outputs in `rows`."""
    outputs = [table.raw[row] for row in rows]
    plain = [o.tolist() if isinstance(o, np.ndarray | np.generic) else o for o in outputs]
    varied = len(table.types.names) > 1 or len(table.forms.names) > 1
    with suppress(Exception):  # of kinds that have no order, or one for each of their elements
        plain.sort()
    return OneOf(outcomes, tuple(map(safe_repr, plain)), varied)


def _contexts(about: list[Feature], table: Table, on_d: Bools, rank: Rank) -> list[Condition]:
    """Return at most `MAX_CONTEXTS` conditions on lengths and counts, by falling rank."""
    contexts: list[tuple[float, Condition]] = []
    for feature in about:
        if feature.kind not in ("count", "len"):
            continue
        for block in _number_events(feature, table, on_d):
            total = block.c1 + block.c2
            often = (total > 0.01 * len(table)) & (total < 0.995 * len(table))
            ranks = np.where(often, rank(block.c1, block.c2) - block.cost, -np.inf)
            contexts += [(ranks[k], block.build(k)) for k in _highest(ranks, MAX_CONTEXTS)]
    contexts.sort(key=lambda pair: -pair[0])
    return [condition for _, condition in contexts[:MAX_CONTEXTS]]


def _count(mask: Bools, on_d: Bools) -> tuple[Ints, Ints]:
    """Return how many outputs on D, and on D', a mask holds for, as arrays of shape (1,)."""
    return np.array([np.sum(mask & on_d)]), np.array([np.sum(mask & ~on_d)])
