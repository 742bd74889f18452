"""A number that a module chooses says what it is for, and what gets worse if it is changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "pytest_dp"
LIMITS = HOUSE / "limits.py"
TO_DO = {"statistics"}
"""Rooms whose numbers are not all in the list yet."""
MODULES = sorted(
    name
    for name in (str(file.relative_to(HOUSE).with_suffix("")) for file in HOUSE.rglob("*.py"))
    if name != "limits" and name.split("/")[0] not in TO_DO
)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr, str]]:
    """The names that a module assigns, each with its value, and the remark below."""
    for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            remark = ast.get_docstring(ast.Module([after], [])) or ""
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for part, value in zip(target.elts, node.value.elts, strict=True):
                    yield ast.unparse(part), value, remark
            else:
                yield ast.unparse(target), node.value, remark


def is_bare(value: ast.expr) -> bool:
    """Whether a value is made of nothing but numbers, such as ``np.arange(1, 7) / 6``."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    leaves = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    numbers = [leaf for leaf in leaves if isinstance(leaf, int | float) and leaf not in (0, 1)]
    others = [leaf for leaf in leaves if isinstance(leaf, str)]
    return bool(numbers) and not others and names <= {"np"}


LISTED = [name for name, *_ in constants(tree_of(LIMITS))]


def test_a_constant_says_what_it_is_for():
    assert not [
        f"{module}: {name}"
        for module in MODULES
        for name, value, remark in constants(tree_of(HOUSE / f"{module}.py"))
        if is_bare(value) and not remark
    ]


def test_the_list_is_short():
    assert len(LISTED) <= 100


def test_each_is_used():
    used = {
        alias.name
        for file in HOUSE.rglob("*.py")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ImportFrom) and node.module == "pytest_dp.limits"
        for alias in node.names
    }
    assert sorted(used) == sorted(LISTED)
