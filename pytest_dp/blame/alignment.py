"""Randomness alignments: draws that, moved as far as the data differs, undo the difference.

Source: Zhang and Kifer, "LightDP", POPL 2017: the cost of such an alignment bounds the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.blame.families import LAPLACE, family_of
from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.losses import is_pure
from pytest_dp.blame.runs import Key, by_key, differ, indices, place_of
from pytest_dp.blame.texts import format_draw, format_number, together_with
from pytest_dp.limits import HUNDREDS, NEARLY_EQUAL, TRACED_RUNS
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement


@dataclass(frozen=True, slots=True)
class _LaplaceLine:
    """A line that draws Laplace noise, one number for each number of the input."""

    line: Site
    draw: Draw
    scales: list[float]


def alignment(flow: Flow, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """The line with the largest cost in an alignment that costs more than is claimed."""
    if not is_pure(claim):
        return
    moves = _moves(flow.runs.pair)
    if moves is None or not moves.any():
        return
    lines = [laplace for line in flow.lines if (laplace := _laplace(flow, line, len(moves)))]
    groups = [[line] for line in lines] + ([lines] if len(lines) > 1 else [])
    for group in groups:
        if not _aligns(flow, [line.line for line in group], moves):
            continue
        costs = [float(np.sum(np.abs(moves) / line.scales)) for line in group]
        if sum(costs) <= max(claim.claimed, lower) * (1 + NEARLY_EQUAL):
            continue  # below what was shown: noise unseen
        worst = group[int(np.argmax(costs))]
        count = int(np.count_nonzero(moves))
        others = together_with([line.line for line in group if line is not worst])
        draws, make = ("one draw", "makes") if count == 1 else (f"{count} draws", "make")
        text = (
            f"{draws} of {format_draw(worst.draw.request)} here, moved by "
            f"{format_number(float(np.abs(moves).max()))} at most, {make} the output on D' that on "
            f"D: a loss of at most {format_number(sum(costs))}, and "
            f"{format_number(claim.claimed)} is claimed{others}"
        )
        yield Finding("too little noise", worst.line, text, loss=lower)
        return


def _moves(pair: tuple[Any, Any]) -> np.ndarray[Any, Any] | None:
    """How far each number of D is from that of D', if both have as many."""
    try:
        here, there = (np.asarray(data, dtype=float).reshape(-1) for data in pair)
    except (TypeError, ValueError, OverflowError):
        return None
    if here.shape != there.shape or not 0 < here.size <= HUNDREDS:
        return None
    moves = here - there
    return moves if np.isfinite(moves).all() else None


def _laplace(flow: Flow, line: Site, size: int) -> _LaplaceLine | None:
    """What is drawn in a line, if that is noise for so many numbers."""
    longest: list[float] = []
    draw: Draw | None = None
    for run in flow.all_runs():
        draws = run.draws_at(line)
        scales = _scales(draws)
        if scales is None or len(scales) > size:
            return None
        if len(scales) > len(longest):
            longest, draw = scales, draws[0]
    if draw is None or (size > 1 and len(longest) < 2):
        return None
    return _LaplaceLine(line, draw, longest + [longest[-1]] * (size - len(longest)))


def _scales(draws: list[Draw]) -> list[float] | None:
    scales = []
    for draw in draws:
        for index in indices(draw):
            family = family_of(draw, index)
            if family is None or family.name != LAPLACE:
                return None
            scales.append(family.scale)
    return scales


def _aligns(flow: Flow, lines: list[Site], moves: np.ndarray[Any, Any]) -> bool:
    """Whether outputs on D' are those on D once the draws of the lines move as the numbers do."""
    for noise in range(TRACED_RUNS):
        here = flow.runs.usual(0, noise).leaves
        there = flow.runs.run(1, noise, _moved(lines, moves)).leaves
        if here.keys() != there.keys() or any(differ(here[p], there[p]) for p in here):
            return False
    return True


def _moved(lines: list[Site], moves: np.ndarray[Any, Any]) -> Replaced:
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
