"""How far other pairs move the numbers of an output, beside the pair of a counterexample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_dp.blame.runs import ENDS, WHOLE, Runs, differ

MAX_PAIRS = 64
"""How many pairs are run. With fewer, a pair that moves further may be missed, and the advice of
how much more noise is needed is too small; each takes four runs."""


def farthest_ratio(runs: Runs, pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return how many times as far any of the pairs moves an output as the pair of the runs.

    At least 1. None if a pair cannot be run, or moves what is no number. Both runs of a pair have
    the same random numbers, so that only the answers move.
    """
    here = _moves(runs)
    if here is None or not any(here.values()):
        return None
    farthest = 1.0
    for pair in pairs[:MAX_PAIRS]:
        try:
            moves = _moves(replace(runs, pair=pair))
        except ENDS:
            return None
        if moves is None:
            return None
        for power in (1, 2):  # the norms of Laplace and of Gaussian noise
            farthest = max(farthest, _norm(moves, power) / _norm(here, power))
    return farthest


def _moves(runs: Runs) -> dict[str, float] | None:
    """Return the largest moves of all numbers, by their places; None if something else differs."""
    moves: dict[str, float] = {}
    for noise in (0, 1):
        one, other = (run.leaves for run in runs.both(noise))
        for place in one.keys() | other.keys():
            values = one.get(place), other.get(place)
            if place in WHOLE or not differ(*values):
                continue
            if not all(isinstance(value, float) and math.isfinite(value) for value in values):
                return None
            before, after = values
            moves[place] = max(moves.get(place, 0.0), abs(before - after))  # type: ignore[operator]
    return moves


def _norm(moves: dict[str, float], power: int) -> float:
    return float(sum(move**power for move in moves.values()) ** (1 / power))
