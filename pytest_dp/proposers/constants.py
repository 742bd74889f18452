"""Numbers and strings in a mechanism's code, and in the project's functions that it calls.

What decides a branch is mostly written down somewhere: in a comparison, in a variable of the
module, in a default, on an object. Nothing of the project is run to find these constants.
"""

from __future__ import annotations

import dis
import math
import re
import sys
import types
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.errors import noting_faults
from pytest_dp.basics.reach import reach
from pytest_dp.basics.whose_code import is_project_file

MAX_READ = 10_000
"""Constants that are read of a mechanism's code. More take longer; fewer miss those far from it."""
MAX_CONSTANTS = 200
"""Constants that are tried. More share the search; fewer may miss the one that leaks."""
MAX_TEXT_LENGTH = 120
"""Characters of a text that is tried. Longer ones are documentation more often than values."""

_DECIDING = frozenset(["COMPARE_OP", "CONTAINS_OP"])
_LOADING = frozenset(["LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL"])
"""Instructions of Python that compare, and that load a constant."""


def constants_of(mechanism: Any, params: dict[str, Any]) -> list[int | float | str]:
    """Return what a mechanism may compare its data with, constants in comparisons first."""
    ranked: dict[tuple[type, Any], int] = {}
    for rank, value in islice(_in_all(mechanism, params), MAX_READ):
        key = type(value), value
        ranked[key] = min(rank, ranked.get(key, rank))
    ordered = sorted(ranked, key=lambda key: ranked[key])
    return [value for _, value in ordered[:MAX_CONSTANTS]]


def reachable(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield all that a mechanism or an argument can reach, but for code of libraries."""
    arguments = ((value, f"the argument {name}") for name, value in params.items())
    for value, place in reach((mechanism, ""), *arguments):
        if type(value) is not types.FunctionType or is_project_file(value.__code__.co_filename):
            yield value, place


def reachable_patterns(mechanism: Any, params: dict[str, Any]) -> Iterator[str]:
    """Yield regular expressions: compiled ones, and texts in code that calls functions of `re`."""
    for value, _ in reachable(mechanism, params):
        if type(value) is re.Pattern and isinstance(value.pattern, str):
            yield value.pattern
        elif type(value) is types.FunctionType:
            with noting_faults("reading regular expressions of code"):
                yield from _patterns_in(value.__code__)


def _patterns_in(code: types.CodeType) -> list[str]:
    inside = [const for const in code.co_consts if type(const) is types.CodeType]
    found = [pattern for inner in inside for pattern in _patterns_in(inner)]
    if "re" in code.co_names:
        texts = [const for const in code.co_consts if type(const) is str]
        found += [text for text in texts if may_be_constant(text) and re.escape(text) != text]
    return found


def may_be_constant(value: Any) -> bool:
    """Return whether this is a number or a string that may stand in data."""
    kind = type(value)
    if issubclass(kind, str):
        return 0 < str.__len__(value) <= MAX_TEXT_LENGTH
    if issubclass(kind, int):
        return kind is not bool and int.bit_length(value) < sys.float_info.max_exp
    return issubclass(kind, float | np.integer | np.floating) and math.isfinite(value)


def _in_all(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the constants that a mechanism can reach, with a rank: 0 inside of comparisons."""
    for value, _ in reachable(mechanism, params):
        if may_be_constant(value):
            yield 1, value.item() if isinstance(value, np.generic) else value
        elif type(value) is types.FunctionType:
            with noting_faults("reading constants of code"):  # such as code that some tool made
                yield from list(_in_code(value.__code__))


def _in_code(code: types.CodeType) -> Iterator[tuple[int, Any]]:
    """Yield the constants that code loads, and those of functions that are defined in it."""
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname not in _LOADING:
            continue
        if isinstance(step.argval, types.CodeType):
            yield from _in_code(step.argval)
            continue
        # The other side of a comparison may be loaded first or second.
        decides = any(after.opname in _DECIDING for after in steps[at + 1 : at + 3])
        yield from (
            (not decides, value) for value in _members(step.argval) if may_be_constant(value)
        )


def _members(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple | frozenset) else (value,)
