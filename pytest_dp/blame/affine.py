"""Numbers of the output that are an answer plus multiples of draws: y = a + A x.

A is measured by shifting one draw at a time. It is believed if y - A x is the same number in all
further runs on D, and one number in all on D': then this is the answer, without any noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.families import Family, family_of
from pytest_dp.blame.flow import Flow, with_element
from pytest_dp.blame.runs import LENGTH, Element, Run, indices, place_of
from pytest_dp.limits import LOOK_RUNS, MANY, NEARLY_EQUAL, SEVERAL
from pytest_dp.randomness.tape import Draw, Replaced


@dataclass(frozen=True)
class Affine:
    """n leaves that are an answer plus multiples of k draws."""

    places: tuple[str, ...]
    draws: tuple[tuple[Draw, Draw], ...]
    """Of each random number, the draw on D and that on D' with the same noise."""
    families: tuple[tuple[Family, Family], ...]
    answers: Floats
    """On D and on D', shape (2, n)."""
    times: Floats
    """The matrix A, on D and on D', shape (2, n, k)."""


@dataclass(frozen=True, slots=True)
class _Noise:
    """A random number that is drawn on both inputs: its draws and families on D and on D'."""

    element: Element
    draws: tuple[Draw, Draw]
    families: tuple[Family, Family]


def affine(flow: Flow) -> Affine | None:
    """The leaves that are affine; None if none of those that differ is.

    Leaves without any noise are among them, unless they are the same on D and D'.
    """
    both = flow.both(0)
    differing = [place for place in flow.differing if place != LENGTH and _is_number(both, place)]
    if not differing:
        return None
    noises = _noises(flow, both)
    if not 0 < len(noises) <= MANY:
        return None
    places = [place for place in both[0].leaves if _is_number(both, place)]
    if len(places) > MANY:
        places = differing[:MANY]
    times = np.stack([_times(flow, side, places, noises) for side in (0, 1)])
    answers = _answers(flow, places, noises, times)
    differs = np.isin(places, differing)
    is_affine = np.isfinite(answers).all(axis=0) & (differs | (times != 0).any(axis=(0, 2)))
    if not (is_affine & differs).any():
        return None
    return Affine(
        tuple(compress(places, is_affine)),
        tuple(noise.draws for noise in noises),
        tuple(noise.families for noise in noises),
        answers[:, is_affine],
        times[:, is_affine],
    )


def _is_number(both: tuple[Run, Run], place: str) -> bool:
    values = [run.leaves.get(place) for run in both]
    return all(isinstance(value, float) and np.isfinite(value) for value in values)


def _noises(flow: Flow, both: tuple[Run, Run]) -> list[_Noise]:
    """Numbers that are drawn on both inputs, as noise of a known kind, and reach what differs."""
    noises = []
    for key, here in both[0].keyed.items():
        there = both[1].keyed.get(key)
        if there is None or place_of(here.stack) not in flow.lines_of_differing:
            continue
        if np.shape(here.value) != np.shape(there.value) or np.size(here.value) > MANY:
            continue
        for index in indices(here):
            families = family_of(here, index), family_of(there, index)
            if families[0] and families[1] and families[0].name == families[1].name:
                noises.append(_Noise((key, index), (here, there), (families[0], families[1])))
    return noises


def _times(flow: Flow, side: int, places: list[str], noises: list[_Noise]) -> Floats:
    """How much each leaf moves with each random number, shape (leaves, numbers)."""
    usual = flow.runs.usual(side, 0)
    before = _row(usual, places)
    columns = []
    for noise in noises:
        is_whole = isinstance(usual.value_of(noise.element), int | np.integer)
        amount = SEVERAL * (1.0 if is_whole else noise.families[side].scale)
        run = flow.runs.run(side, 0, _shifted(noise.element, amount))
        change = _row(run, places) - before
        size = np.abs(before) + np.abs(amount)
        columns.append(np.where(np.abs(change) <= NEARLY_EQUAL * 1e-3 * size, 0.0, change) / amount)
    return np.stack(columns, axis=1)


def _shifted(element: Element, amount: float) -> Replaced:
    return with_element(element, lambda value: value + type(value)(amount))


def _answers(flow: Flow, places: list[str], noises: list[_Noise], times: Floats) -> Floats:
    """Y - A x of each leaf on each input; NaN where it is not the same in all runs."""
    answers = np.full((2, len(places)), np.nan)
    for side in (0, 1):
        rows, sizes = [], np.zeros(len(places))
        for number in range(LOOK_RUNS):
            run = flow.runs.usual(side, number)
            values = _row(run, places)
            drawn = np.array([_centred(run, noise.element) for noise in noises])
            products = np.where(times[side] == 0, 0.0, times[side] * drawn)
            rows.append(values - products.sum(axis=1))
            sizes = np.maximum(sizes, np.abs(values) + np.abs(products).sum(axis=1))
        spread = np.ptp(np.stack(rows), axis=0)
        answers[side] = np.where(spread <= NEARLY_EQUAL * sizes, rows[0], np.nan)
    return answers


def _row(run: Run, places: list[str]) -> Floats:
    values = (run.leaves.get(place) for place in places)
    return np.array([value if isinstance(value, float) else np.nan for value in values])


def _centred(run: Run, element: Element) -> float:
    """A random number without its centre; NaN where it was not drawn."""
    value = run.value_of(element)
    family = None if value is None else family_of(run.keyed[element[0]], element[1])
    return float("nan") if family is None else float(value) - family.centre
