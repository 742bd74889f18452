"""Draws that one input asks for and its neighbour does not, such as those of a group of one record.

Where such draws are low, nothing of them may be released: then the run on the neighbour gives the
same without them. With at most the probability that one of them is higher, outputs are ones that
only one input has; this probability adds to δ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from pytest_dp.oracles.handing_out import NO_GAP, AnsweredRequest, Gap, ReplayedRun

MAX_CANDIDATES = 60
"""Ways to leave out draws that are tried. With more, pairs that have no alignment take longer."""
LOW = -60.0
"""Scales below the centre, where a draw counts as one that releases nothing: further down than
noise ever is."""
ORDINARY = 1.0
"""Scales above the centre, where most draws have to release nothing too: with less, draws are left
out that are released in many runs, which no claim allows."""
STEPS = 28
"""Halvings of the interval in which the highest draw is that releases nothing. With fewer, the
margin below is less than a step; with more, runs are made in vain."""
MARGIN = 1e-6
"""Scales by which draws stay below that. A larger margin makes δ larger by this share."""

Most = dict[tuple[int, int], float]
"""How high draws may be, in scales, by the number of their request and their place in it."""


def candidates(
    ours: ReplayedRun, theirs: ReplayedRun
) -> Iterator[tuple[tuple[Gap, Gap], list[tuple[int, int]]]]:
    """Return the gaps that make two runs ask for the same draws, and the draws that they leave out.

    The first gap is that of `ours`.
    """
    for gap, missing in itertools.islice(_of_larger(ours.drawn, theirs.drawn), MAX_CANDIDATES):
        yield (NO_GAP, gap), missing
    for gap, missing in itertools.islice(_of_larger(theirs.drawn, ours.drawn), MAX_CANDIDATES):
        yield (gap, NO_GAP), missing


def _of_larger(
    larger: list[AnsweredRequest], smaller: list[AnsweredRequest]
) -> Iterator[tuple[Gap, list[tuple[int, int]]]]:
    if len(larger) > len(smaller):
        known = [each.number for each in larger if each.law is not None]
        for left_out in itertools.combinations(known, len(larger) - len(smaller)):
            draws = [(k, place) for k in left_out for place in range(larger[k].count)]
            yield Gap(requests=frozenset(left_out)), draws
    if len(larger) != len(smaller):
        return
    sizes = [
        (one.number, one.count, one.count - other.count)
        for one, other in zip(larger, smaller, strict=True)
    ]
    differing = [size for size in sizes if size[2]]
    if not differing or len({size[1:] for size in differing}) > 1 or differing[0][2] < 0:
        return
    _, count, excess = differing[0]
    for places in itertools.combinations(range(count), excess):
        elements = {number: places for number, _, _ in differing}
        yield Gap(elements=elements), [(k, place) for k in elements for place in places]


def highest(
    draws: list[tuple[int, int]], agrees: Callable[[Most, int], bool], replays: int
) -> Most | None:
    """Return how high draws may be for runs to agree, each while the others are low.

    ``agrees(values, replay)`` says whether the runs of a replay agree where these draws have these
    values. None if it depends on the replay.
    """
    found: Most = {}
    for draw in draws:
        values = dict.fromkeys(draws, LOW)
        low, high = LOW, -LOW
        for _ in range(STEPS):
            middle = (low + high) / 2
            values[draw] = middle
            low, high = (middle, high) if agrees(values, 0) else (low, middle)
        found[draw] = values[draw] = low - MARGIN
        if not all(agrees(values, replay) for replay in range(replays)):
            return None
    return found


def probability_above(most: Most, drawn: list[AnsweredRequest]) -> float:
    """Return a bound on the probability that one of the draws is higher."""
    by_number = {each.number: each for each in drawn}
    total = 0.0
    for (number, _), value in most.items():
        law = by_number[number].law
        assert law is not None
        total += math.exp(float(law.log_above(np.asarray(value))))
    return min(total, 1.0)
