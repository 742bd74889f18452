"""Leaves as columns: numbers, codes of categories, and types.

A category is told from others by its type and value, or by its repr. Texts are read without the
last digits of doubles in them: ``"3.3000000000000003"`` says ``"3.3"``. A double that is written
out in full has 16 or 17 digits, of which the last ones are errors of rounding, as in
`pytest_dp.outputs.rounding`. What has more digits was no double, and is left as it is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints, Outputs
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.outputs.raised import Raised

NUMBER = -1
"""Code of a leaf that is a number, in place of a category's."""
ABSENT = -2
"""Code where an output has no leaf."""

MAX_EXACT = 2**53
"""Given by floats: larger integers, for which they are too coarse, are categories."""
LITERAL = {bool, str, bytes, type(None), Raised}
"""Types whose objects are categories of their own, told apart by ``==``."""
_COMPARED_BY_VALUE = {*LITERAL, np.bool_}
"""Types of categories that ``==`` distinguishes, without `category`."""
NO_CONTAINERS = frozenset(
    {*LITERAL, int, float, Decimal, Fraction}
    | {np.bool_, np.float64, np.float32, np.int64, np.int32}
)
"""The commonest types that are never taken apart."""
NUMBERS = (int, float, np.floating, np.integer, Decimal, Fraction)
"""Types of numbers; of those that NumPy counts among its integers, spans of time are not."""
_PYTHON_NAMES: dict[type, str] = {np.float64: "float", np.int64: "int", np.complex128: "complex"}
Category = tuple[str, Hashable]
"""The type of a leaf that is no number, and its value or its repr."""


def category(leaf: Any) -> Category:
    """Return the category of a leaf: the name of its type, and its value or its repr.

    Texts and reprs lose the last digits of doubles in them. A repr that raises, or that shows an
    address, is replaced by an empty text.
    """
    if isinstance(leaf, np.bool_ | np.str_ | np.bytes_):
        leaf = leaf.item()
    if type(leaf) in LITERAL:
        return type(leaf).__name__, _rounded_text(leaf)
    try:
        address = " at 0x" in repr(leaf)
    except Exception:  # a repr that fails says as little as an address
        address = True
    return type(leaf).__name__, "" if address else without_last_digits(safe_repr(leaf))


def _rounded_text(leaf: Any) -> Any:
    """Return text, bytes or `Raised` without the last digits of doubles; all else as it is."""
    match leaf:
        case str():
            return without_last_digits(leaf)
        case bytes() if len(leaf) >= SHORTEST:
            return without_last_digits(leaf.decode("latin-1")).encode("latin-1")
        case Raised():
            return dataclasses.replace(leaf, message=without_last_digits(leaf.message))
    return leaf


def category_text(category: Category) -> str:
    """Return a category as Python code; the name of its type if its value is unknown."""
    kind, value = category
    if kind == "str" or not isinstance(value, str):
        return repr(value)
    return value or kind


def type_name(kind: type) -> str:
    """Return the name of a type; that of Python's type for the NumPy types that equal one."""
    return _PYTHON_NAMES.get(kind, kind.__name__)


def opaque_types(categories: Iterable[Category]) -> list[str]:
    """Return the sorted names of types whose repr hides the value: their objects count as equal."""
    return sorted({kind for kind, value in categories if value == "" and kind != "str"})


KEPT, DECIMALS = 14, 12
"""Significant digits, and decimals, that stay of a double in a text. Remainders of numbers that
cancel, such as ``4.440892098500626e-16``, are so 0. Derived from the 15 to 17 digits of a
double."""
_IN_FULL = re.compile(r"(?<![\w.])(-?\d+)\.(\d+)(e[-+]?\d+)?(?![\w.])")
SHORTEST = 17
"""Characters of the shortest text with such a number in it. Derived: 16 digits and a point."""


def without_last_digits(text: str) -> str:
    """Return a text in which each double with 16 or 17 digits is cut to `KEPT` digits."""
    return _IN_FULL.sub(_shorten, text) if len(text) >= SHORTEST else text


def _shorten(number: re.Match[str]) -> str:
    """Return a matched number cut to `KEPT` digits if it has 16 or 17, else as it is."""
    digits = len((number[1] + number[2]).lstrip("-0"))
    if not 16 <= digits <= 17:
        return number[0]
    rounded = round(float(f"{float(number[0]):.{KEPT}g}"), DECIMALS)
    return repr(rounded + 0.0)  # not -0.0


@dataclass(frozen=True, slots=True)
class Named:
    """A column of names, as the few different names and an index of the name of each item."""

    names: tuple[Hashable, ...]
    """The different names."""
    which: Ints
    """The index of each item's name in `names`, shape (n,); zeros without memory for a single
    name."""

    def part(self, keep: Ints | slice) -> Named:
        """Return the column of some items, by positions or a slice."""
        return Named(self.names, pick_entries(self.which, keep))

    @staticmethod
    def join(parts: Sequence[Named], names: Sequence[Hashable] | None = None) -> Named:
        """Return the names of the items of several columns, one after the other.

        `names` prescribes the different names; an item with another name gets the first of `names`.
        """
        if names is None:
            names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        if len(names) == 1:
            return one_name(names[0], sum(len(part.which) for part in parts))
        at = {name: i for i, name in enumerate(names)}
        to = (np.array([at.get(name, 0) for name in part.names], np.int64) for part in parts)
        which = [numbers[part.which] for numbers, part in zip(to, parts, strict=True)]
        return Named(tuple(names), np.concatenate(which))


