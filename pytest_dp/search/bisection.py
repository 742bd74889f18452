"""Bisection: from two inputs that differ in behaviour to two neighbours that do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pytest_dp.search.spaces import Walk


def boundary(walk: Walk, behaviour_of: Callable[[Any], Hashable | None]) -> tuple[Any, Any] | None:
    """Two inputs next to each other, of which only the former behaves like the start of a walk.

    The walk's last input does not behave like the first. Inputs with equal keys of `behaviour_of`
    behave alike; the key None ends the search. About ``log2(len(walk))`` inputs are looked at, and
    there may be other such places.
    """
    low, high = 0, len(walk) - 1
    behaviour_at_start = behaviour_of(walk[low])
    while high - low > 1:
        middle = (low + high) // 2
        behaviour = behaviour_of(walk[middle])
        if behaviour is None:
            return None
        if behaviour == behaviour_at_start:
            low = middle
        else:
            high = middle
    return (walk[low], walk[high]) if high else None
