"""Lines that draw more numbers on one input than on the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.texts import format_draw
from pytest_dp.limits import LOOK_RUNS
from pytest_dp.randomness.requests import Site


def draw_counts(flow: Flow) -> Iterator[Finding]:
    """Lines that draw n numbers on D and m on D', where what differs depends on them."""
    for line in flow.lines:
        here, there = (_count(flow, side, line) for side in (0, 1))
        if line in flow.lines_of_differing and None not in (here, there) and here != there:
            text = (
                f"{here} number{'s' * (here != 1)} on D and {there} on D' are drawn here, such as "
                f"{format_draw(flow.draw_at(line).request)}, in all of {LOOK_RUNS} runs each, "
                "and the output depends on them"
            )
            yield Finding("noise depends on data", line, text, certain=True)


def _count(flow: Flow, side: int, line: Site) -> int | None:
    """How many numbers a line draws on an input, if that is the same in all runs."""
    runs = (flow.runs.usual(side, noise) for noise in range(LOOK_RUNS))
    counts = {sum(np.size(draw.value) for draw in run.draws_at(line)) for run in runs}
    return int(counts.pop()) if len(counts) == 1 else None
