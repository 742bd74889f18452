"""What is known of the noise that a draw is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.randomness.requests import Request
from pytest_dp.randomness.tape import Draw

LAPLACE, GAUSSIAN, ONE_SIDED, BOUNDED = "Laplace", "Gaussian", "one-sided", "bounded"
OTHER = "other"
"""Of which no loss is known here."""
_SCALED = {
    "laplace": (LAPLACE, "scale", "loc"),
    "normal": (GAUSSIAN, "scale", "loc"),
    "gauss": (GAUSSIAN, "sigma", "mu"),
    "normalvariate": (GAUSSIAN, "sigma", "mu"),
    "exponential": (ONE_SIDED, "scale", ""),
    "gumbel": (OTHER, "scale", "loc"),
    "logistic": (OTHER, "scale", "loc"),
}
"""Methods by their family, and the names of the scale and of the centre."""
LONGEST = 60
"""Characters of a draw as text."""


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
    """The noise of one element of a draw; None if it is no additive noise that is known.

    Parameters
    ----------
    draw : Draw
    index : int or None
        Of the element, where there are several.
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

    def given(name: str) -> float | None:
        return _one(arguments[name], draw.value, index)

    if method in _SCALED:
        name, parameter, centre = _SCALED[method]
        return _with_scale(name, given(parameter), given(centre) if centre else 0.0)
    if method == "expovariate":
        return _with_scale(ONE_SIDED, 1 / (given("lambd") or math.inf))
    if method == "geometric":
        p = given("p")
        return _with_scale(ONE_SIDED, -1 / math.log1p(-p) if p is not None and 0 < p < 1 else None)
    if method == "uniform":
        low, high = map(given, ("low", "high") if "low" in arguments else ("a", "b"))
        if low is not None and high is not None:
            return _with_scale(BOUNDED, abs(high - low) / 2, (low + high) / 2)
    return None


def _with_scale(name: str, scale: float | None, centre: float | None = 0.0) -> Family | None:
    known = scale is not None and 0 < scale < math.inf and centre is not None
    return Family(name, scale, centre) if known else None  # type: ignore[arg-type]


def _one(value: Any, drawn: Any, index: int | None) -> float | None:
    """A parameter of one element as a number, if it is one."""
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" or not array.size:
        return None
    if array.size == 1:
        return float(array.reshape(-1)[0])
    return float(np.broadcast_to(array, np.shape(drawn)).reshape(-1)[index])


def written(request: Request) -> str:
    """A draw as in code, short: ``rng.laplace(scale=1.0)``."""
    given = [_value(value) for value in request.args]
    given += [
        f"{name}={_value(value)}" for name, value in request.keywords.items() if name != "size"
    ]
    text = f"{request.source.name}.{request.method}({', '.join(given)})"
    return text if len(text) <= LONGEST else f"{request.source.name}.{request.method}(...)"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    return repr(value) if isinstance(value, str) else "..."


def number(value: float) -> str:
    """A number to four digits, as in code: ``2.0``, ``0.3333``."""
    text = f"{value:.4g}"
    return text if set(text) & set(".einf") else f"{text}.0"
