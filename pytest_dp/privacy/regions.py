"""Curves: all hockey sticks of a guarantee at once, and so the pairs (Q(S), P(S)) that it allows.

A guarantee that holds for P and Q in both orders allows a convex set of such pairs. Here it is cut
out by finitely many lines, each of which is sound, so leaving one out is sound too.

Whatever two distributions are, their Rényi divergences are at least those between two coins with
the probabilities p and q of one event (data processing), so bounds on all events are bounds on
coins. docs/proofs/what-a-guarantee-allows.md proves all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.bisection import bracket

ROUNDING = 1e-12
"""Relative error of a conversion, on the safe side. Smaller: rounding may make a delta too
small."""
DELTA_LEVELS = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-5, 1e-8)
"""Deltas to bet against, as shares of the delta at eps = 0. More share one wealth; fewer may miss
the one that shows most."""

LARGEST = 600.0
"""The largest eps of a line. Derived: beyond, floats hold no such ratio."""
ASKED = 300.0
"""The largest eps at which profiles are called: derived from that of claims."""
MIN_ABOVE_ONE = 1e-6
"""Distance of an order from 1, at least: at 1 the divergence is another function. Smaller: rounding
decides."""


@dataclass(frozen=True, slots=True)
class Region:
    """A set of pairs (q, p): ``p <= intercept + slope * q`` for each line, in both directions."""

    slopes: Floats
    """From 0, ascending. As hockey sticks, eps = ln(slope)."""
    intercepts: Floats
    """From 1, descending, convex in `slopes`."""

    @classmethod
    def below(cls, slopes: Floats, intercepts: Floats) -> Region:
        """Return the region below lines, in both directions: each also holds for the complement."""
        with np.errstate(all="ignore"):
            mirrored = 1 - (1 - intercepts) / slopes + 4e-16
        x = np.concatenate([[0.0], slopes, 1 / slopes])
        c = np.concatenate([[1.0], intercepts, mirrored])
        keep = (c <= 1) & np.isfinite(x)
        x, c = x[keep], np.maximum(c[keep], 0.0)
        order = np.lexsort((c, x))
        lowest = _lower_hull(x[order].tolist(), c[order].tolist())
        return cls(*(np.array(values) for values in lowest))

    @classmethod
    def of_sticks(cls, eps: Floats, delta: Floats) -> Region:
        """Return the region that hockey sticks allow, in both directions, from shapes (k,)."""
        return cls.below(np.exp(eps), delta)

    def largest_probability(self, q: Floats) -> Floats:
        """Return the largest p for each q, rounded up."""
        falls, widths = -np.diff(self.intercepts), np.diff(self.slopes)
        corners = (falls / widths)[::-1]
        line = len(corners) - np.searchsorted(corners, q, side="right")
        return round_up_probabilities(self.intercepts[line] + self.slopes[line] * q)

    def delta_at(self, eps: float) -> float:
        """Return the smallest delta that holds at eps, at most `LARGEST`; rounded up."""
        slope = math.exp(min(eps, LARGEST))
        return min(float(np.interp(slope, self.slopes, self.intercepts)) * (1 + ROUNDING), 1.0)

    def sticks(self) -> tuple[Floats, Floats]:
        """Return eps and deltas of all hockey sticks with eps >= 0, rounded up; first eps 0."""
        beyond = self.slopes > 1
        eps = np.concatenate([[0.0], np.log(self.slopes[beyond])])
        delta = np.concatenate([[self.delta_at(0.0)], self.intercepts[beyond] * (1 + ROUNDING)])
        return eps, delta

    def few_sticks(self) -> list[tuple[float, float]]:
        """Return a few hockey sticks as (eps, delta), at the deltas of `DELTA_LEVELS`."""
        eps, delta = self.sticks()
        asked = np.maximum(np.array(DELTA_LEVELS) * delta[0], delta[-1])
        chosen = sorted({int(np.argmax(delta <= level)) for level in asked})
        return [(float(eps[i]), float(delta[i])) for i in chosen if eps[i] <= ASKED]


def round_up_probabilities(p: Floats) -> Floats:
    """Return probabilities that are larger by more than rounding errors, at most 1."""
    return np.minimum(p + 1e-12 * np.minimum(p, 1 - p) + 1e-15 * p, 1.0)


def _lower_hull(x: list[float], c: list[float]) -> tuple[list[float], list[float]]:
    """Return the falling part of the lower convex hull of points sorted by x, then c."""
    hull: list[tuple[float, float]] = []
    for point in zip(x, c, strict=True):
        if hull and point[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return [point[0] for point in hull], [point[1] for point in hull]


def _is_above(
    left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]
) -> bool:
    """Return whether the middle point is on or above the line through the others."""
    return (left[1] - middle[1]) * (right[0] - middle[0]) <= (middle[1] - right[1]) * (
        middle[0] - left[0]
    )


def sampled_profile(function: Callable[[float], float]) -> tuple[Floats, Floats]:
    """Call a profile's function at many eps, most where it falls; return these eps and deltas."""
    coarse = [0.0, *np.geomspace(1e-4, ASKED, 60).tolist()]
    delta = [float(function(eps)) for eps in coarse]
    floor = max(delta[-1], 1e-30)
    end = next((eps for eps, value in zip(coarse, delta, strict=True) if value <= floor), ASKED)
    fine = (end * np.linspace(0.0, 1.0, 251)[1:-1] ** 1.5).tolist()
    fine.append(bracket(lambda eps: function(eps) <= floor, 0.0, end, width=1e-13)[1])
    eps = np.array(sorted({*coarse, *fine}))
    return eps, np.array([float(function(at)) for at in eps.tolist()])


