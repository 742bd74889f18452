"""Numbers that draws do not cover, or not enough: by what is affine of the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.affine import TOLERANCE, Affine
from pytest_dp.blame.families import (
    GAUSSIAN,
    LAPLACE,
    ONE_SIDED,
    Family,
    number,
    written,
)
from pytest_dp.blame.finding import Finding, listed, together
from pytest_dp.blame.losses import too_much
from pytest_dp.blame.origins import origins
from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import place_of
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw


def uncovered(reach: Reach, known: Affine, claim: Guarantee) -> Iterator[Finding]:
    """What is wrong with the noise, the most telling first; then where it comes from."""
    by_data = list(_by_data(known))
    yield from by_data
    if by_data or not _same(known.times[0], known.times[1]):
        return
    yield from _shared(known)
    lost = _loss(known, claim)
    if lost is not None:
        yield lost.finding
        for found in origins(reach, lost.draw, lost.scale, lost.answers, lost.place):
            yield replace(found, loss=lost.finding.loss)


def _same(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=TOLERANCE, atol=0))


def _by_data(known: Affine) -> Iterator[Finding]:
    """Noise that is larger on D than on D', or smaller."""
    said: set[Site] = set()
    for row, place in enumerate(known.places):
        for column, families in enumerate(known.families):
            one, other = known.times[:, row, column]
            line = place_of(known.draws[column][0].stack)
            if line in said or not (one and other):
                continue
            scales = [family.scale for family in families]
            draw = written(known.draws[column][0].request)
            if not _same(*scales) and not _same(one * scales[0], other * scales[1]):
                text = (
                    f"the scale of {draw.partition('(')[0]} here is {number(scales[0])} on D and "
                    f"{number(scales[1])} on D': {place} has noise that depends on the data"
                )
            elif _same(*scales) and not _same(one, other):
                text = (
                    f"{place} moves {number(one)} times as far as {draw} on D, and "
                    f"{number(other)} times on D': its noise depends on the data"
                )
            else:
                continue
            said.add(line)
            yield Finding("noise depends on data", line, text, certain=True)


def _shared(known: Affine) -> Iterator[Finding]:
    """Two leaves with the same noise, of which a difference has none."""
    moves = known.answers[0] - known.answers[1]
    times = known.times[0]
    for i in range(len(known.places)):
        for k in range(i):
            ratio = _ratio(times[k], times[i])
            if ratio is None:
                continue
            size = np.abs(known.answers[:, [i, k]]).max()
            if abs(moves[i] - ratio * moves[k]) <= TOLERANCE * max(size * (1 + abs(ratio)), 1e-300):
                continue
            column = int(np.flatnonzero(times[i])[0])
            left = known.answers[:, i] - ratio * known.answers[:, k]
            factor = "" if abs(ratio) == 1 else f"{number(abs(ratio))} * "
            sign = "-" if ratio > 0 else "+"
            text = (
                f"{known.places[k]} and {known.places[i]} share the draw "
                f"{written(known.draws[column][0].request)}: whatever it is, "
                f"{known.places[i]} {sign} {factor}{known.places[k]} is {number(left[0])} on D "
                f"and {number(left[1])} on D'"
            )
            yield Finding(
                "shared noise", place_of(known.draws[column][0].stack), text, certain=True
            )
            return


def _ratio(one: Floats, other: Floats) -> float | None:
    """How many times `one` the row `other` is, if it is that."""
    if not one.any() or not np.array_equal(one != 0, other != 0):
        return None
    column = int(np.flatnonzero(one)[0])
    ratio = float(other[column] / one[column])
    ratio = round(ratio) if abs(ratio - round(ratio)) < TOLERANCE and round(ratio) else ratio
    return float(ratio) if np.allclose(ratio * one, other, rtol=TOLERANCE, atol=0) else None


@dataclass(frozen=True, slots=True)
class _Noise:
    """One of several independent draws.

    Attributes
    ----------
    line : Site
    draw : Draw
    family : Family
    times : ndarray of float, shape (n,)
        How much it counts in each leaf.
    shift : float
        By how much it would have to move, to take what is put out on D to what is on D'.
    """

    line: Site
    draw: Draw
    family: Family
    times: Floats
    shift: float = 0.0

    @property
    def share(self) -> float:
        """How much it moves, in its scale."""
        return abs(self.shift) / self.family.scale


@dataclass(frozen=True, slots=True)
class _Lost:
    """What is lost by the noise of a line.

    Attributes
    ----------
    finding : Finding
    draw : Draw
    scale : float
    place : str
        Of the leaf that moves the most.
    answers : (float, float)
        What it is without noise, on D and on D'.
    """

    finding: Finding
    draw: Draw
    scale: float
    place: str
    answers: tuple[float, float]


