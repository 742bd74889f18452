"""What noise leaves behind in outputs, by which it can be taken off again."""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Bools
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.lattices import Remainder, remainders
from pytest_dp.outputs.relations import Relation, near_relations, relations
from pytest_dp.outputs.screening import some_rows
from pytest_dp.outputs.table import Table

NUMBERS, FEWEST, MOST = 400_000, 48, 200
"""Numbers to look at on either input, and outputs, at least and at most."""


def traces(
    table: Table, first: Bools, known: set[tuple[str, str]], among: list[str]
) -> list[Relation | Remainder]:
    """Relations among numbers, and remainders of grids: only what tells D from D'.

    Parameters
    ----------
    table : Table
    first : ndarray of bool, shape (n,)
        Which outputs are on D.
    known : set of (str, str)
        Places of which the difference, the one less the other, is looked at anyway.
    among : list of str
        Places to look at.
    """
    rows = some_rows(first, int(np.clip(NUMBERS // max(len(among), 1), FEWEST, MOST)))
    places, numbers, codes = table.matrix(rows)
    if len(among) < len(places):
        wanted = set(among)
        columns = np.flatnonzero([place in wanted for place in places])
        places = [places[i] for i in columns.tolist()]
        numbers, codes = numbers[:, columns], codes[:, columns]
    numbers = np.where(codes == NUMBER, numbers, np.nan)
    one, two = numbers[first[rows]], numbers[~first[rows]]
    near = [r for r in near_relations(places, one, two) if r.places[::-1] not in known]
    return [*relations(places, one, two), *near, *remainders(places, one, two)]
