"""What noise leaves behind in outputs, by which it can be taken off again."""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Bools
from pytest_dp.limits import DOZENS, POOL, STEPS
from pytest_dp.outputs.lattices import Remainder, remainders
from pytest_dp.outputs.relations import Relation, near_relations, relations
from pytest_dp.outputs.screening import leading_rows
from pytest_dp.outputs.table import Table


def traces(
    table: Table, on_d: Bools, known: set[tuple[str, str]], among: list[str]
) -> tuple[list[Relation], list[Remainder]]:
    """Relations among numbers, and remainders of grids: only what tells D from D'.

    The places to look at are those in `among`. Of two places in `known`, the difference, the one
    less the other, is looked at anyway.
    """
    affordable = (20 * STEPS) // max(len(among), 1)
    rows = leading_rows(on_d, int(np.clip(affordable, 2 * DOZENS, POOL)))
    places, numbers, _ = table.matrix(rows)
    if len(among) < len(places):
        wanted = set(among)
        columns = np.flatnonzero([place in wanted for place in places])
        places = [places[i] for i in columns.tolist()]
        numbers = numbers[:, columns]
    sides = numbers[on_d[rows]], numbers[~on_d[rows]]
    near = [r for r in near_relations(places, *sides) if r.places[::-1] not in known]
    return relations(places, *sides) + near, remainders(places, *sides)
