"""Scores of outputs by a posterior, attacks that go by them, and the quantities behind a score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.betting.additive import AdditiveScore, FeatureBins
from pytest_dp.betting.models import Posterior
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table, tabulate

MAX_NAMED = 3
"""Quantities that are named, and outputs that are shown. More hide the most telling one."""


def scores(model: Posterior, table: Table) -> Floats:
    """Return the log odds, rounded so that equal outputs score the same in batches of any size."""
    rounded: Floats = np.round(model.log_odds(table), 9) + 0.0
    return rounded


@dataclass(frozen=True, slots=True)
class Attack:
    """A randomised event: outputs that score above a threshold, and a share of those right at it.

    ``attack(output)`` is the probability that the attack includes an output. The score is the
    learned log odds of the input that it points to against the other.
    """

    model: Posterior = field(repr=False)
    sign: int
    """1 if it includes outputs that point to D, -1 if those that point to D'."""
    threshold: float
    """In nats: ``sign`` times the log odds."""
    tie: float = 0.0
    """Probability with which outputs at the threshold are included."""
    told_by: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The quantities that add most to the score, with typical values inside and outside."""

    def hits(self, table: Table) -> tuple[Bools, Bools]:
        """Return which outputs score above the threshold, and which right at it."""
        signed = self.scores(table)
        return signed > self.threshold, signed == self.threshold

    def scores(self, table: Table) -> Floats:
        """Return the score of each output, in nats."""
        return self.sign * scores(self.model, table)

    def score(self, output: Any) -> float:
        """Return the score of one output, in nats."""
        return float(self.scores(tabulate([output]))[0])

    def mask(self, table: Table) -> Bools:
        """Return which outputs score above the threshold."""
        return self.hits(table)[0]

    def __call__(self, output: Any) -> float:
        above, at = self.hits(tabulate([output]))
        return float(above[0]) or self.tie * float(at[0])

    @property
    def said(self) -> str:
        """The event as the subject of a sentence."""
        return f"outputs with a score above {self.threshold:.4g}"

    def __str__(self) -> str:
        share = f", and a random {self.tie:.0%} of those at it" if self.tie else ""
        return f"score(output) > {self.threshold:.4g}{share}"


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
