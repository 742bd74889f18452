"""Shifts where nothing tells what draws are added to: by how outputs move with each draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import Pairing
from pytest_dp.oracles.handing_out import Run, Shift
from pytest_dp.oracles.numbers import Numbers
from pytest_dp.oracles.shift_loss import cost_per_step
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.outcome import Raised

MAX_DRAWS = 40
"""Draws whose shifts are solved for. Each costs a run in each round on each of a few replays."""
ROUNDS = 5
"""Newton steps: outputs that are no sums of draws take a few."""
STEP = 1e-3
"""Scales by which draws are moved for derivatives. Shorter steps lose digits, longer ones are less
accurate where outputs are curved."""
SETTLED = 1e-11
"""Relative change of the steps after which another round gains rounding errors only."""
REPLAYS = 3
"""Replays over which the squares of differences are least."""


DECIMALS = 7
"""Decimals of shifts that are taken to have no more, where the next three are 0."""


def solve_shift(pairing: Pairing, replays: Sequence[Numbers], start: Shift) -> Shift | None:
    """Return the shift with which outputs on the target are closest to those on the source.

    None if the outputs do not have the same numbers, or there are too many draws.
    """
    used = replays[:REPLAYS]
    ours = [pairing.on_source(numbers) for numbers in used]
    drawn = [each for each in ours[0].drawn if each.law is not None]
    movable = [
        each for each in drawn if each.law is not None and min(cost_per_step(each.law)) < np.inf
    ]
    count = sum(each.count for each in movable)
    wanted = _numbers([run.output for run in ours])
    if wanted is None or not 0 < count <= MAX_DRAWS or pairing.gaps[0] or pairing.gaps[1]:
        return None
    scales = np.concatenate([each.scale for each in movable])
    cuts = np.cumsum([each.count for each in movable])[:-1]

    def moved(steps: Floats) -> Shift:
        parts = np.split(steps * scales, cuts)
        return {
            **{each.number: np.zeros(each.count) for each in drawn},
            **{each.number: part for each, part in zip(movable, parts, strict=True)},
        }

    def excess(steps: Floats) -> Floats | None:
        runs: list[Run] = [pairing.on_target(numbers, moved(steps)) for numbers in used]
        found = _numbers([run.output for run in runs])
        if found is None or len(found) != len(wanted):
            return None
        return found - wanted

    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.concatenate(
            [start.get(each.number, np.zeros(each.count)) / each.scale for each in movable]
        )
    for _ in range(ROUNDS):
        off = excess(steps)
        if off is None or not np.isfinite(off).all():
            return None
        columns = [excess(steps + STEP * row) for row in np.eye(count)]
        if any(column is None for column in columns):
            return None
        jacobian = np.stack([(column - off) / STEP for column in columns if column is not None], 1)
        if not np.isfinite(jacobian).all() or not np.isfinite(steps).all():
            return None
        change = np.linalg.lstsq(jacobian, off, rcond=1e-9)[0]
        steps = steps - change
        if np.abs(change).max() <= SETTLED * max(np.abs(steps).max(), 1.0):
            break
    return moved(_rounded(steps * scales) / scales) if np.isfinite(steps).all() else None


def _rounded(shift: Floats) -> Floats:
    """Return shifts of few decimals, but for errors of the solution, with these decimals."""
    short = np.round(shift, DECIMALS)
    close = np.abs(shift - short) <= 1e-3 * 10.0**-DECIMALS * np.maximum(np.abs(short), 1.0)
    rounded: Floats = np.where(close, short, shift)
    return rounded


def _numbers(outputs: Sequence[Any]) -> Floats | None:
    """Return all floats in outputs; None if one of them raised."""
    if any(isinstance(output, Raised) for output in outputs):
        return None
    leaves = flatten(outputs, set(map(type, outputs)))[0]
    found = [float(leaf) for leaf in leaves if isinstance(leaf, float | np.floating)]
    return np.array(found) if found else None
