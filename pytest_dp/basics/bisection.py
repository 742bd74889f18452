"""Where monotone functions change, with few evaluations."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

MAX_EXCESS = 60.0
"""Nats above a claim from which nothing more is looked for. Derived: 1e26 times as likely is beyond
what samples can show."""


def smallest_loss(caught: Callable[[float], bool], eps: float) -> float:
    """Return the smallest loss above eps that is caught, to 1e-4; infinite if none is."""
    return smallest(caught, eps, eps + 1.0, eps + MAX_EXCESS)


def smallest(
    caught: Callable[[float], bool],
    low: float,
    high: float,
    limit: float,
    relative: float = 1e-4,
) -> float:
    """Return the smallest number above `low` that is caught, by default to a ten-thousandth.

    It is looked for up to `high`, then twice as far each time. It is infinite if nothing is caught
    before that is beyond `limit`.
    """
    while not caught(high):
        if high > limit:
            return math.inf
        low, high = high, 2 * high
    return bracket(caught, low, high, relative=relative)[1]


def bracket(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    width: float = 0.0,
    relative: float = 0.0,
) -> tuple[float, float]:
    """Halve an interval, at the upper end of which `holds` (false, then true), until it is narrow.

    That is, at most `width` plus the share `relative` of its upper end.
    """
    while high - low > width + relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def first_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer in [low, high] where `holds` turns to true; high if none does."""
    return low + bisect_left(range(low, high), True, key=holds)
