"""Noise that is not simply added: costs of randomness alignments, and deviations that are measured.

Source: Zhang and Kifer, "LightDP", POPL 2017: draws that, moved as far as the data differs, undo
the difference; the cost of such an alignment bounds the loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.additive import is_pure
from pytest_dp.blame.affine import noise_of
from pytest_dp.blame.findings import (
    Finding,
    format_draw,
    format_number,
    together_with,
)
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import WHOLE, Key, Runs, by_key, differ, indices, place_of
from pytest_dp.limits import CLEARLY, HUNDREDS, LOOK_RUNS, MANY_RUNS, NEARLY_EQUAL, TRACED_RUNS
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.laws import LAPLACE
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement


def alignment(runs: Runs, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """The line with the largest cost in an alignment that costs more than is claimed."""
    moves = _moves(runs.pair) if is_pure(claim) else None
    if moves is None or not moves.any():
        return
    scales = {line: found for line in runs.lines if (found := _scales(runs, line, len(moves)))}
    groups = [[line] for line in scales] + ([list(scales)] if len(scales) > 1 else [])
    for lines in groups:
        costs = [float(np.sum(np.abs(moves) / scales[line])) for line in lines]
        # A cost below what was shown leaves noise unseen.
        if sum(costs) <= max(claim.claimed, lower) * (1 + NEARLY_EQUAL):
            continue
        if not _aligns(runs, lines, moves):
            continue
        worst = lines[int(np.argmax(costs))]
        count = int(np.count_nonzero(moves))
        others = together_with([line for line in lines if line is not worst])
        draws, make = ("one draw", "makes") if count == 1 else (f"{count} draws", "make")
        text = (
            f"{draws} of {format_draw(runs.draw_at(worst).request)} here, moved by "
            f"{format_number(float(np.abs(moves).max()))} at most, {make} the output on D' that on "
            f"D: a loss of at most {format_number(sum(costs))}, and "
            f"{format_number(claim.claimed)} is claimed{others}"
        )
        yield Finding("too little noise", worst, text, loss=lower)
        return


def _moves(pair: tuple[Any, Any]) -> Floats | None:
    """How far each number of D is from that of D', if both have as many."""
    try:
        here, there = (np.asarray(data, dtype=float).reshape(-1) for data in pair)
    except (TypeError, ValueError, OverflowError):
        return None
    if here.shape != there.shape or not 0 < here.size <= HUNDREDS:
        return None
    moves = here - there
    return moves if np.isfinite(moves).all() else None


def _scales(runs: Runs, line: Site, size: int) -> list[float] | None:
    """The scales of the Laplace noise of a line, one for each number of the input."""
    longest: list[float] = []
    for run in runs.all_runs():
        draws = run.draws_at(line)
        noises = [noise_of(draw, index) for draw in draws for index in indices(draw)]
        known = [noise.scale for noise in noises if noise and noise.law.family is LAPLACE]
        if len(known) < len(noises) or len(known) > size:
            return None
        longest = max(longest, known, key=len)
    if not longest or (size > 1 and len(longest) < 2):
        return None
    return longest + [longest[-1]] * (size - len(longest))


def _aligns(runs: Runs, lines: list[Site], moves: Floats) -> bool:
    """Whether outputs on D' are those on D once the draws of the lines move as the numbers do."""
    for noise in range(TRACED_RUNS):
        here = runs.usual(0, noise).leaves
        there = runs.run(1, noise, _moved(lines, moves)).leaves
        if here.keys() != there.keys() or any(differ(here[p], there[p]) for p in here):
            return False
    return True


def _moved(lines: list[Site], moves: Floats) -> Replaced:
    """Adds the next of the moves to each number that a line draws; good for one run."""
    used = dict.fromkeys(lines, 0)

    def replacement(key: Key, draw: Draw) -> Replacement | None:
        line = place_of(key[0])
        if line not in used:
            return None
        size = int(np.size(draw.value))
        amounts = moves[used[line] : used[line] + size]
        used[line] += size
        if len(amounts) < size:
            return None
        if np.ndim(draw.value):
            return lambda draw, _: draw.value + amounts.reshape(np.shape(draw.value))
        return lambda draw, _: type(draw.value)(draw.value + amounts[0])

    return by_key(replacement)


def measured_noise(runs: Runs, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """A number whose noise has too small a standard deviation for how far it moves."""
    for place in runs.differing if is_pure(claim) else ():
        lines = runs.lines_of(place)
        if place in WHOLE or not lines:
            continue
        move, deviation = _move_and_deviation(runs, place, LOOK_RUNS)
        if move < claim.claimed * deviation / 2:
            continue  # far from too much: not worth more runs
        move, deviation = _move_and_deviation(runs, place, MANY_RUNS)
        needed = math.sqrt(2) * move / claim.claimed
        if not deviation or needed <= CLEARLY * deviation:
            continue
        line = max(lines, key=lambda line: (line.file, line.line))
        others = together_with([other for other in lines if other != line])
        text = (
            f"{place} always moves by {format_number(move)} between D and D', and its noise, drawn "
            f"here{others}, has a standard deviation of {deviation:.2g}; Laplace noise for "
            f"{format_number(claim.claimed)} claimed would have {needed:.2g}"
        )
        yield Finding("too little noise", line, text, loss=lower, times=needed / deviation)
        yield from origins(runs, runs.draw_at(line), place, loss=lower)
        return


def _move_and_deviation(runs: Runs, place: str, count: int) -> tuple[float, float]:
    """How far a number on D is from that on D', and its standard deviation.

    0 and infinity where it is no number, or does not always move as far.
    """
    values = [runs.values(side, place, count) for side in (0, 1)]
    if all(isinstance(value, float) for of_side in values for value in of_side):
        here, there = np.array(values, dtype=float)
        size = float(np.abs([here, there]).max())
        if np.isfinite(size) and np.ptp(here - there) <= 1e-9 * size:
            return float(abs(here[0] - there[0])), float(here.std())
    return 0.0, math.inf
