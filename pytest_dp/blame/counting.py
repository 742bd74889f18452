"""Lines that draw more numbers on one input than on the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pytest_dp.blame.families import written
from pytest_dp.blame.finding import Finding
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import place_of
from pytest_dp.randomness.requests import Site


def numbers_drawn(reach: Reach) -> Iterator[Finding]:
    """Lines whose draws reach what differs, and which draw so many on D and so many on D'."""
    reaching = {line for place in reach.differing for line in reach.lines_of(place)}
    for line in reach.lines:
        here, there = (_drawn(reach, side, line) for side in (0, 1))
        if line in reaching and here is not None and there is not None and here != there:
            draw = written(reach.draw_at(line).request)
            text = (
                f"{here} number{'s' * (here != 1)} on D and {there} on D' are drawn here, such as "
                f"{draw}, in all of {NOISES} runs each, and the output depends on them"
            )
            yield Finding("noise depends on data", line, text, certain=True)


def _drawn(reach: Reach, side: int, line: Site) -> int | None:
    """How many numbers a line draws on an input, if that is the same in all runs."""
    counts = {
        sum(np.size(draw.value) for draw in run.draws if place_of(draw.stack) == line)
        for run in (reach.runs.usual(side, noise) for noise in range(NOISES))
    }
    return int(counts.pop()) if len(counts) == 1 else None
