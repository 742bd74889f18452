"""What every statistics function may be given, checked in one place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_count(name: str, count: int, runs: int) -> None:
    """Raise ValueError unless `count` of `runs` is possible."""
    if runs < 1:
        raise ValueError(f"Invalid runs, {runs!r}: at least one run is needed.")
    if not 0 <= count <= runs:
        raise ValueError(f"Invalid {name}, {count!r}: it must lie between 0 and runs = {runs}.")


def checked_counts(c1: ArrayLike, c2: ArrayLike, runs: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts of many events, of one shape; raise ValueError if they are not."""
    counts1, counts2 = np.asarray(c1), np.asarray(c2)
    if counts1.shape != counts2.shape:
        raise ValueError(f"c1 and c2 must have one shape, not {counts1.shape} and {counts2.shape}.")
    check_count("c1", 0, runs)
    return counts1, counts2


def check_eps(eps: float) -> None:
    """Raise ValueError unless `eps` is finite and not negative."""
    if not 0 <= eps < math.inf:
        raise ValueError(f"Invalid eps, {eps!r}: it must be finite and at least 0.")


def check_level(alpha: float) -> None:
    """Raise ValueError unless `alpha` lies in (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(f"Invalid alpha, {alpha!r}: it must lie strictly between 0 and 1.")
