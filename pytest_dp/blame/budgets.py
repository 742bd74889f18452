"""Budgets written in a mechanism's code: numbers that are called epsilon or the like."""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
import types
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from pytest_dp.outputs.columns import as_float
from pytest_dp.search.constants import is_constant, reachable

_BUDGET = re.compile(r"(?:^|[^a-z])(eps|epsilon|rho|mu|budget|privacy|loss)(?:[^a-z]|$)", re.I)
"""Names of budgets, such as ``EPS_AGE``."""


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
    """Numbers that have a name in the source of a function."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if isinstance(parameter.default, int | float):
            yield parameter.name, as_float(parameter.default)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    decorators = [node.decorator_list for node in tree.body if isinstance(node, ast.FunctionDef)]
    claims = {inner for node in chain.from_iterable(decorators) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if node in claims:
            continue
        named: list[tuple[str | None, ast.expr | None]] = []
        if isinstance(node, ast.keyword):
            named = [(node.arg, node.value)]
        elif isinstance(node, ast.Assign):
            named = [(_name(target), node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            named = [(_name(node.target), node.value)]
        for name, value in named:
            if name and isinstance(value, ast.Constant) and type(value.value) in (int, float):
                yield name, as_float(value.value)


def _name(target: ast.expr) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None
