"""An output as numbers and categories, in an order that is the same on both inputs of a pair."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.flatten import SCALAR, flatten
from pytest_dp.outputs.leaves import NUMBERS, as_float, category
from pytest_dp.outputs.outcome import Raised

MAX_LEAVES = 10_000
"""Leaves of one output that are read. Larger outputs are cut off there, so that a leaf beyond is
not seen to move."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The leaves of one output."""

    form: Hashable
    """Types, keys, lengths and columns of the containers, and what a run raised."""
    numbers: Floats
    """Finite numbers as they are; 0 in place of others."""
    categories: tuple[Any, ...] = ()
    """Texts, truths, missing values, NaN and infinities, with their places among the leaves."""
    raised: bool = False
    """Whether the run raised."""


def read(output: Any) -> Reading:
    """Return the numbers and categories of an output."""
    if isinstance(output, Raised):
        return Reading(output.kind, np.empty(0), raised=True)
    shape = output.shape if isinstance(output, np.ndarray) else ()
    form: Hashable = ("array", shape) if shape else (SCALAR, ())
    if shape or type(output) in (float, np.float64):  # most outputs: quicker than the rest
        numbers = np.asarray(output)
        if numbers.dtype.kind in "iuf" and np.isfinite(numbers).all():
            return Reading(form, numbers.ravel()[:MAX_LEAVES].astype(float))
    leaves, _, _, structures, _, forms = flatten([output], {type(output)})
    if not shape:
        aspects: Any = forms.names[0]
        aspects = [aspect for aspect in aspects if aspect[1] not in ("order", "dtype")]
        form = structures[0], tuple(aspects)
    finite: list[float] = []
    categories: list[Any] = []
    for at, leaf in enumerate(leaves[:MAX_LEAVES]):
        is_number = isinstance(leaf, NUMBERS) and not isinstance(leaf, bool)
        number = as_float(leaf) if is_number else math.nan
        if is_number:
            finite.append(number if math.isfinite(number) else 0.0)
        if not math.isfinite(number):
            categories.append((at, category(leaf)))
    return Reading(form, np.array(finite, float), tuple(categories))
