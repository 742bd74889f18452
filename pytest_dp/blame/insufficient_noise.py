"""Affine numbers with too little noise: it is small, shared, one-sided, or depends on the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.affine import Affine
from pytest_dp.blame.families import GAUSSIAN, LAPLACE, ONE_SIDED, Family
from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.losses import excess_loss
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import place_of
from pytest_dp.blame.texts import format_draw, format_number, format_places, together_with
from pytest_dp.limits import NEARLY_EQUAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw


def insufficient_noise(flow: Flow, affine: Affine, claim: Guarantee) -> Iterator[Finding]:
    """What is wrong with the noise, the most telling first; then where it comes from."""
    dependent = list(_dependent_on_data(affine))
    yield from dependent
    if dependent or not _equal(affine.times[0], affine.times[1]):
        return
    yield from _shared(affine)
    excess = _excess(affine, claim)
    if excess is not None:
        yield excess.finding
        for finding in origins(flow, excess.draw, excess.scale, excess.answers, excess.place):
            yield replace(finding, loss=excess.finding.loss)


def _equal(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=NEARLY_EQUAL, atol=0))


def _dependent_on_data(affine: Affine) -> Iterator[Finding]:
    """Noise that is larger on D than on D', or smaller."""
    reported: set[Site] = set()
    for row, place in enumerate(affine.places):
        for column, families in enumerate(affine.families):
            here, there = affine.times[:, row, column]
            line = place_of(affine.draws[column][0].stack)
            if line in reported or not (here and there):
                continue
            scales = [family.scale for family in families]
            draw = format_draw(affine.draws[column][0].request)
            if not _equal(*scales) and not _equal(here * scales[0], there * scales[1]):
                text = (
                    f"the scale of {draw.partition('(')[0]} here is {format_number(scales[0])} on "
                    f"D and {format_number(scales[1])} on D': {place} has noise that depends on "
                    "the data"
                )
            elif _equal(*scales) and not _equal(here, there):
                text = (
                    f"{place} moves {format_number(here)} times as far as {draw} on D, and "
                    f"{format_number(there)} times on D': its noise depends on the data"
                )
            else:
                continue
            reported.add(line)
            yield Finding("noise depends on data", line, text, certain=True)


def _shared(affine: Affine) -> Iterator[Finding]:
    """Two leaves with the same noise, which cancels in a combination of the two."""
    moves = affine.answers[0] - affine.answers[1]
    times = affine.times[0]
    pairs = [(row, before) for row in range(len(affine.places)) for before in range(row)]
    for i, k in pairs:
        ratio = _ratio(times[k], times[i])
        if ratio is None:
            continue
        size = np.abs(affine.answers[:, [i, k]]).max()
        if abs(moves[i] - ratio * moves[k]) <= NEARLY_EQUAL * max(size * (1 + abs(ratio)), 1e-300):
            continue
        draw = affine.draws[int(np.flatnonzero(times[i])[0])][0]
        bare = affine.answers[:, i] - ratio * affine.answers[:, k]
        factor = "" if abs(ratio) == 1 else f"{format_number(abs(ratio))} * "
        sign = "-" if ratio > 0 else "+"
        text = (
            f"{affine.places[k]} and {affine.places[i]} share the draw "
            f"{format_draw(draw.request)}: whatever it is, "
            f"{affine.places[i]} {sign} {factor}{affine.places[k]} is {format_number(bare[0])} "
            f"on D and {format_number(bare[1])} on D'"
        )
        yield Finding("shared noise", place_of(draw.stack), text, certain=True)
        return


def _ratio(one: Floats, other: Floats) -> float | None:
    """The factor r for which `other` is r times `one`, if there is one."""
    if not one.any() or not np.array_equal(one != 0, other != 0):
        return None
    column = int(np.flatnonzero(one)[0])
    ratio = float(other[column] / one[column])
    ratio = round(ratio) if abs(ratio - round(ratio)) < NEARLY_EQUAL and round(ratio) else ratio
    return float(ratio) if np.allclose(ratio * one, other, rtol=NEARLY_EQUAL, atol=0) else None


@dataclass(frozen=True, slots=True)
class _Noise:
    """An independent random number, drawn with the same scale on D and on D'."""

    line: Site
    draw: Draw
    family: Family
    times: Floats
    """Its factor in each leaf, shape (n,)."""
    shift: float = 0.0
    """By how much it would have to move, to make the output on D that on D'."""

    @property
    def cost(self) -> float:
        """Its shift in units of its scale."""
        return abs(self.shift) / self.family.scale


@dataclass(frozen=True, slots=True)
class _Excess:
    """Too large a loss, at the line that contributes the most to it."""

    finding: Finding
    draw: Draw
    scale: float
    place: str
    """Of the leaf that moves the most."""
    answers: tuple[float, float]
    """What it is without noise, on D and on D'."""


def _excess(affine: Affine, claim: Guarantee) -> _Excess | None:
    """How much is lost by too little noise, if that is more than claimed."""
    if not all(_equal(here.scale, there.scale) for here, there in affine.families):
        return None
    moves = affine.answers[0] - affine.answers[1]
    noises = [noise for noise in _shifted(affine, moves) if noise.shift]
    shifts, families = [n.shift for n in noises], [n.family for n in noises]
    excess = excess_loss(shifts, families, claim, apart=_are_apart(_independent(affine)))
    if not noises or excess is None:
        return None
    loss, loss_text = excess
    costs: dict[Site, float] = {}
    for noise in noises:
        costs[noise.line] = costs.get(noise.line, 0.0) + noise.cost
    line = max(costs, key=costs.__getitem__)
    worst = max((n for n in noises if n.line == line), key=lambda noise: noise.cost)
    row = int(np.argmax(np.abs(moves) * (worst.times != 0)))
    others = together_with([other for other in costs if other != line])
    text = f"{_moves_and_noise(affine, moves, worst)}: {loss_text}{others}"
    finding = Finding("too little noise", line, text, loss=loss)
    answers = float(affine.answers[0, row]), float(affine.answers[1, row])
    return _Excess(finding, worst.draw, worst.family.scale, affine.places[row], answers)


