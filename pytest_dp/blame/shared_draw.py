"""Answers that all depend on the same random number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow, at_line, halved
from pytest_dp.blame.runs import LENGTH, Leaf, differ
from pytest_dp.blame.texts import format_draw, format_number
from pytest_dp.limits import FAR, SEVERAL
from pytest_dp.randomness.requests import Site


def shared_draw(flow: Flow) -> Iterator[Finding]:
    """Two leaves that one draw decides at thresholds that move differently between D and D'.

    If both moved by the same amount, the two could be computed from one noisy number.
    """
    line = _line(flow)
    if line is None:
        return
    draw = flow.draw_at(line)
    places = [place for place in flow.both(0)[0].leaves if place != LENGTH]
    differing = [place for place in flow.differing if place in places]
    places = [place for place in dict.fromkeys([*differing, *places]) if flow.lines_of(place)]
    thresholds: dict[str, tuple[float, float]] = {}
    for place in places[:SEVERAL]:
        here, there = (_threshold(flow, side, line, place) for side in (0, 1))
        if here is not None and there is not None:
            thresholds[place] = here, there
    moves = {place: here - there for place, (here, there) in thresholds.items()}
    if not moves:
        return
    one = max(moves, key=lambda place: abs(moves[place]))
    other = min(moves, key=lambda place: abs(moves[place] - moves[one]) < 1e-6)
    if abs(moves[one] - moves[other]) < 1e-6:
        return
    (a, b), (c, d) = (map(_rounded, thresholds[place]) for place in (one, other))
    text = (
        f"{one} and {other} depend on one draw alone, {format_draw(draw.request)}: they change "
        f"where it passes {a} and {c} on D, {b} and {d} on D'"
    )
    yield Finding("shared noise", line, text)


def _rounded(threshold: float) -> str:
    """A threshold, as near as halving comes to it."""
    return format_number(round(threshold, 9) + 0.0)


def _line(flow: Flow) -> Site | None:
    """The only line that draws what differs, if it draws one number in each run."""
    if len(flow.lines_of_differing) != 1:
        return None
    (line,) = flow.lines_of_differing
    for run in flow.all_runs():
        draws = run.draws_at(line)
        if len(draws) != 1 or not isinstance(draws[0].value, float):
            return None
    return line


def _threshold(flow: Flow, side: int, line: Site, place: str) -> float | None:
    """The value of the draw where a leaf changes, if it has one value below and one above."""

    def leaf(value: float) -> Leaf | None:
        replaced = at_line(line, lambda draw, _: type(draw.value)(value))
        return flow.runs.run(side, 0, replaced).leaves.get(place)

    below, above = leaf(-FAR), leaf(FAR)
    if below == above or isinstance(below, float) or isinstance(above, float):
        return None
    low, high = halved(-FAR, FAR, lambda value: leaf(value) == below, 60)
    nearby = [leaf(value) for value in np.linspace(low - 2, low + 2, 9)]
    changes = sum(differ(x, y) for x, y in pairwise(nearby))
    return high if changes == 1 else None
