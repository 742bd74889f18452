"""Test of, and confidence bounds on, the log ratio of two binomial probabilities.

Counts `c1 ~ Bin(n1, p1)` and `c2 ~ Bin(n2, p2)` are independent; the hypothesis at ε is
`p1 <= exp(ε) p2`. Two Clopper–Pearson bounds at half of alpha each let both frequencies err at
their worst at the same time. Here their errors are added as independent ones are, weighted by the
standard errors of the two log frequencies, `w = sqrt((1 - p) / (n p))`, with a correction for
their skewness (`tilt`). It holds at every sample size: docs/proofs/ratio-bound.md has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pytest_dp.arrays import Floats
from pytest_dp.evidence import region
from pytest_dp.evidence.region import LOG_MARGIN, MIN_LEVEL, Indices
from pytest_dp.evidence.validation import check_count, check_finite, check_level

_TILT = 0.5
"""Limit to the exponent of the weights' correction, which is too coarse for few counts. Larger:
weights far from the best for rare events; smaller: less correction. No weights are invalid. By
hand."""


def p_value(c1: int, n1: int, c2: int, n2: int, eps: float, alpha: float) -> float:
    """A valid p-value of the hypothesis `p1 <= exp(eps) * p2`.

    At most `alpha` for every `eps` below `eps_lower`, and 1.0 instead of anything above 0.5.
    `alpha` is the level that the p-value will be compared with. It must be fixed before the counts
    are seen: the p-value is never below `0.01 * alpha`, and sharpest around `alpha`. `eps`, in
    nats, may be negative.
    """
    _check(c1, n1, c2, n2, alpha)
    check_finite(eps)
    if c1 == 0 or alpha < MIN_LEVEL:
        return 1.0
    return _Independent(c1, n1, c2, n2, alpha).p_value(eps, alpha)


def eps_lower(c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
    """Lower confidence bound on `ln(p1 / p2)`, in nats; `-inf` if `c1` is 0.

    The first input is the one that makes the event likelier. The bound may be negative and is never
    infinite upwards, not even if `c2` is 0. Every smaller ε has a `p_value` of at most `alpha`. An
    `alpha` of more than 0.5 gains nothing.
    """
    _check(c1, n1, c2, n2, alpha)
    if c1 == 0 or alpha < MIN_LEVEL:
        return -math.inf
    return _Independent(c1, n1, c2, n2, alpha).eps_lower()


def interval(c1: int, n1: int, c2: int, n2: int, alpha: float) -> tuple[float, float]:
    """Two-sided confidence interval for `ln(p1 / p2)`, error `alpha / 2` on each side.

    The ends are infinite if `c1`, or `c2`, is 0.
    """
    _check(c1, n1, c2, n2, alpha)
    return eps_lower(c1, n1, c2, n2, alpha / 2), -eps_lower(c2, n2, c1, n1, alpha / 2)


def predicted(p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike, alpha: float) -> Floats:
    """About the median of `eps_lower` over samples: for choosing between events, proves nothing.

    `ln(p1 / p2)` less z standard errors where counts are large, with binomial quantiles in place of
    normal ones: at `p2 = 0` it stays below about `ln(p1 n2 / ln(1 / alpha))`. The distance to
    `ln(p1 / p2)` is about right to a few percent if 10 outputs of the first input are expected, and
    to 15 percent if 3 are.
    """
    check_level("alpha", alpha)
    arrays = (np.asarray(x, dtype=np.float64) for x in (p1, n1, p2, n2))
    chance1, runs1, chance2, runs2 = np.broadcast_arrays(*arrays)
    z = region.critical(alpha)

    def odds(at1: Floats, at2: Floats) -> Floats:
        variance1, variance2 = variance(at1, runs1), variance(at2, runs2)
        return variance2 / variance1 * tilt(z, variance1 + variance2)

    smallest = region.predicted(
        (chance1, chance2), (runs1, runs2), alpha, lambda at1, at2: np.log(at1) - np.log(at2), odds
    )
    expected: Floats = np.where(chance1 > 0, smallest, -np.inf)
    return expected


def _check(c1: int, n1: int, c2: int, n2: int, alpha: float) -> None:
    check_count("c1", c1, n1)
    check_count("c2", c2, n2)
    check_level("alpha", alpha)


def variance(p: Floats, runs: ArrayLike) -> Floats:
    """The variance of a log frequency, to first order."""
    variance: Floats = (1 - p) / (np.asarray(runs) * p)
    return variance


def tilt(z: float, variance: Floats) -> Floats:
    """The correction to `(w2 / w1)²` for skewness, given `w1² + w2²`."""
    factor: Floats = np.exp(2 * np.minimum(z / 6 * np.sqrt(variance), _TILT))
    return factor


class _Independent(region.Ratios):
    def __init__(self, c1: int, n1: int, c2: int, n2: int, alpha: float) -> None:
        super().__init__(c1, n1, c2, n2, alpha)
        p1, p2 = self.axis1.at, self.axis2.at
        with np.errstate(divide="ignore"):
            self.log1, self.log2 = np.log(p1), np.log(p2)
            self.variance1, self.variance2 = variance(p1, n1), variance(p2, n2)

    def log_ratio(self, i: Indices, j: Indices, size: int) -> Floats:
        ratio: Floats = self.log1[i] - self.log2[self.ends(i, j, size)[1]] - LOG_MARGIN
        return ratio

    def odds(self, i: Indices, j: Indices, size: int) -> tuple[Floats, Floats]:
        end_i, end_j = self.ends(i, j, size)
        high1, low1 = self.variance1[i], self.variance1[end_i]
        high2, low2 = self.variance2[j], self.variance2[end_j]
        return (
            low2 / high1 * tilt(self.z, low1 + low2),
            high2 / low1 * tilt(self.z, high1 + high2),
        )
