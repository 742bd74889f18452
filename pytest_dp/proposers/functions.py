"""Functions of Python that would make plain values of stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pytest_dp.proposers.stand_in_numbers import Truth
from pytest_dp.proposers.stand_in_texts import Text
from pytest_dp.proposers.stand_ins import is_symbolic
from pytest_dp.running.shadowing import StandsFor

MAX_DEPTH = 5
"""Levels of an output in which formulas are looked for. Fewer miss inner ones."""


def _length(data: Any) -> Any:
    return data.length() if type(data) is Text else len(data)


NAMES = {"float": StandsFor.of(float), "int": StandsFor.of(int), "len": _length}
"""Python's own functions by their names, as a mechanism finds them."""


def _leaves(output: Any, depth: int = MAX_DEPTH) -> Iterator[Any]:
    """Yield single values in an output, in order."""
    if depth and not is_symbolic(output) and isinstance(output, list | tuple | dict | np.ndarray):
        values = output.values() if isinstance(output, dict) else output
        values = np.ravel(output).tolist() if isinstance(output, np.ndarray) else values
        for value in values:
            yield from _leaves(value, depth - 1)
    else:
        yield output


def undecided_truths(output: Any) -> Iterator[Truth]:
    """Return the truths in an output that nothing decided."""
    return (value for value in _leaves(output) if type(value) is Truth)
