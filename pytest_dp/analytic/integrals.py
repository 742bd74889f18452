"""Integrals of functions that are given by their logarithms, however small they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.limits import POINTS

NODES = 16
"""Of Gauss-Legendre on each panel: exponentials that fall by e**8 come out to 15 digits. Derived
from these: more take longer and gain nothing."""
FAR = 40.0
"""Beyond all marks, densities fall at least like exp(-x), so what lies farther out is below 1e-17.
Derived: that is less than rounding."""
FALL = 8.0
"""By how much a logarithm may change on one panel, derived from what `NODES` follow."""


@lru_cache(maxsize=4)
def _rule(nodes: int) -> tuple[Floats, Floats]:
    at, weights = np.polynomial.legendre.leggauss(nodes)
    return at, weights


def log_integral(
    log_function: Callable[[Floats], Floats],
    within: tuple[float, float],
    marks: Sequence[float],
    rate: float,
    nodes: int = NODES,
) -> float:
    """The logarithm of the integral of a positive function, by `nodes` points on each panel.

    `marks` are where the function may have kinks, at least one; beyond them it falls at least like
    exp(-x). Its logarithm changes at most at about `rate`. `within` may be infinite.
    """
    low, high = within
    low = max(low, min(min(marks), high) - FAR)
    high = min(high, max(max(marks), low) + FAR)
    edges = np.unique([low, *(mark for mark in marks if low < mark < high), high])
    widest = max(FALL / rate, (high - low) / POINTS)
    pieces = [
        np.linspace(a, b, max(1, math.ceil((b - a) / widest)) + 1)[:-1] for a, b in pairwise(edges)
    ]
    panels = np.concatenate([*pieces, [high]])
    half = np.diff(panels) / 2
    at, weights = _rule(nodes)
    x = (panels[:-1] + half)[:, None] + half[:, None] * at
    values = log_function(x.ravel()) + np.log((half[:, None] * weights).ravel())
    return float(np.logaddexp.reduce(values))
