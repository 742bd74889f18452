"""Coverage: which instructions of the project's code a run executes.

By `sys.monitoring` where there is one, else by `sys.settrace`. Where somebody else traces, such as
a debugger or a measurement of test coverage, they are left alone, and there is no coverage. What
other threads run is no part of it; no garbage is collected meanwhile, which may run code.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.pairs.unreached import Step

NAME = "pytest-dp"
FREE_TOOLS = (4, 3)
"""Tools of `sys.monitoring` that are not reserved for others: given by Python."""


@contextmanager
def covered(steps: set[Step]) -> Iterator[bool]:
    """Add the steps that are executed inside; whether they can be traced. Other tracers go on."""
    watch = _monitored if hasattr(sys, "monitoring") else _traced
    collects = gc.isenabled()
    gc.disable()
    try:
        with watch(steps) as watched:
            yield watched
    finally:
        if collects:
            gc.enable()


@contextmanager
def _traced(steps: set[Step]) -> Iterator[bool]:
    """By `sys.settrace`, unless somebody else does."""
    if sys.gettrace() is not None:
        yield False
        return

    def enter(frame: types.FrameType, event: str, _: Any) -> Callable[..., Any] | None:  # noqa: ARG001
        code = frame.f_code
        if not is_project_file(code.co_filename):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        file, first_line = code.co_filename, code.co_firstlineno

        def step(frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG001
            steps.add((file, first_line, frame.f_lasti))
            return step

        return step

    sys.settrace(enter)
    try:
        yield True
    finally:
        sys.settrace(None)


@contextmanager
def _monitored(steps: set[Step]) -> Iterator[bool]:
    """By `sys.monitoring`, which others may use at the same time."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    tool = next((number for number in FREE_TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        yield False
        return
    events = monitoring.events
    instrumented: list[types.CodeType] = []
    thread = threading.get_ident()  # events are those of all threads

    def enter(code: types.CodeType, _: int) -> Any:
        if is_project_file(code.co_filename) and code not in instrumented:
            instrumented.append(code)
            monitoring.set_local_events(tool, code, events.INSTRUCTION)
        return None

    def step(code: types.CodeType, offset: int) -> Any:
        if threading.get_ident() == thread:
            steps.add((code.co_filename, code.co_firstlineno, offset))

    monitoring.use_tool_id(tool, NAME)
    try:
        monitoring.register_callback(tool, events.PY_START, enter)
        monitoring.register_callback(tool, events.INSTRUCTION, step)
        monitoring.set_events(tool, events.PY_START)
        yield True
    finally:
        monitoring.set_events(tool, 0)
        for code in instrumented:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, events.PY_START, None)
        monitoring.register_callback(tool, events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)
