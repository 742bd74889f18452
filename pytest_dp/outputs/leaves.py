"""Which objects are leaves whatever they hold, and what tells two categories apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.outputs.digits import SHORTEST, without_last_digits
from pytest_dp.outputs.outcome import Raised
from pytest_dp.reprs import shown

LITERAL = {bool, str, bytes, type(None), Raised}
"""Types whose objects are categories of their own, told apart by ``==``."""
NO_CONTAINERS = frozenset(
    {*LITERAL, int, float, Decimal, Fraction}
    | {np.bool_, np.float64, np.float32, np.int64, np.int32}
)
"""The commonest types that are never taken apart."""
NUMBERS = (int, float, np.floating, np.integer, Decimal, Fraction)
"""Types of numbers; of those that NumPy counts among its integers, spans of time are not."""


Category = tuple[str, Hashable]
"""The type of a leaf that is no number, and its value or its repr."""


def category(leaf: Any) -> Category:
    """What tells two categories apart: the type, and the value or, of most objects, its repr."""
    if isinstance(leaf, np.bool_ | np.str_ | np.bytes_):
        leaf = leaf.item()
    if type(leaf) in LITERAL:
        return type(leaf).__name__, _rounded_text(leaf)
    try:
        address = " at 0x" in repr(leaf)
    except Exception:  # a repr that fails says as little as an address
        address = True
    return type(leaf).__name__, "" if address else without_last_digits(shown(leaf))


def _rounded_text(leaf: Any) -> Any:
    """A text, or the message of an exception, without the last digits of doubles in it."""
    match leaf:
        case str():
            return without_last_digits(leaf)
        case bytes() if len(leaf) >= SHORTEST:
            return without_last_digits(leaf.decode("latin-1")).encode("latin-1")
        case Raised():
            return dataclasses.replace(leaf, message=without_last_digits(leaf.message))
    return leaf


def written(category: Category) -> str:
    """A category as Python would write it; the name of its type where it has no value."""
    kind, value = category
    if kind == "str" or not isinstance(value, str):
        return repr(value)
    return value or kind


def large_integer(number: Any) -> Category:
    """The category of a whole number that is too large for a float to hold exactly."""
    return "int", int(number)


def opaque_types(categories: Iterable[Category]) -> list[str]:
    """Types whose objects are taken for equal, since their repr does not show what they hold."""
    return sorted({kind for kind, value in categories if value == "" and kind != "str"})
