"""Quantities of an output that an event can speak about, as a person would write them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pytest_dp.outputs.table import ABSENT, NUMBER, Floats, Ints, Table, tabulate

Kind = Literal["leaf", "last", "len", "mean", "min", "max", "count", "hamming"]
_MANY = 64
SUMMARIES: tuple[Kind, ...] = ("mean", "min", "max")


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output.

    Attributes
    ----------
    text : str
        How a person would write it: ``"output[2]"``, ``"len(output)"``.
    kind : str
    argument : hashable
        The place of a leaf, the category that is counted, or the leaves compared with.
    """

    text: str
    kind: Kind
    argument: Hashable = None

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Its value for every output: numbers, and codes as in `Table`, shape (n,) each."""
        match self.kind:
            case "leaf":
                return table.leaf(str(self.argument))
            case "last":
                return table.last()
            case "len":
                lengths = [np.nan if s.length is None else s.length for s in table.structures]
                return _numeric(np.array(lengths, dtype=np.float64)[table.structure])
            case "count":
                code = table.levels.get(self.argument, ABSENT)  # type: ignore[call-overload]
                owners = table.owner[table.codes == code]
                return _numeric(np.bincount(owners, minlength=len(table)).astype(np.float64))
            case "hamming":
                return _numeric(_hamming(table, self.argument))  # type: ignore[arg-type]
            case _:
                return _numeric(_summary(table, self.kind))


def leaf(place: str) -> Feature:
    """The leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")


def features(table: Table, references: list[Any]) -> list[Feature]:
    """The quantities that StatDP's event families speak about, for outputs such as these.

    Parameters
    ----------
    table : Table
        Outputs seen so far.
    references : list
        Noiseless answers, to compare with by Hamming distance.
    """
    found = [leaf(place) for place in _places(table)]
    lengths = {structure.length for structure in table.structures}
    containers = [s for s in table.structures if s.length is not None]
    if len(lengths) > 1:
        found.append(LEN)
        if any(structure.is_flat for structure in containers):
            found.append(LAST)
    if any(len(structure.places) > 1 for structure in containers):
        if np.any(table.codes == NUMBER):
            found += [Feature(f"{name}(output)", name) for name in SUMMARIES]
        for level in list(table.levels)[:_MANY]:
            found.append(Feature(f"output.count({level[1]!r})", "count", level))
        found += [_distance(reference) for reference in references if np.ndim(reference) == 1]
    return list(dict.fromkeys(found))


def _places(table: Table) -> list[str]:
    """Places of leaves; where there are very many, those that vary, spread evenly."""
    places = list(table.place_index)
    if len(places) <= _MANY:
        return places
    return [places[i] for i in np.unique(np.linspace(0, len(places) - 1, _MANY).astype(int))]


def _distance(reference: Any) -> Feature:
    if isinstance(reference, np.ndarray):
        reference = reference.tolist()
    alone = tabulate([list(reference)])
    names = {code: level for level, code in alone.levels.items()}
    keys = tuple(
        ("number", number) if code == NUMBER else names[code]
        for number, code in zip(alone.numbers.tolist(), alone.codes.tolist(), strict=True)
    )
    return Feature(f"hamming(output, {list(reference)!r})", "hamming", keys)


def _numeric(numbers: Floats) -> tuple[Floats, Ints]:
    return numbers, np.where(np.isnan(numbers), ABSENT, NUMBER)


def _summary(table: Table, kind: str) -> Floats:
    """Mean, min or max over the numbers in each output; NaN where there are none."""
    if len(table.structures) == 1 and np.all(table.codes == NUMBER) and len(table):
        matrix = table.numbers.reshape(len(table), -1)
        if matrix.shape[1]:
            summary: Floats = getattr(matrix, kind)(axis=1)
            return summary
    is_number = table.codes == NUMBER
    owner, numbers = table.owner[is_number], table.numbers[is_number]
    if kind == "mean":
        counts = np.bincount(owner, minlength=len(table))
        sums = np.bincount(owner, weights=numbers, minlength=len(table))
        with np.errstate(invalid="ignore"):
            means: Floats = sums / counts
        return means
    found = np.full(len(table), np.nan)
    if len(owner):
        rows, starts = np.unique(owner, return_index=True)
        reduce = np.minimum if kind == "min" else np.maximum
        found[rows] = reduce.reduceat(numbers, starts)
    return found


def _hamming(table: Table, keys: tuple[tuple[str, Any], ...]) -> Floats:
    """In how many positions each output differs from the reference; NaN for bare leaves."""
    values = np.array([key[1] if key[0] == "number" else np.nan for key in keys], dtype=np.float64)
    codes = np.array(
        [NUMBER if key[0] == "number" else table.levels.get(key, ABSENT) for key in keys],
        dtype=np.int64,
    )
    distance = np.full(len(table), np.nan)
    for number, structure in enumerate(table.structures):
        if structure.length is None:
            continue
        rows = np.flatnonzero(table.structure == number)
        shared = min(len(structure.places), len(keys))
        at = table.offsets[rows][:, None] + np.arange(shared)
        same = (table.codes[at] == codes[:shared]) & (
            (codes[:shared] != NUMBER) | (table.numbers[at] == values[:shared])
        )
        extra = max(len(structure.places), len(keys)) - shared
        distance[rows] = shared - same.sum(axis=1) + extra
    return distance
