"""A learned score of outputs: a sum of step functions of their features.

The score is the log odds that an output came from D, not from D'. Each feature of an output is
sorted into bins (`betting.feature_bins`), each bin has a weight, and the score is the sum of the
weights: an additive logistic regression. Weights of neighbouring bins are drawn together, so that
few outputs give a smooth score and many outputs a sharp one.

The fit is by backfitting: one feature after the other gets the weights that fit best beside those
of all others. A quadratic bound on the likelihood makes each step exact to compute, and none
overshoots.

Sources: Hastie, Tibshirani, "Generalized Additive Models", 1990 (backfitting); Böhning, Lindsay,
"Monotonicity of quadratic-approximation algorithms", 1988 (the bound: its curvature is 1/4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.betting.feature_bins import (
    BinCodes,
    Column,
    bins_of,
    output_categories,
    row_share,
)
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table
from pytest_dp.statistics.regression import expit

MAX_WHOLE_OUTPUTS = 200
"""Different outputs that are each a bin of their own. More: rare outputs are learned by heart;
fewer: a mechanism of many answers is only seen through its features."""
MIN_EACH_OUTPUT = 4.0
"""Mean count of such outputs. Smaller: bins of outputs that were seen once are noise."""
ONLY_WHOLE_OUTPUTS = 6
"""Different outputs below which their features add nothing to the outputs themselves."""
MIN_BINS, MAX_BINS = 6, 48
"""Bins of one feature. Fewer hide where an output tells; more are fitted by fewer outputs each."""
MAX_WEIGHTS = 300
"""Weights of all features, about. More take longer, and are known less well."""
SMOOTHNESS = 30.0
"""Penalty on squared steps between neighbouring ordered bins, in outputs. Larger: sharp edges are
learned late; smaller: the score follows chance while outputs are few. With 100, noise in several
places of a text took 1.1 to 1.7 times the outputs; with 10, Gaussian noise under a delta 1.25."""
CATEGORY_RIDGE = 10.0
"""Penalty on squared weights of categories and recurring values. Larger and smaller: the same."""
ORDERED_RIDGE = 1e-3
"""The same on ordered bins, where it does no more than make the solution unique."""
SWEEPS = 12
"""Rounds over all features. More fit features closer that tell the same; time is in proportion."""


@dataclass(frozen=True, slots=True)
class AdditiveScore:
    """A sum over features of the weight of the bin that an output is in."""

    columns: tuple[Column, ...]
    weights: tuple[Floats, ...]
    """One array for each column, a weight for each bin, in nats."""

    def log_odds(self, table: Table) -> Floats:
        """Return the log odds of D for each output, shape (n,)."""
        return add_weights([column.codes(table) for column in self.columns], self.weights, table)

    def parts(self, table: Table) -> list[Floats]:
        """Return what each column adds to the log odds."""
        pairs = zip(self.columns, self.weights, strict=True)
        return [weights[column.codes(table)] for column, weights in pairs]


def fit_additive(table: Table, on_d: Bools, features: Sequence[Feature]) -> AdditiveScore:
    """Return the score that tells the outputs on D from the others, of which there are as many."""
    columns = choose_columns(table, features)
    codes = [column.codes(table) for column in columns]
    return AdditiveScore(tuple(columns), tuple(fit_weights(columns, codes, on_d)))


def add_weights(
    codes: Sequence[BinCodes], weights: Sequence[Floats], rows: Sequence[object] | Table
) -> Floats:
    """Return the sum of the weights of the bins of each row."""
    total = np.zeros(len(rows))
    for code, weight in zip(codes, weights, strict=True):
        total += weight[code]
    return total


def choose_columns(table: Table, features: Sequence[Feature]) -> list[Column]:
    """Return the features that vary, as bins; and whole outputs, where few differ."""
    exact = any(feature.exact for feature in features)
    whole = output_categories(table, MAX_WHOLE_OUTPUTS, MIN_EACH_OUTPUT, exact=exact)
    if whole is not None and whole.width <= ONLY_WHOLE_OUTPUTS:
        return [whole] if whole.width > 2 else []
    weights = min(MAX_WEIGHTS, math.sqrt(len(table)))
    most = int(np.clip(weights / max(len(features), 1), MIN_BINS, MAX_BINS))
    share = row_share(len(features), len(table))
    binned = (bins_of(feature, table, most, share) for feature in features)
    columns: list[Column] = [column for column in binned if column is not None]
    return columns if whole is None else [*columns, whole]


def fit_weights(columns: Sequence[Column], codes: Sequence[BinCodes], on_d: Bools) -> list[Floats]:
    """Return the weights of all bins, by penalised logistic regression of `on_d` on the bins."""
    steps = [
        np.linalg.inv(np.diag(np.bincount(code, minlength=column.width) / 4) + _penalty(column))
        for column, code in zip(columns, codes, strict=True)
    ]
    penalties = [_penalty(column) for column in columns]
    weights = [np.zeros(column.width) for column in columns]
    odds = np.zeros(len(on_d))
    for _ in range(SWEEPS):
        for k, code in enumerate(codes):
            surplus = np.bincount(code, on_d - expit(odds), minlength=columns[k].width)
            change = steps[k] @ (surplus - penalties[k] @ weights[k])
            weights[k] = weights[k] + change
            odds += change[code]
    return weights


def _penalty(column: Column) -> Floats:
    """Return the matrix of the quadratic penalty on the weights of a column.

    Ordered bins are drawn to their neighbours, all others to 0.
    """
    penalty = CATEGORY_RIDGE * np.eye(column.width)
    if column.ordered:
        differences = np.diff(np.eye(column.ordered), axis=0)
        smooth = SMOOTHNESS * differences.T @ differences + ORDERED_RIDGE * np.eye(column.ordered)
        penalty[: column.ordered, : column.ordered] = smooth
    return penalty
