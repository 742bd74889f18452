"""A feature: one quantity of an output, as a person would write it, and its values in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

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

OfAPlace = Literal["leaf", "difference"]
Summary = Literal["mean", "min", "max", "sum", "argmax", "argmin"]
Count = Literal["len", "count", "hamming", "above"]
Bits = Literal["bit", "lowest bit"]
Derived = Literal["reading", "test", "relation", "remainder"]
"""What an object with ``values(table)`` works out, which is the argument."""
Kind = OfAPlace | Summary | Count | Bits | Derived | Literal["last", "user"]
PLACE_KINDS: frozenset[Kind] = frozenset(get_args(OfAPlace))
"""Kinds of which outputs have one for each place, or pair of places: there may be very many."""
INTEGER_KINDS: frozenset[Kind] = frozenset(
    {"argmax", "argmin", "test", *get_args(Count), *get_args(Bits)}
)
"""Kinds that are whole numbers."""
_OF_ALL: frozenset[Kind] = frozenset(get_args(Count) + get_args(Summary))
"""Kinds that are computed from all leaves of an output; their columns are remembered."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output."""

    text: str
    """How a person would write it: ``"output[2]"``, ``"len(output)"``."""
    kind: Kind
    argument: Any = None
    """The place of a leaf, the category that is counted, the leaves compared with, what is read out
    of a category, ..."""
    exact: bool = False
    """Whether numbers that are equal but for rounding count as different (see `rounding`)."""

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Its value for every output: numbers, and codes as in `Table`, shape (n,) each."""
        known = table.results.get(self) if table.results else None
        if known is None:
            if self.kind in _COLUMNS:
                known = _COLUMNS[self.kind](self.argument, table)
            else:
                known = numeric(_NUMBERS[self.kind](self.argument, table))
            if self.kind in _OF_ALL:
                table.results[self] = known
        return known


def _lengths(_: Any, table: Table) -> Floats:
    lengths = [np.nan if s.length is None else s.length for s in table.structures]
    of_outputs: Floats = np.array(lengths, dtype=np.float64)[table.structure]
    return of_outputs


def _count(category: Any, table: Table) -> Floats:
    owners = table.owner[table.codes == table.levels.get(category, ABSENT)]
    return np.bincount(owners, minlength=len(table)).astype(np.float64)


def _user_columns(argument: Any, table: Table) -> tuple[Floats, Ints]:
    function, index = argument
    numbers, codes = function.columns(table)
    return numbers[:, index], codes


def _summarised(kind: str) -> Callable[[Any, Table], Floats]:
    return lambda _, table: summary(table, kind)


_COLUMNS: dict[str, Callable[[Any, Table], tuple[Floats, Ints]]] = {
    "leaf": lambda place, table: table.leaf(place),
    "last": lambda _, table: table.last(),
    "difference": lambda places, table: difference(table, *places),
    "user": _user_columns,
}
"""Numbers and category codes, by kind of feature."""
_NUMBERS: dict[str, Callable[[Any, Table], Floats]] = {
    "len": _lengths,
    "count": _count,
    "hamming": lambda reference, table: hamming(table, reference),
    "above": lambda level, table: above(table, level),
    "bit": lambda which, table: bit(table, *which),
    "lowest bit": lambda place, table: lowest_bit(table, place),
    **{kind: _summarised(kind) for kind in get_args(Summary)},
    **dict.fromkeys(get_args(Derived), lambda what, table: what.values(table)),
}
"""Numbers alone, by kind of feature."""


def leaf(place: str) -> Feature:
    """The leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")
