"""In which line a part of the output gets its value, as far as variables tell."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import LENGTH, Leaf
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site
from pytest_dp.search.reaching import is_project

MAX_MEMBERS = 64
"""Of a container, in which the value is looked for."""
MAX_STEPS = 20_000
"""Lines that are looked at in one run."""


def line_of_value(reach: Reach, place: str) -> Site | None:
    """The last line that gives a variable the value of a leaf, on D as on D'.

    Else the last line that was run. None if somebody else traces.
    """
    found, ends = [], []
    for side in (0, 1):
        value = reach.runs.usual(side, 0).leaves.get(place)
        lines, end = _lines(reach, side, value, place == LENGTH)
        if end is None:
            return None
        found.append(lines)
        ends.append(end)
    common = [line for line in found[0] if line in found[1]]
    return common[-1] if common else ends[0]


def _lines(
    reach: Reach, side: int, value: Leaf | None, is_length: bool
) -> tuple[list[Site], Site | None]:
    """Lines after which a variable has a value that it had not, in order; and the last line."""
    watch = _Watch(value, is_length)
    with watch.tracing() as traces:
        reach.runs.run(side, 0)
    return watch.found, watch.last if traces else None


class _Watch:
    def __init__(self, value: Leaf | None, is_length: bool) -> None:
        self._value, self._is_length = value, is_length
        self._before: dict[types.FrameType, tuple[Site, dict[str, bool]]] = {}
        self._steps = 0
        self.found: list[Site] = []
        self.last: Site | None = None

    @contextmanager
    def tracing(self) -> Iterator[bool]:
        if sys.gettrace() is not None:
            yield False
            return
        sys.settrace(self._enter)
        try:
            yield True
        finally:
            sys.settrace(None)

    def _enter(self, frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        return self._step if is_project(frame.f_code) else None

    def _step(self, frame: types.FrameType, event: str, _: Any) -> Any:
        self._steps += 1
        if self._steps > MAX_STEPS or event == "exception":
            return self._step
        known = self._before.get(frame)
        has = self._holding(frame.f_locals)
        if known is not None:
            line, before = known
            if any(now and not before.get(name) for name, now in has.items()):
                self.found.append(line)
        line = Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        self._before[frame] = line, has
        self.last = line
        if event == "return":
            del self._before[frame]
        return self._step

    def _holding(self, variables: Mapping[str, Any]) -> dict[str, bool]:
        return {name: self._has(value) for name, value in variables.items()}

    def _has(self, value: Any) -> bool:
        if self._is_length:
            sized = isinstance(value, list | tuple | dict | set | np.ndarray)
            return (
                sized
                and np.ndim(value if isinstance(value, np.ndarray) else 0) >= 0
                and (_length(value) == self._value)
            )
        if self._is(value):
            return True
        if isinstance(value, dict):
            return any(map(self._is, islice(value.values(), MAX_MEMBERS)))
        return isinstance(value, list | tuple) and any(map(self._is, value[:MAX_MEMBERS]))

    def _is(self, value: Any) -> bool:
        if isinstance(value, float | int | np.number) and not isinstance(value, bool):
            return isinstance(self._value, float) and float(value) == self._value
        if not isinstance(value, str | bool | type(None) | bytes):
            return False
        table = tabulate([value])
        (code,) = table.codes.tolist() if len(table.codes) == 1 else (NUMBER,)
        return code != NUMBER and tuple(next(iter(table.levels))) == self._value


def _length(value: Any) -> Leaf | None:
    try:
        return ("length", len(value))
    except TypeError:
        return None
