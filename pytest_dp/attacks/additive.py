"""The additive posterior model: log odds as a sum of step functions, one for each quantity.

With noise drawn independently for each coordinate this form is exact, and it stays close for most
mechanisms. The steps from bin to bin have a Student prior, that is, each function is a random walk
a priori, with a few large steps; how far the walks go is learned from the samples (automatic
relevance determination, by the evidence approximation). So a leak spread thinly over many
coordinates, a single sharp step and a quantity that says nothing are all fitted without a knob.

Sources: MacKay, "The evidence framework applied to classification networks", Neural Computation
1992; Jaakkola, Jordan, "Bayesian parameter estimation via variational methods", Statistics and
Computing 2000 (the quadratic lower bound of the likelihood).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.attacks.cholesky import inverse_root, times
from pytest_dp.attacks.feature_bins import BinCodes, Column, bins_of, output_categories, row_share
from pytest_dp.limits import DOZENS, FEW, MILLION, POOL, POOLING
from pytest_dp.outputs.feature import PLACE_KINDS, Feature
from pytest_dp.outputs.table import Table
from pytest_dp.statistics.regression import expit

HELD_OUT_EVERY = 5
"""One output in so many is held out, and decides whether `PLACE_KINDS` are left out: where many
numbers of an output may leak alike, a few features of all of them together may explain more.
Larger: the decision is less sure; smaller: less is left to fit. Measured: without it, bets take
as many samples, and DP-Sniper shows a quarter less of noise spread over 20 numbers."""


@dataclass(frozen=True, slots=True)
class Additive:
    """A fitted model."""

    columns: tuple[Column, ...]
    weights: tuple[Floats, ...]
    """For each column, the log odds that each of its bins adds."""
    intercept: float

    def log_odds(self, table: Table) -> Floats:
        total = np.full(len(table), self.intercept)
        for part in self.parts(table):
            total += part
        return total

    def parts(self, table: Table) -> Iterator[Floats]:
        """What each column adds to the log odds of every output."""
        for column, weight in zip(self.columns, self.weights, strict=True):
            yield weight[column.codes(table)]


def fit(
    table: Table, on_d: Bools, features: Sequence[Feature], *, paired: bool = False
) -> Additive:
    """Learn to tell outputs on the first input from those on the second; as `attacks.fit`."""
    alike = [feature for feature in features if feature.kind not in PLACE_KINDS]
    if any(feature.kind == "above" for feature in alike):
        known = np.empty(len(table), dtype=bool)
        for side in (on_d, ~on_d):  # pairs stay together
            known[side] = np.arange(np.count_nonzero(side)) % HELD_OUT_EVERY > 0
        parts = (table.rows(known), on_d[known]), (table.rows(~known), on_d[~known])
        if _explained(*parts, alike, paired) > _explained(*parts, features, paired):
            features = alike
    return _fitted(table, on_d, features, paired)


def _explained(
    known: tuple[Table, Bools],
    held_out: tuple[Table, Bools],
    features: Sequence[Feature],
    paired: bool,
) -> float:
    """Log likelihood of the outputs that were held out from a fit."""
    odds = _fitted(*known, features, paired).log_odds(held_out[0])
    return -float(np.logaddexp(0, np.where(held_out[1], -odds, odds)).sum())


def _fitted(table: Table, on_d: Bools, features: Sequence[Feature], paired: bool) -> Additive:
    columns = _columns(table, features)
    if not columns:
        return Additive((), (), 0.0)
    codes = [column.codes(table) for column in columns]
    weights, intercept = _Fit(columns, codes, on_d, paired).run()
    spread = np.array([np.std(weight[code]) for weight, code in zip(weights, codes, strict=True)])
    keep = spread > 0.02 * spread.max()  # each column costs time to evaluate
    retained = [(c, w) for c, w, yes in zip(columns, weights, keep, strict=True) if yes]
    return Additive(tuple(c for c, _ in retained), tuple(w for _, w in retained), intercept)


def _columns(table: Table, features: Sequence[Feature]) -> list[Column]:
    exact = any(feature.exact for feature in features)
    everything = output_categories(table, POOL, min_each=4.0, exact=exact)
    if everything is not None and everything.width <= 6:
        return [everything] if everything.width > 2 else []
    parameters = min(300, np.sqrt(len(table)))
    max_bins = int(np.clip(parameters / max(len(features), 1), 6, 2 * DOZENS))
    share = row_share(len(features), len(table))
    candidates = [bins_of(feature, table, max_bins, share) for feature in features]
    varying: list[Column] = [column for column in candidates if column is not None]
    return varying if everything is None else [*varying, everything]


class _Fit:
    """Newton steps on the penalised likelihood, with the evidence for the penalty in between.

    Parameters of an ordered column are the steps between its bins, of others the bins themselves;
    the last one is the intercept. Sums over outputs are made for each bin first.
    """

    def __init__(
        self, columns: Sequence[Column], codes: Sequence[BinCodes], on_d: Bools, paired: bool
    ) -> None:
        self.columns, self.codes, self.on_d = columns, codes, on_d
        self.widths = [column.width for column in columns]
        self.starts = np.concatenate([[0], np.cumsum(self.widths)])
        free = np.ones(self.starts[-1] + 1, dtype=bool)
        groups = np.empty(self.starts[-1] + 1, dtype=np.int64)
        kinds: dict[tuple[str, bool], int] = {}
        family: list[int] = []
        occupied = self._sums(np.ones(len(on_d)), codes)
        for j, column in enumerate(columns):
            start, ordered = self.starts[j], column.ordered
            if ordered:
                free[start] = False
                beyond = np.cumsum(occupied[start : start + ordered][::-1])[::-1]
                occupied[start : start + ordered] = beyond
            groups[start : start + ordered] = 2 * j
            groups[start + ordered : self.starts[j + 1]] = 2 * j + 1
            kind = column.feature.kind if column.ordered else "whole"  # type: ignore[union-attr]
            family += [kinds.setdefault((kind, steps), len(kinds)) for steps in (True, False)]
        free[:-1] &= (occupied[:-1] > 0) & (occupied[:-1] < len(on_d))
        self.free, self.groups, self.family = free, groups[free][:-1], np.array(family)
        self.sharpness = self._sharpness() if paired else 1.0

    def run(self) -> tuple[list[Floats], float]:
        """Weights of the bins of each column, and the intercept."""
        here = best = np.zeros(int(self.free.sum()))
        scale, weight = np.zeros(len(self.family)), np.ones(len(self.groups))
        highest, damping = -np.inf, 1.0
        for _ in range(10):
            odds = self._odds(here)
            losses = np.logaddexp(0, np.where(self.on_d, -odds, odds))
            likelihood = -self.sharpness * float(losses.sum())
            if likelihood < highest:  # the curvature is only known from some of the outputs
                here, damping = (here + best) / 2, damping / 2
                continue
            gain, highest, best = likelihood - highest, likelihood, here
            if gain < 0.5:
                break
            curvature = self.sharpness * self._curvature(odds)
            target = times(curvature, here) + self.sharpness * self._slope(odds)
            updates = FEW
            if not scale.any():
                scale += 1 / _common_precision(curvature, target)
                updates *= 4
            mode, scale, weight = self._evidence(curvature, target, scale, weight, updates)
            here = here + damping * (mode - here)
        return self._by_bin(best), float(best[-1])

    def _sharpness(self) -> float:
        """How many times smaller the variance of the slope is than if outputs did not share noise.

        In pairs whose outputs are in the same bin, what they say about it cancels. As that differs
        between bins, the least counts for all of them.
        """
        ratios = []
        for column, codes in zip(self.columns, self.codes, strict=True):
            codes1, codes2 = codes[self.on_d], codes[~self.on_d]
            every = sum(np.bincount(side, minlength=column.width) for side in (codes1, codes2))
            apart = every - 2 * np.bincount(codes1[codes1 == codes2], minlength=column.width)
            independent = every * (1 - every / len(self.on_d))
            ratios.append(((independent + 1) / (apart + 1))[every > 0])
        return float(np.clip(np.concatenate(ratios).min(), 1, 100.0))

    def _evidence(
        self, curvature: Floats, target: Floats, scale: Floats, weight: Floats, updates: int
    ) -> tuple[Floats, Floats, Floats]:
        """The posterior mode for a quadratic likelihood, and the prior that explains it."""
        for _ in range(updates):
            precision = weight / scale[self.groups]
            root = _root(curvature, precision)
            mode = times(root.T, times(root, target))
            variance = (root**2).sum(axis=0)[:-1]
            known = 1 - precision * variance
            learned = np.bincount(self.groups, known, minlength=len(scale))
            size = np.bincount(self.groups, weight * mode[:-1] ** 2, minlength=len(scale))
            # Quantities of a kind share what they have learned about their scale.
            alike = np.bincount(self.family, size)[self.family]
            learned_alike = np.bincount(self.family, learned)[self.family]
            common = alike / np.maximum(learned_alike, 1e-9)
            scale = np.clip((size + POOLING * common) / (learned + POOLING), 1e-9, 1e3)
            weight = (FEW + 1) / (FEW + (mode[:-1] ** 2 + variance) / scale[self.groups])
        return mode, scale, weight

    def _odds(self, parameters: Floats) -> Floats:
        odds = np.full(len(self.on_d), parameters[-1])
        for codes, weight in zip(self.codes, self._by_bin(parameters), strict=True):
            odds += weight[codes]
        return odds

    def _by_bin(self, parameters: Floats) -> list[Floats]:
        """Weights of bins from parameters."""
        full = np.zeros(len(self.free))
        full[self.free] = parameters
        for j, column in enumerate(self.columns):
            block = slice(self.starts[j], self.starts[j] + column.ordered)
            full[block] = np.cumsum(full[block])
        return np.split(full[:-1], self.starts[1:-1])

    def _by_parameter(self, sums: Floats) -> Floats:
        """Sums for each parameter from sums for each bin, along the first axis; changes `sums`."""
        for j, column in enumerate(self.columns):
            block = slice(self.starts[j], self.starts[j] + column.ordered)
            sums[block] = np.cumsum(sums[block][::-1], axis=0)[::-1]
        return sums[self.free]

    def _sums(self, values: Floats, codes: Sequence[npt.NDArray[np.integer]]) -> Floats:
        """Sums over the outputs in each bin, and over all of them."""
        sums = [
            np.bincount(c, values, minlength=width)
            for c, width in zip(codes, self.widths, strict=True)
        ]
        return np.concatenate([*sums, [values.sum()]])

    def _slope(self, odds: Floats) -> Floats:
        return self._by_parameter(self._sums(self.on_d - expit(odds), self.codes))

    def _curvature(self, odds: Floats) -> Floats:
        stride = math.ceil(len(odds) * len(self.columns) ** 2 / (50 * MILLION))
        weight = _curvature_bound(odds)
        sampled = weight[::stride]
        codes: list[Ints] = [c[::stride].astype(np.int64) for c in self.codes]
        cross = np.zeros((len(self.free), len(self.free)))
        cross[-1] = cross[:, -1] = counted = self._sums(sampled, codes)
        for j, width in enumerate(self.widths):
            rows = slice(self.starts[j], self.starts[j + 1])
            for k in range(j + 1, len(self.widths)):
                other = self.widths[k]
                both: Ints = codes[j] * other + codes[k]
                joint = np.bincount(both, sampled, width * other).reshape(width, other)
                columns = slice(self.starts[k], self.starts[k + 1])
                cross[rows, columns] = joint
                cross[columns, rows] = joint.T
        # Rare bins may be missing among some of the outputs: their own curvature is taken from all.
        cross *= stride
        full = self._sums(weight, self.codes)
        np.fill_diagonal(cross, np.maximum(full, stride * counted))
        return self._by_parameter(self._by_parameter(cross).T.copy())


def _curvature_bound(odds: Floats) -> Floats:
    """Curvature of Jaakkola and Jordan's bound: with it, no step overshoots."""
    size = np.maximum(np.abs(odds), 1e-6)
    bending: Floats = np.tanh(size / 2) / (2 * size)
    return bending


def _root(curvature: Floats, precision: Floats) -> Floats:
    """The inverse root of the posterior's curvature; of a stack of precisions, shape (k, n, n)."""
    n = len(curvature)
    posterior = np.empty((*precision.shape[:-1], n, n))
    posterior[:] = curvature
    diagonal = posterior.reshape(*precision.shape[:-1], n * n)[..., :: n + 1]
    # The ridge makes it invertible where quantities coincide; the intercept has no prior.
    diagonal += 1e-6 * diagonal.max()
    diagonal[..., :-1] += precision
    return inverse_root(posterior)


def _common_precision(curvature: Floats, target: Floats) -> float:
    """The precision, one for all parameters, that explains the samples best."""
    count = len(target) - 1
    candidates = np.geomspace(1, 1e6, 7)
    evidence = []
    roots = _root(curvature, np.repeat(candidates[:, None], count, axis=1))
    for precision, root in zip(candidates.tolist(), roots, strict=True):
        explained = 0.5 * float((times(root, target) ** 2).sum())
        log_size = float(np.log(np.diag(root)).sum()) + 0.5 * count * math.log(precision)
        evidence.append(explained + log_size)
    return float(candidates[np.argmax(evidence)])
