"""Outputs on a pair of inputs that are kept: as tables, as far as there is room for them.

Outputs are taken apart once, where they are drawn. Of outputs too long to keep many of, only the
quantities that are learned from are kept: an extract.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Outputs, join_outputs
from pytest_dp.outputs.feature import Column, Feature
from pytest_dp.outputs.flatten import EXTRACT
from pytest_dp.outputs.leaves import NUMBER, UNKNOWN, all_numbers, are_all_numbers, one_name
from pytest_dp.outputs.table import HASHES, Table, concatenate, hashes, tabulate

TOTAL_ROOM = 2_000_000
"""Numbers that are kept of the outputs on either input, of all pairs together. More take memory;
fewer teach less."""
MAX_SHOWN = 200_000
"""Numbers of the outputs that a check looks at. More take longer; fewer miss what is rare."""
MIN_SHOWN = 8
"""Outputs that a check looks at, at least, however long they are."""


@dataclass(frozen=True, slots=True)
class Extract:
    """A function from a table to its *extract*: a table without leaves, for long outputs.

    An extract holds the columns of the features in `about`, and a hash of every output.
    """

    about: tuple[Feature, ...]

    def __call__(self, table: Table) -> Table:
        n = len(table)
        known = {feature: feature.columns(table) for feature in self.about}
        bits = hashes(table).view(np.float64)  # as numbers, which are never recoded
        columns: dict[Hashable, Column] = {HASHES: (bits, all_numbers(n))}
        for feature, (numbers, codes) in known.items():  # copies: views would keep all of it
            plain = are_all_numbers(codes) or (not table.levels and bool((codes == NUMBER).all()))
            columns[feature] = numbers.copy(), all_numbers(n) if plain else codes.copy()
        extract = Table(
            [EXTRACT],
            np.zeros(n, np.int64),
            np.zeros(n + 1, np.int64),
            np.zeros(0),
            all_numbers(0),
            dict(table.levels),
            one_name(UNKNOWN, 0),
            one_name(() if table.is_typed else None, n),
            (),
        )
        extract.results.update(columns)
        return extract


class PairedOutputs:
    """A store of the outputs on D and on D' of one pair of inputs, in the order of their draws.

    The first `coupled` of its `pairs` share their random numbers. `room` is how many numbers may be
    held in memory of the outputs on D, and again on D'. `extract` makes extracts of outputs that
    are too long; None while outputs are held whole.
    """

    def __init__(self, room: float = TOTAL_ROOM) -> None:
        self.room = room
        self.pairs = self.coupled = 0
        self.extract: Extract | None = None
        # Outputs on D and then those on D', of all pairs but of the batches since.
        self._tables: tuple[Table | None, list[tuple[Table, Table]]] = None, []
        self._examples: Table | None = None
        self._room_of_output = 0.0  # in numbers

    def add(self, on_d: Table, on_d2: Table, *, coupled: bool) -> None:
        """Append a batch of tables, or of extracts; if `coupled`, all before have to be coupled."""
        self._tables[1].append((on_d, on_d2))
        self.pairs += len(on_d)
        self.coupled += len(on_d) if coupled else 0
        self._room_of_output = self._room_of_output or mean_leaves(on_d)

    def table(self) -> tuple[Table, Bools]:
        """Merge all batches, and return their table with a mask of the outputs on D, (2 * pairs,).

        Outputs on D come first. Holds extracts once `keep_only` was called. Raises ValueError
        without a batch.
        """
        merged, batches = self._tables
        if batches or merged is None:
            if merged is not None:
                half = len(merged) // 2
                batches = [(merged.between(0, half), merged.between(half, 2 * half)), *batches]
            merged = concatenate([table for side in zip(*batches, strict=True) for table in side])
            self._tables = merged, []
        return merged, np.arange(2 * self.pairs) < self.pairs

    def examples(self) -> Table:
        """Return the table of the outputs held whole, on D and then on D'."""
        return self.table()[0] if self._examples is None else self._examples

    def sides(self) -> tuple[Outputs, Outputs]:
        """Return the outputs held whole, on D and on D'; a few after `keep_only`."""
        raw = self.examples().raw
        half = len(raw) // 2
        return raw[:half], raw[half:]

    @property
    def whole_pairs(self) -> int:
        """The number of pairs of outputs that are held whole."""
        return len(self.examples().raw) // 2

    def has_equal_pairs(self) -> bool:
        """Return whether all pairs share their random numbers and have equal outputs."""
        marks = hashes(self.table()[0])
        on_d, on_d2 = np.split(marks, 2)
        return self.coupled == self.pairs and np.array_equal(on_d, on_d2)

    def has_room(self, size: int) -> bool:
        """Return whether memory is left for `size` more pairs; True while there are no pairs."""
        numbers = self._room_of_output if self.extract is None else len(self.extract.about) + 1
        return (self.pairs + size) * numbers <= self.room or not self.pairs

    def keep_only(self, about: list[Feature]) -> None:
        """Replace all outputs by extracts with these features, and set `extract`.

        Some outputs stay whole as examples. Later batches have to pass through `extract`.
        """
        table = self.table()[0]
        shown = max(MIN_SHOWN, int((MAX_SHOWN) / mean_leaves(table)))
        sides = (table.raw[: self.pairs], table.raw[self.pairs :])
        examples = tabulate(join_outputs([copy_first(side, shown) for side in sides]))
        extract = Extract(tuple(about))
        self._tables = extract(table), []
        self.extract, self._examples = extract, examples


def mean_leaves(table: Table) -> float:
    """Return the mean number of leaves of the first eight outputs; at least 1."""
    return max(1.0, float(np.mean(table.sizes[:8])))


def copy_first(outputs: Outputs, number: int) -> Outputs:
    """Return the first `number` outputs, as a copy that lets the memory of all others be freed."""
    part = outputs[:number]
    return part.copy() if isinstance(part, np.ndarray) else part


def first_pairs(table: Table, on_d: Bools, number: int) -> tuple[Table, Bools]:
    """Return the first `number` outputs on each input, of a table with half on each.

    Returns the table and the mask of outputs on D; both unchanged if there are fewer.
    """
    half = len(on_d) // 2
    if half <= number:
        return table, on_d
    rows = np.arange(len(on_d)) % half < number
    return table.rows(rows), on_d[rows]


def features_of_extract(table: Table) -> list[Feature]:
    """Return the features that an extract has columns of."""
    return [feature for feature in table.results if isinstance(feature, Feature)]
