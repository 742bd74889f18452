"""Tests of any guarantee, and bounds on its parameter, from the counts of one event.

A guarantee allows an event of probability p1 on one input no more than some p1 for each p2 on the
other. What two probabilities show of its parameter rises with p1 and falls with p2, and the
confidence regions of `pytest_dp.evidence.ratio` and `pytest_dp.evidence.paired` hold for both
probabilities at once. So the least that any point of such a region shows is a bound, and the
largest p-value of the points that the claim allows is a p-value:
docs/proofs/bounds-on-any-claim.md.

For a claim of ε alone these are the bounds on the log ratio. For others the weights follow the
boundary of what the claim allows, and pairs also need the probability that any of both outputs is
in the event, which gets a small share of alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from pytest_dp.evidence import _region, clopper_pearson, paired, ratio
from pytest_dp.evidence._region import MIN_LEVEL, Floats, Indices
from pytest_dp.evidence._validation import check_count, check_level
from pytest_dp.evidence.boundary import boundary
from pytest_dp.privacy import Guarantee

ANY = 0.02
"""Share of alpha for how often any output of a pair is in the event."""
DOWN, UP = 1 - 1e-15, 1 + 1e-15
"""For the rounding of products."""


def lower(c1: int, n1: int, c2: int, n2: int, guarantee: Guarantee, alpha: float) -> float:
    """Lower confidence bound on the parameter of a guarantee.

    Parameters
    ----------
    c1, n1 : int
        Outputs in the event, and runs, on the input that makes the event likelier.
    c2, n2 : int
        The same for the neighbour; an independent sample.
    guarantee : Guarantee
        The kind of claim, with what it fixes, such as δ.
    alpha : float
        Probability that the bound is too high. More than 0.5 gains nothing.

    Returns
    -------
    float
        In units of the parameter, `-inf` if `c1` is 0. It exceeds the claim if its `p_value` is at
        most `alpha`; the claim matters elsewhere too, as the bound is made to be sharp there. It
        may be negative, which says nothing but how far it is from showing anything.

    Raises
    ------
    ValueError
        If the counts or `alpha` are impossible.
    """
    if guarantee.largest_ratio is not None:
        return ratio.eps_lower(c1, n1, c2, n2, alpha)
    return _least(_apart(c1, n1, c2, n2, guarantee, alpha), guarantee)


def p_value(c1: int, n1: int, c2: int, n2: int, guarantee: Guarantee, alpha: float) -> float:
    """A valid p-value of a claim: the largest over all probabilities that it allows.

    Parameters
    ----------
    c1, n1, c2, n2, guarantee
        As in `lower`.
    alpha : float
        The level that the p-value will be compared with. It must be fixed before the counts are
        seen: the p-value is never below `0.01 * alpha`, and sharpest around `alpha`.

    Returns
    -------
    float
        1.0 instead of anything above 0.5.

    Raises
    ------
    ValueError
        If the counts or `alpha` are impossible.
    """
    if guarantee.largest_ratio is not None:
        return ratio.p_value(c1, n1, c2, n2, guarantee.largest_ratio, alpha)
    return _largest_p_value(_apart(c1, n1, c2, n2, guarantee, alpha), guarantee, alpha)


def predicted(
    p1: ArrayLike,
    n1: ArrayLike,
    p2: ArrayLike,
    n2: ArrayLike,
    guarantee: Guarantee,
    alpha: float,
) -> Floats:
    """About the median of `lower` over samples: for choosing between events, proves nothing.

    Parameters as in `ratio.predicted`.
    """
    if guarantee.largest_ratio is not None:
        return ratio.predicted(p1, n1, p2, n2, alpha)
    check_level("alpha", alpha)
    given = (np.asarray(x, dtype=np.float64) for x in (p1, n1, p2, n2))
    chance1, runs1, chance2, runs2 = np.broadcast_arrays(*given)
    edge, z = boundary(guarantee), _region.critical(alpha)

    def odds(at1: Floats, at2: Floats) -> Floats:
        one, two = edge.variances(at1, runs1, at2, runs2)
        plain = ratio.variance(at1, runs1) + ratio.variance(at2, runs2)
        found: Floats = two / one * ratio.tilt(z, plain)
        return found

    smallest = _region.predicted(
        (chance1, chance2), (runs1, runs2), alpha, lambda a, b: shows(guarantee, a, b), odds, True
    )
    return np.where(chance1 > 0, smallest, -np.inf)


def paired_lower(
    both: int, only1: int, only2: int, pairs: int, guarantee: Guarantee, alpha: float
) -> float:
    """`lower` for outputs that come in pairs.

    Parameters
    ----------
    both, only1, only2 : int
        Pairs with both outputs, only that of the first input, and only that of the second input, in
        the event. Pairs are independent of each other.
    pairs : int
        All of them.
    guarantee, alpha
        As in `lower`.
    """
    if guarantee.largest_ratio is not None:
        return paired.eps_lower(both, only1, only2, alpha)
    return _least(_in_pairs(both, only1, only2, pairs, alpha), guarantee)


def paired_p_value(
    both: int, only1: int, only2: int, pairs: int, guarantee: Guarantee, alpha: float
) -> float:
    """`p_value` for outputs that come in pairs; parameters as in `paired_lower`."""
    if guarantee.largest_ratio is not None:
        return paired.p_value(both, only1, only2, guarantee.largest_ratio, alpha)
    known = _in_pairs(both, only1, only2, pairs, alpha)
    found = _largest_p_value(known, guarantee, (1 - ANY) * alpha)
    return found + ANY * alpha if found < 1 else 1.0


def paired_predicted(
    p1: ArrayLike,
    p2: ArrayLike,
    both: ArrayLike,
    pairs: ArrayLike,
    guarantee: Guarantee,
    alpha: float,
) -> Floats:
    """About the median of `paired_lower`; parameters as in `paired.predicted`."""
    if guarantee.largest_ratio is not None:
        return paired.predicted(p1, p2, both, pairs, alpha)
    check_level("alpha", alpha)
    given = (np.asarray(x, dtype=np.float64) for x in (p1, p2, both, pairs))
    chance1, chance2, common, runs = np.broadcast_arrays(*given)
    alone, known, any_of_both = paired.shares(chance1, chance2, common, runs)
    hits = runs * np.minimum(any_of_both, 1.0)
    least = betaincinv(np.maximum(hits, 1e-300), runs - hits + 1, ANY * alpha)

    def loss(q: Floats, b: Floats) -> Floats:
        return shows(guarantee, *_probabilities(least, q, b))

    smallest = _region.predicted(alone, known, (1 - ANY) * alpha, loss, paired.odds, True)
    return np.where(chance1 > 0, smallest, -np.inf)


def shows(guarantee: Guarantee, p1: Floats, p2: Floats) -> Floats:
    """What probabilities show of the parameter, rounded down; of ε alone, their log ratio.

    Where that is nothing, the log ratio of ``p1 - delta`` and p2: negative, and no more than the
    distance from showing anything.
    """
    one, two = np.asarray(p1, dtype=np.float64), np.asarray(p2, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = np.log(np.maximum(one - guarantee.delta, 0.0)) - np.log(two)
    if guarantee.largest_ratio is not None:
        return ratios
    proved = guarantee.shown_by(np.maximum(one, two), two)
    return np.where(proved > 0, proved, np.fmin(ratios, 0.0))


class _Known(NamedTuple):
    """A region, and what is smallest for p1 and largest for p2 in the cells of a row and column."""

    grid: _region.Grid
    corner: Callable[[Indices, Indices], tuple[Floats, Floats]]


def _least(known: _Known | None, guarantee: Guarantee) -> float:
    """What any point of the region shows at least; `-inf` if there is no region."""
    if known is None:
        return -math.inf
    return float(shows(guarantee, *known.corner(*known.grid.frontier())).min(initial=math.inf))


def _largest_p_value(known: _Known | None, guarantee: Guarantee, alpha: float) -> float:
    """Of any point that the guarantee allows."""
    if known is None:
        return 1.0
    rows, columns = known.grid.cells
    every = np.arange(columns)
    # In each column a cell is allowed if those before it are: where is the first that is not?
    low, high = np.zeros(columns, np.intp), np.full(columns, rows)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, rows - 1)
        p1, p2 = known.corner(middle, every)
        allowed = (p1 <= guarantee.most(p2)) & (low < high)
        low, high = np.where(allowed, middle + 1, low), np.where(allowed, high, middle)
        high = np.maximum(low, high)

    def any_allowed(i: Indices, j: Indices, size: int) -> NDArray[np.bool_]:
        return i < low[known.grid.ends(i, j, size)[1] - 1]

    return known.grid.largest_p_value(any_allowed, alpha)


def _apart(c1: int, n1: int, c2: int, n2: int, guarantee: Guarantee, alpha: float) -> _Known | None:
    """For independent outputs; None if nothing can be proved."""
    check_count("c1", c1, n1)
    check_count("c2", c2, n2)
    check_level("alpha", alpha)
    if c1 == 0 or alpha < MIN_LEVEL:
        return None
    grid = _Apart(c1, n1, c2, n2, guarantee, alpha)
    return _Known(grid, lambda i, j: (grid.axis1.at[i], grid.axis2.at[j + 1]))


def _in_pairs(both: int, only1: int, only2: int, pairs: int, alpha: float) -> _Known | None:
    """For outputs in pairs; None if nothing can be proved.

    That an event is a random part of another one cannot raise what it shows, so that the
    probability of any output in the event need only be bounded from below.
    """
    paired.check(both, only1, only2, alpha)
    in_any = both + only1 + only2
    check_count("both + only1 + only2", in_any, pairs)
    if both + only1 == 0 or alpha < MIN_LEVEL:
        return None
    grid = paired.Pairs(both, only1, only2, (1 - ANY) * alpha)
    least = np.asarray(clopper_pearson.lower(in_any, pairs, ANY * alpha))

    def corner(i: Indices, j: Indices) -> tuple[Floats, Floats]:
        p1, p2 = _probabilities(least, grid.axis1.at[i], grid.axis2.at[j + 1])
        return p1 * DOWN, np.minimum(p2 * UP, 1.0)

    return _Known(grid, corner)


def _probabilities(any_of_both: Floats, q: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Of both inputs, from the parameters of pairs."""
    return any_of_both * (1 - b), any_of_both * ((1 - q) * (1 - b) + b)


class _Apart(_region.Grid):
    """The region of (p1, p2) for independent outputs."""

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
