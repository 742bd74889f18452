"""Random numbers as noise that is added to answers: their law, and where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.explain.runs import UNIFORM
from pytest_dp.running.catalogue import draw_kind_of
from pytest_dp.running.laws import GEOMETRIC, Law
from pytest_dp.running.laws import UNIFORM as UNIFORM_FAMILY
from pytest_dp.running.tape import Draw


@dataclass(frozen=True, slots=True)
class Noise:
    """A random number that can be added to an answer: its law, and where it lies."""

    law: Law
    scale: float
    """Of whole numbers, that of the exponential draw that they round."""
    location: float
    """What is drawn is this plus a multiple of a standard draw."""
    centre: float
    """What is drawn is this plus noise."""


def noise_of(draw: Draw, index: int | None) -> Noise | None:
    """Return one number of a draw as noise; None if its law is unknown, or mostly for decisions.

    `index` is that of the number, where the draw is an array.
    """
    request = draw.request
    standard_of = draw_kind_of(request).standard
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
    """Return an argument of a draw for one of its numbers, if it is numeric."""
    array = np.asarray(argument)
    if array.dtype.kind not in "iufb" or not array.size:
        return None
    if array.size == 1:
        return float(array.reshape(-1)[0])
    return float(np.broadcast_to(array, np.shape(drawn)).reshape(-1)[index])
