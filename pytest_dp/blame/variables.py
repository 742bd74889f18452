"""Lines in which a variable gets a value, such as that of a part of the output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.blame.flow import Flow
from pytest_dp.blame.line_trace import RETURNED, traced_lines
from pytest_dp.blame.runs import LENGTH, Leaf
from pytest_dp.limits import MANY
from pytest_dp.outputs.columns import NUMBER, as_float, is_number
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site


def lines_with(flow: Flow, side: int, place: str, value: Leaf | None, noise: int = 0) -> list[Site]:
    """Lines that give a variable a leaf's value in a run, in order; else the run's last line.

    For the output's length, lengths of containers are compared.
    """
    has = _has_length if place == LENGTH else _has
    assignments, last = _assignments(flow, side, has, value, noise)
    lines = [line for line, name in assignments if name != RETURNED or len(assignments) == 1]
    return lines or last


def variables_with(flow: Flow, values: tuple[Leaf, Leaf]) -> list[tuple[Site, str]]:
    """Lines that give a variable one value on D and the other on D', in order, with its name."""
    here, there = (_assignments(flow, side, _has, values[side])[0] for side in (0, 1))
    return [(line, name) for line, name in here if (line, name) in there and name != RETURNED]


def returning(flow: Flow, value: float) -> list[Site]:
    """Lines that return a number on D and on D'."""
    here, there = (_assignments(flow, side, _is, value)[0] for side in (0, 1))
    return [line for line, name in here if name == RETURNED and (line, name) in there]


def _assignments(
    flow: Flow,
    side: int,
    has: Callable[[Any, Leaf | None], bool],
    value: Leaf | None,
    noise: int = 0,
) -> tuple[list[tuple[Site, str]], list[Site]]:
    """Lines that give a variable a value, with its name; and the run's last line, if known."""
    assignments: list[tuple[Site, str]] = []
    before: dict[tuple[str, str], bool] = {}

    def observer(line: Site, variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            key = line.function, name
            now = has(variable, value)
            if now and not before.get(key):
                assignments.append((line, name))
            before[key] = now

    with traced_lines(observer) as lines:
        flow.runs.run(side, noise)
    return assignments, lines[-1:]


def _has(variable: Any, value: Leaf | None) -> bool:
    """Whether a variable is a value, or contains it."""
    if _is(variable, value):
        return True
    if isinstance(variable, np.ndarray) and variable.dtype.kind in "iuf":
        numbers = variable.reshape(-1)[:MANY].tolist()
        return isinstance(value, float) and any(math.isclose(n, value) for n in numbers)
    members = variable.values() if isinstance(variable, dict) else variable
    if not isinstance(variable, dict | list | tuple):
        return False
    return any(_is(member, value) for member in islice(members, MANY))


def _is(variable: Any, value: Leaf | None) -> bool:
    if is_number(type(variable)):
        return isinstance(value, float) and math.isclose(as_float(variable), value)
    if not isinstance(variable, str | bool | type(None) | bytes):
        return False
    table = tabulate([variable])
    is_category = len(table.codes) == 1 and table.codes[0] != NUMBER
    return is_category and tuple(next(iter(table.levels))) == value


def _has_length(variable: Any, value: Leaf | None) -> bool:
    if isinstance(variable, np.ndarray):
        return variable.ndim > 0 and ("length", len(variable)) == value
    return isinstance(variable, list | tuple | dict | set) and ("length", len(variable)) == value
