"""Confidence regions for both probabilities of an event, and what holds at any of their points."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pytest_dp.arrays import Bools, Floats
from pytest_dp.evidence import clopper_pearson, paired, ratio, region
from pytest_dp.evidence.boundary import boundary
from pytest_dp.evidence.region import MIN_LEVEL, Indices
from pytest_dp.evidence.validation import check_count, check_level
from pytest_dp.privacy import Guarantee

ANY_SHARE = 0.02
"""Share of alpha for a lower bound on how often any output of a pair is in the event; the rest is
for what tells the two apart. Larger: less for that; smaller: the bound on the sum is too low. By
hand; it changes little of what is shown."""
DOWN, UP = 1 - 1e-15, 1 + 1e-15
"""Factors that round a product down and up: a few units in the last place of a double."""


class ProbabilityRegion(NamedTuple):
    """A region, and what is smallest for p1 and largest for p2 in the cells of a row and column."""

    grid: region.Grid
    corner: Callable[[Indices, Indices], tuple[Floats, Floats]]


def largest_p_value(known: ProbabilityRegion | None, guarantee: Guarantee, alpha: float) -> float:
    """The largest p-value of any point of the region that the guarantee allows."""
    if known is None:
        return 1.0
    rows, columns = known.grid.cells
    every = np.arange(columns)
    # In each column the allowed cells come first: bisection finds how many there are.
    low, high = np.zeros(columns, np.intp), np.full(columns, rows)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, rows - 1)
        p1, p2 = known.corner(middle, every)
        allowed = (p1 <= guarantee.largest_probability(p2)) & (low < high)
        low, high = np.where(allowed, middle + 1, low), np.where(allowed, high, middle)
        high = np.maximum(low, high)

    def any_allowed(i: Indices, j: Indices, size: int) -> Bools:
        return i < low[known.grid.ends(i, j, size)[1] - 1]

    return known.grid.largest_p_value(any_allowed, alpha)


def independent_region(
    c1: int, n1: int, c2: int, n2: int, guarantee: Guarantee, alpha: float
) -> ProbabilityRegion | None:
    """The region of (p1, p2) for independent outputs; None if nothing can be proved."""
    check_count("c1", c1, n1)
    check_count("c2", c2, n2)
    check_level("alpha", alpha)
    if c1 == 0 or alpha < MIN_LEVEL:
        return None
    grid = _IndependentGrid(c1, n1, c2, n2, guarantee, alpha)
    return ProbabilityRegion(grid, lambda i, j: (grid.axis1.at[i], grid.axis2.at[j + 1]))


def paired_region(
    both: int, only1: int, only2: int, pairs: int, alpha: float
) -> ProbabilityRegion | None:
    """The region of (p1, p2) for outputs in pairs; None if nothing can be proved.

    That an event is a random part of another one cannot raise what it shows, so that the
    probability of any output in the event need only be bounded from below.
    """
    paired.check(both, only1, only2, alpha)
    in_any = both + only1 + only2
    check_count("both + only1 + only2", in_any, pairs)
    if both + only1 == 0 or alpha < MIN_LEVEL:
        return None
    grid = paired.Pairs(both, only1, only2, (1 - ANY_SHARE) * alpha)
    least = np.asarray(clopper_pearson.lower(in_any, pairs, ANY_SHARE * alpha))

    def corner(i: Indices, j: Indices) -> tuple[Floats, Floats]:
        p1, p2 = probabilities(least, grid.axis1.at[i], grid.axis2.at[j + 1])
        return p1 * DOWN, np.minimum(p2 * UP, 1.0)

    return ProbabilityRegion(grid, corner)


def probabilities(any_of_both: Floats, q: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The probabilities of the event on both inputs, from the parameters of pairs."""
    return any_of_both * (1 - b), any_of_both * ((1 - q) * (1 - b) + b)


class _IndependentGrid(region.Grid):
    def __init__(
        self, c1: int, n1: int, c2: int, n2: int, guarantee: Guarantee, alpha: float
    ) -> None:
        super().__init__(c1, n1, c2, n2, alpha)
        p1, p2 = self.axis1.at, self.axis2.at
        self.variance1, self.variance2 = boundary(guarantee).variances(p1, n1, p2, n2)
        with np.errstate(divide="ignore"):
            self.plain1, self.plain2 = ratio.variance(p1, n1), ratio.variance(p2, n2)

    def odds(self, i: Indices, j: Indices, size: int) -> tuple[Floats, Floats]:
        end_i, end_j = self.ends(i, j, size)
        with np.errstate(over="ignore"):
            least = self.variance2[end_j] / self.variance1[i]
            most = self.variance2[j] / self.variance1[end_i]
        return (
            least * ratio.tilt(self.z, self.plain1[end_i] + self.plain2[end_j]),
            most * ratio.tilt(self.z, self.plain1[i] + self.plain2[j]),
        )
