"""In which line a part of the output gets its value, as far as variables tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import LENGTH, Leaf
from pytest_dp.blame.watching import RETURNED, watched
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site

MAX_MEMBERS = 64
"""Of a container, in which the value is looked for."""


def lines_with(
    reach: Reach, side: int, place: str, value: Leaf | None, noise: int = 0
) -> list[Site]:
    """Lines that give a variable a value in a run, in order; else the last line of the run.

    Parameters
    ----------
    reach : Reach
    side : int
    place : str
        Of the leaf that is asked for; of its length, containers are looked at.
    value : float or tuple
    noise : int
        Of the run.
    """
    given, last = _given(reach, side, _has_length if place == LENGTH else _has, value, noise)
    return [line for line, name in given if name != RETURNED or len(given) == 1] or last


def variables_with(reach: Reach, values: tuple[Leaf, Leaf]) -> list[tuple[Site, str]]:
    """Lines that give a variable one value on D and the other on D', in order, with its name."""
    one, other = (_given(reach, side, _has, value)[0] for side, value in enumerate(values))
    return [given for given in one if given in other and given[1] != RETURNED]


def returning(reach: Reach, value: float) -> list[Site]:
    """Lines that return a number on D and on D'."""
    one, other = (_given(reach, side, _is, value)[0] for side in (0, 1))
    return [line for line, name in one if name == RETURNED and (line, name) in other]


def _given(
    reach: Reach,
    side: int,
    has: Callable[[Any, Leaf | None], bool],
    value: Leaf | None,
    noise: int = 0,
) -> tuple[list[tuple[Site, str]], list[Site]]:
    """Lines that give a variable a value, with its name; and the last line, if that is known."""
    found: list[tuple[Site, str]] = []
    before: dict[tuple[str, str], bool] = {}

    def look(line: Site, variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            key = line.function, name
            now = has(variable, value)
            if now and not before.get(key):
                found.append((line, name))
            before[key] = now

    with watched(look) as lines:
        reach.runs.run(side, noise)
    return found, lines[-1:]


def _has(thing: Any, value: Leaf | None) -> bool:
    """Whether a variable has a value, or a container that it holds."""
    if _is(thing, value):
        return True
    if isinstance(thing, dict):
        return any(_is(each, value) for each in islice(thing.values(), MAX_MEMBERS))
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "iuf":
        numbers = thing.reshape(-1)[:MAX_MEMBERS].tolist()
        return isinstance(value, float) and any(math.isclose(n, value) for n in numbers)
    return isinstance(thing, list | tuple) and any(_is(each, value) for each in thing[:MAX_MEMBERS])


def _is(thing: Any, value: Leaf | None) -> bool:
    if isinstance(thing, float | int | np.number) and not isinstance(thing, bool):
        return isinstance(value, float) and math.isclose(thing, value)
    if not isinstance(thing, str | bool | type(None) | bytes):
        return False
    table = tabulate([thing])
    is_one = len(table.codes) == 1 and table.codes[0] != NUMBER
    return is_one and tuple(next(iter(table.levels))) == value


def _has_length(thing: Any, value: Leaf | None) -> bool:
    if isinstance(thing, np.ndarray):
        return thing.ndim > 0 and ("length", len(thing)) == value
    return isinstance(thing, list | tuple | dict | set) and ("length", len(thing)) == value
