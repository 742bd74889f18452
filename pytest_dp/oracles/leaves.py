"""The structure of an output, and the numbers in it, of which some may be deferred."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from pytest_dp.oracles.monotone import is_draw
from pytest_dp.running.stand_ins import CannotInstrument


def flatten_output(output: Any, leaves: list[Any]) -> Hashable:
    """Return the structure of an output, whose numbers are added to `leaves`."""
    if is_draw(output):
        leaves.append(output)
        return "number"
    if isinstance(output, np.ndarray):
        if output.dtype.kind == "f":
            leaves += output.ravel().tolist()
            return ("array", output.shape)
        for element in output.astype(object).view(np.ndarray).ravel():
            flatten_output(_as_float(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        items = [
            (flatten_output(key, []), repr(key), flatten_output(v, leaves))
            for key, v in output.items()
        ]
        return ("dict", *items)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(flatten_output(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = (getattr(output, field.name) for field in dataclasses.fields(output))
        return (type(output).__qualname__, *(flatten_output(value, leaves) for value in fields))
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_float(element: Any) -> Any:
    """Return an element of an array, whose numbers are all of one type."""
    return float(element) if isinstance(element, bool | int) and abs(element) < 2**53 else element
