"""The lines that a run goes through, in order, and the values of variables after each."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_dp.limits import STEPS
from pytest_dp.randomness.requests import Site
from pytest_dp.whose_code import is_project_file

Observer = Callable[[Site, Mapping[str, Any]], None]
"""Called with a line that was run, and the variables after it."""
RETURNED = "what it returns"
"""The name under which an observer sees what a function returns."""


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
                variables = {**variables, RETURNED: argument}
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
