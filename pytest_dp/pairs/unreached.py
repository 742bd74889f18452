"""Lines of a mechanism that no run reached.

Left out is what no input reaches: handlers of exceptions, code that ends in ``raise`` or only logs,
and what a test on parameters and constants alone decides.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_dp.basics.reprs import plural
from pytest_dp.basics.whose_code import is_project_file

MAX_EVENTS = 60_000
"""Lines that are traced. More slow down loops; fewer miss what rare runs reach."""
MAX_FUNCTIONS = 50
"""Functions of which unreached code is looked for."""
MAX_SHOWN = 4
"""Lines that are named. Longer lists hide the first."""

Line = tuple[str, int]
"""A file and the number of a line in it."""
_NO_ANSWER = (ast.Raise, ast.Pass, ast.Global, ast.Nonlocal)
_LOGGING = frozenset(
    ["debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "exit"]
)
"""Names of functions whose statements give no answer: of logging, warnings and consoles."""


class LineTracer:
    """A recorder of the lines of the project's functions that are run inside `tracing`."""

    def __init__(self) -> None:
        self.lines: set[Line] = set()
        self.codes: dict[tuple[str, int, str], types.CodeType] = {}
        """The functions that were entered, by file, first line and name."""
        self._left = MAX_EVENTS

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Record the lines that run inside, up to `MAX_EVENTS` in all.

        Records nothing while a debugger traces, or once all code that was entered ran.
        """
        has_all = bool(self.codes) and not find_unreached(self)
        if sys.gettrace() is not None or self._left <= 0 or has_all:
            yield
            return
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    def _enter(self, frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        """Record that a function was entered; return its tracer of lines, None for libraries."""
        code = frame.f_code
        file = code.co_filename
        if self._left <= 0 or file.startswith("<") or not is_project_file(file):
            return None
        self.codes.setdefault((file, code.co_firstlineno, code.co_name), code)
        return self._step

    def _step(self, frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        """Record a line; return None, which ends tracing, once `MAX_EVENTS` were recorded."""
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        self._left -= 1
        return self._step if self._left > 0 else None


def find_unreached(tracer: LineTracer, fixed: Iterable[str] = ()) -> list[Line]:
    """Return the first lines of code that did not run in functions that were entered, sorted.

    Code that only raises or logs is left out. `fixed` are names of the mechanism's parameters that
    no input changes: code under a test on these alone is left out as well.
    """
    missed: set[Line] = set()
    for (file, first, name), code in list(tracer.codes.items())[:MAX_FUNCTIONS]:
        ran = {line for its, line in tracer.lines if its == file}
        names = {*code.co_varnames, *code.co_cellvars} - {"self", "cls", "rng", *fixed}
        for function in _functions_in(file).get((first, name), ()):
            missed |= {(file, line) for line in _missed_in(function.body, ran, names)}
    return sorted(missed)


def _missed_in(block: Sequence[ast.stmt], ran: set[int], names: set[str]) -> Iterator[int]:
    """Yield the first line that did not run of a block, or of each block inside of it.

    `ran` are the lines that ran. Blocks under a test that reads none of the local `names` are left
    out.
    """
    for statement in block:
        if ran.isdisjoint(range(statement.lineno, (statement.end_lineno or 0) + 1)):
            if not _gives_no_answer(statement):
                yield statement.lineno
                return
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            test = getattr(statement, "test", None)
            read = (
                {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
                if test
                else names
            )
            for field in ("body", "orelse", "finalbody") if read & names else ():
                inner = getattr(statement, field, [])
                if inner and not isinstance(inner[-1], ast.Raise):
                    yield from _missed_in(inner, ran, names)


def _gives_no_answer(statement: ast.stmt) -> bool:
    """Return whether a statement has no code, raises, or only logs."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return getattr(called, "attr", getattr(called, "id", "")) in _LOGGING
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_docstring or isinstance(statement, _NO_ANSWER)


@lru_cache(maxsize=16)
def _functions_in(file: str) -> dict[tuple[int, str], list[ast.FunctionDef]]:
    """Return the functions in a file by their first line and name; empty without the source."""
    found: dict[tuple[int, str], list[ast.FunctionDef]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
    return found


def lines_in_words(lines: Sequence[Line]) -> str:
    """Return which lines never ran, and what to do: ``"a.py:31, a.py:47 never ran: ..."``."""
    shown = ", ".join(line_in_words(line) for line in lines[:MAX_SHOWN])
    more = len(lines) - MAX_SHOWN
    others = f" and {plural(more, 'other line')}" if more > 0 else ""
    return f"{shown}{others} never ran: give inputs that reach this code"


def line_in_words(line: Line) -> str:
    """Return a line as ``"a.py:31"``."""
    return f"{Path(line[0]).name}:{line[1]}"
