"""Code of a mechanism that no input reached which was tried.

Left out is what only handles exceptions, or ends in ``raise``, and what a test on parameters and
constants alone decides: no input reaches that. A parameter counts as a constant where no call gave
another value than its default.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_dp.basics.reprs import plural
from pytest_dp.basics.whose_code import is_project_file

MAX_EVENTS = 300_000
"""Instructions that are traced. More see what rare runs reach in long loops, and make runs that
loop slower."""
MAX_FUNCTIONS = 50
"""Functions of which unreached code is looked for."""
MAX_SHOWN = 4
"""Lines that are named. Longer lists hide the first."""

Instruction = tuple[str, int, int]
"""File, first line and offset of an instruction: equal for copies of a function."""
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ExceptHandler)
"""Code in a function that is a function of its own, or that handles exceptions."""
_WAYS = frozenset(["body", "orelse", "finalbody", "elt", "key"])
"""Fields of a node with code that may run, or not, where the node does."""
_NO_ANSWER = (ast.Raise, ast.Pass, ast.Global, ast.Nonlocal)
_TELLING = frozenset(
    ["debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "exit"]
)
"""Names of functions whose statements give no answer: of logging, warnings and consoles."""


@dataclass(frozen=True, slots=True)
class UnreachedLine:
    """A line of code that was not run, or not all of it."""

    file: str
    line: int
    whole: bool

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class Tracer:
    """Records the instructions of the project's functions that are run inside `tracing`."""

    def __init__(self) -> None:
        self.steps: set[Instruction] = set()
        self.codes: dict[tuple[str, int, str], types.CodeType] = {}
        self.arguments: dict[types.CodeType, dict[str, Any]] = {}
        """By function, the parameters that had the same constant in all calls, with its value."""
        self._left = MAX_EVENTS

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace what runs inside, unless somebody else does, or all code that was entered ran.

        Runs take twice as long while they are traced.
        """
        if sys.gettrace() is not None or self._left <= 0 or self._has_all():
            yield
            return
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    def _has_all(self) -> bool:
        """Return whether some functions were entered, and all of their code ran."""
        return bool(self.codes) and not find_unreached(self)

    def _enter(self, frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        file = code.co_filename
        if self._left <= 0 or file.startswith("<") or not is_project_file(file):
            return None
        known = self.codes.setdefault((file, code.co_firstlineno, code.co_name), code)
        given = {name: value for name, value in frame.f_locals.items() if _is_constant(value)}
        before = self.arguments.get(known, given)
        self.arguments[known] = dict(given.items() & before.items())
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: types.FrameType, event: str, _: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        self.steps.add((code.co_filename, code.co_firstlineno, frame.f_lasti))
        self._left -= 1
        if self._left <= 0:
            frame.f_trace_opcodes = False
            return None
        return self._step


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def find_unreached(tracer: Tracer, fixed: Iterable[str] = ()) -> list[UnreachedLine]:
    """Return what was not run of functions that were entered, in the order of their lines.

    `fixed` are names of the mechanism's parameters that no input changes.
    """
    ran = {file: _Ran() for file, _, _ in tracer.codes}
    steps: dict[tuple[str, int], set[int]] = {}
    for file, first, offset in tracer.steps:
        steps.setdefault((file, first), set()).add(offset)
    for (file, first, _), code in tracer.codes.items():
        ran[file].add(code, steps.get((file, first), set()))
    places: set[UnreachedLine] = set()
    for (file, first, name), code in list(tracer.codes.items())[:MAX_FUNCTIONS]:
        own = {*code.co_varnames, *code.co_cellvars} - {"self", "cls", "rng", *fixed}
        given = tracer.arguments.get(code, {})
        for function in _functions(file).get((first, name), ()):
            names = own - {n for n, value in _defaults(function) if (n, value) in given.items()}
            body = function.body if isinstance(function.body, list) else [function.body]
            for part in ran[file].find_missed(body, names):
                places.add(UnreachedLine(file, part.lineno, part.lineno not in ran[file].lines))
    whole = {(place.file, place.line) for place in places if place.whole}
    chosen = [p for p in places if p.whole or (p.file, p.line) not in whole]
    return sorted(chosen, key=lambda place: (place.file, place.line))


class _Ran:
    """The parts of a file's code that ran, by the places of their instructions."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self._spans: list[tuple[Any, ...]] = []

    def add(self, code: types.CodeType, offsets: set[int]) -> None:
        """Add the instructions of a function at these offsets."""
        for at, (line, last_line, column, last_column) in enumerate(code.co_positions()):
            if 2 * at in offsets and None not in (line, last_line, column, last_column):
                self.lines.add(line or 0)
                self._spans.append(((line, column), (last_line, last_column)))
        self._spans = sorted(set(self._spans))

    def _has(self, part: Any) -> bool:
        """Return whether an instruction of a statement or an expression ran."""
        start, end = (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)
        for low, high in self._spans[bisect_left(self._spans, (start,)) :]:
            if low >= end:
                break
            if high <= end:
                return True
        return not self._spans  # where Python keeps no places of instructions

    def find_missed(self, way: Sequence[Any], names: set[str]) -> Iterator[Any]:
        """Yield the first parts of code that did not run, of parts that follow each other.

        What depends on none of the `names` is left out, and so is what says nothing.
        """
        for part in way:
            if self._has(part):
                yield from self._missed_inside(part, names)
            elif not _says_nothing(part):
                yield part
                break

    def _missed_inside(self, node: ast.AST, names: set[str]) -> Iterator[Any]:
        if isinstance(node, _APART):
            return
        ways = _ways(node)
        inside = {id(part) for way in ways for part in way}
        for child in ast.iter_child_nodes(node):
            if id(child) not in inside:
                yield from self._missed_inside(child, names)
        if isinstance(node, ast.If | ast.IfExp) and not names & _names_in(node.test):
            return
        for way in ways:
            if not isinstance(way[-1], ast.Raise):
                yield from self.find_missed(way, names)


