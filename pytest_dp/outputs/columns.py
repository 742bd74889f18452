"""Leaves as columns: numbers, codes of categories, and types."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.outputs.containers import named
from pytest_dp.outputs.leaves import LITERAL, NUMBERS, Category, category, exactly

NUMBER = -1
"""Category code of a leaf that is a number."""
ABSENT = -2
"""Category code where an output has no such leaf."""

EXACT = 2**53
"""Size from which floats are too coarse for whole numbers: these are categories instead."""
REAL = {int, float, np.float64, np.float32, np.int64, np.int32}
"""The commonest types of numbers."""
PLAIN = {*LITERAL, np.bool_}
"""Types of categories that can be told apart by ``==``, without `category`."""


@dataclass(frozen=True, slots=True)
class Named:
    """One of a few names, of many things.

    Attributes
    ----------
    names : tuple
    which : ndarray of int
        The position of each thing's name; of one name, a zero that is repeated without memory.
    """

    names: tuple[Hashable, ...]
    which: Ints

    def part(self, keep: Ints) -> Named:
        """The same for some of the things."""
        if len(self.names) == 1:
            return one_name(self.names[0], len(keep))
        return Named(self.names, self.which[keep])


def one_name(name: Hashable, n: int) -> Named:
    """The same name for so many things."""
    return Named((name,), np.broadcast_to(np.int64(0), n))


UNKNOWN = ""
"""The type of numbers in an array whose first axis is runs.

The array's type is that of the whole batch, and may depend on the outputs of all its runs: nothing
may be concluded from it about one of them. Of the form of such outputs nothing is known either.
"""


def leaves_of(flat: Outputs, types: set[type]) -> tuple[Floats, Ints, dict[Category, int], Named]:
    """Leaves of these types as columns: numbers, codes, levels and types as in `Table`."""
    levels: dict[Category, int] = {}
    numbers, codes = _numbers_and_codes(flat, types, levels)
    whole = {kind for kind in types if kind is not bool and issubclass(kind, int | np.integer)}
    if whole:
        with np.errstate(invalid="ignore"):
            large = np.flatnonzero(np.abs(numbers) >= EXACT)
        if large.size:
            codes, numbers = codes.copy(), numbers.copy()
            for at in large.tolist():
                if type(flat[at]) in whole:
                    codes[at] = levels.setdefault(exactly(flat[at]), len(levels))
                    numbers[at] = np.nan
    return numbers, codes, levels, _types(flat, types)


def _types(flat: Outputs, types: set[type]) -> Named:
    """The types of leaves that are numbers."""
    names = sorted({named(kind) for kind in types if is_number(kind)})
    if len(names) < 2:
        return one_name(names[0] if names else UNKNOWN, len(flat))
    known = {kind: names.index(named(kind)) if is_number(kind) else 0 for kind in types}
    which = np.fromiter(map(known.__getitem__, map(type, flat)), np.int64, len(flat))
    return Named(tuple(names), which)


def _numbers_and_codes(
    flat: Outputs, types: set[type], levels: dict[Category, int]
) -> tuple[Floats, Ints]:
    """Numbers and category codes of leaves of these types; fills `levels`."""
    numeric = {t: is_number(t) for t in types}
    others = {t for t in types if not numeric[t]}
    if others == types:
        return np.full(len(flat), np.nan), _codes(flat, others, levels)
    if not others:
        return _floats(flat), all_numbers(len(flat))
    codes = np.full(len(flat), NUMBER)
    if types <= {bool, *REAL}:
        numbers = _floats(flat)
        kinds = np.fromiter(map(type, flat), object, len(flat))
        is_bool = np.equal(kinds, np.array(bool, object))
        codes[is_bool] = _truth_codes(numbers[is_bool] != 0, levels)
        numbers[is_bool] = np.nan
        return numbers, codes
    counts = np.frombuffer(bytes(map(numeric.__getitem__, map(type, flat))), bool)
    yes = counts.tolist()
    numbers = np.full(len(flat), np.nan)
    numbers[counts] = _floats(list(compress(flat, yes)))
    codes[~counts] = _codes(list(compress(flat, (~counts).tolist())), others, levels)
    return numbers, codes


def _codes(flat: Outputs, types: set[type], levels: dict[Category, int]) -> Ints:
    """Codes of leaves that are categories, numbered as they appear; fills `levels`."""
    if types == {bool}:
        return _truth_codes(np.frombuffer(bytes(flat), bool), levels)
    if types <= PLAIN:
        code = {}
        for value in dict.fromkeys(flat):
            code[value] = levels.setdefault(category(value), len(levels))
        return np.fromiter(map(code.__getitem__, flat), np.int64, len(flat))
    seen: dict[Any, int] = {}
    codes = []
    for leaf in flat:
        kind = type(leaf)
        if kind in PLAIN:
            key = leaf
        elif kind in (list, tuple) and not leaf:
            key = kind  # which is no key of another leaf: types are not plain
        else:
            codes.append(levels.setdefault(category(leaf), len(levels)))
            continue
        number = seen.get(key)
        if number is None:
            number = seen[key] = levels.setdefault(category(leaf), len(levels))
        codes.append(number)
    return np.array(codes, dtype=np.int64)


def _truth_codes(truth: Bools, levels: dict[Category, int]) -> Ints:
    first = bool(truth[0])
    for value in (first, *([not first] if np.any(truth != first) else [])):
        levels[category(value)] = len(levels)
    codes = [levels.get(("bool", value), ABSENT) for value in (False, True)]
    return np.array(codes, dtype=np.int64)[truth.view(np.uint8)]


def picked(codes: Ints, keep: Ints) -> Ints:
    """Some of the codes, without memory where all are numbers."""
    return all_numbers(len(keep)) if are_all_numbers(codes) else codes[keep]


def are_all_numbers(codes: Ints) -> bool:
    """Whether these codes are known to say so, as those of `all_numbers` do."""
    return codes.strides == (0,) and bool((codes[:1] == NUMBER).all())


@functools.lru_cache(maxsize=256)
def all_numbers(leaves: int) -> Ints:
    """Codes of so many leaves that all are numbers."""
    return np.broadcast_to(np.int64(NUMBER), leaves)


def is_number(kind: type) -> bool:
    """Whether objects of this type are numbers."""
    return issubclass(kind, NUMBERS) and not issubclass(kind, bool | np.timedelta64)


def _floats(flat: Outputs) -> Floats:
    try:
        return np.array(flat, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.array([as_float(number) for number in flat], dtype=np.float64)


def as_float(number: Any) -> float:
    """The nearest float, which may be infinite."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    except ValueError:  # Decimal("sNaN")
        return float("nan")
