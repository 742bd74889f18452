"""Bisection: the point at which a monotone condition turns true, with few evaluations."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

MAX_EXCESS = 60.0
"""Nats above a claim at which the search for a loss ends. Derived: no number of samples shows that
an event is 1e26 times as likely."""


def smallest_loss(is_caught: Callable[[float], bool], eps: float) -> float:
    """Return the smallest loss above eps, in nats, that is `caught`; infinite if no loss is.

    Its relative error is 1e-4.
    """
    return smallest(is_caught, eps, eps + 1.0, eps + MAX_EXCESS)


def smallest(
    is_caught: Callable[[float], bool],
    low: float,
    high: float,
    limit: float,
    relative: float = 1e-4,
) -> float:
    """Return the smallest number above `low` that is `caught`, with a relative error of 1e-4.

    The search goes up to `high`, then twice as far each time. Returns infinity if no number is
    caught once it is beyond `limit`.
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
    """Return an interval at whose lower end `holds` is false, and at whose upper end it is true.

    The interval (low, high) is halved until its width is at most `width` plus the share `relative`
    of its upper end. `holds` has to be false first, then true, and true at `high`.
    """
    while high - low > width + relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def first_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer in [low, high] where `holds` turns to true; high if none does."""
    return low + bisect_left(range(low, high), True, key=holds)
