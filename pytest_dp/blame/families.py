"""Families of additive noise, with the scale and the centre of a draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.randomness.tape import Draw

LAPLACE, GAUSSIAN, ONE_SIDED, BOUNDED = "Laplace", "Gaussian", "one-sided", "bounded"
OTHER = "other"
"""A family whose loss is not computed here."""
_SCALED = {
    "laplace": (LAPLACE, "scale", "loc"),
    "normal": (GAUSSIAN, "scale", "loc"),
    "gauss": (GAUSSIAN, "sigma", "mu"),
    "normalvariate": (GAUSSIAN, "sigma", "mu"),
    "exponential": (ONE_SIDED, "scale", ""),
    "gumbel": (OTHER, "scale", "loc"),
    "logistic": (OTHER, "scale", "loc"),
}
"""Methods with their family, and the names of the arguments for the scale and the centre."""


@dataclass(frozen=True, slots=True)
class Family:
    """Noise of a known kind.

    Attributes
    ----------
    name : str
    scale : float
        b of Laplace noise and of exponential, the standard deviation of Gaussian, and half of the
        width of what is bounded; of geometric noise, that of the exponential noise that it rounds.
    centre : float
        What is drawn is this plus noise.
    """

    name: str
    scale: float
    centre: float = 0.0


def family_of(draw: Draw, index: int | None) -> Family | None:
    """The family of one number of a draw; None if that is no additive noise that is known.

    Parameters
    ----------
    draw : Draw
    index : int or None
        Of the number, where the draw is an array.
    """
    method = draw.request.method
    if method in ("standard_normal", "randn"):
        return Family(GAUSSIAN, 1.0)
    if method == "standard_exponential":
        return Family(ONE_SIDED, 1.0)
    try:
        arguments = draw.request.arguments
    except TypeError:
        return None

    def argument(name: str) -> float | None:
        return _at_index(arguments[name], draw.value, index)

    if method in _SCALED:
        name, scale, centre = _SCALED[method]
        return _with_scale(name, argument(scale), argument(centre) if centre else 0.0)
    if method == "expovariate":
        return _with_scale(ONE_SIDED, 1 / (argument("lambd") or math.inf))
    if method == "geometric":
        p = argument("p")
        return _with_scale(ONE_SIDED, -1 / math.log1p(-p) if p is not None and 0 < p < 1 else None)
    if method == "uniform":
        low, high = map(argument, ("low", "high") if "low" in arguments else ("a", "b"))
        if low is not None and high is not None:
            return _with_scale(BOUNDED, abs(high - low) / 2, (low + high) / 2)
    return None


def _with_scale(name: str, scale: float | None, centre: float | None = 0.0) -> Family | None:
    if scale is None or centre is None or not 0 < scale < math.inf:
        return None
    return Family(name, scale, centre)


def _at_index(argument: Any, drawn: Any, index: int | None) -> float | None:
    """An argument of a draw for one of its numbers, if it is numeric."""
    array = np.asarray(argument)
    if array.dtype.kind not in "iufb" or not array.size:
        return None
    if array.size == 1:
        return float(array.reshape(-1)[0])
    return float(np.broadcast_to(array, np.shape(drawn)).reshape(-1)[index])
