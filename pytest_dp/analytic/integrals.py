"""Integrals of functions that are given by their logarithms, however small they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from pytest_dp.arrays import Floats

NODES = 16
"""Of Gauss-Legendre on each panel: exponentials that fall by e**8 come out to 15 digits. More take
longer and gain nothing."""
FAR = 40.0
"""Beyond all marks, densities fall at least like exp(-x), so what lies farther out is below 1e-17,
less than rounding."""
FALL = 8.0
"""By how much a logarithm may change on one panel. A larger value makes fewer panels, on which the
quadrature is less accurate (see NODES)."""
MAX_PANELS = 4_000
"""Of an integral: more keep integrands that fall very fast accurate, and take time and memory.
Chosen by hand."""


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
    """The logarithm of the integral of a positive function.

    Parameters
    ----------
    log_function : callable
        Takes and returns arrays.
    within : (float, float)
        May be infinite.
    marks : sequence of float
        Where it may have kinks, at least one; beyond them it falls at least like exp(-x).
    rate : float
        How fast its logarithm changes at most, about.
    nodes : int
        On each panel.
    """
    low, high = within
    low = max(low, min(min(marks), high) - FAR)
    high = min(high, max(max(marks), low) + FAR)
    edges = np.unique([low, *(mark for mark in marks if low < mark < high), high])
    widest = max(FALL / rate, (high - low) / MAX_PANELS)
    pieces = [
        np.linspace(a, b, max(1, math.ceil((b - a) / widest)) + 1)[:-1] for a, b in pairwise(edges)
    ]
    panels = np.concatenate([*pieces, [high]])
    half = np.diff(panels) / 2
    at, weights = _rule(nodes)
    x = (panels[:-1] + half)[:, None] + half[:, None] * at
    values = log_function(x.ravel()) + np.log((half[:, None] * weights).ravel())
    return float(np.logaddexp.reduce(values))
