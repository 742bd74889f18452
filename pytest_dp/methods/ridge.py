"""Ridge regression of which input an output came from: a score that a dozen outputs teach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.betting.models import Design, design
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table

MAX_DEVIATION = 4.0
"""Standard deviations that a standardised number may have. More: one odd output turns a score;
fewer: what stands out is cut off."""
MIN_LEFT = 1e-9
"""Share of an output's own weight that is left without it, at least. Smaller: rounding decides;
larger: outputs far out count too little."""

PENALTIES = 10.0 ** np.arange(-4, 6)
"""In outputs. Derived: from one that hardly any output notices to one that outweighs all."""


@dataclass(frozen=True, slots=True)
class Ridge:
    """A fitted score that ranks outputs; it says nothing about odds."""

    design: Design
    weights: Floats

    def score(self, table: Table) -> Floats:
        """Return the score of each output, shape (n,)."""
        scores: Floats = np.round(_near(self.design.matrix(table)) @ self.weights, 9)
        return scores

    @property
    def told_by(self) -> str:
        """Return the name of the number with the largest weight; empty if all weights are 0."""
        names = self.design.names
        return names[int(np.argmax(np.abs(self.weights)))] if np.any(self.weights) else ""


def _near(rows: Floats) -> Floats:
    return np.clip(rows, -MAX_DEVIATION, MAX_DEVIATION)  # one odd output is not to turn a score


def fit_ridge(table: Table, on_d: Bools, features: list[Feature]) -> Ridge:
    """Fit a ridge regression of the input, which a few outputs teach which quantity tells.

    Each quantity has a deviation that is its correlation with the input. How much all are drawn to
    nothing is chosen by the error of each output when it is left out, which has a closed form once
    the deviations are fixed.

    Sources: Golub, Heath, Wahba, "Generalized Cross-Validation as a Method for Choosing a Good
    Ridge Parameter", Technometrics 1979; Grandvalet, "Least Absolute Shrinkage is Equivalent to
    Quadratic Penalization", 1998 (ridge with a scale for each quantity).
    """
    plan = design(table, features)
    x, y = _near(plan.matrix(table)), np.where(on_d, 1.0, -1.0)
    y = y - y.mean()
    related = np.abs(x.T @ y) / len(y)
    left, sizes, right = np.linalg.svd(x * related, full_matrices=False)
    projected = left.T @ y
    best, weights = np.inf, np.zeros(x.shape[1])
    for penalty in PENALTIES:
        kept = sizes**2 / (sizes**2 + penalty)
        rest = y - left @ (kept * projected)
        leverage = np.minimum((left**2) @ kept + 1 / len(y), 1 - MIN_LEFT)
        error = float(((rest / (1 - leverage)) ** 2).mean())
        if error < best:
            best = error
            weights = right.T @ (sizes / (sizes**2 + penalty) * projected)
    return Ridge(plan, weights * related)
