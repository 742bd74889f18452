"""How far each comparison of a mechanism was from its other way, in units of what it compares.

The functions of a copy are compiled anew, so that a comparison tells its operands. Where a run
takes one way of ``total > 100`` only, the distance says which inputs come closer to the other.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import math
import operator
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pytest_dp.basics.errors import noting_faults
from pytest_dp.basics.reach import reach
from pytest_dp.basics.whose_code import is_project_file

NAME = "__pytest_dp_distance__"
"""Name under which compiled code finds what takes operands."""
LEAST = 1e-9
"""Distance of a comparison whose operands are as close as can be, while it goes the other way."""

Way = tuple[str, int, int, bool]
"""File, line, column and outcome of a comparison."""

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class Distances:
    """Takes the operands of comparisons, and keeps the least distance of each way."""

    def __init__(self) -> None:
        self.least: dict[Way, float] = {}
        """In the runs since this was emptied; 0 for a way that was taken."""

    def __call__(self, kind: str, file: str, line: int, column: int, a: Any, b: Any) -> Any:
        """Return what the comparison gives."""
        result = _COMPARED[kind](a, b)
        try:
            held = np.asarray(result, bool)
            taken = {bool(held.any()), bool(held.all())}
        except Exception:  # operands are the user's objects: anything may happen in them
            return result
        for way in taken:
            self.least[file, line, column, way] = 0.0
        if len(taken) == 1:
            missed = file, line, column, not taken.pop()
            apart = _apart(a, b)
            if apart < self.least.get(missed, math.inf):
                self.least[missed] = max(apart, LEAST)
        return result


def _apart(a: Any, b: Any) -> float:
    """Return how far two operands are apart; infinite where that is no number."""
    if isinstance(a, str):
        if isinstance(b, str):
            return float(sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)))
        if isinstance(b, list | tuple | set | frozenset | dict):
            return min((_apart(a, one) for one in b if isinstance(one, str)), default=math.inf)
        return math.inf
    try:
        with np.errstate(all="ignore"):
            least = np.abs(np.asarray(a, float) - np.asarray(b, float)).min()
    except Exception:  # as above
        return math.inf
    return float(least) if math.isfinite(least) else math.inf


class _Rewriter(ast.NodeTransformer):
    """Replaces comparisons of two operands by calls."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        kind = type(node.ops[0]).__name__
        if len(node.ops) != 1 or kind not in _COMPARED:
            return node
        said = (kind, self._file, node.lineno, node.col_offset)
        arguments: list[ast.expr] = [ast.Constant(value) for value in said]
        arguments += [node.left, node.comparators[0]]
        call = ast.Call(ast.Name(NAME, ast.Load()), arguments, [])
        return ast.copy_location(call, node)


def tell_distances(copy: Any, original: Any, distances: Distances) -> bool:
    """Let the functions that a copy reaches tell their distances; return whether any does.

    Functions that the copy shares with the original stay as they are.
    """
    shared = {id(function) for function in _functions(original)}
    found = False
    for function in list(_functions(copy)):
        if id(function) in shared:
            continue
        with noting_faults("compiling comparisons anew"):
            found |= _rewritten(function, distances)
    return found


def _functions(root: Any) -> Iterable[types.FunctionType]:
    for value, _ in reach((root, "")):
        if type(value) is types.FunctionType and is_project_file(value.__code__.co_filename):
            yield value


def _rewritten(function: types.FunctionType, distances: Distances) -> bool:
    """Compile a function anew, if its source is there and has comparisons."""
    code = function.__code__
    try:
        lines, _ = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return False
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return False
    if not any(isinstance(node, ast.Compare) for node in ast.walk(definition)):
        return False
    _strip(definition)
    ast.increment_lineno(definition, code.co_firstlineno - 1)
    outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [_Rewriter(code.co_filename).visit(definition)]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & __future__.annotations.compiler_flag
    made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    for _ in range(2):  # the outer function, and the one in it
        made = next(const for const in made.co_consts if type(const) is types.CodeType)
    same_names = {*made.co_names} - {NAME} == {*code.co_names}  # private ones of classes are others
    if not same_names or made.co_freevars != code.co_freevars:
        return False
    if made.co_varnames != code.co_varnames:
        return False
    function.__globals__[NAME] = distances
    function.__code__ = made
    return True


def _strip(definition: ast.FunctionDef) -> None:
    """Take away what a function has beside its code."""
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    arguments.defaults = []
    arguments.kw_defaults = [None for _ in arguments.kwonlyargs]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
