"""Noise that is added to answers: it depends on the data, or is too little."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.affine import Affine, Noise, affine
from pytest_dp.blame.findings import (
    Finding,
    format_draw,
    format_number,
    format_places,
    together_with,
)
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import Runs, place_of
from pytest_dp.known.comparing import Case
from pytest_dp.known.experiments import Moved
from pytest_dp.known.profiles import gaussian, profile
from pytest_dp.limits import NEARLY_EQUAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.laws import (
    DIFFERENCES,
    LAPLACE,
    NORMAL,
    Law,
)
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw


def additive_noise(runs: Runs, claim: Guarantee) -> Iterator[Finding]:
    """What is wrong with the noise of affine leaves, and where it comes from."""
    leaves = affine(runs)
    if leaves is None:
        return
    dependent = list(_dependent_on_data(leaves))
    yield from dependent
    if dependent or not _equal(leaves.times[0], leaves.times[1]):
        return
    if all(_equal(here.scale, there.scale) for here, there in (d.noises for d in leaves.drawn)):
        yield from _too_little(runs, leaves, claim)


def _equal(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=NEARLY_EQUAL, atol=0))


def _dependent_on_data(leaves: Affine) -> Iterator[Finding]:
    """Noise that is larger on D than on D', or smaller."""
    reported: set[Site] = set()
    for row, place in enumerate(leaves.places):
        for column, number in enumerate(leaves.drawn):
            here, there = leaves.times[:, row, column]
            line = place_of(number.draws[0].stack)
            if line in reported or not (here and there):
                continue
            scales = [noise.scale for noise in number.noises]
            draw, kind = format_draw(number.draws[0].request), "noise depends on data"
            if not _equal(*scales) and not _equal(here * scales[0], there * scales[1]):
                text = (
                    f"the scale of {draw.partition('(')[0]} here is {format_number(scales[0])} on "
                    f"D and {format_number(scales[1])} on D': {place} has noise that depends on "
                    "the data"
                )
            elif _equal(*scales) and not _equal(here, there):
                text = (
                    f"{place} moves {format_number(here)} times as far as {draw} on D, and "
                    f"{format_number(there)} times on D'"
                )
                shared = (leaves.times[:, :, column] != 0).all(axis=0)
                others = [other for other in compress(leaves.places, shared) if other != place]
                if others:
                    text += f"; {format_places(others)} share{'s' * (len(others) == 1)} this noise"
                    kind = "shared noise"
                else:
                    text += ": its noise depends on the data"
            else:
                continue
            reported.add(line)
            yield Finding(kind, line, text, certain=True)


@dataclass(frozen=True, slots=True)
class _Independent:
    """An independent random number, drawn with the same scale on D and on D'."""

    line: Site
    draw: Draw
    noise: Noise
    times: Floats
    """Its factor in each leaf, shape (n,)."""
    shift: float = 0.0
    """By how much it would have to move, to make the output on D that on D'."""


def _too_little(runs: Runs, leaves: Affine, claim: Guarantee) -> Iterator[Finding]:
    """The line that contributes the most to a loss that is more than claimed."""
    moves = leaves.answers[0] - leaves.answers[1]
    numbers = _independent(leaves)
    apart = _are_apart(numbers)
    moving = [number for number in _shifted(leaves, numbers, moves, apart) if number.shift]
    excess = excess_loss([n.noise.moved(n.shift) for n in moving], claim, apart) if moving else None
    if excess is None:
        return
    loss, loss_text = excess
    costs: Counter[Site] = Counter()
    for number in moving:
        costs[number.line] += abs(number.shift) / number.noise.scale  # type: ignore[assignment]
    line = max(costs, key=costs.__getitem__)
    at_line = [number for number in moving if number.line == line]
    worst = max(at_line, key=lambda number: abs(number.shift) / number.noise.scale)
    others = together_with([other for other in costs if other != line])
    text = f"{_moves_and_noise(leaves, numbers, moves, worst)}: {loss_text}{others}"
    times = 0.0 if math.isinf(loss) else claim.noise_below(loss)
    yield Finding("too little noise", line, text, loss=loss, times=times)
    row = int(np.argmax(np.abs(moves) * (worst.times != 0)))
    answers = float(leaves.answers[0, row]), float(leaves.answers[1, row])
    yield from origins(runs, worst.draw, leaves.places[row], worst.noise.scale, answers, loss)


def _moves_and_noise(
    leaves: Affine, numbers: Sequence[_Independent], moves: Floats, worst: _Independent
) -> str:
    """Text: what moves by how much, and its noise of the line that loses the most."""
    at_line = [number for number in numbers if number.line == worst.line]
    others = [number for number in numbers if number.line != worst.line]
    rows = [row for row, move in enumerate(moves) if move and any(n.times[row] for n in at_line)]
    moving = [number for number in at_line if number.times[rows].any()]
    count = len({number.draw.number for number in moving})
    draws = format_draw(worst.draw.request)
    if len({format_draw(number.draw.request) for number in moving}) > 1:
        draws = f"{count} draws such as {draws}"
    elif count > 1:
        draws = f"{count} draws of {draws}"
    factors = [abs(n.times[row]) for row in rows for n in moving if n.times[row]]
    if _equal(factors, factors[0]) and not _equal(factors, 1.0):
        draws = f"{draws}, times {format_number(factors[0])}"
    verb, up_to, whose = ("moves", "", "its") if len(rows) == 1 else ("move", "up to ", "their")
    is_mixed = any(number.times[row] for row in rows for number in others)
    noise = f"{draws} is in {whose} noise" if is_mixed else f"all {whose} noise is {draws}"
    largest = format_number(float(np.abs(moves[rows]).max()))
    places = format_places([leaves.places[row] for row in rows])
    return f"{places} {verb} by {up_to}{largest} between D and D', and {noise}"


