"""Arrays of stand-ins: numpy does with objects what Python's operators do.

Comparisons are decided element by element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.proposers.stand_ins import is_symbolic, plain_value
from pytest_dp.running.modules import Replacements

MAX_ELEMENTS = 256
"""Elements of an array whose formulas are looked for. More take longer; fewer miss late ones."""
_NUMBERS = (None, float, int, object, "float", "int", np.float64, np.int64)
"""Types of arrays of which objects take the place."""


def values_of(data: Any) -> Any:
    """Return plain values in place of stand-ins."""
    if isinstance(data, np.ndarray):
        return np.array([plain_value(value) for value in data.flat]).reshape(data.shape)
    if isinstance(data, list | tuple):
        return [values_of(value) for value in data]
    return plain_value(data)


def found_in(data: Any, depth: int = 3) -> Any:
    """Return any stand-in inside of lists, tuples and arrays; None if there is none."""
    if is_symbolic(data):
        return data
    if isinstance(data, np.ndarray):
        return next(filter(is_symbolic, data.flat), None) if data.dtype == object else None
    if isinstance(data, list | tuple) and depth:
        inner = (found_in(value, depth - 1) for value in data[:MAX_ELEMENTS])
        return next((value for value in inner if value is not None), None)
    return None


def note(data: Any, what: str) -> None:
    """Note that stand-ins in some data became concrete."""
    found = found_in(data)
    if found is not None:
        found.trace.note(what)


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(data: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        objects = dtype in _NUMBERS and found_in(data) is not None
        return function(data, object if objects else dtype, *args, **keywords)

    return make


@functools.cache
def arrays_of_stand_ins() -> Replacements:
    """Return functions of numpy that make arrays of objects where stand-ins are among them."""
    names = ("array", "asarray", "asanyarray")
    return Replacements((np, name, _making(getattr(np, name))) for name in names)