def quantile_grid() -> list[float]:
    """Return the type I errors at which trade-off functions are called, dense near 0 and 1."""
    small = np.geomspace(1e-15, 0.5, 400).tolist()
    return sorted({0.0, *small, *(1 - q for q in small), 1.0})


def lines_above(q: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return slopes and intercepts of lines above a rising concave function through (q, p).

    Between two points the function lies below its chords on either side, prolonged; their corners
    are above it, and so is every line above all corners.
    """
    chords = np.diff(p) / np.diff(q)
    before = np.concatenate([[np.inf], chords[:-1]])
    after = np.concatenate([chords[1:], [0.0]])
    with np.errstate(all="ignore"):
        share = (np.diff(p) - after * np.diff(q)) / ((before - after) * np.diff(q))
    share = np.clip(np.nan_to_num(share, nan=0.5), 0, 1)
    share[0] = 0.0
    run = share * np.diff(q)
    at = q[:-1] + run
    steepest = np.maximum(before, chords)[1:]
    top = np.concatenate([p[1:2], np.minimum(p[1:-1] + steepest * run[1:], p[2:])])
    at, top = np.concatenate([at, q]), np.concatenate([top, p])
    slopes = np.unique(chords[chords > 0])
    intercepts = np.max(top[None, :] - slopes[:, None] * at[None, :], axis=1)
    return slopes, intercepts + 1e-15


def renyi(p: Floats, q: Floats, order: Floats | float) -> Floats:
    """Return D_order(Bern(p) || Bern(q)) in nats, rounded down, at least 0; broadcast.

    Order 1 is the Kullback-Leibler divergence. Infinite if q excludes what p allows.
    """
    p, q, order = np.broadcast_arrays(*(np.asarray(values, float) for values in (p, q, order)))
    with np.errstate(all="ignore"):
        a, b, rest = _log_ratio(p, q), _log_ratio(1 - p, 1 - q), 1 - p
        first_order = np.where(p > 0, p * a, 0.0), np.where(rest > 0, rest * b, 0.0)
        k = np.where(order > 1, order - 1, 1.0)
        near = p * np.expm1(k * a), rest * np.expm1(k * b)
        logs = np.log(p) + k * a, np.log(rest) + k * b
        far = k * np.maximum(a, b) > 1
        value = np.where(far, np.logaddexp(*logs), np.log1p(near[0] + near[1])) / k
        parts = np.where(far, 1 + k * abs(a) + abs(np.log(p)), abs(near[0]) + abs(near[1])) / k
        value = np.where(order > 1, value, first_order[0] + first_order[1])
        parts = np.where(order > 1, parts, abs(first_order[0]) + abs(first_order[1]))
        value = np.where(np.isinf(a) & (q <= 0) | (q >= 1), np.inf, value - 2e-15 * parts)
    return np.where(p == q, 0.0, np.maximum(value, 0.0))


def _log_ratio(p: Floats, q: Floats) -> Floats:
    """Return ln(p/q), exact where p is close to q; may be infinite or NaN."""
    with np.errstate(all="ignore"):
        return np.where(abs(p - q) < q, np.log1p((p - q) / q), np.log(p) - np.log(q))


def concentration(p: Floats, q: Floats) -> Floats:
    """Return the smallest rho of zero-concentrated privacy that p and q allow, rounded down.

    In both directions: the largest D_order / order over orders that grids find.
    """
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    return np.maximum(_concentration(p, q), _concentration(1 - q, 1 - p))


def _concentration(p: Floats, q: Floats) -> Floats:
    """Return `concentration` in one direction."""
    with np.errstate(all="ignore"):
        loss = _log_ratio(p, q)
        widest = np.log(np.clip(loss / renyi(p, q, 1.0), 1.0, 1e9))
    widest = np.where(np.isfinite(widest), widest, 1.0)

    def value(logs: Floats) -> Floats:
        orders = np.exp(logs)
        return renyi(p, q, orders) / orders

    return value(_minimise_by_grids(lambda logs: -value(logs), np.zeros_like(widest), widest))


def _minimise_by_grids(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Return about where a function is smallest in [low, high], elementwise, by four grids."""
    shares = np.linspace(0.0, 1.0, 25).reshape(-1, *(1,) * low.ndim)
    for _ in range(4):
        grid = low + shares * (high - low)
        best = np.argmin(function(grid), axis=0)[None]
        low, high = (
            np.take_along_axis(grid, np.clip(best + side, 0, len(grid) - 1), axis=0)[0]
            for side in (-1, 1)
        )
    return np.asarray(np.take_along_axis(grid, best, axis=0)[0])


def largest_coin(q: Floats, order: Floats, bound: Floats) -> Floats:
    """Return the largest p with D_order(Bern(p) || Bern(q)) <= bound, rounded up; order > 1.

    The moment is convex in p: Newton's method comes down from above the root and stays above it.
    """
    k = order - 1
    log_moment = k * bound
    low = log_moment < 1
    p = np.exp(np.minimum((log_moment + k * np.log(q)) / order, 0.0))
    for _ in range(60):
        a, b = _log_ratio(p, q), _log_ratio(1 - p, 1 - q)
        with np.errstate(all="ignore"):
            near = p * np.expm1(k * a) + (1 - p) * np.expm1(k * b) - np.expm1(log_moment)
            scaled = p * np.exp(k * a - log_moment) + (1 - p) * np.exp(k * b - log_moment) - 1
            off = np.where(low, near, scaled)
            rise = order * np.exp(k * a - np.where(low, 0.0, log_moment)) * -np.expm1(k * (b - a))
            step = np.where((off > 0) & (rise > 0), off / rise, 0.0)
        p = np.maximum(p - step, q)
        if np.all(step <= 1e-14 * p):
            break
    return np.minimum(p * (1 + 1e-12), 1.0)


def tangents(q: Floats, order: Floats, bound: Floats) -> tuple[Floats, Floats]:
    """Return lines above all (q, p) that a bound on one order allows, each touching at one q.

    Slopes and intercepts, shape (lines,) each, mean ``p <= intercept + slope * q``, a hockey stick
    with eps = ln(slope). Lines that exclude nothing are left out.
    """
    q, order, bound = (values.ravel() for values in np.broadcast_arrays(q, order, bound))
    p = largest_coin(q, order, bound)
    a, b = _log_ratio(p, q), _log_ratio(1 - p, 1 - q)
    with np.errstate(all="ignore"):
        logs = np.log(-np.expm1(order * (b - a))) - np.log(-np.expm1((order - 1) * (b - a)))
        slopes = (order - 1) / order * np.exp(a + logs)
        intercepts = p - slopes * q + 1e-12 * p
        says = (p < 1) & np.isfinite(slopes) & (slopes > 0) & (intercepts < 1)
    return slopes[says], intercepts[says]


def probabilities(count: int = 800) -> Floats:
    """Return the q at which lines touch: evenly in normal quantiles, down to 1e-40."""
    return np.exp(-(np.linspace(0.05, 9.6, count)[::-1] ** 2))


def renyi_tangents(orders: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    """Return lines above all (q, p) that bounds on several orders allow: (order, nats) each."""
    order, bound = (np.array(values)[:, None] for values in zip(*orders, strict=True))
    return tangents(probabilities(600), order, bound)


@lru_cache(maxsize=64)
def concentrated_tangents(rho: float) -> tuple[Floats, Floats]:
    """Return lines above all (q, p) that D_order <= order * rho allows for all orders above 1.

    Every order gives a sound line; a coarse grid of q finds about the lowest.
    """
    coarse = probabilities(200)
    widest = np.log(2 + 3 * np.sqrt(-np.log(coarse) / rho))

    def log_largest(logs: Floats) -> Floats:
        order = np.maximum(np.exp(logs), 1 + MIN_ABOVE_ONE)
        return np.log(largest_coin(coarse, order, order * rho))

    best = _minimise_by_grids(log_largest, np.zeros_like(widest), widest)
    q = probabilities()
    order = np.maximum(np.exp(np.interp(np.log(q), np.log(coarse), best)), 1 + MIN_ABOVE_ONE)
    return tangents(q, order, order * rho)
