"""Numbers of the output that are an answer plus multiples of draws: y = a + A x.

A is found by shifting one draw at a time. It is believed if y - A x is the same number in further
runs, on each of D and D' for itself: then this is the answer, and nothing else is its noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.families import Family, family_of
from pytest_dp.blame.reach import NOISES, Reach, shifted
from pytest_dp.blame.runs import LENGTH, Key, Run, place_of
from pytest_dp.randomness.tape import Draw

Element = tuple[Key, int | None]
"""One number that is drawn: a draw, and the place in it if it is an array."""
MAX_ELEMENTS = 64
MAX_ROWS = 64
TOLERANCE = 1e-6
"""Of sizes in question: what rounding may add."""


@dataclass(frozen=True)
class Affine:
    """Leaves that are an answer plus multiples of draws.

    Attributes
    ----------
    places : tuple of str
        Of the leaves; n of them.
    elements : tuple of Element
        The k numbers that are drawn.
    draws : tuple of (Draw, Draw)
        That of each element, on D and on D' with the same noise.
    families : tuple of (Family, Family)
    answers : ndarray of float, shape (2, n)
        On D and on D'.
    times : ndarray of float, shape (2, n, k)
        How much each draw counts.
    """

    places: tuple[str, ...]
    elements: tuple[Element, ...]
    draws: tuple[tuple[Draw, Draw], ...]
    families: tuple[tuple[Family, Family], ...]
    answers: Floats
    times: Floats


def affine(reach: Reach) -> Affine | None:
    """What is affine of the output; None if nothing that differs is.

    Leaves without any noise are among them, unless they are the same on D and D'.
    """
    both = reach.both(0)
    wanted = [place for place in reach.differing if place != LENGTH and _is_number(both, place)]
    if not wanted:
        return None
    elements, draws, families = _elements(reach, both)
    if not elements or len(elements) > MAX_ELEMENTS:
        return None
    places = [p for p in both[0].leaves if _is_number(both, p)]
    if len(places) > MAX_ROWS:
        places = wanted[:MAX_ROWS]
    times = np.stack([_times(reach, side, places, elements, families) for side in (0, 1)])
    answers = _answers(reach, places, elements, times)
    kept = np.isfinite(answers).all(axis=0)
    kept &= np.array([p in wanted for p in places]) | (times != 0).any(axis=(0, 2))
    if not any(p in wanted for p, keep in zip(places, kept, strict=True) if keep):
        return None
    named = tuple(place for place, keep in zip(places, kept, strict=True) if keep)
    return Affine(named, elements, draws, families, answers[:, kept], times[:, kept])


def _is_number(both: tuple[Run, Run], place: str) -> bool:
    values = [run.leaves.get(place) for run in both]
    return all(isinstance(value, float) and np.isfinite(value) for value in values)


def _elements(
    reach: Reach, both: tuple[Run, Run]
) -> tuple[tuple[Element, ...], tuple[tuple[Draw, Draw], ...], tuple[tuple[Family, Family], ...]]:
    """Numbers that are drawn on both inputs, as noise of a known kind, and reach what differs."""
    lines = frozenset().union(*(reach.lines_of(place) for place in reach.differing))
    found = []
    for key, draw in both[0].keyed.items():
        other = both[1].keyed.get(key)
        if other is None or place_of(draw.stack) not in lines:
            continue
        if np.shape(draw.value) != np.shape(other.value) or np.size(draw.value) > MAX_ELEMENTS:
            continue
        indices = range(np.size(draw.value)) if np.ndim(draw.value) else (None,)
        for index in indices:
            one, two = family_of(draw, index), family_of(other, index)
            if one is not None and two is not None and one.name == two.name:
                found.append(((key, index), (draw, other), (one, two)))
    elements, draws, families = zip(*found, strict=True) if found else ((), (), ())
    return tuple(elements), tuple(draws), tuple(families)


def _times(
    reach: Reach,
    side: int,
    places: list[str],
    elements: tuple[Element, ...],
    families: tuple[tuple[Family, Family], ...],
) -> Floats:
    """How much each leaf moves for each number that is shifted, shape (leaves, elements)."""
    before = _row(reach.runs.usual(side, 0), places)
    columns = []
    for element, family in zip(elements, families, strict=True):
        whole = isinstance(_value(reach.runs.usual(side, 0), element), int | np.integer)
        amount = 8.0 if whole else 8.0 * family[side].scale
        moved = reach.runs.run(side, 0, shifted({element: amount}))
        change = _row(moved, places) - before
        size = np.abs(before) + np.abs(amount)
        columns.append(np.where(np.abs(change) <= TOLERANCE * 1e-3 * size, 0.0, change) / amount)
    return np.stack(columns, axis=1)


def _answers(
    reach: Reach, places: list[str], elements: tuple[Element, ...], times: Floats
) -> Floats:
    """Y - A x of each leaf on each input; NaN where it is not the same in all runs."""
    answers = np.full((2, len(places)), np.nan)
    for side in (0, 1):
        rows, sizes = [], np.zeros(len(places))
        for number in range(NOISES):
            run = reach.runs.usual(side, number)
            values = _row(run, places)
            drawn = np.array([_noise(run, element) for element in elements])
            noise = np.where(times[side] == 0, 0.0, times[side] * drawn)
            rows.append(values - noise.sum(axis=1))
            sizes = np.maximum(sizes, np.abs(values) + np.abs(noise).sum(axis=1))
        spread = np.ptp(np.stack(rows), axis=0)
        answers[side] = np.where(spread <= TOLERANCE * sizes, rows[0], np.nan)
    return answers


def _row(run: Run, places: list[str]) -> Floats:
    values = (run.leaves.get(place) for place in places)
    return np.array([value if isinstance(value, float) else np.nan for value in values])


def _value(run: Run, element: Element) -> float:
    key, index = element
    draw = run.keyed.get(key)
    if draw is None:
        return float("nan")
    value: float = draw.value if index is None else draw.value.flat[index]
    return value


def _noise(run: Run, element: Element) -> float:
    """What was drawn beside the centre; NaN where there was no such draw."""
    key, index = element
    draw = run.keyed.get(key)
    family = None if draw is None else family_of(draw, index)
    return float("nan") if family is None else float(_value(run, element)) - family.centre
