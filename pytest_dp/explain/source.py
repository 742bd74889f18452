"""Source code of a mechanism: the functions that lines are in, and budgets by their names."""

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
from typing import Any

from pytest_dp.outputs.leaves import as_float
from pytest_dp.proposers.constants import may_be_constant, reachable
from pytest_dp.running.requests import Site

NAMES = ("id", "attr", "arg")
"""Attributes of variables, attributes and keywords in syntax that hold their names."""
_BUDGET = re.compile(r"(?:^|[^a-z])(eps|epsilon|rho|mu|budget|privacy|loss)(?:[^a-z]|$)", re.I)
"""Names of budgets, such as ``EPS_AGE``."""


def function_at(line: Site) -> str:
    """Return the name of the function that a line is in, also where it is in a comprehension."""
    if not line.function.startswith("<"):
        return line.function
    try:
        tree = ast.parse("".join(linecache.getlines(line.file)))
    except (SyntaxError, ValueError, RecursionError):
        return line.function
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line.line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else line.function


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
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef):
            definition.decorator_list = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.keyword) or not isinstance(
            node.value, ast.Constant
        ):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        if type(node.value.value) in (int, float):
            for target in targets:
                name = next(filter(None, (getattr(target, of, "") for of in NAMES)), "")
                yield name, as_float(node.value.value)
