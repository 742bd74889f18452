"""Test of, and confidence bounds on, the log ratio of two binomial probabilities.

Counts `c1 ~ Bin(n1, p1)` and `c2 ~ Bin(n2, p2)` are independent; the hypothesis at ε is
`p1 <= exp(ε) p2`. Two Clopper–Pearson bounds at half of alpha each let both frequencies err at
their worst at the same time. Here their errors are added as independent ones are, which at large
counts takes off a third (alpha = 1e-6) to almost a half (alpha = 0.1) of the distance between
estimate and bound. It still holds at every sample size.

One point (p1, p2). `u1 = P(Bin(n1, p1) >= c1)` and `u2 = P(Bin(n2, p2) <= c2)` are independent, and
at the true point neither is smaller than a uniform variable. Hence `Z = Φ⁻¹(1 - u)` lies below some
standard normal N, for each of the two. With weights that the data have no part in, only the point,
`S = (w1 Z1 + w2 Z2) / sqrt(w1² + w2²)` lies below a normal too (Stouffer et al., "The American
Soldier", 1949). As weights, the standard errors of the two log frequencies,
`w = sqrt((1 - p) / (n p))`, make S the score statistic to first order, and then p2 hardly matters
along `p1 = exp(ε) p2`. To second order S falls as p2 rises, for rare events with its sixth root.
Multiplying `w2 / w1` by `exp(z/6 sqrt(w1² + w2²))` makes up for that where S is about z, its
critical value; the exponent is limited to 1/2.

All points. Fix m with `4 Φ(-m) = β`. Except with probability β, both `|N| < m`. Then both `Z < m`
at the true point, and raising Z to at least -m leaves it below N. So the points with `Z1 < m`,
`Z2 < m` and `S < z`, with S computed from the raised values, are a confidence region that misses
the truth with probability `β + Φ(-z)` at most. (Restricting the nuisance parameter at a price of β
is due to Berger & Boos, JASA 1994.) The bound is the smallest `ln(p1 / p2)` in the region for
`β + Φ(-z) = alpha`; the p-value at ε is `β + Φ(-z)` for the smallest S among the points of the
hypothesis with `Z1 < m` and `Z2 < m`. As the hypotheses at smaller ε have fewer points, it grows
with ε, and the bound is where it passes alpha.

Smallest over a continuum. Cut the square of all points into cells, `p1` in [a1, b1] by `p2` in
[a2, b2]. In a cell Z1 is at least its value at b1, and Z2 its value at a2, as both are monotone. S
is `Z1 cos θ + Z2 sin θ`, and `tan θ = w2 / w1` has bounds in the cell. Where S is positive, it is
concave in θ, so that the smaller of its values at both of them is a lower bound. A cell that may
contain a point of the region counts with `ln(a1 / b2)`, its smallest ratio. With lines 0.01 apart
in Z, all that costs about half a percent of the distance between estimate and bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, expit, ndtr, ndtri

from pytest_dp.evidence._validation import check_count, check_level

BETA = 0.01
"""Share of alpha that pays for ignoring far-off points."""

NODES = 1024
"""Grid lines per probability between Z = -m and Z = m."""

ROUNDING = 1e-7
"""Taken off every Z; covers a relative error of 8e-8 in a tail. Compared with sums of 50 digits,
scipy's errors stayed below 2e-9 (1.12) and 1e-11 (1.17)."""

_MARGIN = 1e-12
"""For the rounding of logarithms, and of p-values next to alpha."""

SMALLEST = 1e-250
"""Nothing is proved below this level, where probabilities become too small for a float."""

_TILT = 0.5
"""Limit to the exponent of the weights' correction, which is too coarse for few counts."""

_KNOTS = 129
"""Quantiles that the grid lines are interpolated from."""

_GROWING = np.cumsum(1.2 ** np.arange(1, 97))
"""Distances of the sparse lines from the others, in steps; the last is 2e8."""

_BLOCK = 64
"""Cells along a side of the blocks that the search starts with; a power of two."""

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


