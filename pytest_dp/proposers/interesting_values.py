"""Values at which mechanisms go wrong: constants of their code, and values that no example holds.

Constants stand in comparisons, variables, defaults and attributes; none of this code is run to find
them. Values that no example holds are missing, infinite, empty or far ones.
"""

from __future__ import annotations

import dis
import math
import re
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError, noting_faults
from pytest_dp.basics.reach import reach
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.data import is_real, rebuild, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import columns_of, fields_of, with_known
from pytest_dp.data.ordering import in_turn, representatives
from pytest_dp.data.relations import Pair, Relation

MAX_READ = 10_000
"""Constants that are read of code. Fewer miss those far from the mechanism."""
MAX_CONSTANTS = 200
"""Constants that are tried. More share the search; fewer may miss the one that leaks."""
MAX_TEXT_LENGTH = 120
"""Characters of a text that is tried. Longer ones are mostly documentation."""

LARGEST_NUMBER = 2.0**32
"""Largest number that is proposed. Beyond, floats are too coarse for most noise."""
MAX_CHANGED = 4
"""Records of the examples that are changed. With fewer, kinds of records are left out."""
MAX_BESIDE = 24
"""Records that stand beside the changed one, where the relation lets their number vary."""

_DECIDING = frozenset(["COMPARE_OP", "CONTAINS_OP"])
_LOADING = frozenset(["LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL"])
"""Instructions of Python that compare, and that load a constant."""


def constants_of(mechanism: Any, params: dict[str, Any]) -> list[int | float | str]:
    """Return the numbers and short texts that a mechanism and its parameters hold.

    They come from the code of the project's functions, and from variables, defaults, attributes and
    the values of `params`. Constants of comparisons come first. At most `MAX_CONSTANTS` are
    returned, each once. The mechanism is not run.
    """
    ranked: dict[tuple[type, Any], int] = {}
    for rank, value in islice(_ranked_constants(mechanism, params), MAX_READ):
        key = type(value), value
        ranked[key] = min(rank, ranked.get(key, rank))
    ordered = sorted(ranked, key=lambda key: ranked[key])
    return [value for _, value in ordered[:MAX_CONSTANTS]]


def reachable(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield each object that a mechanism or argument reaches, and where; no library functions."""
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
    """Return texts with special characters in code that names `re`, and in functions inside it."""
    inside = [const for const in code.co_consts if type(const) is types.CodeType]
    found = [pattern for inner in inside for pattern in _patterns_in(inner)]
    if "re" in code.co_names:
        texts = [const for const in code.co_consts if type(const) is str]
        found += [text for text in texts if may_be_constant(text) and re.escape(text) != text]
    return found


def may_be_constant(value: Any) -> bool:
    """Return whether a value is a finite number or a short text, as may stand in data."""
    kind = type(value)
    if issubclass(kind, str):
        return 0 < str.__len__(value) <= MAX_TEXT_LENGTH
    if issubclass(kind, int):
        return kind is not bool and int.bit_length(value) < sys.float_info.max_exp
    return issubclass(kind, float | np.integer | np.floating) and math.isfinite(value)


def _ranked_constants(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the constants that a mechanism reaches, each behind its rank: 0 in comparisons."""
    for value, _ in reachable(mechanism, params):
        if may_be_constant(value):
            yield 1, value.item() if isinstance(value, np.generic) else value
        elif type(value) is types.FunctionType:
            with noting_faults("reading constants of code"):  # such as code that some tool made
                yield from list(_constants_in_code(value.__code__))


def _constants_in_code(code: types.CodeType) -> Iterator[tuple[int, Any]]:
    """Yield the constants that code, and functions inside it, load, each behind its rank."""
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname not in _LOADING:
            continue
        if isinstance(step.argval, types.CodeType):
            yield from _constants_in_code(step.argval)
            continue
        # The other side of a comparison may be loaded first or second.
        decides = any(after.opname in _DECIDING for after in steps[at + 1 : at + 3])
        yield from (
            (not decides, value) for value in _members_of(step.argval) if may_be_constant(value)
        )


def _members_of(value: Any) -> Iterable[Any]:
    """Return the members of a constant tuple or set; of another constant, itself."""
    return value if isinstance(value, tuple | frozenset) else (value,)


def odd_pairs(
    examples: Sequence[Any],
    relation: Relation,
    values_of: Callable[[Sequence[Any]], list[Any]],
) -> Iterator[Pair]:
    """Yield neighbours, one of which holds a record with a value that no example holds.

    Each field of a few records is tried with each value of `values_of`, which is `far_values` or
    `missing_values`: it is called with the values of the field in the examples. Nothing if no
    example has a record, or a dataset cannot hold the value.
    """
    like = max(examples, key=length)
    records = records_of(like)
    if not records:
        return
    columns = columns_of(record for example in examples for record in records_of(example))
    chosen = [records[at] for at in representatives(records, MAX_CHANGED)[:MAX_CHANGED]]
    yield from in_turn(
        _neighbours_with_value(like, relation, record, name, value)
        for record in chosen
        for name in fields_of(record)
        for value in values_of(list(columns.get(name, {}).values()))
    )


def missing_values(values: Sequence[Any]) -> list[Any]:
    """Return NaN, infinities, None or the empty text: those that a field of such values may hold.

    Empty for values that are neither numbers nor texts.
    """
    if any(map(is_real, values)):
        # Where all are whole numbers, the field has most likely a type without NaN.
        return [None] if _is_whole(values) else [math.nan, math.inf, -math.inf, None]
    return ["", None] if any(isinstance(value, str) for value in values) else []


def far_values(values: Sequence[Any], times: int = 1) -> list[Any]:
    """Return a number `times` 10 to 100 times as far from 0 as those given, and its negative.

    They are texts if all values are texts of numbers. Empty without numbers, and if the number is
    above `LARGEST_NUMBER`.
    """
    texts = [value for value in values if isinstance(value, str)]
    if texts and not any(map(is_real, values)):
        with suppress(ValueError):
            return [str(far) for far in far_values(list(map(_number_in, texts)), times)]
    numbers = [abs(float(value)) for value in values if is_real(value)]
    largest = max(filter(math.isfinite, numbers), default=1.0)
    far = 10.0 * times * 10 ** math.ceil(math.log10(max(largest, 1.0)))
    if not numbers or far > LARGEST_NUMBER:
        return []
    return [int(far), -int(far)] if _is_whole(values) else [far, -far]


def _number_in(text: str) -> float:
    """Return the number that a text is; raise ValueError if it is none."""
    return int(text) if text.strip().lstrip("-").isdecimal() else float(text)


def _is_whole(values: Sequence[Any]) -> bool:
    """Return whether all values that are not None are whole numbers."""
    return all(isinstance(value, int) for value in values if value is not None)


def _neighbours_with_value(
    like: Any, relation: Relation, record: Any, name: Hashable, value: Any
) -> Iterator[Pair]:
    """Yield neighbours, one with a record that has another value in the field `name`.

    The datasets are `like` the given one; nothing if they cannot hold the value.
    """
    odd = with_known(record, name, value)
    records = records_of(like)
    replaces = relation.name.startswith("replace")
    for beside in [records] if replaces else [records[:MAX_BESIDE], []]:
        with_odd = [odd, *beside[1:]] if replaces else [*beside, odd]
        try:
            pair = relation.pair(rebuild(like, with_odd), rebuild(like, beside))
        except ClaimError:  # such as a missing value in an array of whole numbers
            return
        if pair is not None:
            yield pair
