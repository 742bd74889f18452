"""Confidence regions for both probabilities of an event.

Given independent `c1 ~ Bin(n1, p1)` and `c2 ~ Bin(n2, p2)`, this bounds whatever rises with p1 and
falls with p2. The tails of both counts become normal scores Z1 and Z2, which are added with weights
of the point (p1, p2) to a score S. The points with small Z1, Z2 and S are a confidence region; the
square of all points is cut into cells, and a cell that may have a point in the region counts with
the corner that shows least.

Two Clopper-Pearson bounds at half of alpha each let both frequencies err at their worst at the same
time; here their errors are added as independent ones are. Proof: docs/proofs/ratio-bound.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, expit, ndtr, ndtri

from pytest_dp.basics.arrays import Bools, Floats

BETA = 0.01
"""Share of alpha that pays for points that are left out as too far off. Larger: less for the
others; smaller: a larger grid. By hand."""

NODES = 1024
"""Grid lines per parameter between Z = -m and Z = m. More cost time; fewer make the bound, which is
that of whole cells, less sharp, but never invalid. By hand."""

Z_ROUNDING = 1e-7
"""Taken off every Z; covers a relative error of 8e-8 in a tail. Compared with sums of 50 digits,
scipy's errors stayed below 2e-9 (1.12) and 1e-11 (1.17)."""

LOG_MARGIN = 1e-12
"""For the rounding of logarithms, and of p-values next to alpha: some thousand units in the last
place. Larger makes bounds lower by as much, and never invalid."""

MIN_LEVEL = 1e-250
"""Nothing is proved below this level, where probabilities become too small for a float."""

_KNOTS = 129
"""Quantiles that the grid lines are interpolated from. More cost time; fewer space the lines less
evenly, which is never invalid. By hand."""

_GROWING = np.cumsum(1.2 ** np.arange(1, 97))
"""Distances of the sparse lines from the others, in steps; the last is 2e8. Faster growth makes far
cells coarse; slower takes more lines. By hand."""

_BLOCK = 64
"""Cells along a side of the blocks that the search starts with; a power of two. It changes the time
only. By hand."""

_STRIPE = 16
"""The same, where every column is searched."""

_TILT = 0.5
"""Limit to the exponent of the weights' correction, which is too coarse for few counts. Larger:
weights far from the best for rare events; smaller: less correction. No weights are invalid. By
hand."""

Variances = Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], tuple[Floats, Floats]]
"""What the frequencies of p1 in n1 runs, and of p2 in n2, add to the error of what they show."""

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Axis:
    """Grid lines of one parameter, in increasing order, and Z at each of them."""

    at: Floats
    z: Floats


