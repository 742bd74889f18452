"""Curves: all hockey sticks of a guarantee at once, and so the pairs (Q(S), P(S)) that it allows.

A guarantee that holds for P and Q in both orders allows a convex set of such pairs. Here it is cut
out by finitely many lines, each of which is sound, so leaving one out is sound too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.bisection import bracket

ROUNDING = 1e-12
"""Relative error of a conversion, on the safe side. Smaller: rounding may make a delta too
small."""
DELTA_LEVELS = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-5, 1e-8)
"""Deltas to bet against, as shares of the delta at eps = 0. More share the same wealth; with fewer
the one that shows most may be missed."""

LARGEST = 600.0
"""The largest eps of a line. Derived: beyond, floats hold no such ratio."""
ASKED = 300.0
"""The largest eps at which profiles are asked: derived from that of claims."""
_HELD, _FAR = 1e-300, 12.0
"""Derived: the smallest delta that floats hold, and by how many nats an integrand has fallen there
from its peak where the rest, which falls faster, is negligible: a millionth."""


@dataclass(frozen=True, slots=True)
class Region:
    """A set of probabilities: ``p <= intercept + slope * q`` for each line, in both directions.

    ``p <= intercept + slope * q`` for each line.
    """

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
        """Return the region that hockey sticks allow, in both directions."""
        return cls.below(np.exp(eps), delta)

    def largest_probability(self, q: Floats) -> Floats:
        """Return the largest p for each q, rounded up."""
        falls, widths = -np.diff(self.intercepts), np.diff(self.slopes)
        corners = (falls / widths)[::-1]
        line = len(corners) - np.searchsorted(corners, q, side="right")
        return round_up_probabilities(self.intercepts[line] + self.slopes[line] * q)

    def delta_at(self, eps: float) -> float:
        """Return the smallest delta that holds at eps, rounded up."""
        slope = math.exp(min(eps, LARGEST))
        return min(float(np.interp(slope, self.slopes, self.intercepts)) * (1 + ROUNDING), 1.0)

    def sticks(self) -> tuple[Floats, Floats]:
        """Return all of its hockey sticks with eps >= 0, the first at 0."""
        beyond = self.slopes > 1
        eps = np.concatenate([[0.0], np.log(self.slopes[beyond])])
        delta = np.concatenate([[self.delta_at(0.0)], self.intercepts[beyond] * (1 + ROUNDING)])
        return eps, delta

    def spread(self) -> list[tuple[float, float]]:
        """Choose a few hockey sticks, from the delta at eps = 0 to the lowest delta."""
        eps, delta = self.sticks()
        asked = np.maximum(np.array(DELTA_LEVELS) * delta[0], delta[-1])
        chosen = sorted({int(np.argmax(delta <= level)) for level in asked})
        return [(float(eps[i]), float(delta[i])) for i in chosen if eps[i] <= ASKED]

    def renyi(self, order: float) -> float:
        """Return a bound on the Rényi divergence of an order, rounded up; it may be infinite."""
        return renyi_between(*self.sticks(), order)[1]


def round_up_probabilities(p: Floats) -> Floats:
    """Return probabilities that are a little larger, seen from 0 as from 1."""
    return np.minimum(p + 1e-12 * np.minimum(p, 1 - p) + 1e-15 * p, 1.0)


def renyi_between(eps: Floats, delta: Floats, order: float) -> tuple[float, float]:
    """Return bounds on the Rényi divergence of an order, from some values of a profile.

    Integrates the profile (Sason, Verdú, "f-divergence inequalities", IEEE Trans. Inf. Theory
    2016), which is convex in e^eps: below the chords between its values, and above those on either
    side, prolonged. Both bounds are infinite if it does not fall to 0, or falls below what floats
    hold before the rest is negligible.
    """
    low, high = (np.logaddexp.reduce(logs) for logs in renyi_segments(eps, delta, order))
    held = delta >= _HELD
    weight = (order - 1) * eps[held] + np.log(delta[held])
    if held[-1] or (delta[-1] > 0 and np.any(held) and weight[-1] > np.max(weight) - _FAR):
        return math.inf, math.inf
    if order == 1:
        return float(np.exp(low)) * (1 - 1e-9), float(np.exp(high)) * (1 + 1e-9)
    factor = math.log(order * (order - 1))
    least, most = (float(np.logaddexp(0.0, factor + log)) / (order - 1) for log in (low, high))
    return least * (1 - 1e-9), most * (1 + 1e-9)


def refine_profile(
    function: Callable[[float], float], eps: Floats, delta: Floats, order: float
) -> tuple[Floats, Floats]:
    """Add values to a profile where bounds on a Rényi divergence are the furthest apart."""
    for _ in range(12):
        low, high = renyi_segments(eps, delta, order)
        with np.errstate(all="ignore"):
            gaps = np.exp(high - np.logaddexp.reduce(high)) * -np.expm1(low - high)
        gaps = np.where((np.diff(eps) > 1e-9) & np.isfinite(gaps), gaps, 0.0)
        if np.sum(gaps) < 1e-5:
            break
        worst = np.argsort(-gaps)[:250]
        worst = worst[gaps[worst] > 1e-6 / len(gaps)]
        more = (eps[worst] + eps[worst + 1]) / 2
        at = np.concatenate([eps, more])
        all_ = np.concatenate([delta, [float(function(x)) for x in more.tolist()]])
        sort = np.argsort(at)
        eps, delta = at[sort], np.minimum.accumulate(all_[sort])
    return eps, delta


def renyi_segments(eps: Floats, delta: Floats, order: float) -> tuple[Floats, Floats]:
    """Return the logarithms of the integral between neighbouring values, rounded down and up."""
    delta = np.where(delta < _HELD, 0.0, delta)  # what is less has only been rounded up
    corner, height = _corners(np.exp(np.minimum(eps, LARGEST)), delta)
    corner = np.clip(np.log(corner), eps[:-1], eps[1:])
    above = _log_integral(eps[:-1], eps[1:], delta[:-1], delta[1:], order)
    left = _log_integral(eps[:-1], corner, delta[:-1], height, order)
    right = _log_integral(corner, eps[1:], height, delta[1:], order)
    return np.minimum(np.logaddexp(left, right), above), above


def _corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return where the chords on either side of two adjacent points meet; above 0."""
    with np.errstate(all="ignore"):
        chords = np.diff(y) / np.diff(x)
        before, after = np.append(-np.inf, chords[:-1]), np.append(chords[1:], 0.0)
        run = (np.diff(y) - after * np.diff(x)) / (before - after)
        run = np.where(np.isfinite(run), np.clip(run, 0.0, np.diff(x)), 0.0)
        height = y[1:] - after * (np.diff(x) - run)
    return x[:-1] + run, np.clip(np.nan_to_num(height, nan=0.0), 0.0, y[:-1])


