"""Code of a mechanism that no input reached which was tried.

Left out is what only handles exceptions, or ends in ``raise``, and what a test on parameters and
constants alone decides: no input reaches that. A parameter counts as a constant where no call gave
another value than its default.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_dp.basics.whose_code import is_project_file

MAX_EVENTS = 300_000
"""Instructions that are traced. More see what rare runs reach in long loops, and make runs that
loop slower."""
MAX_FUNCTIONS = 50
"""Functions of which unreached code is looked for."""
MAX_SHOWN = 4
"""Lines that are named. Longer lists hide the first."""

Step = tuple[str, int, int]
"""File, first line and offset of an instruction: equal for copies of a function."""
_ENDS = frozenset(["RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"])
_GOES_ELSEWHERE = frozenset(
    ["JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "JUMP"]
)
_SAYS_NOTHING = frozenset(
    ["NOP", "RESUME", "CACHE", "EXTENDED_ARG", "POP_TOP", "END_FOR", "COPY", "SWAP"]
).union(["JUMP_FORWARD", "JUMP_BACKWARD"])
"""Instructions that compilers add by themselves: a piece of only these is no code of anybody's."""

_TELLING = frozenset(
    ["debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "exit"]
)
"""Names of functions whose statements give no answer: of logging, warnings and consoles."""
_RETURNS_NONE = (["LOAD_CONST", "RETURN_VALUE"], ["RETURN_CONST"])
"""What stands at the end of a function without ``return``."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code that was not run, or not all of it."""

    file: str
    line: int
    whole: bool

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class Tracer:
    """Records the instructions of the project's functions that are run inside `tracing`."""

    def __init__(self) -> None:
        self.steps: set[Step] = set()
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
        return bool(self.codes) and not unreached(self)

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


def unreached(tracer: Tracer, fixed: Iterable[str] = ()) -> list[Place]:
    """Return what was not run of functions that were entered, in the order of their lines.

    `fixed` are names of the mechanism's parameters that no input changes.
    """
    places: set[Place] = set()
    for code in list(tracer.codes.values())[:MAX_FUNCTIONS]:
        given = tracer.arguments.get(code, {})
        places |= set(_of_code(code, tracer.steps, frozenset(fixed), given))
    whole = {(place.file, place.line) for place in places if place.whole}
    chosen = [p for p in places if p.whole or (p.file, p.line) not in whole]
    return sorted(chosen, key=lambda place: (place.file, place.line))


def _of_code(
    code: types.CodeType, steps: set[Step], fixed: frozenset[str], given: dict[str, Any]
) -> Iterator[Place]:
    blocks = _blocks(code)
    whose = (code.co_filename, code.co_firstlineno)
    done = {offset for file, first, offset in steps if (file, first) == whose}
    ran_lines = {_line(step) for block in blocks for step in block if step.offset in done}
    spans = _left_out(code, fixed, given)
    for block in blocks:
        if any(step.offset in done for step in block):
            continue
        if [step.opname for step in block] in _RETURNS_NONE and block[0].argval is None:
            continue
        own = (s for s in block if s.opname not in _SAYS_NOTHING or _line(s) not in ran_lines)
        told = (s for s in own if not any(low <= _spot(s) <= high for low, high in spans))
        for line in islice(map(_line, told), 1):
            if line:
                yield Place(code.co_filename, line, line not in ran_lines)


def _line(step: dis.Instruction) -> int:
    return (step.positions.lineno if step.positions else None) or 0


def _spot(step: dis.Instruction) -> tuple[int, int]:
    positions = step.positions
    return ((positions.lineno or 0), (positions.col_offset or 0)) if positions else (0, 0)


def _blocks(code: types.CodeType) -> list[list[dis.Instruction]]:
    """Return the straight pieces that the code may run through on its way to a return."""
    steps = list(dis.get_instructions(code))
    at = {step.offset: number for number, step in enumerate(steps)}
    after: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        following = []
        if step.opname not in _ENDS | _GOES_ELSEWHERE and number + 1 < len(steps):
            following.append(number + 1)
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            following.append(at.get(step.argval, number))
        after[number] = following
    reached = _closure({0}, after)
    before: dict[int, list[int]] = {}
    for number, following in after.items():
        for other in following:
            before.setdefault(other, []).append(number)
    returns = {n for n, step in enumerate(steps) if step.opname.startswith(("RETURN", "YIELD"))}
    useful = sorted(reached & _closure(returns, before))
    leaders = {0}
    for number in reached:
        if len(after[number]) > 1 or steps[number].opname in _GOES_ELSEWHERE:
            leaders |= set(after[number])
    blocks: list[list[dis.Instruction]] = []
    last = -2
    for number in useful:
        if number in leaders or number != last + 1 or not blocks:
            blocks.append([])
        blocks[-1].append(steps[number])
        last = number
    return blocks


def _closure(start: set[int], edges: dict[int, list[int]]) -> set[int]:
    reached, ahead = set(start), list(start)
    while ahead:
        for other in edges.get(ahead.pop(), ()):
            if other not in reached:
                reached.add(other)
                ahead.append(other)
    return reached


Span = tuple[tuple[int, int], tuple[int, int]]
"""First and last place, each a line and a column."""


def _left_out(code: types.CodeType, fixed: frozenset[str], given: dict[str, Any]) -> list[Span]:
    """Return the parts of a function that no input is asked to reach.

    They stand behind tests in which no variable of it stands, or log, warn, print or exit.
    """
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return []
    indent = len(lines[0]) - len(lines[0].lstrip())
    own = {*code.co_varnames, *code.co_cellvars} - {"self", "cls", "rng"} - fixed
    own -= {name for name, value in _defaults(tree) if name in given and given[name] == value}
    spans: list[Span] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if getattr(called, "attr", getattr(called, "id", "")) in _TELLING:
                spans += _spans([node], first - 1, indent)
        if isinstance(node, ast.If | ast.IfExp):
            names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
            if not names & own:
                ways = [node.body, node.orelse]
                spans += [span for way in ways for span in _spans(way, first - 1, indent)]
    return spans


def _defaults(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Return the parameters of the function with a constant as their default, and its value."""
    function = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    last = positional[len(positional) - len(args.defaults) :]
    for arg, default in (
        *zip(last, args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ):
        if isinstance(default, ast.Constant):
            yield arg.arg, default.value


def _spans(way: Any, line: int, column: int) -> Iterator[Span]:
    for node in way if isinstance(way, list) else [way]:
        low = node.lineno + line, node.col_offset + column
        yield low, (node.end_lineno + line, node.end_col_offset + column)


def in_words(places: Iterable[Place]) -> str:
    """Return which lines never ran, as part of a sentence: ``"lines 31 and 47 never ran"``."""
    places = list(places)
    places = [place for place in places if place.whole] or places
    files = {place.file for place in places}
    shown = [str(place) if len(files) > 1 else str(place.line) for place in places[:MAX_SHOWN]]
    more = len(places) - len(shown)
    if more:
        shown.append(f"{more} more")
    listed = ", ".join(shown[:-1]) + f" and {shown[-1]}" if len(shown) > 1 else shown[0]
    lines = "lines" if len(places) > 1 else "line"
    where = "" if len(files) > 1 else f" of {Path(places[0].file).name}"
    part = "" if any(place.whole for place in places) else "a part of "
    return f"{part}{lines} {listed}{where} never ran"
