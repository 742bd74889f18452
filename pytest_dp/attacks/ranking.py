"""A score that ranks outputs with a record above those without it, learned from a few of each.

Ridge regression of which side an output came from, on quantities with mean 0 and a deviation that
is their correlation with it: so eight outputs may teach it which of a hundred quantities tells. How
much it is drawn to nothing is chosen by what each output's error is when it is left out, which has
a closed form once the deviations are fixed.

Sources: Golub, Heath, Wahba, "Generalized Cross-Validation as a Method for Choosing a Good Ridge
Parameter", Technometrics 1979; Grandvalet, "Least Absolute Shrinkage is Equivalent to Quadratic
Penalization", 1998 (ridge with a scale for each quantity).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Floats
from pytest_dp.limits import EQUAL, ROUNDED, STANDS_OUT

PENALTIES = 10.0 ** np.arange(-4, 6)
"""In outputs. Derived: from one that hardly any output notices to one that outweighs all."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A linear score of quantities."""

    mean: Floats
    deviation: Floats
    weights: Floats

    def __call__(self, rows: Floats) -> Floats:
        """The score of each output, shape (n,), by its quantities, shape (n, quantities)."""
        scores: Floats = np.round(_scaled(rows, self.mean, self.deviation) @ self.weights, 9)
        return scores


def fit(rows: Floats, inside: Bools) -> Ranking:
    """Learn from outputs of both sides; their quantities may be NaN."""
    with np.errstate(all="ignore"):
        known = np.where(np.isfinite(rows), rows, np.nan)
        seen = np.isfinite(known).any(axis=0)
        mean = np.where(seen, np.nanmean(np.where(seen, known, 0.0), axis=0), 0.0)
        deviation = np.where(seen, np.nanstd(np.where(seen, known, 0.0), axis=0), 0.0)
    deviation = np.where(deviation > ROUNDED * np.abs(mean), deviation, np.inf)
    x, y = _scaled(rows, mean, deviation), np.where(inside, 1.0, -1.0)
    y = y - y.mean()
    related = np.abs(x.T @ y) / len(y)
    x = x * related
    left, sizes, right = np.linalg.svd(x, full_matrices=False)
    projected = left.T @ y
    best, weights = np.inf, np.zeros(x.shape[1])
    for penalty in PENALTIES:
        kept = sizes**2 / (sizes**2 + penalty)
        rest = y - left @ (kept * projected)
        leverage = np.minimum((left**2) @ kept + 1 / len(y), 1 - EQUAL)
        error = float(((rest / (1 - leverage)) ** 2).mean())
        if error < best:
            best = error
            weights = right.T @ (sizes / (sizes**2 + penalty) * projected)
    return Ranking(mean, deviation, weights * related)


def _scaled(rows: Floats, mean: Floats, deviation: Floats) -> Floats:
    with np.errstate(all="ignore"):  # one odd output is not to turn a score
        scaled = (np.clip(rows, -1e300, 1e300) - mean) / deviation
    return np.nan_to_num(np.clip(scaled, -STANDS_OUT, STANDS_OUT), nan=0.0)
