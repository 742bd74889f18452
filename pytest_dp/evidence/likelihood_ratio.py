"""How unlikely counts are under a claim at best: the log likelihood ratio that ranks events.

The probabilities that a guarantee allows form a convex set. Of these, the closest to two
frequencies lies on its boundary, where the derivative of the likelihood changes its sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from pytest_dp.arrays import Floats
from pytest_dp.evidence.boundary import PLACES, Boundary, boundary
from pytest_dp.evidence.validation import check_count
from pytest_dp.limits import DOZENS
from pytest_dp.privacy import Guarantee


def score(c1: ArrayLike, c2: ArrayLike, runs: int, guarantee: Guarantee) -> Floats:
    """Rank many events at once by their evidence against the claim, as `statdp.score` does.

    Log likelihood ratios of the observed frequencies against the closest pair that the claim
    allows, to about a percent; 0 where the observed one is allowed. `c1` counts on the likelier
    input.
    """
    counts1, counts2 = np.asarray(c1), np.asarray(c2)
    if counts1.shape != counts2.shape:
        raise ValueError(f"c1 and c2 must have one shape, not {counts1.shape} and {counts2.shape}.")
    check_count("c1", 0, runs)
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
