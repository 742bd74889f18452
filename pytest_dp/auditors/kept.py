"""What is kept of the outputs of a pair of inputs: tables, as far as there is room for them.

Outputs are taken apart once, where they are drawn. Of outputs too long to keep many of, only the
quantities that are learned from are kept: an extract.
"""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Bools, Outputs, joined
from pytest_dp.outputs.extracts import Extract
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.screening import MIN_PAIRS
from pytest_dp.outputs.table import Table, concatenated, tabulate

TOTAL_ROOM, MIN_ROOM = 2_000_000, 50_000
"""Numbers that are kept on either input: of all pairs of inputs together, and of each at least."""
LONG_OUTPUT, ROOM_OF_AN_OBJECT = 1_000, 4
"""Leaves from which outputs are long, and what a number takes there that is a Python object."""
MAX_EXAMPLE_NUMBERS = 200_000
"""Numbers, in all outputs together, that are kept to show examples once only extracts are kept."""


class Kept:
    """Pairs of outputs on two inputs, in the order in which they were drawn.

    Parameters
    ----------
    room : int
        Numbers that may be kept, on D and as many on D'.

    Attributes
    ----------
    pairs : int
        How many pairs of outputs are kept.
    coupled : int
        How many of them share their random numbers: the first ones.
    extract : Extract or None
        What is kept of outputs too long to keep many of; None while all of them is.
    """

    def __init__(self, room: float = TOTAL_ROOM) -> None:
        self.room = room
        self.pairs = self.coupled = 0
        self.extract: Extract | None = None
        # Outputs on D and then those on D', of all pairs but of the batches since.
        self._tables: tuple[Table | None, list[tuple[Table, Table]]] = None, []
        self._examples: Table | None = None
        self._each = 0.0  # numbers that an output takes of the room

    def add(self, on_d: Table, on_d2: Table, *, coupled: bool) -> None:
        """A batch of outputs, or of extracts."""
        self._tables[1].append((on_d, on_d2))
        self.pairs += len(on_d)
        self.coupled += len(on_d) if coupled else 0
        self._each = self._each or room_of(on_d)

    def table(self) -> tuple[Table, Bools]:
        """All that is kept, and which of it is on D."""
        whole, since = self._tables
        if since or whole is None:
            parts = since
            if whole is not None:
                half = len(whole) // 2
                parts = [(whole.between(0, half), whole.between(half, 2 * half)), *since]
            whole = concatenated([table for side in zip(*parts, strict=True) for table in side])
            self._tables = whole, []
        return whole, np.arange(2 * self.pairs) < self.pairs

    def examples(self) -> Table:
        """Outputs that were kept themselves, on D and on D'."""
        return self.table()[0] if self._examples is None else self._examples

    def sides(self) -> tuple[Outputs, Outputs]:
        """Outputs on D, and those on D'."""
        raw = self.examples().raw
        half = len(raw) // 2
        return raw[:half], raw[half:]

    def alike(self) -> bool:
        """Whether, with the same random numbers, both inputs always gave the same outputs."""
        marks = hashes(self.table()[0])
        on_d, on_d2 = np.split(marks, 2)
        return self.coupled == self.pairs and np.array_equal(on_d, on_d2)

    def has_room(self, size: int) -> bool:
        """Whether so many more pairs of outputs, or of extracts, can be kept."""
        each = self._each if self.extract is None else len(self.extract.about) + 1
        return (self.pairs + size) * each <= self.room or not self.pairs

    def keep_only(self, about: list[Feature]) -> None:
        """Keep extracts with these features from now on, and of what was kept."""
        table = self.table()[0]
        few = max(MIN_PAIRS, int(MAX_EXAMPLE_NUMBERS / leaves_of(table)))
        sides = (table.raw[: self.pairs], table.raw[self.pairs :])
        examples = tabulate(joined([part_of(side, few) for side in sides]))
        extract = Extract(tuple(about))
        self._tables = extract(table), []
        self.extract, self._examples = extract, examples


def leaves_of(table: Table) -> float:
    """How many leaves an output has, by the first few."""
    return max(1.0, float(np.mean(table.sizes[:8])))


def room_of(table: Table) -> float:
    """What an output takes of the room, in numbers of an array, by the first few.

    In a long list or the like each number is an object, which takes four times as much.
    """
    leaves = leaves_of(table)
    in_arrays = isinstance(table.raw[0], np.ndarray | np.generic)
    return leaves if in_arrays or leaves < LONG_OUTPUT else ROOM_OF_AN_OBJECT * leaves


def part_of(outputs: Outputs, most: int) -> Outputs:
    """The first outputs, without the memory of the others."""
    some = outputs[:most]
    return some.copy() if isinstance(some, np.ndarray) else some
