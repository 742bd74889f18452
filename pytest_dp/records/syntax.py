"""Syntax trees of code: without what makes no difference, and with what they import."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import linecache
import os
import re
import symtable
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import resolve_name
from typing import Any

from pytest_dp.sampling.streams import definition_of

_READS_LOCALS = {"locals", "vars", "dir", "eval", "exec", "query"}
_LOADS = {
    *("SourceFileLoader", "exec_module", "load_module", "run_module", "run_path"),
    "spec_from_file_location",
}
"""Functions that run code of a file which no import names."""
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def digest(text: str) -> str:
    """A short stand-in for a text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def source_digest(function: Any) -> str:
    """A digest of what a function itself does.

    Its name, its claims and marks, its docstring, comments and formatting play no part: it stays
    the same when the function is renamed or moved, or when its claim is changed.
    """
    inner = definition_of(function)
    return digest_of(getattr(inner, "__code__", None) or inner, local=True)


@functools.lru_cache(4096)
def digest_of(code: Any, *, local: bool = False) -> str:
    """Of a code object, or of a class; with the names of locals if `local`."""
    compiled = inside(code) if hasattr(code, "co_consts") else getattr(code, "__qualname__", "")
    try:
        source = source_of(code)
    except (OSError, TypeError):
        return digest(compiled)
    try:
        source = normalised(ast.parse(source), named=False, local=local)
    except SyntaxError:  # such as of a lambda within a call
        source = "".join(source.split())
    several = getattr(code, "co_name", "") == "<lambda>" and source.count("lambda") > 1
    return digest(source + compiled * several)


def source_of(code: Any) -> str:
    """The source of compiled code, or of a class; raises OSError or TypeError if there is none."""
    file = getattr(code, "co_filename", None)
    if file is not None and not linecache.getlines(file):
        raise OSError(file)  # `inspect` would look through all modules for it
    return textwrap.dedent(inspect.getsource(code))


def inside(code: types.CodeType) -> str:
    """Names and constants of code without source, or of functions that share a line.

    Not its instructions, which are others in each version of Python.
    """
    constants = [
        inside(part) if isinstance(part, types.CodeType) else _constant(part)
        for part in code.co_consts
    ]
    return repr((code.co_names, code.co_varnames, constants))


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


def loads(tree: ast.AST) -> list[str]:
    """What a module uses to run code of files that it does not import: nobody can follow that."""
    named = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    looked_up = {ast.unparse(n.value) for n in ast.walk(tree) if isinstance(n, ast.Subscript)}
    return sorted((named | imported) & _LOADS | (looked_up & {"sys.modules"}))


def normalised(tree: ast.Module, *, named: bool = True, local: bool = False) -> str:
    """Source without comments, formatting, docstrings, claims and marks.

    Nor with the name of what it defines unless it is `named`, nor with names of locals unless
    `local`.
    """
    reads_docstrings = any(getattr(n, "attr", "") == "__doc__" for n in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            node.decorator_list = [d for d in node.decorator_list if not _says(d)]
        if isinstance(node, _DEFINITIONS | ast.Module) and not reads_docstrings:
            is_documented = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[is_documented:] or [ast.Pass()]
    if not named and isinstance(tree.body[0], _DEFINITIONS):
        tree.body[0].name = "_"
    if not local:
        _rename_locals(tree.body)
    return ast.unparse(tree)


def _says(decorator: ast.expr) -> bool:
    """Whether a decorator only says something of a function: a claim, or a mark."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    path = ast.unparse(called).split(".")
    return path[-1] in ("dp_claim", "risk_claim") or "mark" in path[:-1]


def _rename_locals(statements: Iterable[ast.stmt]) -> None:
    """Give the locals of each function names by their order, as none of Python's can be."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            _rename_locals(statement.body)
            continue
        local = _only_local(statement)
        order: dict[str, str] = {}
        for node in ast.walk(statement) if local else ():
            for field in ("id", "name", "rest", "asname", "names"):
                given = getattr(node, field, None)
                if isinstance(node, ast.alias):
                    given = (node.asname or node.name) if field == "asname" else None
                if isinstance(given, str) and given in local:
                    setattr(node, field, order.setdefault(given, f"·{len(order)}"))
                elif isinstance(node, ast.Nonlocal) and isinstance(given, list):
                    node.names = [order.setdefault(n, f"·{len(order)}") for n in node.names]


def _only_local(statement: ast.stmt) -> set[str]:
    """The names that are locals of functions wherever they occur in a statement."""
    try:
        tables = [symtable.symtable(ast.unparse(statement), "", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        return set()
    local: set[str] = set()
    called = {getattr(node, "attr", "") for node in ast.walk(statement)}
    others = {"__class__"} | (called & _READS_LOCALS)
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            inside = table.get_type() == "function" and not symbol.is_parameter()
            is_local = inside and (symbol.is_local() or symbol.is_free())
            (local if is_local else others).add(symbol.get_name())
    return set() if others & _READS_LOCALS else local - others


def imports(tree: ast.AST, space: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Names of modules that code imports, or may import; and whether only when it is run."""
    package = str(space.get("__package__") or "")
    if not package:
        name = str(space.get("__name__") or "")
        package = name if "__path__" in space else name.rpartition(".")[0]
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    late = {
        id(inner)
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for inner in ast.walk(function)
    }
    by_name = [
        {id(argument) for argument in node.args}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("import_module", "__import__"))
    ]
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*above, node.module] if node.level else [node.module]
            base = ".".join(part for part in parts if part)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and by_name:
            given = any(id(node) in arguments for arguments in by_name)
            is_path = given or "." in node.value
            is_path = is_path and re.fullmatch(r"\.*\w+(\.\w+)*", node.value) is not None
            names = [_absolute(node.value, package)] if is_path else []
        for name in names:
            yield name, id(node) in late or isinstance(node, ast.Constant)


def _absolute(name: str, package: str) -> str:
    try:
        return resolve_name(name, package) if name.startswith(".") else name
    except ImportError:
        return name


def environment(tree: ast.AST, source: str) -> Iterator[str]:
    """Variables of the environment that code reads by their names."""
    if "environ" in source or "getenv" in source:
        for node in ast.walk(tree):
            name = node.value if isinstance(node, ast.Constant) else None
            if (
                isinstance(name, str)
                and not name.startswith(("PYTEST", "_"))
                and name in os.environ
            ):
                yield f"{name}={os.environ[name]}"
