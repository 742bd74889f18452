"""Noise of an unknown family, measured: numbers that move too far for its standard deviation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.losses import is_pure
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import LENGTH
from pytest_dp.blame.texts import format_number, together_with
from pytest_dp.limits import CLEARLY, LOOK_RUNS, MANY_RUNS
from pytest_dp.privacy.guarantees import Guarantee


def measured_noise(flow: Flow, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """A number whose noise has too small a standard deviation for how far it moves."""
    if not is_pure(claim):
        return
    for place in flow.differing:
        lines = flow.lines_of(place)
        if place == LENGTH or not lines:
            continue
        pilot = _move_and_deviation(flow, place, LOOK_RUNS)
        if pilot is None or pilot[0] < claim.claimed * pilot[1] / 2:
            continue  # far from too much: not worth more runs
        measured = _move_and_deviation(flow, place, MANY_RUNS)
        if measured is None:
            continue
        move, deviation = measured
        if not deviation or move * math.sqrt(2) / deviation <= CLEARLY * claim.claimed:
            continue
        needed = math.sqrt(2) * move / claim.claimed
        line = max(lines, key=lambda line: (line.file, line.line))
        others = together_with([other for other in lines if other != line])
        text = (
            f"{place} always moves by {format_number(move)} between D and D', and its noise, drawn "
            f"here{others}, has a standard deviation of {deviation:.2g}; Laplace noise for "
            f"{format_number(claim.claimed)} claimed would have {needed:.2g}"
        )
        yield Finding("too little noise", line, text, loss=lower)
        for finding in origins(flow, flow.draw_at(line), None, None, place):
            yield replace(finding, loss=lower)
        return


def _move_and_deviation(flow: Flow, place: str, runs: int) -> tuple[float, float] | None:
    """How far a number on D is from that on D', if always the same; and its standard deviation."""
    values = [flow.values(side, place, range(runs)) for side in (0, 1)]
    if not all(isinstance(value, float) for value in chain.from_iterable(values)):
        return None
    here, there = np.array(values, dtype=float)
    size = float(np.abs([here, there]).max())
    if not np.isfinite(size) or np.ptp(here - there) > 1e-9 * size:
        return None
    return float(abs(here[0] - there[0])), float(here.std())
