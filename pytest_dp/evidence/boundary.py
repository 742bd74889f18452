"""The boundary of what a claim allows, at fixed places: to rank events and to weigh their errors.

The probabilities that a guarantee allows form a convex set. Of these, the closest to two
frequencies lies on its boundary, where the derivative of the likelihood changes its sign. Nothing
is proved by it: tests and bounds ask the guarantee itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, rel_entr

from pytest_dp.arrays import Floats
from pytest_dp.evidence.validation import checked_counts
from pytest_dp.limits import DOZENS
from pytest_dp.privacy import Guarantee

_INNER = expit(np.linspace(-35, 30, 3_001))
"""The places between 0 and 1, evenly spaced in log odds."""
PLACES: Floats = np.concatenate([[0.0], _INNER, [1.0]])
"""Probabilities on the rarer side at which the boundary is known; in between it is interpolated.
More cost time once for each claim; fewer rank events less exactly. Nothing is proved by it. By
hand."""
MAX_VARIANCE = 1e300
"""What stands for an infinite variance, so that ratios of variances stay numbers."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """The largest p1 that is allowed beside each p2."""

    p1: Floats
    """At `PLACES`."""
    slope: Floats
    """How fast p1 rises from each place to the next."""
    spread: Floats
    """Logarithm of the variance, by one run, of the term of p2; falls with p2. At the inner places.
    """

    def largest_probability_at(self, p2: ArrayLike) -> Floats:
        """The largest p1 that is allowed, approximately."""
        return np.asarray(np.interp(np.asarray(p2, dtype=np.float64), PLACES, self.p1))

    def variances(
        self, p1: ArrayLike, n1: ArrayLike, p2: ArrayLike, n2: ArrayLike
    ) -> tuple[Floats, Floats]:
        """How much frequencies, of so many runs, add to the error of what an event shows.

        As a claim of ε beside a δ compares ``ln(p1 - δ)`` with ``ln p2``, a claim compares the
        first, δ being what it allows beside p2 = 0, with what it would be on the boundary. Falls
        with either probability; as if half a run at least were in the event, and half a run not.
        """
        runs1, runs2 = np.asarray(n1, dtype=np.float64), np.asarray(n2, dtype=np.float64)
        likelier, rarer = np.clip(p1, 0.5 / runs1, 1 - 0.5 / runs1), np.maximum(p2, 0.5 / runs2)
        above = likelier - self.p1[0]
        with np.errstate(divide="ignore", over="ignore"):
            variance1 = np.where(above > 0, likelier * (1 - likelier) / above**2, np.inf) / runs1
        variance2 = np.exp(np.interp(np.log(rarer), np.log(_INNER), self.spread)) / runs2
        return np.minimum(variance1, MAX_VARIANCE), np.minimum(variance2, MAX_VARIANCE)


@lru_cache(maxsize=16)
def boundary(guarantee: Guarantee) -> Boundary:
    """The boundary of what a guarantee allows."""
    p1 = np.maximum.accumulate(np.minimum(guarantee.largest_probability(PLACES), 1.0))
    slope = np.diff(p1) / np.diff(PLACES)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(_INNER * (1 - _INNER)) + 2 * np.log(slope[1:] / (p1[1:-1] - p1[0]))
    finite = np.clip(np.nan_to_num(spread, nan=-600.0), -600.0, 600.0)
    return Boundary(p1, slope, np.maximum.accumulate(finite[::-1])[::-1])


def score(c1: ArrayLike, c2: ArrayLike, runs: int, guarantee: Guarantee) -> Floats:
    """Rank many events at once by their evidence against the claim.

    Log likelihood ratios of the observed frequencies against the closest pair that the claim
    allows, to about a percent; 0 where the observed one is allowed. `c1` counts on the likelier
    input.
    """
    counts1, counts2 = checked_counts(c1, c2, runs)
    result = np.zeros(counts1.shape)
    edge = boundary(guarantee)
    f1, f2 = counts1 / runs, counts2 / runs
    violating = f1 > edge.largest_probability_at(f2)
    if violating.any():
        result[violating] = runs * _divergence(edge, f1[violating], f2[violating])
    return result


def _divergence(edge: Boundary, f1: Floats, f2: Floats) -> Floats:
    """The smallest sum of both Kullback-Leibler divergences from the frequencies to the edge."""
    last = len(PLACES) - 2
    low, high = np.searchsorted(PLACES, f2, "right") - 1, np.searchsorted(edge.p1, f1)
    low, high = np.clip(low, 0, last), np.clip(high - 1, 0, last)
    while (low < high).any():  # the last knot from which the way to the next one leads closer
        middle = (low + high + 1) // 2
        falls = _derivative(edge.p1[middle], PLACES[middle], edge.slope[middle], f1, f2) < 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle - 1)
        high = np.maximum(low, high)
    start, slope = PLACES[low], edge.slope[low]
    near, far = np.maximum(start, f2), PLACES[low + 1]
    for _ in range(DOZENS // 2):
        at = (near + far) / 2
        falls = _derivative(edge.p1[low] + slope * (at - start), at, slope, f1, f2) < 0
        near, far = np.where(falls, at, near), np.where(falls, far, at)
    p2 = (near + far) / 2
    p1 = np.minimum(edge.p1[low] + slope * (p2 - start), f1)
    return _kl_divergence(f1, p1) + _kl_divergence(f2, p2)


def _derivative(p1: Floats, p2: Floats, slope: Floats, f1: Floats, f2: Floats) -> Floats:
    """The derivative of the sum of both divergences, along the edge."""
    with np.errstate(all="ignore"):
        part1 = np.where(p1 < f1, (p1 - f1) / (p1 * (1 - p1)) * slope, 0.0)
        part2 = np.where(p2 > f2, (p2 - f2) / (p2 * (1 - p2)), 0.0)
    return part1 + part2


def _kl_divergence(observed: Floats, expected: Floats) -> Floats:
    divergence: Floats = rel_entr(observed, expected) + rel_entr(1 - observed, 1 - expected)
    return divergence
