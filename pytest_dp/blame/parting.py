"""Where runs on D and D' part: ways through the code, and numbers of draws."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from pytest_dp.blame.findings import Finding, format_draw
from pytest_dp.blame.origins import traced_lines
from pytest_dp.blame.runs import Runs, changed
from pytest_dp.limits import LOOK_RUNS, NOT_BY_CHANCE, TRACED_RUNS
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
