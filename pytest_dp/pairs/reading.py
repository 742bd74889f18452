"""An output as numbers and categories, in an order that is the same on both inputs of a pair."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.leaves import as_float
from pytest_dp.outputs.outcome import Raised

MAX_DEPTH = 8
"""Levels of containers that are read. Deeper ones are compared as text, so a number that moves
there counts as another category."""
MAX_LEAVES = 10_000
"""Leaves of one output that are read. Larger outputs are cut off there, so that a leaf beyond is
not seen to move."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The leaves of one output."""

    form: tuple[Any, ...]
    """Types, keys, lengths and columns of the containers, and what a run raised."""
    numbers: Floats
    """Finite numbers as they are; 0 in place of others."""
    categories: tuple[Any, ...]
    """Texts, truths, missing values, NaN and infinities, with their places among the leaves."""


def read(output: Any) -> Reading:
    """Return the numbers and categories of an output."""
    reader = _Reader()
    reader.walk(output, 0)
    numbers = np.array(reader.numbers, float)
    return Reading(tuple(reader.form), numbers, tuple(reader.categories))


class _Reader:
    """Collects the leaves of one output."""

    def __init__(self) -> None:
        self.form: list[Any] = []
        self.numbers: list[float] = []
        self.categories: list[Any] = []

    def walk(self, value: Any, depth: int) -> None:
        """Add a value with all that is inside of it."""
        if isinstance(value, bool | np.bool_ | str | bytes | None):
            self.form.append("category")
            self.categories.append((len(self.form), value))
        elif isinstance(value, int | float | np.integer | np.floating):
            self.form.append("number")
            self._add_number(as_float(value))
        elif isinstance(value, Raised):
            self.form.append(("raised", value.kind))
        elif depth > MAX_DEPTH:
            self._add_text(value)
        elif len(self.numbers) + len(self.categories) <= MAX_LEAVES:
            self._walk_container(value, depth + 1)

    def _walk_container(self, value: Any, depth: int) -> None:
        if isinstance(value, dict):
            self.form.append(("dict", len(value)))
            for name in sorted(value, key=repr):
                self.form.append(repr(name))
                self.walk(value[name], depth)
        elif isinstance(value, list | tuple):
            self.form.append((type(value).__name__, len(value)))
            for element in value:
                self.walk(element, depth)
        elif isinstance(value, np.ndarray):
            self._walk_array(value, depth)
        elif isinstance(value, set | frozenset):
            self.form.append("set")
            self.categories.append((len(self.form), tuple(sorted(map(repr, value)))))
        else:
            self._walk_object(value, depth)

    def _walk_array(self, array: Any, depth: int) -> None:
        self.form.append(("array", array.shape))
        if array.dtype.kind in "iuf":
            flat = array.ravel()[:MAX_LEAVES].astype(float)
            if np.isfinite(flat).all():
                self.numbers.extend(flat.tolist())
                return
        for element in array.ravel()[:MAX_LEAVES].tolist():
            self.walk(element, depth)

    def _walk_object(self, value: Any, depth: int) -> None:
        """Add frames and series by their columns, other objects by their attributes."""
        pandas = sys.modules.get("pandas")
        attributes = getattr(value, "__dict__", None)
        if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
            self.form.append((type(value).__name__, value.shape))
            self.walk(value.index.tolist(), depth)
            columns = value.items() if value.ndim > 1 else [("", value)]
            for name, column in columns:
                self.form.append(repr(name))
                self.walk(column.to_numpy(), depth)
        elif isinstance(attributes, dict) and attributes:
            self.form.append(type(value).__name__)
            self.walk(attributes, depth)
        else:
            self._add_text(value)

    def _add_number(self, number: float) -> None:
        if not math.isfinite(number):
            self.categories.append((len(self.form), repr(number)))
            number = 0.0
        self.numbers.append(number)

    def _add_text(self, value: Any) -> None:
        self.form.append(type(value).__name__)
        shown = repr(value)
        self.categories.append((len(self.form), "" if " at 0x" in shown else shown))