def _names_in(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _ways(node: Any) -> list[list[Any]]:
    """Return the lists of parts of a node that may run, or not."""
    if isinstance(node, ast.BoolOp):
        return [node.values[1:]]
    if isinstance(node, ast.Compare):
        return [node.comparators[1:]] if len(node.ops) > 1 else []
    fields = [value for name, value in ast.iter_fields(node) if name in _WAYS and value]
    return [value if isinstance(value, list) else [value] for value in fields]


def _says_nothing(part: ast.AST) -> bool:
    """Return whether a statement has no code, raises, or only tells people something."""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        called = part.value.func
        return getattr(called, "attr", getattr(called, "id", "")) in _TELLING
    is_docstring = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    return is_docstring or isinstance(part, _NO_ANSWER)


@lru_cache(maxsize=16)
def _functions(file: str) -> dict[tuple[int, str], list[Function]]:
    """Return the functions in a file by their first line and name; none without the source."""
    found: dict[tuple[int, str], list[Function]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, Function):
            decorators = getattr(node, "decorator_list", [])
            first = min(each.lineno for each in (node, *decorators))
            found.setdefault((first, getattr(node, "name", "<lambda>")), []).append(node)
    return found


def _defaults(function: Function) -> Iterator[tuple[str, Any]]:
    """Return the parameters of a function with a constant as their default, and its value."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    last = positional[len(positional) - len(args.defaults) :]
    for arg, default in (
        *zip(last, args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ):
        if isinstance(default, ast.Constant):
            yield arg.arg, default.value


def lines_in_words(places: Iterable[UnreachedLine]) -> str:
    """Return which lines never ran, and what to do: ``"a.py:31, a.py:47 never ran: ..."``."""
    places = list(places)
    whole = [place for place in places if place.whole]
    shown = ", ".join(str(place) for place in (whole or places)[:MAX_SHOWN])
    more = len(whole or places) - MAX_SHOWN
    others = f" and {plural(more, 'other line')}" if more > 0 else ""
    part = "" if whole else "a part of "
    return f"{part}{shown}{others} never ran: give inputs that reach this code"
