"""The boundary of what a claim allows, at fixed places: to weigh the errors of an event.

The probabilities that a guarantee allows form a convex set. How fast the largest one on the
likelier input rises with that on the other says how much the errors of either matter. Nothing is
proved by it: tests and bounds ask the guarantee itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from pytest_dp.arrays import Floats
from pytest_dp.privacy import Guarantee

_INNER = expit(np.linspace(-35, 30, 3_001))
"""The places between 0 and 1, evenly spaced in log odds."""
PLACES: Floats = np.concatenate([[0.0], _INNER, [1.0]])
"""Probabilities on the rarer side at which the boundary is known; in between it is interpolated.
More cost time once for each claim; fewer weigh errors less exactly. By hand."""
MAX_VARIANCE = 1e300
"""What stands for an infinite variance, so that ratios of variances stay numbers."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """How errors of both probabilities compare along the boundary."""

    least: float
    """The largest p1 that is allowed beside p2 = 0."""
    spread: Floats
    """Logarithm of the variance, by one run, of the term of p2; falls with p2. At the inner places.
    """

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
        above = likelier - self.least
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
    return Boundary(float(p1[0]), np.maximum.accumulate(finite[::-1])[::-1])
