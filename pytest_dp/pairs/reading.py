"""An output as numbers and categories, in an order that is the same on both inputs of a pair.

Outputs are taken apart as for events, so that what an event can tell counts here, too: types,
names, the order of keys. Numbers in texts are numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.leaves import NUMBERS, as_float, category, type_name
from pytest_dp.outputs.raised import Raised

MAX_LEAVES = 10_000
"""Leaves of one output that are read. Larger outputs are cut off there, so that a leaf beyond is
not seen to move."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
"""A number in a text, which stands by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputReading:
    """The leaves of one output."""

    form: tuple[Any, ...]
    """The places of the leaves, the types of containers and of numbers, and the order of keys."""
    numbers: Floats
    """Finite numbers as they are; 0 in place of others."""
    categories: tuple[Any, ...]
    """Texts, truths, missing values, NaN and infinities, with their places among the leaves."""
    raised: bool = False
    """Whether the run raised: then what it said is the output."""


def read_output(output: Any) -> OutputReading:
    """Return the numbers and categories of an output."""
    kind = type(output)
    if kind is np.ndarray and output.dtype.kind in "iuf" and output.size <= MAX_LEAVES:
        numbers = output.ravel().astype(float)
        if np.isfinite(numbers).all():
            return OutputReading((output.shape, output.dtype), numbers, ())
    leaves, _, _, (structure,), _, forms = flatten([output], {kind})
    reader = _Reader([structure, len(leaves), *forms.names])
    for leaf in leaves[:MAX_LEAVES]:
        reader.add(leaf)
    numbers, categories = np.array(reader.numbers, float), tuple(reader.categories)
    return OutputReading(tuple(reader.form), numbers, categories, isinstance(output, Raised))


class _Reader:
    """Collects the leaves of one output."""

    def __init__(self, form: list[Any]) -> None:
        self.form = form
        self.numbers: list[float] = []
        self.categories: list[Any] = []

    def add(self, leaf: Any) -> None:
        """Add a leaf: a number, a text with numbers, or a category."""
        if isinstance(leaf, NUMBERS) and not isinstance(leaf, bool):
            self.form.append(type_name(type(leaf)))
            self._add_number(as_float(leaf))
        elif isinstance(leaf, Raised):
            self.form.append(("raised", leaf.kind))
            self._add_text(leaf.message)
        elif isinstance(leaf, str):
            self.form.append("text")
            self._add_text(leaf)
        else:
            self.form.append("category")
            self.categories.append((len(self.form), category(leaf)))

    def _add_text(self, text: str) -> None:
        self.categories.append((len(self.form), _NUMBER.sub("#", text)))
        for number in _NUMBER.findall(text):
            self._add_number(float(number))

    def _add_number(self, number: float) -> None:
        if not math.isfinite(number):
            self.categories.append((len(self.form), repr(number)))
            number = 0.0
        self.numbers.append(number)
