"""Answers that are all decided by the same one number that is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.blame.families import number, written
from pytest_dp.blame.finding import Finding
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import LENGTH, Leaf, differ, place_of
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replacement

MAX_LEAVES = 8
"""That are compared."""
FAR = 1e6
"""Draws are looked at from minus this to this."""
HALVINGS = 60


def one_draw(reach: Reach) -> Iterator[Finding]:
    """Two leaves that one draw decides at limits that move differently between D and D'.

    If all moved by the same amount, they could be what was made of one noisy number.
    """
    line = _line(reach)
    if line is None:
        return
    draw = reach.draw_at(line)
    places = [place for place in reach.both(0)[0].leaves if place != LENGTH]
    first = [place for place in reach.differing if place in places]
    places = [place for place in dict.fromkeys([*first, *places]) if reach.lines_of(place)]
    limits: dict[str, tuple[float, float]] = {}
    for place in places[:MAX_LEAVES]:
        here, there = (_limit(reach, side, line, place) for side in (0, 1))
        if here is not None and there is not None:
            limits[place] = here, there
    moves = {place: here - there for place, (here, there) in limits.items()}
    if not moves:
        return
    one = max(moves, key=lambda place: abs(moves[place]))
    other = min(moves, key=lambda place: abs(moves[place] - moves[one]) < 1e-6)
    if abs(moves[one] - moves[other]) < 1e-6:
        return
    (a, b), (c, d) = (map(_rounded, limits[place]) for place in (one, other))
    text = (
        f"{one} and {other} depend on one draw alone, {written(draw.request)}: they change where "
        f"it passes {a} and {c} on D, {b} and {d} on D'"
    )
    yield Finding("shared noise", line, text)


def _rounded(limit: float) -> str:
    """A limit, as near as halving intervals comes to it."""
    return number(round(limit, 9) + 0.0)


def _line(reach: Reach) -> Site | None:
    """The only line that draws what differs, if it draws one number in each run."""
    lines = {line for place in reach.differing for line in reach.lines_of(place)}
    if len(lines) != 1:
        return None
    (line,) = lines
    for noise in range(NOISES):
        for run in reach.both(noise):
            draws = [draw for draw in run.draws if place_of(draw.stack) == line]
            if len(draws) != 1 or not isinstance(draws[0].value, float):
                return None
    return line


def _limit(reach: Reach, side: int, line: Site, place: str) -> float | None:
    """Where a leaf changes, if it is one thing below that and another one above."""

    def leaf(value: float) -> Leaf | None:
        def put(draw: Draw, _: Any) -> Any:
            return type(draw.value)(value)

        def change(draw: Draw) -> Replacement | None:
            return put if place_of(draw.stack) == line else None

        return reach.runs.run(side, 0, change).leaves.get(place)

    low, high = -FAR, FAR
    below, above = leaf(low), leaf(high)
    if below == above or isinstance(below, float) or isinstance(above, float):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if leaf(middle) == below:
            low = middle
        else:
            high = middle
    near = [leaf(at) for at in np.linspace(low - 2, low + 2, 9)]
    changes = sum(differ(x, y) for x, y in pairwise(near))
    return high if changes == 1 else None
