"""A feature: one quantity of an output, as a person would write it, and its values in a table."""

from __future__ import annotations

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
            known = self._worked_out(table)
            if self.kind in _OF_ALL:
                table.results[self] = known
        return known

    def _worked_out(self, table: Table) -> tuple[Floats, Ints]:
        match self.kind:
            case "leaf":
                return table.leaf(self.argument)
            case "last":
                return table.last()
            case "len":
                lengths = [np.nan if s.length is None else s.length for s in table.structures]
                return numeric(np.array(lengths, dtype=np.float64)[table.structure])
            case "count":
                owners = table.owner[table.codes == table.levels.get(self.argument, ABSENT)]
                return numeric(np.bincount(owners, minlength=len(table)).astype(np.float64))
            case "hamming":
                return numeric(hamming(table, self.argument))
            case "above":
                return numeric(above(table, self.argument))
            case "difference":
                return difference(table, *self.argument)
            case "user":
                function, index = self.argument
                numbers, codes = function.columns(table)
                return numbers[:, index], codes
            case "bit":
                return numeric(bit(table, *self.argument))
            case "lowest bit":
                return numeric(lowest_bit(table, self.argument))
            case "reading" | "test" | "relation" | "remainder":
                return numeric(self.argument.values(table))
            case _:
                return numeric(summary(table, self.kind))


def leaf(place: str) -> Feature:
    """The leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")