def _independent(leaves: Affine) -> list[_Independent]:
    """The noise in the leaves; a difference of two one-sided numbers is a two-sided one.

    Source: Kotz, Kozubowski, Podgorski, "The Laplace Distribution", 2001, Proposition 2.2.3; for
    whole numbers, Ghosh, Roughgarden, Sundararajan, 2012.
    """
    numbers: list[_Independent] = []
    for column, drawn in enumerate(leaves.drawn):
        draw, noise, times = drawn.draws[0], drawn.noises[0], leaves.times[0][:, column]
        two_sided = DIFFERENCES.get(noise.law.family)
        twins = (
            i
            for i, other in enumerate(numbers)
            if two_sided and other.noise == noise and times.any() and _equal(other.times, -times)
        )
        twin = next(twins, None)
        if twin is None or two_sided is None:
            numbers.append(_Independent(place_of(draw.stack), draw, noise, times))
        else:
            law = Law(two_sided, noise.law.parameter)
            numbers[twin] = replace(numbers[twin], noise=replace(noise, law=law))
    return [number for number in numbers if number.times.any()]


def _are_apart(numbers: Sequence[_Independent]) -> bool:
    """Whether the output tells all of them, once the answer is known."""
    if not numbers:
        return True
    times = np.stack([number.times for number in numbers], axis=1)
    return bool(np.linalg.matrix_rank(times) == len(numbers))


def _shifted(
    leaves: Affine, numbers: Sequence[_Independent], moves: Floats, apart: bool
) -> list[_Independent]:
    """The noise with the least shifts by which D becomes D'; none if those are not determined.

    The loss is that of the least shifts, in the norm by which the noise's density falls off.
    """
    if not numbers:
        return []
    times = np.stack([number.times for number in numbers], axis=1)
    scales = np.array([number.noise.scale for number in numbers])
    families = {number.noise.law.family for number in numbers}
    if apart:
        shifts = np.linalg.lstsq(times, moves, rcond=None)[0]
    elif families == {NORMAL}:
        shifts = scales * (np.linalg.pinv(times * scales) @ moves)
    elif families == {LAPLACE}:
        shifts = _least_sum(times * scales, moves) * scales
    else:
        return []
    sizes = np.abs(leaves.answers).max(axis=0) + np.abs(times * shifts).sum(axis=1)
    if not (np.abs(times @ shifts - moves) <= NEARLY_EQUAL * sizes).all():
        return []  # something has no noise at all
    shifts[np.abs(times * shifts).max(axis=0) <= NEARLY_EQUAL * sizes.max()] = 0.0
    return [replace(n, shift=float(s)) for n, s in zip(numbers, shifts, strict=True)]


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


def is_pure(claim: Guarantee) -> bool:
    """Whether eps is claimed without a delta."""
    return claim.parameter == "eps" and not claim.delta


def excess_loss(moves: Sequence[Moved], claim: Guarantee, apart: bool) -> tuple[float, str] | None:
    """What independent draws lose that have to move, in the claim's parameter, and in words.

    None if it is not more than claimed, or not known. `apart` is whether outputs tell the draws one
    by one; of those of Laplace and Gaussian noise, the loss is known anyway.
    """
    case = Case(0.0, 0.0, list(moves))
    claimed = format_number(claim.claimed)
    if is_pure(claim):
        largest = case.largest()
        loss = max(largest.forward, largest.backward)
        if math.isinf(loss):
            return loss, f"{_why_unbounded(moves)}, and {claimed} is claimed"
        return more_than_claimed(loss, claim, f"a loss of {format_number(loss)}")
    mu = gaussian([case])
    if mu is None and not apart:
        return None
    if mu is not None and claim.parameter in ("mu", "rho"):
        value = mu if claim.parameter == "mu" else mu**2 / 2
        return more_than_claimed(value, claim, f"{claim.parameter} = {format_number(value)}")
    directions = profile([case], forward=True), profile([case], forward=False)
    if claim.parameter == "eps":
        delta = max(direction.delta(claim.claimed)[0] for direction in directions)
        if delta <= claim.delta * (1 + NEARLY_EQUAL):
            return None
        text = f"delta = {delta:.2g} at eps = {claimed} for {claim.delta:g} claimed"
        return claim.claimed, text
    masses = [d.masses(eps) for d in directions for eps in np.linspace(0, 10, 101).tolist()]
    shown = max(float(claim.shown_by(p, q)) for p, q in masses)
    if mu is not None:
        for order in (divergence.order for divergence in claim.divergences):
            shown = max(shown, claim.shown_by_divergence(order, order * mu * mu / 2))
    if math.isinf(shown):
        return shown, f"more than any multiple of {claim} allows"
    return more_than_claimed(shown, claim, claim.at_least(format_number(shown)))


def _why_unbounded(moves: Sequence[Moved]) -> str:
    if any(np.isfinite(moved.law.support).any() for moved in moves):
        return "one of D and D' gives outputs that the other never does"
    kind = "Gaussian" if moves[0].law.family is NORMAL else moves[0].law.family.name
    return f"{kind} noise keeps no eps without a delta"


def more_than_claimed(value: float, claim: Guarantee, said: str) -> tuple[float, str] | None:
    """A value of the claim's parameter, and in words, if it is more than claimed."""
    if value <= claim.claimed * (1 + NEARLY_EQUAL):
        return None
    of = "" if claim.parameter == "scale" else f" for {format_number(claim.claimed)} claimed"
    return value, f"{said}{of}"
