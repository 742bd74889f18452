"""The quantities that add most to a score, and their typical values."""

from __future__ import annotations

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.betting.additive import AdditiveScore
from pytest_dp.betting.feature_bins import FeatureBins
from pytest_dp.betting.scores import Attack, scores
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table

MAX_NAMED = 3
"""Quantities that are named, and outputs that are shown. More hide the most telling one."""


def told_by(attack: Attack, table: Table) -> tuple[str, ...]:
    """Return the quantities that add most to the score inside of an attack, with examples.

    The table holds outputs of both inputs, from which the attack was learned.
    """
    inside = attack.mask(table)
    if not isinstance(attack.model, AdditiveScore) or inside.all() or not inside.any():
        return ()
    adds = [attack.sign * part for part in attack.model.parts(table)]
    more = np.array([part[inside].mean() - part[~inside].mean() for part in adds])
    told = []
    for at in np.argsort(-more)[:MAX_NAMED].tolist():
        column = attack.model.columns[at]
        if more[at] > 0 and isinstance(column, FeatureBins):
            here, there = (_typical(column.feature, table, rows) for rows in (inside, ~inside))
            if here != there:
                told.append(f"{column.feature.text}: {here} in S, {there} outside")
    return tuple(told)


def digits_for(attack: Attack, shown: Floats) -> int:
    """Return the fewest digits, at least four, that separate the threshold from these scores."""

    def reads_apart(digits: int) -> bool:
        return f"{attack.threshold:.{digits}g}" not in {f"{score:.{digits}g}" for score in shown}

    return next(filter(reads_apart, range(4, 17)), 17)


def _typical(feature: Feature, table: Table, rows: Bools) -> str:
    """Return the median of the numbers, or the commonest category, whatever is there more often."""
    numbers, codes = feature.columns(table)
    numbers, codes = numbers[rows], codes[rows]
    if (codes == NUMBER).mean() > 0.5:
        return f"{np.nanmedian(numbers[codes == NUMBER]):.4g}"
    values, counts = np.unique(codes[codes != NUMBER], return_counts=True)
    names = {code: category_text(level) for level, code in table.levels.items()}
    return names.get(int(values[counts.argmax()]), "absent")


def typical_outputs(attack: Attack, table: Table, inside: bool) -> list[int]:
    """Return the rows of a few outputs inside or outside of an attack, the typical ones first."""
    rows = np.flatnonzero(attack.mask(table) == inside)
    if not len(rows):
        return []
    score = scores(attack.model, table)[rows]
    order = np.argsort(np.abs(score - np.median(score)), kind="stable")
    chosen: list[int] = rows[order[:MAX_NAMED]].tolist()
    return chosen
