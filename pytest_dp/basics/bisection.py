"""Bisection: the point at which a monotone condition turns true, with few evaluations."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

MAX_EXCESS = 60.0
"""Nats above a claim at which a search ends: no samples show an event 1e26 times as likely."""


def smallest_loss(is_caught: Callable[[float], bool], eps: float) -> float:
    """Return the smallest loss above `eps`, in nats, at which `is_caught` is true.

    Its relative error is 1e-4. Returns infinity if `is_caught` is false up to `MAX_EXCESS` above
    eps.
    """
    return smallest(is_caught, eps, eps + 1.0, eps + MAX_EXCESS)


def smallest(
    is_caught: Callable[[float], bool],
    low: float,
    high: float,
    limit: float,
    relative: float = 1e-4,
) -> float:
    """Return the smallest number above `low` at which `is_caught` is true, with a `relative` error.

    `is_caught` has to be false first, then true. The search tries `high`, then twice as much each
    time. Returns infinity if `is_caught` is false at a number above `limit`.
    """
    while not is_caught(high):
        if high > limit:
            return math.inf
        low, high = high, 2 * high
    return bracket(is_caught, low, high, relative=relative)[1]


def bracket(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    width: float = 0.0,
    relative: float = 0.0,
) -> tuple[float, float]:
    """Halve the interval (low, high) around the point where `holds` turns true, and return it.

    Its final width is at most `width` plus the share `relative` of its upper end; one of the two
    has to be positive. `holds` has to be false first, then true; true at `high` is taken for
    granted.
    """
    while high - low > width + relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def first_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer in [low, high) from which on `holds` is true; `high` if none."""
    return low + bisect_left(range(low, high), True, key=holds)