def one_name(name: Hashable, n: int) -> Named:
    """Return a column of `n` items with one name, which takes no memory."""
    return Named((name,), constant(0, n))


UNKNOWN = ""
"""The type of numbers in an array whose first axis is runs.

The array's type is that of the whole batch, and may depend on the outputs of all its runs: nothing
may be concluded from it about one of them. Of the form of such outputs nothing is known either.
"""


def tabulate_leaves(
    flat: Outputs, types: set[type]
) -> tuple[Floats, Ints, dict[Category, int], Named]:
    """Return leaves as columns: numbers, codes, levels and types of numbers, as in `Table`.

    `types` is the set of their types. Integers of at least `MAX_EXACT` in size become categories.
    """
    levels: dict[Category, int] = {}
    others = {kind for kind in types if not is_number(kind)}
    names = sorted(set(map(type_name, types - others)))
    number_types = one_name(names[0] if names else UNKNOWN, len(flat))
    if len(names) > 1 or (names and others):
        of = {kind: -1 if kind in others else names.index(type_name(kind)) for kind in types}
        which = np.fromiter(map(of.__getitem__, map(type, flat)), np.int64, len(flat))
        if len(names) > 1:
            number_types = Named(tuple(names), np.maximum(which, 0))
    if not others:
        numbers, codes = _to_floats(flat), all_numbers(len(flat))
    elif not names:
        numbers, codes = np.full(len(flat), np.nan), _assign_codes(flat, others, levels)
    else:
        is_numeric = which >= 0
        numbers, codes = np.full(len(flat), np.nan), np.full(len(flat), NUMBER)
        numbers[is_numeric] = _to_floats(list(compress(flat, is_numeric.tolist())))
        codes[~is_numeric] = _assign_codes(
            list(compress(flat, (~is_numeric).tolist())), others, levels
        )
    integers = {kind for kind in types - others if issubclass(kind, int | np.integer)}
    with np.errstate(invalid="ignore"):
        large = np.flatnonzero(np.abs(numbers) >= MAX_EXACT) if integers else np.zeros(0, np.int64)
    if large.size:
        codes = codes.copy()
        for at in large.tolist():
            if type(flat[at]) in integers:
                codes[at] = levels.setdefault(("int", int(flat[at])), len(levels))
                numbers[at] = np.nan
    return numbers, codes, levels, number_types


def _assign_codes(flat: Outputs, types: set[type], levels: dict[Category, int]) -> Ints:
    """Add the categories of leaves that are no numbers to `levels`; return their codes, (n,)."""
    keys = flat  # told apart by value, or by `category`: no such leaf is a tuple
    if not types <= _COMPARED_BY_VALUE:
        keys = [leaf if type(leaf) in _COMPARED_BY_VALUE else category(leaf) for leaf in flat]
    code = {
        key: levels.setdefault(key if type(key) is tuple else category(key), len(levels))
        for key in dict.fromkeys(keys)
    }
    return np.fromiter(map(code.__getitem__, keys), np.int64, len(keys))


def pick_entries(column: Ints, keep: Ints | slice) -> Ints:
    """Return some entries of a column; without memory if all entries are one repeated value."""
    if isinstance(keep, slice) or column.strides != (0,):
        return column[keep]
    return np.broadcast_to(column[keep[:1]], len(keep))


@lru_cache(maxsize=256)
def constant(value: int, n: int) -> Ints:
    """Return a read-only column of `n` times one value, which takes no memory."""
    return np.broadcast_to(np.int64(value), n)


def all_numbers(leaves: int) -> Ints:
    """Return the codes of `leaves` leaves that are all numbers, read-only and without memory."""
    return constant(NUMBER, leaves)


def are_all_numbers(codes: Ints) -> bool:
    """Return whether codes come from `all_numbers`; False says nothing about the leaves."""
    return codes.strides == (0,) and bool((codes[:1] == NUMBER).all())


def is_number(kind: type) -> bool:
    """Return whether objects of a type count as numbers: not Booleans, not spans of time."""
    return issubclass(kind, NUMBERS) and not issubclass(kind, bool | np.timedelta64)


def _to_floats(flat: Outputs) -> Floats:
    """Return numbers of any type as floats, shape (n,), converted as by `as_float`."""
    try:
        return np.array(flat, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.array([as_float(number) for number in flat], dtype=np.float64)


def as_float(number: Any) -> float:
    """Return the nearest float; infinite if the number is too large, NaN for a signalling NaN."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    except ValueError:  # Decimal("sNaN")
        return float("nan")
