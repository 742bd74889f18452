"""A feature: one quantity of an output, as a person would write it, and its values in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.outputs.columns import ABSENT
from pytest_dp.outputs.quantities import (
    above,
    bit,
    difference,
    hamming,
    lowest_bit,
    numeric,
    summary,
)
from pytest_dp.outputs.table import Table

Kind = Literal[
    "leaf",
    "last",
    "len",
    "mean",
    "min",
    "max",
    "count",
    "hamming",
    "sum",
    "argmax",
    "argmin",
    "above",
    "difference",
    "user",
    "bit",
    "lowest bit",
    "reading",
    "test",
    "relation",
    "remainder",
]
WHOLE: frozenset[Kind] = frozenset(
    {"len", "count", "hamming", "argmax", "argmin", "above", "bit", "lowest bit", "test"}
)
"""Kinds that are whole numbers."""
_OF_ALL: frozenset[Kind] = frozenset(
    {"len", "count", "hamming", "argmax", "argmin", "above", "mean", "min", "max", "sum"}
)
"""Kinds that take a look at all of an output, which is done only once."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output.

    Attributes
    ----------
    text : str
        How a person would write it: ``"output[2]"``, ``"len(output)"``.
    kind : str
    argument : hashable
        The place of a leaf, the category that is counted, the leaves compared with, what is read
        out of a category, ...
    exact : bool
        Whether numbers that are equal but for rounding count as different (see `rounding`).
    """

    text: str
    kind: Kind
    argument: Any = None
    exact: bool = False

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Its value for every output: numbers, and codes as in `Table`, shape (n,) each."""
        known = table.results.get(self) if table.results else None
        if known is None:
            known = _worked_out(self.kind, self.argument, table)
            if self.kind in _OF_ALL:
                table.results[self] = known
        return known


def _worked_out(kind: str, argument: Any, table: Table) -> tuple[Floats, Ints]:
    if kind in _COLUMNS:
        return _COLUMNS[kind](argument, table)
    if kind in _NUMBERS:
        return numeric(_NUMBERS[kind](argument, table))
    return numeric(summary(table, kind))


def _lengths(_: Any, table: Table) -> Floats:
    lengths = [np.nan if s.length is None else s.length for s in table.structures]
    found: Floats = np.array(lengths, dtype=np.float64)[table.structure]
    return found


def _count(category: Any, table: Table) -> Floats:
    owners = table.owner[table.codes == table.levels.get(category, ABSENT)]
    return np.bincount(owners, minlength=len(table)).astype(np.float64)


def _of_user(argument: Any, table: Table) -> tuple[Floats, Ints]:
    function, index = argument
    numbers, codes = function.columns(table)
    return numbers[:, index], codes


_COLUMNS: dict[str, Callable[[Any, Table], tuple[Floats, Ints]]] = {
    "leaf": lambda place, table: table.leaf(place),
    "last": lambda _, table: table.last(),
    "difference": lambda places, table: difference(table, *places),
    "user": _of_user,
}
"""Numbers and category codes, by kind of feature."""
_NUMBERS: dict[str, Callable[[Any, Table], Floats]] = {
    "len": _lengths,
    "count": _count,
    "hamming": lambda reference, table: hamming(table, reference),
    "above": lambda level, table: above(table, level),
    "bit": lambda which, table: bit(table, *which),
    "lowest bit": lambda place, table: lowest_bit(table, place),
    **dict.fromkeys(
        ("reading", "test", "relation", "remainder"), lambda what, table: what.values(table)
    ),
}
"""The same of kinds that are numbers only; all others are summaries."""


def leaf(place: str) -> Feature:
    """The leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")
