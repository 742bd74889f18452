"""Where a draw's scale and answer were set: candidates from the source, checked by values."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.runs import Leaf
from pytest_dp.blame.texts import format_number
from pytest_dp.blame.variables import returning, variables_with
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw
from pytest_dp.whose_code import is_project_file

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def origins(
    flow: Flow, draw: Draw, scale: float | None, answers: tuple[Leaf, Leaf] | None, place: str
) -> Iterator[Finding]:
    """Lines in which the scale of noise, and the answer that it is added to, were set.

    The scale is None if it is not known. `answers` are what the noise is added to, on D and on D',
    and `place` is that of the leaf that is their sum.
    """
    sites = [site for site in draw.stack if is_project_file(site.file)][:3]
    for line, name in deciding(sites[0]) if scale is None and sites else ():
        text = f"`{name}`, by which line {sites[0].line} decides, is set here"
        yield Finding("scale", line, text)
    if scale is not None and sites:
        yield from _scale(flow, sites[0], scale)
    if answers is not None:
        here, there = (format_number(a) if isinstance(a, float) else str(a) for a in answers)
        with_answers = {name for _, name in variables_with(flow, answers)}
        for line, name in _last_assignments(sites, _summands):
            if name in with_answers:
                text = (
                    f"`{name}`, {here} on D and {there} on D', is set here: {place} is this plus "
                    f"the noise of line {sites[0].line}"
                )
                yield Finding("answer", line, text)
                break
    for line in sites[1:2]:
        text = f"the noise of line {sites[0].line}, in {sites[0].function}, is asked for here"
        yield Finding("called", line, text)


def condition_of(line: Site) -> Site:
    """The line of the innermost condition that a line stands under; else the line itself."""
    function = _function(line.file, line.line)
    tests = [
        node.test.lineno
        for node in (ast.walk(function) if function else ())
        if isinstance(node, ast.If) and node.body[0].lineno <= line.line <= (node.end_lineno or 0)
    ]
    return replace(line, line=max(tests)) if tests else line


def deciding(line: Site) -> Iterator[tuple[Site, str]]:
    """Lines that set variables with which something is compared in a line, and their names."""
    yield from _last_assignments([line], _operands)


def _scale(flow: Flow, drawing: Site, scale: float) -> Iterator[Finding]:
    """The line that sets a variable to the scale, or else a line that returns it."""
    noise = f"the scale of the noise of line {drawing.line}"
    number = format_number(scale)
    candidates = list(deciding(drawing))
    with_scale = {name for _, name in variables_with(flow, (scale, scale))}
    for line, name in candidates:
        if name in with_scale:
            yield Finding("scale", line, f"`{name}`, {noise}, is set to {number} here")
            return
    if float(f"{scale:.2g}") != scale:  # else another function may return the same by chance
        for line in returning(flow, scale)[-1:]:
            yield Finding("scale", line, f"{noise} is computed here: {number}")


def _last_assignments(
    sites: list[Site], names_in: Callable[[_Function, int], list[str]]
) -> Iterator[tuple[Site, str]]:
    """The last line that sets a variable before each of some lines, and its name.

    `names_in` says which variables of a line are asked for.
    """
    for site in sites:
        function = _function(site.file, site.line)
        if function is None:
            continue
        end = max([site.line, *(node.lineno for node in _sums(function, site.line))])
        for name in names_in(function, site.line):
            lines = [line for line, assigned in _assignments(function) if assigned == name]
            before = [line for line in lines if line < end]
            if before:
                yield Site(site.file, max(before), site.function), name


def function_at(line: Site) -> str:
    """The name of the function that a line is in, also where it is in a comprehension."""
    function = _function(line.file, line.line) if line.function.startswith("<") else None
    return line.function if function is None else function.name


@lru_cache(maxsize=64)  # functions of one violation; beyond, files are parsed again
def _function(file: str, line: int) -> _Function | None:
    """The innermost function around a line, if the file can be parsed."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _Function) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _assignments(function: _Function) -> Iterator[tuple[int, str]]:
    """Lines that set variables, with their names."""
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            base = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(base, ast.Name):
                yield target.lineno, base.id


def _calls(inside: ast.AST, line: int) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(inside)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]


def _operands(function: _Function, line: int) -> list[str]:
    """Names that are arguments in a line, or that its draw is compared with."""
    operands: list[ast.expr] = []
    for call in _calls(function, line):
        operands += [*call.args, *(keyword.value for keyword in call.keywords)]
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and node.lineno <= line <= (node.end_lineno or 0):
            operands += [node.left, *node.comparators]
    return _names(operands)


def _summands(function: _Function, line: int) -> list[str]:
    """Names that are added to what is drawn in a line."""
    summands = (side for node in _sums(function, line) for side in (node.left, node.right))
    return _names(getattr(side, "value", side) for side in summands)  # of x[i], x


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    """The variables among the nodes, each once, in order."""
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def _sums(function: _Function, line: int) -> list[ast.BinOp]:
    """Sums of which a part is drawn in a line, or is a variable that is."""
    drawn = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or 0)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    sums = []
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            names = _names(ast.walk(node))
            if _calls(node, line) or drawn.intersection(names):
                sums.append(node)
    return sums
