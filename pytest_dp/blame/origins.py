"""Where values were set: lines in which a variable gets the value of a scale, or of an answer."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import numpy as np

from pytest_dp.blame.findings import Finding, format_number
from pytest_dp.blame.runs import Leaf, Runs
from pytest_dp.blame.source import assignments_of_operands, assignments_of_summands, part_of
from pytest_dp.limits import MANY, STEPS
from pytest_dp.outputs.leaves import NUMBER, as_float, is_number
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw
from pytest_dp.whose_code import is_project_file

Observer = Callable[[Site, Mapping[str, Any]], None]
"""Called with a line that was run, and the variables after it."""
_RETURNED = "what it returns"
"""The name under which an observer sees what a function returns."""


def origins(
    runs: Runs,
    draw: Draw,
    place: str,
    scale: float | None = None,
    answers: tuple[float, float] | None = None,
    loss: float = 0.0,
) -> Iterator[Finding]:
    """Lines in which the scale of noise, and the answer that it is added to, were set.

    Neither needs to be known. `answers` are what the noise is added to, on D and on D', `place` is
    that of the leaf that is their sum, and `loss` is that of the draw.
    """
    sites = [site for site in draw.stack if is_project_file(site.file)][:3]
    if not sites:
        return
    drawing = sites[0].line
    if scale is None:
        for line, name in assignments_of_operands(sites[0]):
            text = f"`{name}`, by which line {drawing} decides, is set here"
            yield Finding("scale", line, text, loss=loss)
    else:
        yield from _scale(runs, sites[0], scale, loss)
    if answers is not None:
        here, there = map(format_number, answers)
        known = _variables_with(runs, answers)
        named = chain.from_iterable(map(assignments_of_summands, sites))
        for line, name in islice(((line, name) for line, name in named if name in known), 1):
            text = (
                f"`{name}`, {here} on D and {there} on D', is set here: {place} is this plus the "
                f"noise of line {drawing}"
            )
            yield Finding("answer", line, text, loss=loss)
    for line in [site for site in sites if site.line != drawing][:1]:
        text = f"the noise of line {drawing}, in {sites[0].function}, is asked for here"
        yield Finding("called", line, text, loss=loss)


def _scale(runs: Runs, drawing: Site, scale: float, loss: float) -> Iterator[Finding]:
    """The line that sets a variable to the scale, or else a line that returns it."""
    noise = f"the scale of the noise of line {drawing.line}"
    number = format_number(scale)
    known = _variables_with(runs, (scale, scale))
    for line, name in assignments_of_operands(drawing):
        if name in known:
            text = f"`{name}`, {noise}, is set to {number} here"
            yield Finding("scale", line, text, loss=loss)
            return
    if float(f"{scale:.2g}") == scale:  # another function may return the same by chance
        return
    here, there = (_settings(runs, side, _is, scale)[0] for side in (0, 1))
    returning = [line for line, name in here if name == _RETURNED and (line, name) in there]
    for line in returning[-1:]:
        yield Finding("scale", line, f"{noise} is computed here: {number}", loss=loss)


def _variables_with(runs: Runs, values: tuple[Leaf, Leaf]) -> set[str]:
    """Variables that get one value on D and the other on D', in the same line."""
    here, there = (_settings(runs, side, _has, values[side])[0] for side in (0, 1))
    return {name for line, name in here if (line, name) in there and name != _RETURNED}


def lines_with(runs: Runs, side: int, place: str, value: Leaf | None, noise: int = 0) -> list[Site]:
    """Lines that give a variable a leaf's value in a run, in order; else the run's last line.

    For the output's length, lengths of containers are compared. Of a statement over several lines,
    it is the line of its part.
    """
    settings, last = _settings(runs, side, _has, value, noise)
    lines = [line for line, name in settings if name != _RETURNED or len(settings) == 1]
    return [part_of(line, place) for line in lines or last]


def _settings(
    runs: Runs,
    side: int,
    has: Callable[[Any, Leaf | None], bool],
    value: Leaf | None,
    noise: int = 0,
) -> tuple[list[tuple[Site, str]], list[Site]]:
    """Lines that give a variable a value, with its name; and the run's last line, if known."""
    settings: list[tuple[Site, str]] = []
    before: dict[tuple[str, str], bool] = {}

    def observer(line: Site, variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            key = line.function, name
            now = has(variable, value)
            if now and not before.get(key):
                settings.append((line, name))
            before[key] = now

    with traced_lines(observer) as lines:
        runs.run(side, noise)
    return settings, lines[-1:]


def _has(variable: Any, value: Leaf | None) -> bool:
    """Return whether a variable has a value, contains it, or has such a length or order of keys."""
    kind, said = value if isinstance(value, tuple) and len(value) == 2 else ("", None)
    if kind == "length":
        sized = isinstance(variable, list | tuple | dict | set | np.ndarray)
        return sized and getattr(variable, "ndim", 1) > 0 and len(variable) == said
    if kind == "order":
        return isinstance(variable, dict) and ", ".join(map(repr, variable)) == said
    if isinstance(variable, np.ndarray):
        variable = variable.reshape(-1)[:MANY].tolist() if variable.dtype.kind in "iuf" else ()
    members = variable.values() if isinstance(variable, dict) else variable
    if isinstance(variable, dict | list | tuple):
        return any(_is(member, value) for member in islice(members, MANY))
    return _is(variable, value)


def _is(variable: Any, value: Leaf | None) -> bool:
    if is_number(type(variable)):
        return isinstance(value, float) and math.isclose(as_float(variable), value)
    if not isinstance(variable, str | bool | type(None) | bytes):
        return False
    table = tabulate([variable])
    is_category = len(table.codes) == 1 and table.codes[0] != NUMBER
    return is_category and tuple(next(iter(table.levels))) == value


@contextmanager
def traced_lines(observer: Observer | None = None) -> Iterator[list[Site]]:
    """The project's lines that are run inside, in order; none if a debugger or the like traces."""
    lines: list[Site] = []
    if sys.gettrace() is not None:
        yield lines
        return
    before: dict[types.FrameType, Site] = {}

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        code = frame.f_code
        ours = is_project_file(code.co_filename) and code.co_filename != "<string>"
        return step if ours else None

    def step(frame: types.FrameType, event: str, argument: Any) -> Any:
        if len(lines) > STEPS:
            return step
        if observer is not None and frame in before and event != "exception":
            variables = frame.f_locals
            if event == "return":
                variables = {**variables, _RETURNED: argument}
            observer(before[frame], variables)
        if event == "line":
            code = frame.f_code
            before[frame] = Site(code.co_filename, frame.f_lineno, code.co_name)
            lines.append(before[frame])
        elif event == "return":
            before.pop(frame, None)
        return step

    sys.settrace(enter)
    try:
        yield lines
    finally:
        sys.settrace(None)