class Grid:
    """Grid lines of the points (p1, p2) with `Z1 < m` and `Z2 < m`.

    Cell (i, j) lies between the lines i and i + 1 of p1, and between j and j + 1 of p2. A block of
    a given size at (i, j) is the union of the cells from there on, up to the edge of the grid.
    `alpha` is the level of the bound, or that a p-value will be compared with.
    """

    def __init__(
        self, c1: int, n1: int, c2: int, n2: int, variances: Variances, alpha: float
    ) -> None:
        m = -float(ndtri(BETA * alpha / 4))
        self.z = critical(alpha)
        self.axis1, self.axis2 = _lower_axis(c1, n1, m), _upper_axis(c2, n2, m)
        p1, p2 = self.axis1.at, self.axis2.at
        with np.errstate(divide="ignore"):
            self.variance1, self.variance2 = variances(p1, n1, p2, n2)
            self.plain1, self.plain2 = variance(p1, n1), variance(p2, n2)

    @property
    def cells(self) -> tuple[int, int]:
        return len(self.axis1.at) - 1, len(self.axis2.at) - 1

    def ends(self, i: Indices, j: Indices, size: int) -> tuple[Indices, Indices]:
        """The last lines of blocks."""
        rows, columns = self.cells
        return np.minimum(i + size, rows), np.minimum(j + size, columns)

    def corner(self, i: Indices, j: Indices) -> tuple[Floats, Floats]:
        """Return the smallest p1 and the largest p2 of each cell: the corner that proves least."""
        return self.axis1.at[i], self.axis2.at[j + 1]

    def odds(self, i: Indices, j: Indices, size: int) -> tuple[Floats, Floats]:
        """Return the smallest and the largest `(w2 / w1)²` in each block."""
        end_i, end_j = self.ends(i, j, size)
        with np.errstate(over="ignore"):
            least = self.variance2[end_j] / self.variance1[i]
            most = self.variance2[j] / self.variance1[end_i]
        return (
            least * tilt(self.z, self.plain1[end_i] + self.plain2[end_j]),
            most * tilt(self.z, self.plain1[i] + self.plain2[j]),
        )

    def score(self, i: Indices, j: Indices, size: int) -> Floats:
        """A lower bound on S in each block; 0 if S may be negative there."""
        z1, z2 = self.axis1.z[self.ends(i, j, size)[0]], self.axis2.z[j]
        with np.errstate(divide="ignore", over="ignore"):
            low, high = (_weighted_score(z1, z2, squared) for squared in self.odds(i, j, size))
        bound: Floats = np.maximum(np.minimum(low, high), 0.0)
        return bound

    def allows(self, i: Indices, j: Indices, size: int) -> Bools:
        """Return whether each block may have a point in the region."""
        # A margin, lest the p-value of a rejected point exceed alpha.
        return self.score(i, j, size) < self.z * (1 + LOG_MARGIN) + LOG_MARGIN

    def frontier(self) -> tuple[Indices, Indices]:
        """The first row, in each column, of a cell that may have a point in the region.

        With the columns; those without such a cell are left out.
        """
        rows, columns = self.cells
        starts = np.arange(0, rows, _STRIPE)
        i, j = np.meshgrid(starts, np.arange(0, columns, _STRIPE), indexing="ij")
        blocks = self.allows(i.ravel(), j.ravel(), _STRIPE).reshape(i.shape)
        first_row = np.full(columns, -1)
        for start, allowed in zip(starts.tolist(), blocks, strict=True):
            waiting = np.flatnonzero((first_row < 0) & np.repeat(allowed, _STRIPE)[:columns])
            i, j = np.meshgrid(np.arange(start, min(start + _STRIPE, rows)), waiting, indexing="ij")
            inside = self.allows(i.ravel(), j.ravel(), 1).reshape(i.shape)
            reached = inside.any(axis=0)
            first_row[waiting[reached]] = start + inside.argmax(axis=0)[reached]
        return first_row[first_row >= 0], np.flatnonzero(first_row >= 0)

    def smallest_score(self, allowed: Callable[[Floats, Floats], Bools]) -> float:
        """The smallest bound on S in cells that may have a point that a hypothesis allows.

        `allowed` says so of probabilities p1 and p2. Infinite if there is no such cell. Blocks are
        halved until they are cells; those whose bound is above that of some cell are dropped.
        """
        rows, columns = self.cells
        every = np.arange(columns)
        # In each column the allowed cells come first: bisection finds how many there are.
        low, high = np.zeros(columns, np.intp), np.full(columns, rows)
        while (low < high).any():
            middle = np.minimum((low + high) // 2, rows - 1)
            inside = allowed(*self.corner(middle, every)) & (low < high)
            low, high = np.where(inside, middle + 1, low), np.where(inside, high, middle)
            high = np.maximum(low, high)
        i, j = (
            start.ravel()
            for start in np.meshgrid(
                np.arange(0, rows, _BLOCK), np.arange(0, columns, _BLOCK), indexing="ij"
            )
        )
        best, size = math.inf, _BLOCK
        while True:
            inside = i < low[self.ends(i, j, size)[1] - 1]
            i, j = i[inside], j[inside]
            bounds = self.score(i, j, size)
            if size == 1:
                return min(best, float(bounds.min(initial=math.inf)))
            # To drop much early, the last cell of the first row of each block is looked at.
            last = self.ends(i, j, size)[1] - 1
            best = min(best, float(self.score(i, last, 1).min(initial=math.inf)))
            i, j = i[bounds < best], j[bounds < best]
            size //= 2
            i = np.concatenate((i, i, i + size, i + size))
            j = np.concatenate((j, j + size, j, j + size))
            exist = (i < rows) & (j < columns)
            i, j = i[exist], j[exist]


def variance(p: Floats, runs: ArrayLike) -> Floats:
    """The variance of a log frequency, to first order."""
    variance: Floats = (1 - p) / (np.asarray(runs) * p)
    return variance


def tilt(z: float, variance: Floats) -> Floats:
    """The correction to `(w2 / w1)²` for skewness, given the variance of the log ratio."""
    factor: Floats = np.exp(2 * np.minimum(z / 6 * np.sqrt(variance), _TILT))
    return factor


def critical(alpha: float) -> float:
    """The critical value of S; positive, as negative S are not told apart."""
    return max(LOG_MARGIN, -float(ndtri((1 - BETA) * alpha)))


def predict_bound(
    estimates: tuple[Floats, Floats],
    runs: tuple[Floats, Floats],
    alpha: float,
    loss: Callable[[Floats, Floats], Floats],
    odds: Callable[[Floats, Floats], Floats],
    both_ends: bool = False,
) -> Floats:
    """Return about the median of the bound over samples: for choosing, proves nothing.

    On the edge of the region, `S = z`. With the expected counts for the counts, two places there
    are located, the one closest to `Z1 = Z2 = 0` and the one with the largest p2; the smaller of
    their losses is returned. With `both_ends`, the place with the smallest p1 is looked at as well,
    as is needed where the weights do not follow the loss. `odds` is `(w2 / w1)²` of points.
    """
    (p1, p2), (runs1, runs2) = estimates, runs
    z, m = critical(alpha), -float(ndtri(BETA * alpha / 4))

    def low(z1: ArrayLike) -> Floats:
        quantile = betaincinv(p1 * runs1, (1 - p1) * runs1 + 1, ndtr(-np.asarray(z1)))
        return np.where(p1 > 0, quantile, 0.0)

    def high(z2: ArrayLike) -> Floats:
        quantile = betainccinv(p2 * runs2 + 1, (1 - p2) * runs2, ndtr(-np.asarray(z2)))
        return np.where(p2 < 1, quantile, 1.0)

    at1: Floats = (p1 * runs1 + 0.5) / (runs1 + 1)
    at2: Floats = (p2 * runs2 + 0.5) / (runs2 + 1)
    losses: list[Floats] = []
    with np.errstate(all="ignore"):
        for steps, share in ((2, 0), (4, 1), (4, -1))[: 3 if both_ends else 2]:
            for _ in range(steps):
                squared = odds(at1, at2)
                w1, w2 = 1 / np.sqrt(1 + squared), 1 / np.sqrt(1 + 1 / squared)
                along = share * np.fmin((m - share * z * w2) / w1, (m + share * z * w1) / w2)
                at1, at2 = low(z * w1 - along * w2), high(z * w2 + along * w1)
            losses.append(loss(at1, at2))
    smallest: Floats = np.fmin.reduce(losses)
    return smallest


def _weighted_score(z1: Floats, z2: Floats, squared: Floats) -> Floats:
    """Return `z1 cos θ + z2 sin θ`, given the square of tan θ; that may be 0 or infinite."""
    total: Floats = z1 / np.sqrt(1 + squared) + z2 / np.sqrt(1 + 1 / squared)
    return total


def _lower_axis(count: int, runs: int, m: float) -> Axis:
    """Return the axis of p1: points where this many hits or more are not too unlikely."""
    a, b = count, runs - count + 1
    lines = _lines(max(a, 0.5), b, m)
    if count > 0:
        z = _normal_score(betainc(a, b, lines), lambda large: betaincc(a, b, lines[large]), m)
        z = np.minimum.accumulate(z)  # monotone even where rounding says otherwise
    else:
        z = np.full(len(lines), -m)
    start = max(np.count_nonzero(z >= m) - 1, 0)
    return Axis(lines[start:], z[start:])


def _upper_axis(count: int, runs: int, m: float) -> Axis:
    """Return the axis of p2: points where this many hits or fewer are not too unlikely."""
    a, b = count + 1, runs - count
    lines = _lines(a, max(b, 1), m)
    if b > 0:
        z = _normal_score(betaincc(a, b, lines), lambda large: betainc(a, b, lines[large]), m)
        z = np.minimum.accumulate(z[::-1])[::-1]
    else:
        z = np.full(len(lines), -m)
    stop = np.count_nonzero(z < m) + 1
    return Axis(lines[:stop], z[:stop])


def _lines(a: float, b: float, m: float) -> Floats:
    """Grid lines: 0, 1 and, in between, the Beta(a, b) quantiles from Φ(-m) to Φ(m).

    Where the lines are has no influence on validity. In the middle they are about evenly spaced in
    Z, a little beyond ±m; from there on they get sparser towards 0 and 1.
    """
    knots = np.linspace(-m - 1e-3, m + 1e-3, _KNOTS)
    tail, up = ndtr(-np.abs(knots)), knots > 0
    at = np.where(up, betainccinv(a, b, tail), betaincinv(a, b, tail))
    rest = np.where(up, betaincinv(b, a, tail), betainccinv(b, a, tail))
    inner = np.log(at) - np.log(rest)
    finite = np.isfinite(inner)
    if np.count_nonzero(finite) < 2:  # beyond what scipy can invert
        return np.array([0.0, 1.0])
    z = np.linspace(knots[finite][0], knots[finite][-1], NODES)
    logits = np.interp(z, knots[finite], inner[finite])
    step_low, step_high = logits[1] - logits[0], logits[-1] - logits[-2]
    logits = np.concatenate(
        (logits[0] - step_low * _GROWING[::-1], logits, logits[-1] + step_high * _GROWING)
    )
    lines: Floats = np.unique(np.concatenate(((0.0,), expit(logits), (1.0,))))
    return lines


def _normal_score(tail: Floats, rest: Callable[[Bools], Floats], m: float) -> Floats:
    """Return `Z = Φ⁻¹(1 - tail)`, rounded down, at least -m; `rest` finds `1 - tail`."""
    score = -ndtri(tail)
    large = tail > 0.5
    score[large] = ndtri(rest(large))
    raised: Floats = np.fmax(score - Z_ROUNDING, -m)  # -m also where scipy has no value
    return raised
