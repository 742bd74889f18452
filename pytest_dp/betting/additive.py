"""A learned score of outputs: a sum of step functions of their features.

The score is the log odds that an output came from D, not from D'. Each feature of an output is
sorted into bins, each bin has a weight, and the score is the sum of the weights: an additive
logistic regression. Weights of neighbouring bins are drawn together, so that few outputs give a
smooth score and many outputs a sharp one.

Cut points lie at quantiles, far out into both tails, since rare outputs can carry most of a loss.
Special values have bins of their own: recurring numbers, NaN, every category (None, exceptions,
strings, ...), and absence of the quantity.

The fit is by backfitting: one feature after the other gets the weights that fit best beside those
of all others. A quadratic bound on the likelihood makes each step exact, and none overshoots.

Sources: Hastie, Tibshirani, "Generalized Additive Models", 1990 (backfitting); Böhning, Lindsay,
"Monotonicity of quadratic-approximation algorithms", 1988 (the bound: its curvature is 1/4).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.rounding import (
    Clusters,
    WholeOutputs,
    cluster_numbers,
    feature_tolerance,
    find_recurring,
    separating_number,
)
from pytest_dp.outputs.table import Table
from pytest_dp.statistics.soft_bets import expit, logit

MAX_CATEGORIES = 256
"""Categories of a feature. More learn noise by heart; fewer miss rare ones."""
MAX_SINGLE = 64
"""Values of a feature with a bin of their own. More learn noise; fewer are lumped together."""
MAX_NUMBERS = 4_000_000
"""Numbers by which bins are chosen. More take longer; fewer place them less well."""

BinCodes = npt.NDArray[np.integer]

MAX_WHOLE_OUTPUTS = 200
"""Different outputs with a bin of their own. More: rare outputs are learned by heart."""
MIN_EACH_OUTPUT = 4.0
"""Mean count of such outputs. Smaller: bins of outputs that were seen once are noise."""
ONLY_WHOLE_OUTPUTS = 6
"""Different outputs below which their features add nothing to the outputs themselves."""
MIN_BINS, MAX_BINS = 6, 48
"""Bins of one feature. Fewer hide where an output tells; more are fitted by fewer outputs each."""
MAX_WEIGHTS = 300
"""Weights of all features, about. More take longer, and are known less well."""
SMOOTHNESS = 30.0
"""Penalty on squared steps between ordered bins, in outputs. Larger: sharp edges are learned late
(100: noise in a text took up to 1.7 times the outputs); smaller: the score follows chance."""
CATEGORY_RIDGE = 10.0
"""Penalty on squared weights of categories and recurring values. Larger and smaller: the same."""
ORDERED_RIDGE = 1e-3
"""The same on ordered bins, where it does no more than make the solution unique."""
SWEEPS = 12
"""Rounds over all features. More fit features closer that tell the same; time is in proportion."""


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """The bins of a feature, by which each output has a bin number.

    Bins are numbered: the numbers between cut points in increasing order, then atoms, NaN,
    categories, "absent", and "never seen".
    """

    feature: Feature
    cuts: Floats
    """Bin k of the ordered ones holds numbers x with ``cuts[k - 1] <= x < cuts[k]``."""
    atoms: Clusters
    """Recurring values."""
    categories: tuple[tuple[str, Hashable], ...]

    @property
    def ordered_count(self) -> int:
        """The number of ordered bins: those between cut points."""
        return len(self.cuts) + 1

    @property
    def width(self) -> int:
        """The number of bins."""
        return self.ordered_count + len(self.atoms.values) + len(self.categories) + 3

    def codes(self, table: Table) -> BinCodes:
        """Return the bin number of each of n outputs, shape (n,)."""
        numbers, kinds = self.feature.columns(table)
        codes = np.searchsorted(self.cuts, numbers, side="right").astype(np.uint16)
        if len(self.atoms.values):
            at = self.atoms.index(numbers)
            is_atom = at >= 0
            codes[is_atom] = self.ordered_count + at[is_atom]
        nan = self.ordered_count + len(self.atoms.values)
        if table.levels or not np.all(kinds == NUMBER):
            # Codes of a table are its own; -2 and -1, absent and number, index from the end.
            bins = np.full(len(table.levels) + 2, nan + 2 + len(self.categories), np.uint16)
            known = {level: nan + 1 + i for i, level in enumerate(self.categories)}
            for level, code in table.levels.items():
                bins[code] = known.get(level, bins[code])
            bins[ABSENT] = nan + 1 + len(self.categories)
            codes = np.where(kinds == NUMBER, codes, bins[kinds])
        missing = np.isnan(numbers) & (kinds == NUMBER)
        codes[missing] = nan
        return codes


Column = FeatureBins | WholeOutputs


def output_categories(table: Table, *, exact: bool) -> WholeOutputs | None:
    """Return bins with one whole output each; None if outputs are too many or too rare for that.

    If `exact`, numbers that are equal but for rounding have different bins.
    """
    if len(table) > 4_000:
        probe = WholeOutputs.of_table(table.rows(np.arange(len(table)) < 2_000), exact=exact)
        if len(probe.known_hashes) > MAX_WHOLE_OUTPUTS:
            return None
    outputs = WholeOutputs.of_table(table, exact=exact)
    most = min(MAX_WHOLE_OUTPUTS, len(table) / MIN_EACH_OUTPUT)
    return outputs if len(outputs.known_hashes) <= most else None


def bins_of(
    feature: Feature, table: Table, max_bins: int, share: float = 1.0
) -> FeatureBins | None:
    """Return about `max_bins` bins for a feature of outputs; None if the feature is constant.

    Cut points are placed by the share `share` of the outputs. Recurring values, NaN, and categories
    get further bins of their own.
    """
    numbers, kinds = feature.columns(table)
    stride = max(1, round(1 / share))
    is_number = (kinds == NUMBER) & ~np.isnan(numbers)
    sample = numbers[::stride][is_number[::stride]]
    around = feature_tolerance(feature, table)
    different, counts = cluster_numbers(*np.unique(sample, return_counts=True), around)
    values = different.values
    cuts, atoms = np.zeros(0), different.part(np.zeros(0, np.int64))
    if len(values) <= min(max_bins, MAX_SINGLE):
        cuts = separating_number(different.ends[1][:-1], different.ends[0][1:])
    elif len(values):
        often = find_recurring(counts, 0.001)
        if often.sum() > MAX_SINGLE:  # of many values of one sort those that stand out
            often = find_recurring(counts, 1.0)
        if often.sum() > MAX_SINGLE:
            often[:] = False
        atoms = different.part(often)
        cuts = _quantile_cuts(different.part(~often), counts[~often], max_bins)
    categories = _frequent_categories(kinds, table)
    varied = len(values) > 1 or np.ptp(kinds) > 0 or bool(np.isnan(numbers[kinds == NUMBER]).any())
    return FeatureBins(feature, cuts, atoms, categories) if varied else None


def _quantile_cuts(values: Clusters, counts: Ints, max_bins: int) -> Floats:
    """Return cut points at quantiles: half even, half ever farther out; [] without values."""
    ordered = np.repeat(np.arange(len(counts)), counts)
    if not len(ordered):
        return np.zeros(0)
    above = np.unique(
        ordered[quantile_positions(len(ordered), max_bins // 2, max_bins - max_bins // 2, 10)]
    )
    above = above[above > 0]
    return separating_number(values.ends[1][above - 1], values.ends[0][above])


def quantile_positions(n: int, even: int, far_out: int, least: float) -> Ints:
    """Return positions in `n` sorted values: `even` even ones, `far_out` ones far in both tails.

    About `least` values lie outside of the outermost position of each tail.
    """
    far = float(logit(1 - min(least / max(n, 1), 0.1)))
    levels = [np.linspace(0, 1, even + 2)[1:-1], expit(np.linspace(-far, far, far_out))]
    at = (np.concatenate(levels) * n).astype(np.int64)
    return np.unique(np.clip(at, min(1, n - 1), n - 1))


def _frequent_categories(kinds: Ints, table: Table) -> tuple[tuple[str, Hashable], ...]:
    """Return the most frequent categories among the codes `kinds` of a table, at most 256."""
    if not table.levels:
        return ()
    counts = np.bincount(kinds[kinds >= 0], minlength=len(table.levels))
    present = [level for level, code in table.levels.items() if counts[code]]
    present.sort(key=lambda level: -counts[table.levels[level]])
    return tuple(present[:MAX_CATEGORIES])


@dataclass(frozen=True, slots=True)
class AdditiveScore:
    """A score of outputs: the sum over columns of the weight of the bin that an output is in."""

    columns: tuple[Column, ...]
    weights: tuple[Floats, ...]
    """One array for each column, a weight for each bin, in nats."""

    def log_odds(self, table: Table) -> Floats:
        """Return the log odds of D for each of n outputs, in nats, shape (n,)."""
        return sum(self.parts(table), np.zeros(len(table)))

    def parts(self, table: Table) -> list[Floats]:
        """Return the weights that each column adds to the log odds, shape (n,) each."""
        pairs = zip(self.columns, self.weights, strict=True)
        return [weights[column.codes(table)] for column, weights in pairs]


def fit_additive(table: Table, on_d: Bools, features: Sequence[Feature]) -> AdditiveScore:
    """Fit and return a score of outputs on D (mask `on_d`) against as many on D'."""
    columns = choose_columns(table, features)
    codes = [column.codes(table) for column in columns]
    return AdditiveScore(tuple(columns), tuple(fit_weights(columns, codes, on_d)))


