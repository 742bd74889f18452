"""The lines that a run goes through, in order, with what is known of their variables."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_dp.randomness.requests import Site
from pytest_dp.search.reaching import is_project

MAX_STEPS = 20_000
"""Lines that are looked at in one run."""
Look = Callable[[Site, Mapping[str, Any]], None]
"""Called with a line that was run, and what its variables are now."""
RETURNED = "what it returns"


class TooManyLines(Exception):  # noqa: N818  a way out, not an error
    """A run takes too many lines to look at them all."""


@contextmanager
def watched(look: Look | None = None) -> Iterator[list[Site]]:
    """The lines of the project that are run inside, in order; none where somebody else traces."""
    lines: list[Site] = []
    if sys.gettrace() is not None:
        yield lines
        return
    before: dict[types.FrameType, Site] = {}

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        code = frame.f_code
        return step if is_project(code) and code.co_filename != "<string>" else None

    def step(frame: types.FrameType, event: str, argument: Any) -> Any:
        if len(lines) > MAX_STEPS:
            return step
        if look is not None and frame in before and event != "exception":
            known = frame.f_locals
            look(before[frame], {**known, RETURNED: argument} if event == "return" else known)
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


def source(line: Site) -> str:
    """A line as it is written; empty if that is not known."""
    return linecache.getline(line.file, line.line).strip()