def p_value(c1: int, n1: int, c2: int, n2: int, eps: float, alpha: float) -> float:
    """A valid p-value of the hypothesis `p1 <= exp(eps) * p2`.

    Parameters
    ----------
    c1, n1 : int
        Outputs in the event, and runs, on the first input.
    c2, n2 : int
        The same for the second input; an independent sample.
    eps : float
        The claim in nats; may be negative.
    alpha : float
        The level that the p-value will be compared with. It must be fixed before the counts are
        seen: the p-value is never below `0.01 * alpha`, and sharpest around `alpha`.

    Returns
    -------
    float
        At most `alpha` for every `eps` below `eps_lower`; 1.0 instead of anything above 0.5.

    Raises
    ------
    ValueError
        If the counts, `eps` or `alpha` are impossible.

    Examples
    --------
    >>> round(p_value(60, 1_000, 15, 1_000, eps=1.0, alpha=0.1), 2)
    0.11
    """
    _check(c1, n1, c2, n2, alpha)
    if not math.isfinite(eps):
        raise ValueError(f"Invalid eps, {eps!r}: it must be finite.")
    if c1 == 0 or alpha < SMALLEST:
        return 1.0
    grid = _grid(c1, n1, c2, n2, alpha)
    score = _smallest(
        grid,
        objective=grid.score,
        allowed=lambda i, j, size: grid.log_ratio(i, j, size) <= eps,
        sample=(0, 1),
    )
    return BETA * alpha + float(ndtr(-score)) if score > 0 else 1.0


