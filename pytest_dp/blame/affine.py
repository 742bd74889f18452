"""Numbers of the output that are an answer plus multiples of draws: y = a + A x.

A is measured by shifting one draw at a time. It is believed if y - A x is the same number in all
further runs on D, and one number in all on D': then this is the answer, without any noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.runs import UNIFORM, WHOLE, Element, Run, Runs, indices, one_number, place_of
from pytest_dp.known.experiments import Moved
from pytest_dp.limits import LOOK_RUNS, MANY, NEARLY_EQUAL, SEVERAL
from pytest_dp.randomness.catalogue import kind_of
from pytest_dp.randomness.laws import GEOMETRIC, Law
from pytest_dp.randomness.laws import UNIFORM as UNIFORM_FAMILY
from pytest_dp.randomness.tape import Draw


@dataclass(frozen=True, slots=True)
class Noise:
    """A random number that can be added to an answer: its law, and where it lies."""

    law: Law
    scale: float
    """Of whole numbers, that of the exponential draw that they round."""
    location: float
    """What is drawn is this plus so many times a standard draw."""
    centre: float
    """What is drawn is this plus noise."""

    def moved(self, shift: float) -> Moved:
        """The noise, and the same moved."""
        return Moved(self.law, shift if self.law.lattice else shift / self.scale)


def noise_of(draw: Draw, index: int | None) -> Noise | None:
    """One number of a draw as noise; None if its law is not known, or mostly decides something.

    `index` is that of the number, where the draw is an array.
    """
    request = draw.request
    standard_of = kind_of(request).standard
    if standard_of is None or request.method in UNIFORM:
        return None
    try:
        arguments = request.arguments
        names = arguments.keys() - {"size"}
        law, scale, location = standard_of(
            {name: _at_index(arguments[name], draw.value, index) for name in names}
        )
        scale, location = float(scale), float(location)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    if law.family is GEOMETRIC:
        scale = -1 / math.log(law.parameter) if law.parameter else 0.0
        centre: float | None = 0.0
    elif law.family is UNIFORM_FAMILY:
        centre = scale / 2
    else:
        centre = None if law.family.centre is None else scale * law.family.centre(law.parameter)
    if centre is None or not 0 < scale < math.inf:
        return None
    return Noise(law, scale, location, location + centre)


def _at_index(argument: Any, drawn: Any, index: int | None) -> float | None:
    """An argument of a draw for one of its numbers, if it is numeric."""
    array = np.asarray(argument)
    if array.dtype.kind not in "iufb" or not array.size:
        return None
    if array.size == 1:
        return float(array.reshape(-1)[0])
    return float(np.broadcast_to(array, np.shape(drawn)).reshape(-1)[index])


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random number that is drawn on both inputs: its draws and its noise on D and on D'."""

    element: Element
    draws: tuple[Draw, Draw]
    noises: tuple[Noise, Noise]


@dataclass(frozen=True)
class Affine:
    """n leaves that are an answer plus multiples of k draws."""

    places: tuple[str, ...]
    drawn: list[Drawn]
    answers: Floats
    """On D and on D', shape (2, n)."""
    times: Floats
    """The matrix A, on D and on D', shape (2, n, k)."""


def affine(runs: Runs) -> Affine | None:
    """The leaves that are affine; None if none of those that differ is.

    Leaves without any noise are among them, unless they are the same on D and D'.
    """
    both = runs.both(0)
    parts = [place for place in runs.differing if place not in WHOLE]
    differing = [place for place in parts if _is_number(both, place)]
    drawn = _drawn(runs, both) if differing else []
    if not 0 < len(drawn) <= MANY:
        return None
    places = [place for place in both[0].leaves if _is_number(both, place)]
    if len(places) > MANY:
        places = differing[:MANY]
    times = np.stack([_times(runs, side, places, drawn) for side in (0, 1)])
    answers = _answers(runs, places, drawn, times)
    differs = np.isin(places, differing)
    is_affine = np.isfinite(answers).all(axis=0) & (differs | (times != 0).any(axis=(0, 2)))
    if not (is_affine & differs).any():
        return None
    named = tuple(compress(places, is_affine))
    return Affine(named, drawn, answers[:, is_affine], times[:, is_affine])


def _is_number(both: tuple[Run, Run], place: str) -> bool:
    values = [run.leaves.get(place) for run in both]
    return all(isinstance(value, float) and np.isfinite(value) for value in values)


def _drawn(runs: Runs, both: tuple[Run, Run]) -> list[Drawn]:
    """Numbers that are drawn on both inputs, as noise of a known kind, and reach what differs."""
    drawn = []
    for key, here in both[0].keyed.items():
        there = both[1].keyed.get(key)
        if there is None or place_of(here.stack) not in runs.lines_of_differing:
            continue
        if np.shape(here.value) != np.shape(there.value) or np.size(here.value) > MANY:
            continue
        for index in indices(here):
            noises = noise_of(here, index), noise_of(there, index)
            if noises[0] and noises[1] and noises[0].law.family is noises[1].law.family:
                drawn.append(Drawn((key, index), (here, there), (noises[0], noises[1])))
    return drawn


def _times(runs: Runs, side: int, places: list[str], drawn: list[Drawn]) -> Floats:
    """How much each leaf moves with each random number, shape (leaves, numbers)."""
    usual = runs.usual(side, 0)
    before = _row(usual, places)
    columns = []
    for number in drawn:
        is_whole = isinstance(usual.value_of(number.element), int | np.integer)
        amount = SEVERAL * (1.0 if is_whole else number.noises[side].scale)
        shifted = one_number(number.element, partial(_plus, amount))
        change = _row(runs.run(side, 0, shifted), places) - before
        size = np.abs(before) + np.abs(amount)
        columns.append(np.where(np.abs(change) <= NEARLY_EQUAL * 1e-3 * size, 0.0, change) / amount)
    return np.stack(columns, axis=1)


def _plus(amount: float, value: Any) -> Any:
    return value + type(value)(amount)


def _answers(runs: Runs, places: list[str], drawn: list[Drawn], times: Floats) -> Floats:
    """Y - A x of each leaf on each input; NaN where it is not the same in all runs."""
    answers = np.full((2, len(places)), np.nan)
    for side in (0, 1):
        rows, sizes = [], np.zeros(len(places))
        for noise in range(LOOK_RUNS):
            run = runs.usual(side, noise)
            values = _row(run, places)
            around = np.array([_around_centre(run, number.element) for number in drawn])
            products = np.where(times[side] == 0, 0.0, times[side] * around)
            rows.append(values - products.sum(axis=1))
            sizes = np.maximum(sizes, np.abs(values) + np.abs(products).sum(axis=1))
        spread = np.ptp(np.stack(rows), axis=0)
        answers[side] = np.where(spread <= NEARLY_EQUAL * sizes, rows[0], np.nan)
    return answers


def _row(run: Run, places: list[str]) -> Floats:
    values = (run.leaves.get(place) for place in places)
    return np.array([value if isinstance(value, float) else np.nan for value in values])


def _around_centre(run: Run, element: Element) -> float:
    """A random number without its centre; NaN where it was not drawn."""
    value = run.value_of(element)
    noise = None if value is None else noise_of(run.keyed[element[0]], element[1])
    return float("nan") if noise is None else float(value) - noise.centre
