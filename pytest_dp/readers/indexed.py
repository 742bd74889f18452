"""Outputs one part of which says where to look in another: an index, a cohort, a hash function.

What stands at the index is a quantity like any other. Where the positions that matter follow from
the index in a way that only the mechanism knows (those of a cohort's hashes), they are learned: for
each value of the index, the positions at which the two sides differ more than they do everywhere.

Source: Benjamini, Hochberg, "Controlling the false discovery rate", JRSS B 1995.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, column_of_argument, numeric
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import Table

MAX_INDICES = 3
"""Parts of an output that are tried as an index: each takes a pass over all others."""
MIN_LEVELS, MAX_LEVELS = 3, 1_024
"""Values of an index: of fewer, other quantities say as much; of more, each comes too seldom."""
OUTPUTS_A_LEVEL = 4
"""Outputs for each value of an index, at least: with fewer, no position stands out."""
MAX_CELLS = 8_000_000
"""Numbers that are looked at: more take seconds."""
MAX_POSITIONS = 8
"""Positions that are kept for each value: more are seldom told by one record, and take time."""
FALSE_SHARE = 0.05
"""Share of the positions kept that may be due to chance: with more, models learn noise; with less,
positions are missed that come seldom."""
PRIOR_OUTPUTS = 4.0
"""Outputs as which the overall variance of a position counts beside those of one value."""


@dataclass(frozen=True, slots=True)
class AtIndex:
    """``parent[index]``: what stands in a sequence where another part of the output says."""

    parent: str
    index: str

    def __str__(self) -> str:
        return f"{self.parent}[{self.index}]"

    def column(self, table: Table) -> tuple[Floats, Ints]:
        """Return numbers and codes, as in `Table`; absent where there is no such position."""
        numbers, codes = np.full(len(table), np.nan), np.full(len(table), ABSENT)
        at, kinds = table.leaf(self.index)
        known = (kinds == NUMBER) & (at >= 0) & (at == np.floor(at))
        for number, structure in enumerate(table.structures):
            start = structure.position.get(f"{self.parent}[0]")
            if start is None:
                continue
            length = _length(structure.position, self.parent)
            rows = np.flatnonzero(known & (table.structure == number) & (at < length))
            leaves = table.offsets[rows] + start + at[rows].astype(np.int64)
            numbers[rows], codes[rows] = table.numbers[leaves], table.codes[leaves]
        return numbers, codes


@dataclass(frozen=True, slots=True)
class Given:
    """Evidence at positions that follow from an index, as they were learned."""

    index: str
    learned: tuple[tuple[float, tuple[tuple[str, float, float], ...]], ...]
    """For each value of the index: positions, their weights and what is subtracted before."""

    def __str__(self) -> str:
        return f"evidence at the positions that go with {self.index}"

    def values(self, table: Table) -> Floats:
        """Return the sum over the positions of each output; 0 where nothing was learned."""
        total = np.zeros(len(table))
        level = _plain(table, self.index)
        for value, positions in self.learned:
            rows = np.flatnonzero(level == value)
            for place, weight, middle in positions if len(rows) else ():
                there = _plain(table, place)[rows]
                total[rows] += np.where(np.isnan(there), 0.0, weight * (there - middle))
        return total


def at_indices(table: Table) -> Iterator[AtIndex]:
    """Yield the values at positions that other parts of the outputs name."""
    indices = _indices(table, 2)
    if not indices or len(table.structures) > MAX_INDICES:
        return
    for structure in table.structures:
        parents = [p.removesuffix("[0]") for p in structure.places if p.endswith("[0]")]
        for parent in parents[:MAX_INDICES]:
            length = _length(structure.position, parent)
            for place, values in indices:
                inside = not place.startswith(f"{parent}[")
                if inside and length > 1 and values.min() >= 0 and values.max() < length:
                    yield AtIndex(parent, place)


def given_index(table: Table, on_d: Bools, paired: int) -> Iterator[Given]:
    """Yield the evidence at the positions that belong to each leaf that may be an index.

    The first `paired` outputs on either input share their random numbers in order. In these, only
    positions that differ in some pair can matter.
    """
    indices = _indices(table, OUTPUTS_A_LEVEL)
    if not indices or len(table.places) < 2:
        return
    most = max(MAX_CELLS // len(table.places), 1) // 2
    rows1, rows2 = (np.flatnonzero(side)[:most] for side in (on_d, ~on_d))
    rows = np.concatenate([rows1, rows2])
    cells = np.stack([_plain(table, place)[rows] for place in table.places], axis=1)
    side = np.arange(len(rows)) < len(rows1)
    pairs = min(paired, len(rows1), len(rows2))
    for place, _ in indices:
        values, level = np.unique(_plain(table, place)[rows], return_inverse=True)
        usable = ~np.isnan(cells).any(axis=0) & (np.ptp(cells, axis=0) > 0)
        usable[table.places.index(place)] = False
        columns = np.flatnonzero(usable)
        if not len(columns) or not np.isfinite(values).all():
            continue
        found = _positions(cells[:, columns], level, side, pairs, len(rows1))
        learned = []
        for at, positions in found.items():
            named = ((table.places[columns[p]], w, m) for p, w, m in positions)
            learned.append((float(values[at]), tuple(named)))
        if learned:
            yield Given(place, tuple(learned))


def _positions(
    cells: Floats, level: Ints, side: Bools, pairs: int, first: int
) -> dict[int, list[tuple[int, float, float]]]:
    """Return for each level of an index where the sides differ more than over all levels.

    Each position has its weight and its middle.
    """
    from scipy.special import ndtr  # processes that only run mechanisms do without SciPy

    levels = int(level.max()) + 1
    counts, means, squares = (
        np.zeros((2, levels, *shape)) for shape in ((), *[cells.shape[1:]] * 2)
    )
    for number, part in enumerate((side, ~side)):
        order = np.flatnonzero(part)[np.argsort(level[part], kind="stable")]
        present, starts = np.unique(level[order], return_index=True)
        sizes = np.diff(np.append(starts, len(order)))
        counts[number, present] = sizes
        means[number, present] = np.add.reduceat(cells[order], starts) / sizes[:, None]
        squares[number, present] = np.add.reduceat(cells[order] ** 2, starts)
    within = squares.sum(axis=0) - (counts[:, :, None] * means**2).sum(axis=0)
    total = counts.sum(axis=0)[:, None]
    variance = (within + PRIOR_OUTPUTS * cells.var(axis=0)) / (total + PRIOR_OUTPUTS)
    both = np.logical_and(*(counts > 0))
    everywhere = np.median((means[0] - means[1])[both], axis=0) if both.any() else 0.0
    both = both[:, None]
    apart = np.where(both, means[0] - means[1] - everywhere, 0.0)
    with np.errstate(divide="ignore"):
        error = np.sqrt(variance * (1 / counts[0] + 1 / counts[1])[:, None])
    z = np.abs(apart) / np.where(np.isfinite(error), error, 1.0)
    among = np.broadcast_to(both, z.shape).copy()
    if pairs:
        among &= _differing_positions(cells, level, pairs, first, levels)
    kept = among & (2 * ndtr(-z) <= _threshold(2 * ndtr(-z[among])))
    found: dict[int, list[tuple[int, float, float]]] = {}
    for at in np.flatnonzero(kept.any(axis=1)).tolist():
        best = np.flatnonzero(kept[at])
        best = best[np.argsort(-z[at, best], kind="stable")[:MAX_POSITIONS]]
        found[at] = [
            (int(p), float(apart[at, p] / variance[at, p]), float(means[:, at, p].mean()))
            for p in best
        ]
    return found


def _differing_positions(cells: Floats, level: Ints, pairs: int, first: int, levels: int) -> Bools:
    """Return at which positions the outputs of some pair differ, by the level of both."""
    same = np.flatnonzero(level[:pairs] == level[first : first + pairs])
    moved = np.zeros((levels, cells.shape[1]), bool)
    np.logical_or.at(moved, level[same], cells[same] != cells[first + same])
    return moved


def _threshold(p_values: Floats) -> float:
    """Return the largest p-value with few enough false discoveries expected; -1 if none has."""
    ordered = np.sort(p_values)
    passed = ordered <= FALSE_SHARE * np.arange(1, len(ordered) + 1) / max(len(ordered), 1)
    return float(ordered[passed][-1]) if passed.any() else -1.0


def _indices(table: Table, outputs_each: int) -> list[tuple[str, Floats]]:
    """Return places that may be indices, with their values: few whole numbers, or names.

    If there are too many, keep places without neighbours, unlike the counts of a histogram.
    """
    found = []
    most = min(MAX_LEVELS, len(table) // max(outputs_each, 1))
    for place in table.places if len(table.places) > 1 else ():
        values = _plain(table, place)
        few = values[:: max(len(values) // 64, 1)]
        if not len(few) or np.isnan(few).any() or (few != np.floor(few)).any():
            continue
        levels = np.unique(values)
        if MIN_LEVELS <= len(levels) <= most and (levels == np.floor(levels)).all():
            found.append((place, levels))
    if len(found) > MAX_INDICES:
        beside = [re.sub(r"\[\d+\]$", "", place) for place, _ in found]
        found = [
            one for one, parent in zip(found, beside, strict=True) if beside.count(parent) == 1
        ]
    return found[:MAX_INDICES]


def _length(position: dict[str, int], parent: str) -> int:
    """Return how many leaves of a sequence follow each other."""
    start, length = position[f"{parent}[0]"], 0
    while position.get(f"{parent}[{length}]") == start + length:
        length += 1
    return length


def _plain(table: Table, place: str) -> Floats:
    """Return the leaves at a place as numbers: True as 1, False as 0, names by a checksum."""
    numbers, codes = table.leaf(place)
    if (codes == NUMBER).all():
        return numbers
    named = [
        float(value) if kind == "bool" else float(crc32(repr((kind, value)).encode()))  # type: ignore[arg-type]
        for kind, value in table.levels
    ]
    by_code = np.array([*named, np.nan, np.nan])  # the last two stand for no category
    return np.where(codes == NUMBER, numbers, by_code[codes])


KINDS["at an index"] = FeatureKind(lambda what, table: what.column(table), categories=True)
KINDS["given an index"] = FeatureKind(numeric(column_of_argument), parts=lambda *_: None, ease="no")


def indexed_features(sample: Sample) -> list[Feature]:
    """Return what stands at indices, and evidence at the positions that go with an index."""
    if not sample.many:
        return []
    found = [Feature(str(one), "at an index", one) for one in at_indices(sample.table)]
    if sample.on_d is not None:
        learned = given_index(sample.table, sample.on_d, sample.paired)
        found += [Feature(str(one), "given an index", one) for one in learned]
    return found