def _moves_and_noise(affine: Affine, moves: Floats, worst: _Noise) -> str:
    """Text: what moves by how much, and its noise of the line that loses the most."""
    noises = _independent(affine)
    at_line = [noise for noise in noises if noise.line == worst.line]
    others = [noise for noise in noises if noise.line != worst.line]
    rows = [
        row for row, move in enumerate(moves) if move and any(noise.times[row] for noise in at_line)
    ]
    moving = [noise for noise in at_line if noise.times[rows].any()]
    texts = {format_draw(noise.draw.request) for noise in moving}
    count = len({noise.draw.number for noise in moving})
    draws = format_draw(worst.draw.request)
    if len(texts) > 1:
        draws = f"{count} draws such as {draws}"
    elif count > 1:
        draws = f"{count} draws of {draws}"
    verb, up_to, whose = ("moves", "", "its") if len(rows) == 1 else ("move", "up to ", "their")
    mixed = any(noise.times[row] for row in rows for noise in others)
    factors = [abs(noise.times[row]) for row in rows for noise in moving if noise.times[row]]
    if _equal(factors, factors[0]) and not _equal(factors, 1.0):
        draws = f"{draws}, times {format_number(factors[0])}"
    noise = f"{draws} is in {whose} noise" if mixed else f"all {whose} noise is {draws}"
    largest = format_number(float(np.abs(moves[rows]).max()))
    places = format_places([affine.places[row] for row in rows])
    return f"{places} {verb} by {up_to}{largest} between D and D', and {noise}"


def _shifted(affine: Affine, moves: Floats) -> list[_Noise]:
    """The noise with the least shifts by which D becomes D'; none if those are not determined.

    The loss is that of the least shifts, in the norm by which the noise's density falls off.
    """
    noises = _independent(affine)
    kinds = {noise.family.name for noise in noises}
    if not noises or (len(kinds) > 1 and not kinds <= {LAPLACE, GAUSSIAN}):
        return []
    times = np.stack([noise.times for noise in noises], axis=1)
    scales = np.array([noise.family.scale for noise in noises])
    if _are_apart(noises):
        shifts = np.linalg.lstsq(times, moves, rcond=None)[0]
    elif kinds == {GAUSSIAN}:
        shifts = scales * (np.linalg.pinv(times * scales) @ moves)
    elif kinds == {LAPLACE}:
        shifts = _least_sum(times * scales, moves) * scales
    else:
        return []
    sizes = np.abs(affine.answers).max(axis=0) + np.abs(times * shifts).sum(axis=1)
    if not (np.abs(times @ shifts - moves) <= NEARLY_EQUAL * sizes).all():
        return []  # something has no noise at all
    shifts[np.abs(times * shifts).max(axis=0) <= NEARLY_EQUAL * sizes.max()] = 0.0
    return [replace(n, shift=float(s)) for n, s in zip(noises, shifts, strict=True)]


def _are_apart(noises: Sequence[_Noise]) -> bool:
    """Whether the output tells all of them, once the answer is known."""
    times = np.stack([noise.times for noise in noises], axis=1) if noises else np.zeros((1, 0))
    return bool(np.linalg.matrix_rank(times) == len(noises))


def _least_sum(times: Floats, moves: Floats) -> Floats:
    """The x with the least sum of absolute values for which ``times @ x == moves``.

    This sum is the loss of Laplace noise: x takes one input to the other at this cost, so the loss
    is no more; and far out, where densities fall off as exp(-sum), it is reached.
    """
    from scipy.optimize import linprog

    solution = linprog(np.ones(2 * times.shape[1]), A_eq=np.hstack([times, -times]), b_eq=moves)
    if not solution.success:
        return np.full(times.shape[1], np.nan)
    up, down = np.asarray(solution.x).reshape(2, -1)
    return np.asarray(up - down)


def _independent(affine: Affine) -> list[_Noise]:
    """The noise in the leaves; a difference of two one-sided numbers is one of Laplace noise.

    Source: Kotz, Kozubowski, Podgorski, "The Laplace Distribution", 2001, Proposition 2.2.3; for
    whole numbers, Ghosh, Roughgarden, Sundararajan, 2012.
    """
    noises: list[_Noise] = []
    for column, ((draw, _), (family, _)) in enumerate(
        zip(affine.draws, affine.families, strict=True)
    ):
        times = affine.times[0][:, column]
        twin = next((i for i, noise in enumerate(noises) if _mirrors(noise, family, times)), None)
        if twin is None:
            noises.append(_Noise(place_of(draw.stack), draw, family, times))
        else:
            noises[twin] = replace(noises[twin], family=replace(family, name=LAPLACE))
    return [noise for noise in noises if noise.times.any()]


def _mirrors(noise: _Noise, family: Family, times: Floats) -> bool:
    one_sided = noise.family == family and family.name == ONE_SIDED
    return one_sided and bool(times.any()) and _equal(noise.times, -times)
