"""Noise that is not the same on D and on D': its scale, how far it moves a number, or its draws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.blame.findings import Finding, format_draw, format_number, format_places
from pytest_dp.blame.noise import noise_of
from pytest_dp.blame.runs import WHOLE, Element, Runs, indices, one_number, place_of
from pytest_dp.limits import LOOK_RUNS, NEARLY_EQUAL
from pytest_dp.randomness.requests import Site
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
    reported = set[Site]()
    for element, draw, scales in islice(_numbers(runs), MAX_NUMBERS):
        line = place_of(draw.stack)
        if line in reported:
            continue
        one, other = (_factors(runs, side, element, scales[side]) for side in (0, 1))
        both = [place for place in one if place in other]
        for place in both:
            factors = one[place], other[place]
            if place in runs.differing and not _close(*np.multiply(factors, scales)):
                reported.add(line)
                sharing = [p for p in both if p != place]
                yield _make_finding(
                    line, place, format_draw(draw.request), scales, factors, sharing
                )
                break


def _make_finding(
    line: Site,
    place: str,
    draw: str,
    scales: tuple[float, float],
    factors: tuple[float, float],
    sharing: list[str],
) -> Finding:
    if not _close(*scales):
        here, there = map(format_number, scales)
        text = (
            f"the scale of {draw.partition('(')[0]} here is {here} on D and {there} on D': {place} "
            "has noise that depends on the data"
        )
        return Finding("noise depends on data", line, text, certain=True)
    here, there = map(format_number, factors)
    text = f"{place} moves {here} times as far as {draw} on D, and {there} times on D'"
    if sharing:
        text += f"; {format_places(sharing)} share{'s' * (len(sharing) == 1)} this noise"
        return Finding("shared noise", line, text, certain=True)
    return Finding(
        "noise depends on data", line, f"{text}: its noise depends on the data", certain=True
    )


def _close(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=NEARLY_EQUAL, atol=0))


def _numbers(runs: Runs) -> Iterator[tuple[Element, Draw, tuple[float, float]]]:
    """Yield random numbers that are noise on both inputs and reach what differs, and scales."""
    here, there = (run.keyed for run in runs.both(0))
    for key, draw in here.items():
        other = there.get(key)
        if other is None or place_of(draw.stack) not in runs.lines_of_differing:
            continue
        for index in indices(draw) if np.shape(draw.value) == np.shape(other.value) else ():
            one, two = noise_of(draw, index), noise_of(other, index)
            if one and two and one.law.family is two.law.family:
                yield (key, index), draw, (one.scale, two.scale)


def _factors(runs: Runs, side: int, element: Element, scale: float) -> dict[str, float]:
    """Return how many times as far as a random number each leaf moves that always moves so."""
    factors: dict[str, float] = {}
    for trial in range(TRIALS):
        usual = runs.usual(side, trial)
        value = usual.value_of(element)
        if value is None:
            return {}
        step = STEP * (1.0 if isinstance(value, int | np.integer) else scale)
        moved = runs.run(side, trial, one_number(element, partial(_plus, step))).leaves
        found = {
            place: (after - leaf) / step
            for place, leaf in usual.leaves.items()
            if isinstance(leaf, float) and isinstance(after := moved.get(place), float)
            if place not in WHOLE and leaf != after
        }
        factors = factors if trial else found
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


def _count(runs: Runs, side: int, line: Site) -> int | None:
    """Return how many numbers a line draws on an input, if that is the same in all runs."""
    usual = (runs.usual(side, noise) for noise in range(LOOK_RUNS))
    counts = {sum(np.size(draw.value) for draw in run.draws_at(line)) for run in usual}
    return int(counts.pop()) if len(counts) == 1 else None
