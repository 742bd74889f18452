"""Source code: which variables a line is about, where they were set, and budgets by their names."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import re
import textwrap
import types
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_dp.outputs.leaves import as_float
from pytest_dp.proposers.constants import may_be_constant, reachable
from pytest_dp.running.requests import Site

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUDGET = re.compile(r"(?:^|[^a-z])(eps|epsilon|rho|mu|budget|privacy|loss)(?:[^a-z]|$)", re.I)
"""Names of budgets, such as ``EPS_AGE``."""


def function_at(line: Site) -> str:
    """Return the name of the function that a line is in, also where it is in a comprehension."""
    function = _function(line.file, line.line) if line.function.startswith("<") else None
    return line.function if function is None else function.name


def condition_of(line: Site) -> Site:
    """Return the line of the innermost condition that a line stands under; else the line itself."""
    function = _function(line.file, line.line)
    tests = [
        node.test.lineno
        for node in (ast.walk(function) if function else ())
        if isinstance(node, ast.If) and node.body[0].lineno <= line.line <= (node.end_lineno or 0)
    ]
    return replace(line, line=max(tests)) if tests else line


@lru_cache(maxsize=64)  # functions of one violation; beyond, files are parsed again
def _function(file: str, line: int) -> _Function | None:
    """Return the innermost function around a line, if the file can be parsed."""
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


def _name(target: ast.expr) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None


def written_budget(mechanism: Any, params: dict[str, Any], claimed: float) -> float:
    """Return the sum of the numbers that are called ``eps``, ``EPS_AGE``, ``budget`` or the like.

    They are arguments of the mechanism, and variables, attributes and defaults that it can reach in
    the project. Where one of them is what is claimed, it is that; where there is none, 0.
    """
    numbers: dict[str, float] = {}
    for value, place in reachable(mechanism, params):
        if may_be_constant(value) and not isinstance(value, str):
            numbers[place.rpartition(" ")[2]] = as_float(value)
        elif type(value) is types.FunctionType:
            with suppress(OSError, TypeError, SyntaxError, ValueError):
                numbers = dict(_numbers_in_source(value)) | numbers
    budgets = [value for name, value in numbers.items() if _BUDGET.search(name) and value > 0]
    is_claimed = any(math.isclose(budget, claimed) for budget in budgets)
    return claimed if is_claimed else sum(budgets)


def _numbers_in_source(function: types.FunctionType) -> Iterator[tuple[str, float]]:
    """Yield numbers that have a name in the source of a function, but for those of its claims."""
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
