"""Source code: which variables a line is about, where they were set, and budgets by their names."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import re
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_dp.outputs.leaves import as_float
from pytest_dp.randomness.requests import Site
from pytest_dp.search.constants import is_constant, reachable

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUDGET = re.compile(r"(?:^|[^a-z])(eps|epsilon|rho|mu|budget|privacy|loss)(?:[^a-z]|$)", re.I)
"""Names of budgets, such as ``EPS_AGE``."""


def function_at(line: Site) -> str:
    """The name of the function that a line is in, also where it is in a comprehension."""
    function = _function(line.file, line.line) if line.function.startswith("<") else None
    return line.function if function is None else function.name


def condition_of(line: Site) -> Site:
    """The line of the innermost condition that a line stands under; else the line itself."""
    function = _function(line.file, line.line)
    tests = [
        node.test.lineno
        for node in (ast.walk(function) if function else ())
        if isinstance(node, ast.If) and node.body[0].lineno <= line.line <= (node.end_lineno or 0)
    ]
    return replace(line, line=max(tests)) if tests else line


def part_of(line: Site, place: str) -> Site:
    """The line of the part that makes what stands at a place, in a statement over several lines.

    That is the entry of a dictionary, list or call that the statement returns, or that is returned
    by its name. Where it is computed otherwise, it is the line of the statement.
    """
    function = _function(line.file, line.line)
    nodes = list(ast.walk(function)) if function else []
    returned = _names(node.value for node in nodes if isinstance(node, ast.Return) and node.value)
    for node in nodes:
        if isinstance(node, ast.Return | ast.Assign) and node.value and _spans(node, line.line):
            is_output = isinstance(node, ast.Return) or set(_names(node.targets)) & set(returned)
            part = _inner(node.value, _labels(place)) if is_output else None
            return line if part is None else replace(line, line=part.lineno)
    return line


def _labels(place: str) -> list[Any]:
    """Return the keys, positions and attribute names that lead from the output to a place."""
    labels: list[Any] = []
    node: ast.expr = ast.parse(place, mode="eval").body
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Subscript):
            labels.append(node.slice.value if isinstance(node.slice, ast.Constant) else None)
        else:
            labels.append(node.attr)
        node = node.value
    return labels[::-1] if isinstance(node, ast.Name) else []


def _inner(made: ast.expr, labels: list[Any]) -> ast.expr | None:
    """The expression of what these labels lead to, as far as it is written out; None if not."""
    if not labels:
        return None
    part, label = None, labels[0]
    if isinstance(made, ast.Dict):
        pairs = zip(made.keys, made.values, strict=True)
        found = [
            value for key, value in pairs if isinstance(key, ast.Constant) and key.value == label
        ]
        part = found[-1] if found and None not in made.keys else None
    elif isinstance(made, ast.List | ast.Tuple) and isinstance(label, int):
        is_plain = not any(isinstance(element, ast.Starred) for element in made.elts)
        part = made.elts[label] if is_plain and label < len(made.elts) else None
    elif isinstance(made, ast.Call):  # of a class, or of what takes a list
        part = next((keyword.value for keyword in made.keywords if keyword.arg == label), None)
        if part is None and len(made.args) == 1 and not made.keywords:
            return _inner(made.args[0], labels)
    return None if part is None else _inner(part, labels[1:]) or part


def assignments_of_operands(line: Site) -> Iterator[tuple[Site, str]]:
    """Yield lines that set variables that a line compares with something, and their names.

    Arguments of calls in the line are among them.
    """
    return _last_assignments(line, _operands)


def assignments_of_summands(line: Site) -> Iterator[tuple[Site, str]]:
    """Yield lines that set variables to which the draw of a line is added, and their names."""
    return _last_assignments(line, _summands)


def _last_assignments(
    site: Site, names_in: Callable[[_Function, int], list[str]]
) -> Iterator[tuple[Site, str]]:
    """The last line that sets each of some variables before a line uses them, and its name."""
    function = _function(site.file, site.line)
    if function is None:
        return
    end = max([site.line, *(node.lineno for node in _sums(function, site.line))])
    for name in names_in(function, site.line):
        lines = [
            target.lineno
            for target, _ in _assignments(function)
            if _names([_base(target)]) == [name]
        ]
        before = [line for line in lines if line < end]
        if before:
            yield Site(site.file, max(before), site.function), name


@lru_cache(maxsize=64)  # functions of one violation; beyond, files are parsed again
def _function(file: str, line: int) -> _Function | None:
    """The innermost function around a line, if the file can be parsed."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    functions = (node for node in ast.walk(tree) if isinstance(node, _Function))
    around = [function for function in functions if _spans(function, line)]
    return max(around, key=lambda node: node.lineno, default=None)


def _spans(node: ast.expr | ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _assignments(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the targets of assignments, with the values assigned to them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target, node.value


def _base(target: ast.expr) -> ast.expr:
    """The x of ``x[i]``."""
    return target.value if isinstance(target, ast.Subscript) else target


def _name(target: ast.expr) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    """The variables among the nodes, each once, in order."""
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def _operands(function: _Function, line: int) -> list[str]:
    """Names that are arguments in a line, or that its draw is compared with."""
    operands: list[ast.expr] = []
    for call in _calls(function, line):
        operands += [*call.args, *(keyword.value for keyword in call.keywords)]
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and _spans(node, line):
            operands += [node.left, *node.comparators]
    return _names(operands)


def _calls(inside: ast.AST, line: int) -> list[ast.Call]:
    return [node for node in ast.walk(inside) if isinstance(node, ast.Call) and _spans(node, line)]


def _summands(function: _Function, line: int) -> list[str]:
    """Names that are added to what is drawn in a line."""
    return _names(_base(side) for node in _sums(function, line) for side in (node.left, node.right))


def _sums(function: _Function, line: int) -> list[ast.BinOp]:
    """Sums of which a part is drawn in a line, or is a variable that is."""
    assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
    drawn = {name for node in assigned if _spans(node, line) for name in _names(node.targets)}
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and (_calls(node, line) or drawn.intersection(_names(ast.walk(node))))
    ]


def written_budget(mechanism: Any, params: dict[str, Any], claimed: float) -> float:
    """The sum of the numbers that are called ``eps``, ``EPS_AGE``, ``budget`` or the like.

    They are arguments of the mechanism, and variables, attributes and defaults that it can reach in
    the project. Where one of them is what is claimed, it is that; where there is none, 0.
    """
    numbers: dict[str, float] = {}
    for value, place in reachable(mechanism, params):
        if is_constant(value) and not isinstance(value, str):
            numbers[place.rpartition(" ")[2]] = as_float(value)
        elif type(value) is types.FunctionType:
            with suppress(OSError, TypeError, SyntaxError, ValueError):
                numbers = dict(_numbers_in_source(value)) | numbers
    budgets = [value for name, value in numbers.items() if _BUDGET.search(name) and value > 0]
    is_claimed = any(math.isclose(budget, claimed) for budget in budgets)
    return claimed if is_claimed else sum(budgets)


def _numbers_in_source(function: types.FunctionType) -> Iterator[tuple[str, float]]:
    """Numbers that have a name in the source of a function, but for those of its claims."""
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, int | float):
            yield parameter.name, as_float(parameter.default)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    named = [(_name(target), value) for target, value in _assignments(tree)]
    named += [(node.arg, node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    for name, number in named:
        if name and isinstance(number, ast.Constant) and type(number.value) in (int, float):
            yield name, as_float(number.value)