def _loss(known: Affine, claim: Guarantee) -> _Lost | None:
    """How much is lost by too little noise, at the line that loses the most."""
    if not all(_same(one.scale, other.scale) for one, other in known.families):
        return None
    moves = known.answers[0] - known.answers[1]
    noises = [noise for noise in _shifted(known, moves) if noise.shift]
    found = too_much([n.shift for n in noises], [n.family for n in noises], claim)
    if not noises or found is None:
        return None
    lost: dict[Site, float] = {}
    for noise in noises:
        lost[noise.line] = lost.get(noise.line, 0.0) + noise.share
    line = max(lost, key=lost.__getitem__)
    worst = max((n for n in noises if n.line == line), key=lambda noise: noise.share)
    row = int(np.argmax(np.abs(moves) * (worst.times != 0)))
    others = [at for at in lost if at != line]
    text = f"{_told(known, moves, worst)}: {found[1]}{together(others)}"
    finding = Finding("too little noise", line, text, loss=found[0])
    answers = float(known.answers[0, row]), float(known.answers[1, row])
    return _Lost(finding, worst.draw, worst.family.scale, known.places[row], answers)


def _told(known: Affine, moves: Floats, worst: _Noise) -> str:
    """What moves, and what noise it has of the line that loses the most."""
    at_line = [noise for noise in _used(known) if noise.line == worst.line]
    others = [noise for noise in _used(known) if noise.line != worst.line]
    rows = [
        row for row, move in enumerate(moves) if move and any(noise.times[row] for noise in at_line)
    ]
    own = [noise for noise in at_line if noise.times[rows].any()]
    texts = {written(noise.draw.request) for noise in own}
    many = len({noise.draw.number for noise in own})
    draws = written(worst.draw.request)
    if len(texts) > 1:
        draws = f"{many} draws such as {draws}"
    elif many > 1:
        draws = f"{many} draws of {draws}"
    verb, up_to, whose = ("moves", "", "its") if len(rows) == 1 else ("move", "up to ", "their")
    mixed = any(noise.times[row] for row in rows for noise in others)
    counts = [float(abs(noise.times[row])) for row in rows for noise in own if noise.times[row]]
    if _same(counts, counts[0]) and not _same(counts, 1.0):
        draws = f"{draws}, times {number(counts[0])}"
    noise = f"{draws} is in {whose} noise" if mixed else f"all {whose} noise is {draws}"
    most = number(float(np.abs(moves[rows]).max()))
    moved = listed([known.places[row] for row in rows])
    return f"{moved} {verb} by {up_to}{most} between D and D', and {noise}"


def _shifted(known: Affine, moves: Floats) -> list[_Noise]:
    """The draws with the least shifts by which D becomes D'; none if they do not follow.

    The least are those that tell the loss: shifts are measured as densities of the noise fall off.
    """
    noises = _used(known)
    kinds = {noise.family.name for noise in noises}
    if not noises or (len(kinds) > 1 and not kinds <= {LAPLACE, GAUSSIAN}):
        return []
    times = np.stack([noise.times for noise in noises], axis=1)
    scales = np.array([noise.family.scale for noise in noises])
    if np.linalg.matrix_rank(times) == len(noises):
        shifts = np.linalg.lstsq(times, moves, rcond=None)[0]
    elif kinds == {GAUSSIAN}:
        shifts = scales * (np.linalg.pinv(times * scales) @ moves)
    elif kinds == {LAPLACE}:
        shifts = _least_sum(times * scales, moves) * scales
    else:
        return []
    sizes = np.abs(known.answers).max(axis=0) + np.abs(times * shifts).sum(axis=1)
    if not (np.abs(times @ shifts - moves) <= TOLERANCE * sizes).all():
        return []  # something has no noise at all
    shifts[np.abs(times * shifts).max(axis=0) <= TOLERANCE * sizes.max()] = 0.0
    return [replace(n, shift=float(s)) for n, s in zip(noises, shifts, strict=True)]


def _least_sum(times: Floats, moves: Floats) -> Floats:
    """X with the least sum of absolute values of those with ``times @ x == moves``.

    The density of a sum of Laplace noises falls off as exp(-that), so it is their loss: it cannot
    be more, as x itself takes one input to the other, and far out it is reached.
    """
    from scipy.optimize import linprog

    found = linprog(np.ones(2 * times.shape[1]), A_eq=np.hstack([times, -times]), b_eq=moves)
    if not found.success:
        return np.full(times.shape[1], np.nan)
    up, down = np.asarray(found.x).reshape(2, -1)
    return np.asarray(up - down)


def _independent(known: Affine) -> list[_Noise]:
    """The draws, of which two one-sided ones that are subtracted are one of Laplace's.

    Source: Kotz, Kozubowski, Podgorski, "The Laplace Distribution", 2001, Proposition 2.2.3; for
    whole numbers, Ghosh, Roughgarden, Sundararajan, 2012.
    """
    noises: list[_Noise] = []
    for column, ((draw, _), (family, _)) in enumerate(
        zip(known.draws, known.families, strict=True)
    ):
        times = known.times[0][:, column]
        twin = next((i for i, noise in enumerate(noises) if _mirrors(noise, family, times)), None)
        if twin is None:
            noises.append(_Noise(place_of(draw.stack), draw, family, times))
        else:
            noises[twin] = replace(noises[twin], family=replace(family, name=LAPLACE))
    return noises


def _used(known: Affine) -> list[_Noise]:
    return [noise for noise in _independent(known) if noise.times.any()]


def _mirrors(noise: _Noise, family: Family, times: Floats) -> bool:
    one_sided = noise.family == family and family.name == ONE_SIDED
    return one_sided and bool(times.any()) and _same(noise.times, -times)
