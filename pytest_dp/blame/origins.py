"""Where what stands in the line of a draw was set: read in the source, checked by values."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from pytest_dp.blame.families import number
from pytest_dp.blame.finding import Finding
from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import Leaf
from pytest_dp.blame.values import returning, variables_with
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw
from pytest_dp.search.reaching import is_project_file

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def origins(
    reach: Reach, draw: Draw, scale: float | None, answers: tuple[Leaf, Leaf] | None, place: str
) -> Iterator[Finding]:
    """Lines in which the scale of some noise, and what it is added to, were set.

    Parameters
    ----------
    reach : Reach
    draw : Draw
    scale : float or None
        Of the noise; None if it is not known.
    answers : tuple of two numbers, or None
        What the noise is added to, on D and on D'.
    place : str
        Of the leaf that this is.
    """
    sites = [site for site in draw.stack if is_project_file(site.file)][:3]
    for at, name in _set_before(sites[:1], _given) if scale is None else ():
        yield Finding("scale", at, f"`{name}`, by which line {sites[0].line} decides, is set here")
    if scale is not None:
        yield from _scale(reach, sites, scale)
    if answers is not None:
        one, other = (number(a) if isinstance(a, float) else str(a) for a in answers)
        having = {name for _, name in variables_with(reach, answers)}
        for at, name in _set_before(sites, _added):
            if name in having:
                text = f"`{name}`, {one} on D and {other} on D', is set here: {place} is this plus "
                yield Finding("answer", at, f"{text}the noise of line {sites[0].line}")
                break
    for at in sites[1:2]:
        text = f"the noise of line {sites[0].line}, in {sites[0].function}, is asked for here"
        yield Finding("called", at, text)


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
    yield from _set_before([line], _given)


def _scale(reach: Reach, sites: list[Site], scale: float) -> Iterator[Finding]:
    said = f"the scale of the noise of line {sites[0].line}" if sites else ""
    named = list(_set_before(sites[:1], _given))
    having = {name for _, name in variables_with(reach, (scale, scale))}
    for at, name in named:
        if name in having:
            yield Finding("scale", at, f"`{name}`, {said}, is set to {number(scale)} here")
            return
    if float(f"{scale:.2g}") != scale:  # else another function may return the same by chance
        for at in returning(reach, scale)[-1:]:
            yield Finding("scale", at, f"{said} is computed here: {number(scale)}")


def _set_before(sites: list[Site], wanted: object) -> Iterator[tuple[Site, str]]:
    """The line that sets a variable last before each of some lines, and its name."""
    for site in sites:
        function = _function(site.file, site.line)
        if function is None:
            continue
        for name in wanted(function, site.line):  # type: ignore[operator]
            lines = [line for line, given in _assigned(function) if given == name]
            before = [line for line in lines if line < _end(function, site.line)]
            if before:
                yield Site(site.file, max(before), site.function), name


def function_at(line: Site) -> str:
    """The name of the function that a line is in, also where it is in a comprehension."""
    function = _function(line.file, line.line) if line.function.startswith("<") else None
    return line.function if function is None else function.name


@lru_cache(maxsize=64)
def _function(file: str, line: int) -> _Function | None:
    """The innermost function around a line."""
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


def _assigned(function: _Function) -> Iterator[tuple[int, str]]:
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


def _end(function: _Function, line: int) -> int:
    """The last line of what is drawn in a line, or uses that by its name."""
    used: list[int] = [node.lineno for node in _sums(function, line)]
    return max([line, *used])


def _given(function: _Function, line: int) -> list[str]:
    """Names that are arguments in a line, or that its draw is compared with."""
    names = []
    for call in _calls(function, line):
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        names += [each.id for each in arguments if isinstance(each, ast.Name)]
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and node.lineno <= line <= (node.end_lineno or 0):
            sides = [node.left, *node.comparators]
            names += [each.id for each in sides if isinstance(each, ast.Name)]
    return list(dict.fromkeys(names))


def _added(function: _Function, line: int) -> list[str]:
    """Names that are added to what is drawn in a line."""
    names = []
    for node in _sums(function, line):
        sides = [getattr(each, "value", each) for each in (node.left, node.right)]  # of x[i], x
        names += [each.id for each in sides if isinstance(each, ast.Name)]
    return list(dict.fromkeys(names))


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
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if _calls(node, line) or names & drawn:
                sums.append(node)
    return sums
