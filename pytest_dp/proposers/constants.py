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
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dp.basics.faults import noting_faults
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


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a string, and its place in the code: ``"a constant in stats.py:14"``."""

    value: int | float | str
    origin: str = ""


def constants_of(mechanism: Any, params: dict[str, Any]) -> list[Constant]:
    """The constants that a mechanism may compare its data with, those in comparisons first.

    They are looked for in all that is `reachable`.
    """
    ranked: dict[tuple[type, Any], tuple[int, Constant]] = {}
    for rank, constant in islice(_in_all(mechanism, params), MAX_READ):
        key = type(constant.value), constant.value
        if key not in ranked or ranked[key][0] > rank:
            ranked[key] = rank, constant
    ordered = sorted(ranked.values(), key=lambda entry: entry[0])
    return [constant for _, constant in ordered[:MAX_CONSTANTS]]


def reachable(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Constants, and the project's functions, that a mechanism or an argument can reach."""
    arguments = ((value, f"the argument {name}") for name, value in params.items())
    for value, place in reach((mechanism, ""), *arguments):
        if is_constant(value) or (
            type(value) is types.FunctionType and is_project_file(value.__code__.co_filename)
        ):
            yield value, place


def reachable_patterns(mechanism: Any, params: dict[str, Any]) -> Iterator[str]:
    """Yield regular expressions: compiled ones, and texts in code that calls functions of `re`."""
    arguments = ((value, name) for name, value in params.items())
    for value, _ in reach((mechanism, ""), *arguments):
        if type(value) is re.Pattern and isinstance(value.pattern, str):
            yield value.pattern
        elif type(value) is types.FunctionType and is_project_file(value.__code__.co_filename):
            with noting_faults("reading regular expressions of code"):
                yield from _patterns_in(value.__code__)


def _patterns_in(code: types.CodeType) -> list[str]:
    inside = [const for const in code.co_consts if type(const) is types.CodeType]
    found = [pattern for inner in inside for pattern in _patterns_in(inner)]
    if "re" in code.co_names:
        texts = [const for const in code.co_consts if type(const) is str]
        found += [text for text in texts if is_constant(text) and re.escape(text) != text]
    return found


def is_constant(value: Any) -> bool:
    """Whether this is a number or a string that may stand in data."""
    kind = type(value)
    if issubclass(kind, str):
        return 0 < str.__len__(value) <= MAX_TEXT_LENGTH
    if issubclass(kind, int):
        return kind is not bool and int.bit_length(value) < sys.float_info.max_exp
    return issubclass(kind, float | np.integer | np.floating) and math.isfinite(value)


def _in_all(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[int, Constant]]:
    """The constants of all that a mechanism can reach, with a rank: 0 for those in comparisons."""
    for value, place in reachable(mechanism, params):
        if is_constant(value):
            yield 1, Constant(_plain(value), place)
        else:
            with noting_faults("reading constants of code"):  # such as code that some tool made
                yield from list(_in_code(value.__code__))


def _plain(value: Any) -> Any:
    """The same value of Python's type, whatever a subclass defines."""
    kind = type(value)
    if issubclass(kind, np.generic):
        return np.generic.item(value)
    if issubclass(kind, str):
        return str.__str__(value)
    return int.__int__(value) if issubclass(kind, int) else float.__float__(value)


def _in_code(code: types.CodeType) -> Iterator[tuple[int, Constant]]:
    """The constants that code loads, and those of functions that are defined in it."""
    file, line = Path(code.co_filename).name, code.co_firstlineno
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        line = (step.positions.lineno if step.positions else None) or line
        if step.opname not in _LOADING:
            continue
        if isinstance(step.argval, types.CodeType):
            yield from _in_code(step.argval)
            continue
        # The other side of a comparison may be loaded first or second.
        decides = any(after.opname in _DECIDING for after in steps[at + 1 : at + 3])
        for value in _members(step.argval):
            if is_constant(value):
                place = f"a constant in {file}:{line}"
                yield 0 if decides else 1, Constant(value, place)


def _members(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple | frozenset) else (value,)
