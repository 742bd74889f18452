"""Draws that, moved as far as the data differs, make outputs on D those on D'.

Source: Zhang and Kifer, "LightDP", POPL 2017: the cost of such a randomness alignment bounds the
loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.blame.families import LAPLACE, family_of, number, written
from pytest_dp.blame.finding import Finding, together
from pytest_dp.blame.losses import ABOVE
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import Key, differ, keyed, place_of
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement

MAX_NUMBERS = 256
"""In an input."""
RUNS = 60
"""In which outputs have to become the same."""


@dataclass(frozen=True, slots=True)
class _Line:
    """Draws of Laplace noise in a line, one for each number of the input.

    Attributes
    ----------
    line : Site
    draw : Draw
    scales : list of float
    """

    line: Site
    draw: Draw
    scales: list[float]


def aligned(reach: Reach, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """The line whose draws pay the most for a move of the answers, if that is more than claimed."""
    if claim.parameter != "eps" or claim.delta:
        return
    moves = _moves(reach.runs.pair)
    if moves is None or not moves.any():
        return
    lines = [known for line in reach.lines if (known := _line(reach, line, len(moves)))]
    groups = [[each] for each in lines] + ([lines] if len(lines) > 1 else [])
    for group in groups:
        if not _becomes(reach, [each.line for each in group], moves):
            continue
        costs = [float(np.sum(np.abs(moves) / each.scales)) for each in group]
        if sum(costs) <= max(claim.claimed, lower) * ABOVE:  # below what was shown: noise unseen
            continue
        worst = group[int(np.argmax(costs))]
        many = int(np.count_nonzero(moves))
        others = together([each.line for each in group if each is not worst])
        draws, make = ("one draw", "makes") if many == 1 else (f"{many} draws", "make")
        text = (
            f"{draws} of {written(worst.draw.request)} here, moved by "
            f"{number(float(np.abs(moves).max()))} at most, {make} the output on D' that on D: a "
            f"loss of at most {number(sum(costs))}, and {number(claim.claimed)} is claimed{others}"
        )
        yield Finding("too little noise", worst.line, text, loss=lower)
        return


def _moves(pair: tuple[Any, Any]) -> np.ndarray[Any, Any] | None:
    """How far each number of D is from that of D', if they are as many."""
    try:
        one, other = (np.asarray(data, dtype=float).reshape(-1) for data in pair)
    except (TypeError, ValueError, OverflowError):
        return None
    if one.shape != other.shape or not 0 < one.size <= MAX_NUMBERS:
        return None
    moves = one - other
    return moves if np.isfinite(moves).all() else None


def _line(reach: Reach, line: Site, size: int) -> _Line | None:
    """What is drawn in a line, if that is noise for so many numbers."""
    scales: list[float] = []
    drawn: Draw | None = None
    for noise in range(NOISES):
        for run in reach.both(noise):
            draws = [draw for draw in run.draws if place_of(draw.stack) == line]
            found = _scales(draws)
            if found is None or len(found) > size:
                return None
            if len(found) > len(scales):
                scales, drawn = found, draws[0]
    if drawn is None or (size > 1 and len(scales) < 2):
        return None
    return _Line(line, drawn, scales + [scales[-1]] * (size - len(scales)))


def _scales(draws: list[Draw]) -> list[float] | None:
    scales = []
    for draw in draws:
        for index in range(np.size(draw.value)) if np.ndim(draw.value) else (None,):
            family = family_of(draw, index)
            if family is None or family.name != LAPLACE:
                return None
            scales.append(family.scale)
    return scales


def _becomes(reach: Reach, lines: list[Site], moves: np.ndarray[Any, Any]) -> bool:
    """Whether outputs on D' are those on D once the draws of some lines move as the numbers do."""
    for noise in range(RUNS):
        one = reach.runs.usual(0, noise).leaves
        other = reach.runs.run(1, noise, _moving(lines, moves)).leaves
        if one.keys() != other.keys() or any(differ(one[at], other[at]) for at in one):
            return False
    return True


def _moving(lines: list[Site], moves: np.ndarray[Any, Any]) -> Replaced:
    """What adds the next of the moves to each number that is drawn; good for one run."""
    at = dict.fromkeys(lines, 0)

    def change(key: Key, draw: Draw) -> Replacement | None:
        line = place_of(key[0])
        if line not in at:
            return None
        size = int(np.size(draw.value))
        amounts = moves[at[line] : at[line] + size]
        at[line] += size
        if len(amounts) < size:
            return None
        if np.ndim(draw.value):
            return lambda draw, _: draw.value + amounts.reshape(np.shape(draw.value))
        return lambda draw, _: type(draw.value)(draw.value + amounts[0])

    return keyed(change)
