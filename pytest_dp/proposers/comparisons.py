"""Distances of comparisons in the code from their other outcome.

The functions of a copy of the mechanism are compiled anew, so that each comparison records by how
far its operands miss its other outcome. A *way* is a comparison with one of its two outcomes.
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

RECORDER = "__pytest_dp_distance__"
"""Global name under which functions that are compiled anew find the `Distances`."""
LEAST = 1e-9
"""Distance of a comparison whose operands are equal, while its outcome is the other one."""

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
    """A record of how close runs came to each *way*: a comparison with one of its two outcomes."""

    def __init__(self) -> None:
        self.least: dict[Way, float] = {}
        """In the runs since this was emptied; 0 for a way that was taken."""
        self.has_comparisons = False
        """Whether any function was compiled anew."""

    def record_in(self, copy: Any, original: Any) -> None:
        """Compile the functions that a copy reaches anew, so that they record distances here.

        Functions that the copy shares with the original stay unchanged. Failures are noted.
        """
        shared = {id(function) for function in _functions(original)}
        for function in list(_functions(copy)):
            if id(function) not in shared:
                with noting_faults("compiling comparisons anew"):
                    self.has_comparisons |= _compile_anew(function, self)

    def __call__(self, kind: str, file: str, line: int, column: int, a: Any, b: Any) -> Any:
        """Record how far a comparison of `a` and `b` is from its other outcome; return its outcome.

        Raises whatever the comparison raises.
        """
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
            distance = _distance(a, b)
            if distance < self.least.get(missed, math.inf):
                self.least[missed] = max(distance, LEAST)
        return result


def _distance(a: Any, b: Any) -> float:
    """Return the least distance of two operands; infinity if they have none.

    Of numbers and arrays: the least absolute difference. Of texts: the letters that differ; of a
    text and a container, the least distance of its texts.
    """
    if isinstance(a, str):
        if isinstance(b, str):
            return float(sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)))
        if isinstance(b, list | tuple | set | frozenset | dict):
            return min((_distance(a, one) for one in b if isinstance(one, str)), default=math.inf)
        return math.inf
    try:
        with np.errstate(all="ignore"):
            least = np.abs(np.asarray(a, float) - np.asarray(b, float)).min()
    except Exception:  # as above
        return math.inf
    return float(least) if math.isfinite(least) else math.inf


class _Rewriter(ast.NodeTransformer):
    """Replaces comparisons of two operands by calls of the `Distances`."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return a call of the `Distances` in place of a comparison of two operands.

        Chained comparisons, `is` and `is not` stay comparisons. Comparisons inside the node are
        replaced in any case.
        """
        self.generic_visit(node)
        kind = type(node.ops[0]).__name__
        if len(node.ops) != 1 or kind not in _COMPARED:
            return node
        place = (kind, self._file, node.lineno, node.col_offset)
        arguments: list[ast.expr] = [ast.Constant(value) for value in place]
        arguments += [node.left, node.comparators[0]]
        call = ast.Call(ast.Name(RECORDER, ast.Load()), arguments, [])
        return ast.copy_location(call, node)


def _functions(root: Any) -> Iterable[types.FunctionType]:
    """Yield the functions of the project's code that an object reaches."""
    for value, _ in reach((root, "")):
        if type(value) is types.FunctionType and is_project_file(value.__code__.co_filename):
            yield value


def _compile_anew(function: types.FunctionType, distances: Distances) -> bool:
    """Change a function's code so that its comparisons record distances; return whether it could.

    False without source or comparisons, and if the new code has other names.
    """
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
    _strip_signature(definition)
    ast.increment_lineno(definition, code.co_firstlineno - 1)
    outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [_Rewriter(code.co_filename).visit(definition)]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & __future__.annotations.compiler_flag
    made = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    for _ in range(2):  # the outer function, and the one in it
        made = next(const for const in made.co_consts if type(const) is types.CodeType)
    same_names = {*made.co_names} - {RECORDER} == {
        *code.co_names
    }  # private ones of classes are others
    if not same_names or made.co_freevars != code.co_freevars:
        return False
    if made.co_varnames != code.co_varnames:
        return False
    function.__globals__[RECORDER] = distances
    function.__code__ = made
    return True


def _strip_signature(definition: ast.FunctionDef) -> None:
    """Remove decorators, defaults and annotations, which the function object holds already."""
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    arguments.defaults = []
    arguments.kw_defaults = [None for _ in arguments.kwonlyargs]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
