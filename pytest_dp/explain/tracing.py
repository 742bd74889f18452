"""Lines of the project that runs execute, and variables that get a value in them."""

from __future__ import annotations

import linecache
import math
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.explain.findings import Finding
from pytest_dp.explain.runs import Leaf, PairRuns, changed_leaves
from pytest_dp.outputs.leaves import NUMBER, as_float, is_number
from pytest_dp.outputs.table import tabulate
from pytest_dp.running.generator_stand_ins import Site

MAX_MEMBERS = 64
"""Members of a variable that are looked at. More take longer; with fewer, a draw in a list is not
seen."""
MAX_LINES = 20_000
"""Lines of a traced run. More take longer; with fewer, long mechanisms are not followed to their
end."""

TRACED_RUNS = 80
"""Runs on the same noise that are traced, which makes each many times slower. More take longer;
fewer miss where runs part seldom."""
MIN_PARTED = 5
"""Runs that part at a line, and that do not. Fewer may be chance; more: lines are not named."""

Observer = Callable[[Site, Mapping[str, Any]], None]
"""Called with a line that was run, and the variables after it."""
_RETURNED = "what it returns"
"""The name under which an observer sees what a function returns."""


def lines_with(runs: PairRuns, side: int, value: Leaf | None, noise: int = 0) -> list[Site]:
    """Return lines that give a variable a leaf's value in a run, in order; else its last line.

    For the output's length, lengths of containers are compared.
    """
    settings: list[tuple[Site, str]] = []
    before: dict[tuple[str, str], bool] = {}

    def observer(line: Site, variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            key = line.function, name
            now = _has(variable, value)
            if now and not before.get(key):
                settings.append((line, name))
            before[key] = now

    with traced_lines(observer) as lines:
        runs.run(side, noise)
    found = [line for line, name in settings if name != _RETURNED or len(settings) == 1]
    return found or lines[-1:]


def _has(variable: Any, value: Leaf | None) -> bool:
    """Return whether a variable has a value, contains it, or has such a length or order of keys."""
    kind, said = value if isinstance(value, tuple) and len(value) == 2 else ("", None)
    if kind == "length":
        sized = isinstance(variable, list | tuple | dict | set | np.ndarray)
        return sized and getattr(variable, "ndim", 1) > 0 and len(variable) == said
    if kind == "order":
        return isinstance(variable, dict) and ", ".join(map(repr, variable)) == said
    if isinstance(variable, np.ndarray):
        variable = (
            variable.reshape(-1)[:MAX_MEMBERS].tolist() if variable.dtype.kind in "iuf" else ()
        )
    members = variable.values() if isinstance(variable, dict) else variable
    if isinstance(variable, dict | list | tuple):
        return any(_is(member, value) for member in islice(members, MAX_MEMBERS))
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
    """List the project's lines that run within the block; none while a debugger traces."""
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
        if len(lines) > MAX_LINES:
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


def find_parting(runs: PairRuns) -> Iterator[Finding]:
    """Yield the line that runs on D or D' reach whenever outputs differ, and at no other time."""
    reached: list[dict[Site, None]] = []  # in order
    differ: list[bool] = []
    for noise in range(TRACED_RUNS):
        with traced_lines() as lines:
            outputs = [runs.run(side, noise) for side in (0, 1)]
        if not lines:
            return
        reached.append(dict.fromkeys(lines))
        differ.append(bool(changed_leaves(*outputs)))
    count = sum(differ)
    if count < MIN_PARTED or TRACED_RUNS - count < MIN_PARTED:
        return
    for line in dict.fromkeys(line for lines in reached for line in lines):
        # How often the lines of comprehensions run says nothing of the path.
        if not line.function.startswith("<") and [line in lines for lines in reached] == differ:
            text = (
                f"with the same random numbers, {count} of {TRACED_RUNS} runs on D or D' reach "
                f"this line, `{linecache.getline(line.file, line.line).strip()}`. The outputs "
                "differ in these runs, and in no others"
            )
            yield Finding("passing", line, text)
            return
