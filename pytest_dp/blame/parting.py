"""Where runs on D and D' part: ways through the code, numbers of draws, thresholds of a draw."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from pytest_dp.blame.findings import Finding, format_draw, format_number
from pytest_dp.blame.origins import traced_lines
from pytest_dp.blame.runs import WHOLE, Leaf, Runs, all_at, changed, differ, halved
from pytest_dp.limits import FAR, LOOK_RUNS, NOT_BY_CHANCE, SEVERAL, TRACED_RUNS
from pytest_dp.randomness.requests import Site

_COMPREHENSIONS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"}
"""Functions whose lines are left out: how often they run says nothing of the path."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Runs on D and on D' with the same noise."""

    differs: bool
    """Whether their outputs do."""
    paths: tuple[list[Site], list[Site]]
    """The lines of either run, in order."""

    @property
    def parting(self) -> Site | None:
        """The last line before the paths differ; None if they do not."""
        one, other = self.paths
        for number, (here, there) in enumerate(zip(one, other, strict=False)):
            if here != there:
                return one[number - 1] if number else here
        return None if len(one) == len(other) else min(one, other, key=len)[-1]


def control_flow(runs: Runs) -> Iterator[Finding]:
    """The line where runs part, or come by, whenever outputs differ, and at no other time."""
    pairs = []
    for noise in range(TRACED_RUNS):
        pairs.append(_pair(runs, noise))
        if not all(pairs[-1].paths):
            return
    differs = [pair.differs for pair in pairs]
    count = sum(differs)
    if count < NOT_BY_CHANCE or TRACED_RUNS - count < NOT_BY_CHANCE:
        return
    partings = [pair.parting for pair in pairs]
    lines = list({line for line in partings if line is not None})
    kind, said = "parting", "D and D' part here, at"
    if [line is not None for line in partings] != differs or len(lines) != 1:
        visited = [set(chain(*pair.paths)) for pair in pairs]
        in_order = dict.fromkeys(chain.from_iterable(chain(*pair.paths) for pair in pairs))
        lines = [line for line in in_order if [line in path for path in visited] == differs]
        kind, said = "passing", "D or D' come by here,"
    for line in lines[:1]:
        source = linecache.getline(line.file, line.line).strip()
        text = (
            f"on the same noise, {count} of {TRACED_RUNS} runs on {said} `{source}`; the outputs "
            "differ in these, and in no others"
        )
        yield Finding(kind, line, text)


def _pair(runs: Runs, noise: int) -> _Pair:
    paths, outputs = [], []
    for side in (0, 1):
        with traced_lines() as lines:
            outputs.append(runs.run(side, noise))
        paths.append([line for line in lines if line.function not in _COMPREHENSIONS])
    return _Pair(bool(changed(*outputs)), (paths[0], paths[1]))


def draw_counts(runs: Runs) -> Iterator[Finding]:
    """Lines that draw n numbers on D and m on D', where what differs depends on them."""
    for line in runs.lines:
        here, there = (_count(runs, side, line) for side in (0, 1))
        if line in runs.lines_of_differing and None not in (here, there) and here != there:
            text = (
                f"{here} number{'s' * (here != 1)} on D and {there} on D' are drawn here, such as "
                f"{format_draw(runs.draw_at(line).request)}, in all of {LOOK_RUNS} runs each, "
                "and the output depends on them"
            )
            yield Finding("noise depends on data", line, text, certain=True)


def _count(runs: Runs, side: int, line: Site) -> int | None:
    """How many numbers a line draws on an input, if that is the same in all runs."""
    usual = (runs.usual(side, noise) for noise in range(LOOK_RUNS))
    counts = {sum(np.size(draw.value) for draw in run.draws_at(line)) for run in usual}
    return int(counts.pop()) if len(counts) == 1 else None


def shared_draw(runs: Runs) -> Iterator[Finding]:
    """Two leaves that one draw decides at thresholds that move differently between D and D'.

    If both moved by the same amount, the two could be computed from one noisy number.
    """
    line = _only_line(runs)
    if line is None:
        return
    leaves = runs.both(0)[0].leaves
    places = [place for place in leaves if place not in WHOLE and runs.lines_of(place)]
    places.sort(key=lambda place: place not in runs.differing)
    thresholds: dict[str, tuple[float, float]] = {}
    for place in places[:SEVERAL]:
        here, there = (_threshold(runs, side, line, place) for side in (0, 1))
        if here is not None and there is not None:
            thresholds[place] = here, there
    moves = {place: here - there for place, (here, there) in thresholds.items()}
    if not moves:
        return
    one = max(moves, key=lambda place: abs(moves[place]))
    other = max(moves, key=lambda place: abs(moves[place] - moves[one]) >= 1e-6)
    if abs(moves[one] - moves[other]) < 1e-6:
        return
    (a, b), (c, d) = (map(_rounded, thresholds[place]) for place in (one, other))
    text = (
        f"{one} and {other} depend on one draw alone, {format_draw(runs.draw_at(line).request)}: "
        f"they change where it passes {a} and {c} on D, {b} and {d} on D'"
    )
    yield Finding("shared noise", line, text)


def _rounded(threshold: float) -> str:
    """A threshold, as near as halving comes to it."""
    return format_number(round(threshold, 9) + 0.0)


def _only_line(runs: Runs) -> Site | None:
    """The only line that draws what differs, if it draws one number in each run."""
    if len(runs.lines_of_differing) != 1:
        return None
    (line,) = runs.lines_of_differing
    draws = [run.draws_at(line) for run in runs.all_runs()]
    is_one = all(len(made) == 1 and isinstance(made[0].value, float) for made in draws)
    return line if is_one else None


def _threshold(runs: Runs, side: int, line: Site, place: str) -> float | None:
    """The value of the draw where a leaf changes, if it has one value below and one above."""

    def leaf(value: float) -> Leaf | None:
        replaced = all_at(line, lambda draw, _: type(draw.value)(value))
        return runs.run(side, 0, replaced).leaves.get(place)

    below, above = leaf(-FAR), leaf(FAR)
    if below == above or isinstance(below, float) or isinstance(above, float):
        return None
    low, high = halved(-FAR, FAR, lambda value: leaf(value) == below, 60)
    nearby = [leaf(value) for value in np.linspace(low - 2, low + 2, 9)]
    changes = sum(differ(x, y) for x, y in pairwise(nearby))
    return high if changes == 1 else None
