"""Extracts: of outputs too long to keep, the quantities that are learned from.

An extract is a table without leaves. It knows the columns of its features, whatever these are, and
a hash of every output; all else of the outputs is gone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.outputs.columns import UNKNOWN, all_numbers, are_all_numbers, one_name
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.hashing import HASHES, hashes
from pytest_dp.outputs.leaves import Category
from pytest_dp.outputs.structures import EXTRACT
from pytest_dp.outputs.table import Table


@dataclass(frozen=True, slots=True)
class Extract:
    """What to keep of every output. Calling it gives the extract of a table."""

    about: tuple[Feature, ...]

    def __call__(self, table: Table) -> Table:
        n = len(table)
        known = {feature: feature.columns(table) for feature in self.about}
        hashed = hashes(table)
        bits = hashed.view(np.float64)  # as numbers, which are never recoded
        columns: dict[Hashable, tuple[Floats, Ints]] = {HASHES: (bits, all_numbers(n))}
        for feature, (numbers, codes) in known.items():  # copies: views would keep all of it
            plain = are_all_numbers(codes) or (not table.levels and bool((codes == -1).all()))
            columns[feature] = numbers.copy(), all_numbers(n) if plain else codes.copy()
        return _extract(columns, dict(table.levels), n)


def _extract(
    columns: dict[Hashable, tuple[Floats, Ints]], levels: dict[Category, int], n: int
) -> Table:
    none, empty = np.zeros(n, np.int64), np.zeros(0)
    offsets, types, forms = np.zeros(n + 1, np.int64), one_name(UNKNOWN, 0), one_name(None, n)
    table = Table([EXTRACT], none, offsets, empty, all_numbers(0), levels, types, forms, ())
    table.results.update(columns)
    return table


def about_extract(table: Table) -> list[Feature]:
    """The quantities of an extract."""
    return [feature for feature in table.results if isinstance(feature, Feature)]