def eps_lower(c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
    """Lower confidence bound on `ln(p1 / p2)`.

    Parameters
    ----------
    c1, n1 : int
        Outputs in the event, and runs, on the input that makes the event likelier.
    c2, n2 : int
        The same for the neighbour; an independent sample.
    alpha : float
        Probability that the bound is too high. More than 0.5 gains nothing.

    Returns
    -------
    float
        The bound in nats, `-inf` if `c1` is 0. It may be negative and is never infinite upwards,
        not even if `c2` is 0. Every smaller ε has a `p_value` of at most `alpha`.

    Raises
    ------
    ValueError
        If the counts or `alpha` are impossible.

    Examples
    --------
    >>> round(eps_lower(10_012, 20_000, 1_351, 20_000, alpha=0.1), 2)
    1.97
    """
    _check(c1, n1, c2, n2, alpha)
    if c1 == 0 or alpha < SMALLEST:
        return -math.inf
    grid = _grid(c1, n1, c2, n2, alpha)
    enough = grid.z * (1 + _MARGIN) + _MARGIN  # lest a rejected point's p-value exceed alpha
    return _smallest(
        grid,
        objective=grid.log_ratio,
        allowed=lambda i, j, size: grid.score(i, j, size) < enough,
        sample=(1, 0),
    )


def interval(c1: int, n1: int, c2: int, n2: int, alpha: float) -> tuple[float, float]:
    """Two-sided confidence interval for `ln(p1 / p2)`, error `alpha / 2` on each side.

    Parameters and errors as in `eps_lower`. The ends are infinite if `c1`, or `c2`, is 0.
    """
    _check(c1, n1, c2, n2, alpha)
    return eps_lower(c1, n1, c2, n2, alpha / 2), -eps_lower(c2, n2, c1, n1, alpha / 2)


def predicted(p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float) -> Floats:
    """About the median of `eps_lower` over samples: for choosing between events, proves nothing.

    `ln(p1 / p2)` less z standard errors where counts are large, with binomial quantiles in place of
    normal ones: at `p2 = 0` it stays below about `ln(p1 n2 / ln(1 / alpha))`.

    Parameters
    ----------
    p1, n1, p2, n2 : array_like of float
        Probabilities (or estimates of them) and runs, broadcast against each other.
    alpha : float
        As in `eps_lower`.

    Returns
    -------
    ndarray of float
        In nats; `-inf` where `p1` is 0. The distance to `ln(p1 / p2)` is about right to a few
        percent if 10 outputs of the first input are expected, and to 15 percent if 3 are.

    Raises
    ------
    ValueError
        If `alpha` is impossible.

    Notes
    -----
    On the edge of the region, `S = z`. With the expected counts for the counts, two places there
    are located, the one closest to `Z1 = Z2 = 0` and the one with the largest p2; the smaller of
    their ratios is returned.
    """
    check_level("alpha", alpha)
    given = (np.asarray(x, dtype=np.float64) for x in (p1, n1, p2, n2))
    first, runs1, second, runs2 = np.broadcast_arrays(*given)
    z, m = _critical(alpha), -float(ndtri(BETA * alpha / 4))

    def low(z1: ArrayLike) -> Floats:
        found: Floats = betaincinv(first * runs1, (1 - first) * runs1 + 1, ndtr(-np.asarray(z1)))
        return found

    def high(z2: ArrayLike) -> Floats:
        found = betainccinv(second * runs2 + 1, (1 - second) * runs2, ndtr(-np.asarray(z2)))
        return np.where(second < 1, found, 1.0)

    at1, at2, ratios = first, (second * runs2 + 0.5) / (runs2 + 1), []
    with np.errstate(all="ignore"):
        for share in (0, 0, 1, 1, 1, 1):
            variance1, variance2 = (1 - at1) / (runs1 * at1), (1 - at2) / (runs2 * at2)
            squared = variance2 / variance1 * _tilt(z, variance1 + variance2)
            w1, w2 = 1 / np.sqrt(1 + squared), 1 / np.sqrt(1 + 1 / squared)
            along = share * np.fmin((m - z * w2) / w1, (m + z * w1) / w2)
            at1, at2 = low(z * w1 - along * w2), high(z * w2 + along * w1)
            ratios.append(np.log(at1) - np.log(at2))
    smallest = np.fmin(ratios[1], ratios[-1])
    expected: Floats = np.where(first > 0, smallest, -np.inf)
    return expected


def _check(c1: int, n1: int, c2: int, n2: int, alpha: float) -> None:
    check_count("c1", c1, n1)
    check_count("c2", c2, n2)
    check_level("alpha", alpha)


def _critical(alpha: float) -> float:
    """The critical value of S; positive, as negative S are not told apart."""
    return max(_MARGIN, -float(ndtri((1 - BETA) * alpha)))


@dataclass(frozen=True)
class _Grid:
    """Grid lines of the points with `Z1 < m` and `Z2 < m`, and what is known at each of them.

    Cell (i, j) lies between the lines i and i + 1 of p1, and between j and j + 1 of p2. A block of
    a given size at (i, j) is the union of the cells from there on, up to the edge of the grid.
    """

    z: float
    log1: Floats
    z1: Floats
    variance1: Floats
    log2: Floats
    z2: Floats
    variance2: Floats

    @property
    def cells(self) -> tuple[int, int]:
        return len(self.log1) - 1, len(self.log2) - 1

    def ends(self, i: Indices, j: Indices, size: int) -> tuple[Indices, Indices]:
        rows, columns = self.cells
        return np.minimum(i + size, rows), np.minimum(j + size, columns)

    def log_ratio(self, i: Indices, j: Indices, size: int) -> Floats:
        """The smallest `ln(p1 / p2)` in each block."""
        ratio: Floats = self.log1[i] - self.log2[self.ends(i, j, size)[1]] - _MARGIN
        return ratio

    def score(self, i: Indices, j: Indices, size: int) -> Floats:
        """A lower bound on S in each block; 0 if S may be negative there."""
        end_i, end_j = self.ends(i, j, size)
        z1, z2 = self.z1[end_i], self.z2[j]
        high1, low1 = self.variance1[i], self.variance1[end_i]
        high2, low2 = self.variance2[j], self.variance2[end_j]
        with np.errstate(divide="ignore", over="ignore"):
            least = _combined(z1, z2, low2 / high1 * _tilt(self.z, low1 + low2))
            most = _combined(z1, z2, high2 / low1 * _tilt(self.z, high1 + high2))
        bound: Floats = np.maximum(np.minimum(least, most), 0.0)
        return bound


def _tilt(z: float, variance: Floats) -> Floats:
    """The correction to `(w2 / w1)²` for skewness, given `w1² + w2²`."""
    factor: Floats = np.exp(2 * np.minimum(z / 6 * np.sqrt(variance), _TILT))
    return factor


def _combined(z1: Floats, z2: Floats, squared: Floats) -> Floats:
    """`z1 cos θ + z2 sin θ`, given the square of tan θ; that may be 0 or infinite."""
    total: Floats = z1 / np.sqrt(1 + squared) + z2 / np.sqrt(1 + 1 / squared)
    return total


def _grid(c1: int, n1: int, c2: int, n2: int, alpha: float) -> _Grid:
    """The grid for counts with `c1 > 0`."""
    m = -float(ndtri(BETA * alpha / 4))
    a, b = c1, n1 - c1 + 1
    p1 = _lines(a, b, m)
    z1 = _raised(betainc(a, b, p1), lambda large: betaincc(a, b, p1[large]), m)
    z1 = np.minimum.accumulate(z1)  # monotone even where rounding says otherwise
    first = np.count_nonzero(z1 >= m) - 1

    a, b = c2 + 1, n2 - c2
    p2 = _lines(a, max(b, 1), m)
    if b > 0:
        z2 = _raised(betaincc(a, b, p2), lambda large: betainc(a, b, p2[large]), m)
        z2 = np.minimum.accumulate(z2[::-1])[::-1]
    else:
        z2 = np.full(len(p2), -m)
    last = np.count_nonzero(z2 < m)

    p1, z1 = p1[first:], z1[first:]
    p2, z2 = p2[: last + 1], z2[: last + 1]
    with np.errstate(divide="ignore"):
        return _Grid(
            z=_critical(alpha),
            log1=np.log(p1),
            z1=z1,
            variance1=(1 - p1) / (n1 * p1),
            log2=np.log(p2),
            z2=z2,
            variance2=(1 - p2) / (n2 * p2),
        )


def _lines(a: int, b: int, m: float) -> Floats:
    """Grid lines: 0, 1 and, in between, the Beta(a, b) quantiles from Φ(-m) to Φ(m).

    Where the lines are has no influence on validity. In the middle they are about evenly spaced in
    Z, a little beyond ±m; from there on they get sparser towards 0 and 1.
    """
    knots = np.linspace(-m - 1e-3, m + 1e-3, _KNOTS)
    inner = np.log(betaincinv(a, b, ndtr(knots))) - np.log(betaincinv(b, a, ndtr(-knots)))
    finite = np.isfinite(inner)
    if np.count_nonzero(finite) < 2:  # beyond what scipy can invert
        return np.array([0.0, 1.0])
    z = np.linspace(knots[finite][0], knots[finite][-1], NODES)
    logits = np.interp(z, knots[finite], inner[finite])
    first, last = logits[1] - logits[0], logits[-1] - logits[-2]
    logits = np.concatenate(
        (logits[0] - first * _GROWING[::-1], logits, logits[-1] + last * _GROWING)
    )
    lines: Floats = np.unique(np.concatenate(((0.0,), expit(logits), (1.0,))))
    return lines


def _raised(tail: Floats, rest: Callable[[NDArray[np.bool_]], Floats], m: float) -> Floats:
    """`Z = Φ⁻¹(1 - tail)`, rounded down, but at least -m; `rest` finds `1 - tail` where needed."""
    score = -ndtri(tail)
    large = tail > 0.5
    score[large] = ndtri(rest(large))
    raised: Floats = np.fmax(score - ROUNDING, -m)  # -m also where scipy has no value
    return raised


def _smallest(
    grid: _Grid,
    objective: Callable[[Indices, Indices, int], Floats],
    allowed: Callable[[Indices, Indices, int], NDArray[np.bool_]],
    sample: tuple[int, int],
) -> float:
    """The smallest objective among the allowed cells; inf if there are none.

    Blocks are halved until they are cells. The objective of a block is at most that of its cells,
    and a block with an allowed cell is allowed, so that the others can be dropped. To have values
    early, one cell of each block is looked at: in its first (0) or last (1) row and column.
    """
    rows, columns = grid.cells
    i, j = (
        corner.ravel()
        for corner in np.meshgrid(
            np.arange(0, rows, _BLOCK), np.arange(0, columns, _BLOCK), indexing="ij"
        )
    )
    best, size = math.inf, _BLOCK
    while True:
        kept = allowed(i, j, size)
        i, j = i[kept], j[kept]
        values = objective(i, j, size)
        if size == 1:
            return min(best, float(values.min(initial=math.inf)))
        end_i, end_j = grid.ends(i, j, size)
        at = (end_i - 1 if sample[0] else i), (end_j - 1 if sample[1] else j)
        sampled = objective(*at, 1)[allowed(*at, 1)]
        best = min(best, float(sampled.min(initial=math.inf)))
        i, j = i[values < best], j[values < best]
        size //= 2
        i = np.concatenate((i, i, i + size, i + size))
        j = np.concatenate((j, j + size, j, j + size))
        exist = (i < rows) & (j < columns)
        i, j = i[exist], j[exist]
