"""The same as `pytest_dp.evidence.ratio`, for outputs on two inputs that come in pairs.

Where both inputs are run with the same random numbers, the outputs of a pair mostly are in the
event together or not at all, and only the pairs that differ keep the two frequencies from agreeing.
Of n independent pairs, `both` had both outputs in the event, `only1` only that of the first input,
and `only2` only the other.

Given N, how many pairs have any output in the event, `only2 ~ Bin(N, b)`; given that too,
`only1 ~ Bin(N - only2, q)`. So `pytest_dp.evidence.region` applies, with `x1 = q`, `x2 = b` and
`ln(p1 / p2) = ln(1 - b) - ln(1 - q (1 - b))`: docs/proofs/paired-bound.md has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pytest_dp.arrays import Floats
from pytest_dp.evidence import region
from pytest_dp.evidence.region import LOG_MARGIN, MIN_LEVEL, Indices
from pytest_dp.evidence.validation import check_finite, check_level


def p_value(both: int, only1: int, only2: int, eps: float, alpha: float) -> float:
    """A valid p-value of the hypothesis `p1 <= exp(eps) * p2`, as `ratio.p_value`."""
    check(both, only1, only2, alpha)
    check_finite(eps)
    if both + only1 == 0 or alpha < MIN_LEVEL:
        return 1.0
    return Pairs(both, only1, only2, alpha).p_value(eps, alpha)


def eps_lower(both: int, only1: int, only2: int, alpha: float) -> float:
    """Lower confidence bound on `ln(p1 / p2)`, as `ratio.eps_lower`.

    The first input is the one that makes the event likelier. The bound is `-inf` if it had no
    output in the event, or too few for a tiny alpha.
    """
    check(both, only1, only2, alpha)
    if both + only1 == 0 or alpha < MIN_LEVEL:
        return -math.inf
    return Pairs(both, only1, only2, alpha).eps_lower()


def interval(both: int, only1: int, only2: int, alpha: float) -> tuple[float, float]:
    """Two-sided confidence interval for `ln(p1 / p2)`, error `alpha / 2` on each side.

    An end is infinite if the event never occurred on one of the inputs.
    """
    check(both, only1, only2, alpha)
    return (
        eps_lower(both, only1, only2, alpha / 2),
        -eps_lower(both, only2, only1, alpha / 2),
    )


def predicted(
    p1: ArrayLike, p2: ArrayLike, both: ArrayLike, pairs: ArrayLike, alpha: float
) -> Floats:
    """About the median of `eps_lower` over samples: for choosing between events, proves nothing.

    Probabilities (or estimates of them) are broadcast; `both` is that of both outputs in the event.
    """
    check_level("alpha", alpha)
    arrays = (np.asarray(x, dtype=np.float64) for x in (p1, p2, both, pairs))
    chance1, chance2, common, runs = np.broadcast_arrays(*arrays)
    alone, known, _ = shares(chance1, chance2, common, runs)
    smallest = region.predicted(alone, known, alpha, _log_ratio, odds)
    expected: Floats = np.where(chance1 > 0, smallest, -np.inf)
    return expected


def shares(
    p1: Floats, p2: Floats, both: Floats, pairs: Floats
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats], Floats]:
    """The parameters q and b, how many outputs show each, and the chance of any in the event."""
    common = np.minimum(both, np.minimum(p1, p2))
    any_of_both = np.maximum(p1 + p2 - common, 1e-300)
    q, b = (p1 - common) / np.maximum(p1, 1e-300), (p2 - common) / any_of_both
    return (q, b), (pairs * p1, pairs * any_of_both), any_of_both


def check(both: int, only1: int, only2: int, alpha: float) -> None:
    """Raise ValueError unless counts and level are possible."""
    for name, count in (("both", both), ("only1", only1), ("only2", only2)):
        if count < 0:
            raise ValueError(f"Invalid {name}, {count!r}: it must be at least 0.")
    check_level("alpha", alpha)


def _log_ratio(q: Floats, b: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # either form is exact where it is used
        rest = np.where(q < 0.5, np.log1p(-q * (1 - b)), np.log((1 - q) + q * b))
        log_ratio: Floats = np.log1p(-b) - rest
    return log_ratio


def odds(q: Floats, b: Floats) -> Floats:
    """The square of the ratio of both weights, at points."""
    with np.errstate(divide="ignore"):
        odds: Floats = b / (1 - b) ** 2 / (q * (1 - q))
    return odds


class Pairs(region.Ratios):
    """The region of (q, b)."""

    def __init__(self, both: int, only1: int, only2: int, alpha: float) -> None:
        super().__init__(only1, only1 + both, only2, only1 + both + only2, alpha)
        q, b = self.axis1.at, self.axis2.at
        with np.errstate(divide="ignore"):
            self.variance1, self.variance2 = q * (1 - q), b / (1 - b) ** 2

    def log_ratio(self, i: Indices, j: Indices, size: int) -> Floats:
        q, b = self.axis1.at[i], self.axis2.at[self.ends(i, j, size)[1]]
        ratio: Floats = _log_ratio(q, b) - LOG_MARGIN
        return ratio

    def odds(self, i: Indices, j: Indices, size: int) -> tuple[Floats, Floats]:
        end_i, end_j = self.ends(i, j, size)
        variance, end_variance = self.variance1[i], self.variance1[end_i]
        peak = (self.axis1.at[i] < 0.5) & (self.axis1.at[end_i] > 0.5)
        high1 = np.where(peak, 0.25, np.maximum(variance, end_variance))
        return self.variance2[j] / high1, self.variance2[end_j] / np.minimum(variance, end_variance)
