"""Functions of Python that would make plain values of stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pytest_dp.proposers.numbers import Truth, number
from pytest_dp.proposers.stand_ins import is_symbolic
from pytest_dp.proposers.texts import Text
from pytest_dp.proposers.trace import Trace
from pytest_dp.running.shadowing import StandsFor

MAX_DEPTH = 5
"""Levels of an output in which formulas are looked for. Fewer miss inner ones."""


class Rows(list[Any]):
    """A list of records that knows a formula for its length."""

    size: Any = None


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
