"""Checks of the arguments of statistics functions, in one place."""

from __future__ import annotations

import math


def check_count(name: str, count: int, runs: int) -> None:
    """Raise ValueError unless `count` of `runs` is possible."""
    if runs < 1:
        raise ValueError(f"Invalid runs, {runs!r}: at least one run is needed.")
    if not 0 <= count <= runs:
        raise ValueError(f"Invalid {name}, {count!r}: it must lie between 0 and runs = {runs}.")


def check_eps(eps: float) -> None:
    """Raise ValueError unless `eps` is finite and not negative."""
    if not 0 <= eps < math.inf:
        raise ValueError(f"Invalid eps, {eps!r}: it must be finite and at least 0.")


def check_level(alpha: float) -> None:
    """Raise ValueError unless `alpha` lies in (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(f"Invalid alpha, {alpha!r}: it must lie strictly between 0 and 1.")