def choose_columns(table: Table, features: Sequence[Feature]) -> list[Column]:
    """Return the bins of all features that vary; and those of whole outputs, if few differ.

    Whole outputs alone, if they are so few that features add nothing; [] if all outputs are equal.
    """
    exact = any(feature.exact for feature in features)
    whole = output_categories(table, exact=exact)
    if whole is not None and whole.width <= ONLY_WHOLE_OUTPUTS:
        return [whole] if whole.width > 2 else []
    weights = min(MAX_WEIGHTS, math.sqrt(len(table)))
    most = int(np.clip(weights / max(len(features), 1), MIN_BINS, MAX_BINS))
    share = min(1.0, MAX_NUMBERS / max(len(features) * len(table), 1))
    binned = (bins_of(feature, table, most, share) for feature in features)
    columns: list[Column] = [column for column in binned if column is not None]
    return columns if whole is None else [*columns, whole]


def fit_weights(columns: Sequence[Column], codes: Sequence[BinCodes], on_d: Bools) -> list[Floats]:
    """Fit a penalised logistic regression of `on_d` on bins; return the weights of each column.

    `codes` are the bin numbers of each column, shape (n,); weights have shape (column.width,).
    """
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
    if column.ordered_count:
        differences = np.diff(np.eye(column.ordered_count), axis=0)
        smooth = SMOOTHNESS * differences.T @ differences + ORDERED_RIDGE * np.eye(
            column.ordered_count
        )
        penalty[: column.ordered_count, : column.ordered_count] = smooth
    return penalty
