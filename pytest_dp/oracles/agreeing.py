"""Whether two outputs are equal but for rounding."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.outcome import Raised, same

ROUNDING = 1e-13
"""Relative difference of numbers that count as equal at once. With a larger one, an exact number
of a large dataset would look like that of its neighbour."""
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
"""A number with a fraction in a text."""


def differences(left: Any, right: Any) -> Floats | None:
    """Return by how much the numbers of two outputs differ; None if anything else does.

    Numbers that count as equal at once differ by 0.
    """
    if isinstance(left, Raised) or isinstance(right, Raised):
        return np.zeros(0) if left == right else None
    if type(left) is type(right) is float:
        found = _difference(left, right)
        return None if found is None else np.array([found])
    types = {type(left), type(right)}
    flat, _, offsets, _, structures, forms = flatten([left, right], types)
    if structures[0] != structures[1] or forms.which[0] != forms.which[1]:
        return None
    ours, theirs = flat[: offsets[1]], flat[offsets[1] :]
    each = [_difference(one, other) for one, other in zip(ours, theirs, strict=True)]
    return None if any(value is None for value in each) else np.array(each, float)


def agree(left: Any, right: Any) -> bool:
    """Return whether two outputs are equal at once."""
    found = differences(left, right)
    return found is not None and not found.any()


def _difference(left: Any, right: Any) -> float | None:
    if type(left) is not type(right):
        return None
    if isinstance(left, float | np.floating | complex | np.complexfloating):
        if left == right or (left != left and right != right):
            return 0.0
        difference = abs(left - right)
        if not np.isfinite(difference):
            return None
        small = difference <= ROUNDING * max(abs(left), abs(right))
        return 0.0 if small and not (_is_whole(left) and _is_whole(right)) else float(difference)
    if isinstance(left, str):
        return _of_texts(left, right)
    return 0.0 if same(left, right) else None


def _is_whole(number: Any) -> bool:
    """Return whether it may be an identifier or a count: such numbers are not rounded."""
    return isinstance(number, float | np.floating) and bool(number % 1 == 0)


def _of_texts(left: str, right: str) -> float | None:
    """Return the largest difference of numbers with a fraction in texts that are equal else."""
    if left == right:
        return 0.0
    if _NUMBER.sub("#", left) != _NUMBER.sub("#", right):
        return None
    pairs = zip(_NUMBER.findall(left), _NUMBER.findall(right), strict=True)
    found = [_difference(float(one), float(other)) for one, other in pairs]
    return None if any(each is None for each in found) else max(map(float, found))  # type: ignore[arg-type]
