"""Rényi divergences between two coins, and what bounds on them allow.

Whatever two distributions are, their divergences are at least those between two coins with the
probabilities p and q of one event (data processing), so bounds on all events are bounds on coins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from pytest_dp.basics.arrays import Floats

MIN_ABOVE_ONE = 1e-6
"""Distance of an order from 1, at least: at 1 the divergence is another function. Smaller:
rounding decides."""


def renyi(p: Floats, q: Floats, order: Floats | float) -> Floats:
    """Return D_order(Bern(p) || Bern(q)) in nats, rounded down.

    Of order 1 it is the Kullback-Leibler divergence. All arguments are broadcast.
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
    """Return ln(p/q), exact where p is close to q."""
    with np.errstate(all="ignore"):
        return np.where(abs(p - q) < q, np.log1p((p - q) / q), np.log(p) - np.log(q))


def concentration(p: Floats, q: Floats) -> Floats:
    """Return the smallest rho of zero-concentrated privacy that p and q allow, in both directions.

    The largest D_order / order over orders that grids find, rounded down.
    """
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    return np.maximum(_concentration(p, q), _concentration(1 - q, 1 - p))


def _concentration(p: Floats, q: Floats) -> Floats:
    with np.errstate(all="ignore"):
        loss = _log_ratio(p, q)
        widest = np.log(np.clip(loss / renyi(p, q, 1.0), 1.0, 1e9))
    widest = np.where(np.isfinite(widest), widest, 1.0)

    def value(logs: Floats) -> Floats:
        orders = np.exp(logs)
        return renyi(p, q, orders) / orders

    return value(_smallest(lambda logs: -value(logs), np.zeros_like(widest), widest))


def _smallest(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Return about where functions are smallest in [low, high], elementwise, by finer grids."""
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
    """Return lines above all (q, p) that a bound on one order allows, each touching it at one q.

    The slopes and the intercepts, each of shape (lines,), stand for ``p <= intercept + slope * q``,
    which is a hockey stick with eps = ln(slope). Lines that say nothing are left out.
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
    """Return where lines are drawn: evenly in units of a normal quantile, down to 1e-40."""
    return np.exp(-(np.linspace(0.05, 9.6, count)[::-1] ** 2))


def renyi_tangents(orders: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    """Return lines above all (q, p) that bounds on several orders allow together."""
    order, bound = (np.array(values)[:, None] for values in zip(*orders, strict=True))
    return tangents(probabilities(600), order, bound)


@lru_cache(maxsize=64)
def concentrated_tangents(rho: float) -> tuple[Floats, Floats]:
    """Return lines above all (q, p) that D_order <= order * rho allows for all orders above 1.

    Every order gives a sound line; which gives the lowest is looked for on a coarse grid of q.
    """
    coarse = probabilities(200)
    widest = np.log(2 + 3 * np.sqrt(-np.log(coarse) / rho))

    def log_largest(logs: Floats) -> Floats:
        order = np.maximum(np.exp(logs), 1 + MIN_ABOVE_ONE)
        return np.log(largest_coin(coarse, order, order * rho))

    best = _smallest(log_largest, np.zeros_like(widest), widest)
    q = probabilities()
    order = np.maximum(np.exp(np.interp(np.log(q), np.log(coarse), best)), 1 + MIN_ABOVE_ONE)
    return tangents(q, order, order * rho)
