"""Families of additive noise, with the scale and the centre of a draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.randomness import laws
from pytest_dp.randomness.catalogue import kind_of
from pytest_dp.randomness.tape import Draw

LAPLACE, GAUSSIAN, ONE_SIDED, BOUNDED = "Laplace", "Gaussian", "one-sided", "bounded"
OTHER = "other"
"""A family whose loss is not computed here."""
_NAMES = {
    laws.LAPLACE: LAPLACE,
    laws.NORMAL: GAUSSIAN,
    laws.EXPONENTIAL: ONE_SIDED,
    laws.GEOMETRIC: ONE_SIDED,
    laws.UNIFORM: BOUNDED,
}


@dataclass(frozen=True, slots=True)
class Family:
    """Noise of a known kind."""

    name: str
    scale: float
    """b of Laplace noise and of exponential, the standard deviation of Gaussian, and half of the
    width of what is bounded; of geometric noise, that of the exponential noise that it rounds."""
    centre: float = 0.0
    """What is drawn is this plus noise."""


def family_of(draw: Draw, index: int | None) -> Family | None:
    """The family of one number of a draw; None if that is no additive noise that is known.

    `index` is that of the number, where the draw is an array.
    """
    standard_of = kind_of(draw.request).standard
    if standard_of is None:
        return None
    try:
        arguments = draw.request.arguments
        at_index = {
            name: _at_index(value, draw.value, index)
            for name, value in arguments.items()
            if name != "size"
        }
        law, scale, centre = standard_of(at_index)
        scale, centre = float(scale), float(centre)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    if law.family is laws.UNIFORM:
        if draw.request.method != "uniform":  # others mostly decide something
            return None
        scale, centre = abs(scale) / 2, centre + scale / 2
    if law.family is laws.GEOMETRIC:
        scale, centre = -1 / math.log(law.parameter) if law.parameter else 0.0, 0.0
    if (law.family.centre is None and law.family not in _NAMES) or not 0 < scale < math.inf:
        return None
    return Family(_NAMES.get(law.family, OTHER), scale, centre)


def _at_index(argument: Any, drawn: Any, index: int | None) -> float | None:
    """An argument of a draw for one of its numbers, if it is numeric."""
    array = np.asarray(argument)
    if array.dtype.kind not in "iufb" or not array.size:
        return None
    if array.size == 1:
        return float(array.reshape(-1)[0])
    return float(np.broadcast_to(array, np.shape(drawn)).reshape(-1)[index])
