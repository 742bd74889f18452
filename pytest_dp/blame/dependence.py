"""Noise that is not the same on D and on D': its scale, how far it moves a number, or its draws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.blame.findings import Finding, format_draw, format_number, format_places
from pytest_dp.blame.noise import Noise, noise_of
from pytest_dp.blame.runs import (
    WHOLE,
    Element,
    Runs,
    differ,
    indices,
    one_number,
    place_of,
)
from pytest_dp.limits import LOOK_RUNS, NEARLY_EQUAL
from pytest_dp.randomness.tape import Draw

MAX_NUMBERS = 32
"""Random numbers that are looked at. Each takes some ten runs; a later one goes unnoticed."""
TRIALS = 4
"""Runs in which a draw has to move a number equally far. With fewer, factors that are random
themselves are taken for constants."""
STEP = 8.0
"""Scales by which draws are moved. Shorter steps lose digits."""


def dependent_on_data(runs: Runs) -> Iterator[Finding]:
    """Yield lines whose noise moves a number of the output further on one input."""
    reported = set()
    for element, draws, noises in _numbers(runs):
        line = place_of(draws[0].stack)
        if line in reported:
            continue
        one, other = (_factors(runs, side, element, noises[side]) for side in (0, 1))
        for place in runs.differing:
            both = place in one and place in other
            text = _unequal(place, draws[0], noises, (one, other)) if both else ""
            if text:
                kind = "shared noise" if "this noise" in text else "noise depends on data"
                reported.add(line)
                yield Finding(kind, line, text, certain=True)
                break


def _unequal(
    place: str,
    draw: Draw,
    noises: tuple[Noise, Noise],
    factors: tuple[dict[str, float], dict[str, float]],
) -> str:
    """Text: what is not the same on D and on D'; empty if all is."""
    drawn, (one, other) = format_draw(draw.request), factors
    here, there = one[place], other[place]
    scales = [noise.scale for noise in noises]
    if _close(here * scales[0], there * scales[1]):
        return ""
    if not _close(*scales):
        return (
            f"the scale of {drawn.partition('(')[0]} here is {format_number(scales[0])} on D and "
            f"{format_number(scales[1])} on D': {place} has noise that depends on the data"
        )
    text = (
        f"{place} moves {format_number(here)} times as far as {drawn} on D, and "
        f"{format_number(there)} times on D'"
    )
    sharing = [p for p in one.keys() & other.keys() if p != place]
    if sharing:
        return (
            f"{text}; {format_places(sorted(sharing))} share{'s' * (len(sharing) == 1)} this noise"
        )
    return f"{text}: its noise depends on the data"


def _close(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=NEARLY_EQUAL, atol=0))


def _numbers(runs: Runs) -> Iterator[tuple[Element, tuple[Draw, Draw], tuple[Noise, Noise]]]:
    """Yield random numbers that are drawn on both inputs as noise, and reach what differs."""
    here, there = (run.keyed for run in runs.both(0))
    left = MAX_NUMBERS
    for key, draw in here.items():
        other = there.get(key)
        if other is None or place_of(draw.stack) not in runs.lines_of_differing:
            continue
        if np.shape(draw.value) != np.shape(other.value):
            continue
        for index in indices(draw):
            one, two = noise_of(draw, index), noise_of(other, index)
            if one and two and one.law.family is two.law.family and left:
                left -= 1
                yield (key, index), (draw, other), (one, two)


def _factors(runs: Runs, side: int, element: Element, noise: Noise) -> dict[str, float]:
    """Return how many times as far as a random number each leaf moves that always moves so."""
    factors: dict[str, float] = {}
    for trial in range(TRIALS):
        usual = runs.usual(side, trial)
        value = usual.value_of(element)
        if value is None:
            return {}
        step = STEP * (1.0 if isinstance(value, int | np.integer) else noise.scale)
        moved = runs.run(side, trial, one_number(element, partial(_plus, step))).leaves
        found = {
            place: (moved[place] - leaf) / step  # type: ignore[operator]
            for place, leaf in usual.leaves.items()
            if place not in WHOLE
            and isinstance(leaf, float)
            and isinstance(moved.get(place), float)
            if differ(leaf, moved[place])
        }
        if not trial:
            factors = found
        factors = {p: f for p, f in factors.items() if p in found and _close(f, found[p])}
    return factors


def _plus(amount: float, value: Any) -> Any:
    return value + type(value)(amount)


def draw_counts(runs: Runs) -> Iterator[Finding]:
    """Yield lines that draw n numbers on D and m on D', where what differs depends on them."""
    for line in runs.lines:
        here, there = (_count(runs, side, line) for side in (0, 1))
        if line in runs.lines_of_differing and None not in (here, there) and here != there:
            text = (
                f"{here} number{'s' * (here != 1)} on D and {there} on D' are drawn here, such as "
                f"{format_draw(runs.draw_at(line).request)}, in all of {LOOK_RUNS} runs each, "
                "and the output depends on them"
            )
            yield Finding("noise depends on data", line, text, certain=True)


def _count(runs: Runs, side: int, line: Any) -> int | None:
    """Return how many numbers a line draws on an input, if that is the same in all runs."""
    usual = (runs.usual(side, noise) for noise in range(LOOK_RUNS))
    counts = {sum(np.size(draw.value) for draw in run.draws_at(line)) for run in usual}
    return int(counts.pop()) if len(counts) == 1 else None
