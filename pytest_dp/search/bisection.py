"""Between two inputs that take different ways: two neighbours that do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pytest_dp.search.spaces import Way


def parting(way: Way, told: Callable[[Any], Hashable | None]) -> tuple[Any, Any] | None:
    """Two inputs next to each other of which only one is told like the first of all.

    Parameters
    ----------
    way : Way
        Whose last input is not told like the first.
    told : callable
        What is told of an input; None ends the search.

    Returns
    -------
    (before, after) or None
        Found by about ``log2(len(way))`` inputs; there may be other such places.
    """
    low, high = 0, len(way)
    first = told(way[low])
    while high - low > 1:
        middle = (low + high) // 2
        seen = told(way[middle])
        if seen is None:
            return None
        if seen == first:
            low = middle
        else:
            high = middle
    return (way[low], way[high]) if high else None
