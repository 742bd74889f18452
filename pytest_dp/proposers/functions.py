"""Functions of Python and numpy that would make plain values of stand-ins."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_dp.proposers.arrays import array_of, found_in
from pytest_dp.proposers.numbers import Truth, number
from pytest_dp.proposers.stand_ins import is_symbolic
from pytest_dp.proposers.texts import Text
from pytest_dp.proposers.trace import Trace
from pytest_dp.running.modules import Replacements
from pytest_dp.running.shadowing import StandsFor

MAX_DEPTH = 5
"""Levels of an output in which formulas are looked for. Fewer miss inner ones."""

_NESTED = (np.concatenate, np.stack)


class Rows(list[Any]):
    """A list of records that knows a formula for its length."""

    size: Any = None


_MAKING = ("array", "asarray", "asanyarray")
_TAKING = (
    *("sum", "mean", "any", "all", "max", "min", "amax", "amin", "median", "std", "var", "prod"),
    *("clip", "sort", "where", "histogram", "cumsum", "diff", "dot", "round", "around", "argmax"),
    *("argmin", "average", "percentile", "quantile", "count_nonzero", "ptp", "argsort", "maximum"),
    *("minimum", "abs", "sign", "floor", "ceil", "sqrt", "log", "exp", "concatenate", "stack"),
)


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(data: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        if found_in(data) is None:
            return function(data, dtype, *args, **keywords)
        return array_of(data, dtype)

    return make


def _taking(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def take(*args: Any, **keywords: Any) -> Any:
        lists = [isinstance(x, list | tuple) and found_in(x) is not None for x in args]
        if not any(lists):
            return function(*args, **keywords)
        nested = function in _NESTED
        given = [
            ([array_of(part) for part in x] if nested else array_of(x)) if is_list else x
            for x, is_list in zip(args, lists, strict=True)
        ]
        return function(*given, **keywords)

    return take


@functools.cache
def functions_of_stand_ins() -> Replacements:
    """Return functions of numpy that take stand-ins; of others they are what they were."""
    places: list[tuple[Any, str, Any]] = []
    places += [(np, name, _making(getattr(np, name))) for name in _MAKING]
    taking = [name for name in _TAKING if not isinstance(getattr(np, name), np.ufunc)]
    places += [(np, name, _taking(getattr(np, name))) for name in taking]
    return Replacements(places)


def _length(data: Any) -> Any:
    if type(data) is Text:
        return data.length()
    if type(data) is Rows and data.size is not None:
        trace, formula = data.size
        return number(trace, len(data), formula)
    return len(data)


NAMES = {"float": StandsFor.of(float), "int": StandsFor.of(int), "len": _length}
"""Python's own functions by their names, as a mechanism finds them."""


def _leaves(output: Any, depth: int = MAX_DEPTH) -> Iterator[Any]:
    """Single values in an output, in order."""
    if depth and not is_symbolic(output) and isinstance(output, list | tuple | dict | np.ndarray):
        values = output.values() if isinstance(output, dict) else output
        values = np.ravel(output).tolist() if isinstance(output, np.ndarray) else values
        for value in values:
            yield from _leaves(value, depth - 1)
    else:
        yield output


def released(output: Any) -> Iterator[Truth]:
    """Truths in an output that nothing decided."""
    return (value for value in _leaves(output) if type(value) is Truth)


def sized(rows: Rows, trace: Trace, formula: Any) -> Rows:
    """A list of records with a formula for its length."""
    rows.size = trace, formula
    return rows
