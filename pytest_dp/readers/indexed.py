"""Outputs one part of which says where to look in another: what stands there is a quantity.

Where the positions that matter follow from a part in a way that only the mechanism knows, such as
those of a cohort's hashes, `features` of a claim compute them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.feature import KINDS, Feature, Kind
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import Table

MAX_INDICES = 3
"""Parts of an output that are tried as an index: each takes a pass over all others."""
MIN_LEVELS, MAX_LEVELS = 3, 1_024
"""Values of an index: of fewer, other quantities say as much; of more, each comes too seldom."""


@dataclass(frozen=True, slots=True)
class AtIndex:
    """``parent[index]``: what stands in a sequence where another part of the output says."""

    parent: str
    index: str

    def __str__(self) -> str:
        return f"{self.parent}[{self.index}]"

    def column(self, table: Table) -> tuple[Floats, Ints]:
        """Numbers and codes, as in `Table`; absent where there is no such position."""
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


def at_indices(table: Table) -> Iterator[AtIndex]:
    """Yield the values at positions that other parts of the outputs name."""
    indices = _indices(table)
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


def _indices(table: Table) -> list[tuple[str, Floats]]:
    """Places that hold few whole numbers, and these: they may say where to look elsewhere.

    Where there are many such, those that stand alone: not the counts of a histogram.
    """
    found = []
    for place in table.places if len(table.places) > 1 else ():
        values, codes = table.leaf(place)
        if (codes[:1] == NUMBER).all() and (codes == NUMBER).all():
            levels = np.unique(values)
            most = min(MAX_LEVELS, len(table) // 2)
            if MIN_LEVELS <= len(levels) <= most and (levels == np.floor(levels)).all():
                found.append((place, levels))
    if len(found) > MAX_INDICES:
        beside = [re.sub(r"\[\d+\]$", "", place) for place, _ in found]
        found = [
            one for one, parent in zip(found, beside, strict=True) if beside.count(parent) == 1
        ]
    return found[:MAX_INDICES]


def _length(position: dict[str, int], parent: str) -> int:
    """How many leaves of a sequence follow each other."""
    start, length = position[f"{parent}[0]"], 0
    while position.get(f"{parent}[{length}]") == start + length:
        length += 1
    return length


KINDS["at an index"] = Kind(lambda what, table: what.column(table), categories=True)


def indexed_features(sample: Sample) -> list[Feature]:
    """Return what stands at indices."""
    found = at_indices(sample.table) if sample.many else ()
    return [Feature(str(one), "at an index", one) for one in found]