def _log_integral(low: Floats, high: Floats, left: Floats, right: Floats, order: float) -> Floats:
    """Return the log integral over eps of a function that is linear in e^eps, by its ends.

    It is weighed by e^((order - 1) eps) + e^(-order eps); for order 1, by the same.
    """
    h = high - low

    def power(s: float) -> Floats:
        """Return the logarithm of the integral of e^(s t) from 0 to h."""
        if s == 0:
            return np.log(h)
        return np.maximum(s * h, 0.0) + np.log(-np.expm1(-abs(s) * h) / abs(s))

    def less(one: Floats, other: Floats) -> Floats:
        return one + np.log(-np.expm1(np.minimum(other - one, 0.0)))

    total = np.full(len(h), -np.inf)
    with np.errstate(all="ignore"):
        width = h + np.log(-np.expm1(-h))
        for s in (order - 1, -order):
            flat, steep = power(s), power(s + 1)
            falling, rising = less(h + flat, steep) - width, less(steep, flat) - width
            near = h * (abs(s) + 1) < 1e-5  # where nothing but digits is lost above
            falling, rising = (np.where(near, np.log(h / 2), log) for log in (falling, rising))
            ends = np.logaddexp(np.log(left) + falling, np.log(right) + rising)
            total = np.logaddexp(total, np.where(h > 0, s * low + ends, -np.inf))
    return total


def _lower_hull(x: list[float], c: list[float]) -> tuple[list[float], list[float]]:
    """Return the falling part of the lower convex hull of points that are sorted by x, then c."""
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
    """Return a profile at many eps, most of them where it falls."""
    coarse = [0.0, *np.geomspace(1e-4, ASKED, 60).tolist()]
    delta = [float(function(eps)) for eps in coarse]
    floor = max(delta[-1], 1e-30)
    end = next((eps for eps, value in zip(coarse, delta, strict=True) if value <= floor), ASKED)
    fine = (end * np.linspace(0.0, 1.0, 251)[1:-1] ** 1.5).tolist()
    fine.append(bracket(lambda eps: function(eps) <= floor, 0.0, end, width=1e-13)[1])
    eps = np.array(sorted({*coarse, *fine}))
    return eps, np.array([float(function(at)) for at in eps.tolist()])


def quantile_grid() -> list[float]:
    """Return where trade-off functions are evaluated: densely near 0 and 1."""
    small = np.geomspace(1e-15, 0.5, 400).tolist()
    return sorted({0.0, *small, *(1 - q for q in small), 1.0})


def lines_above(q: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return lines above a concave function that rises through the points (q, p).

    Between two points it lies below its chords on either side, prolonged; their corners are
    above it, and so is every line above all corners.
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
