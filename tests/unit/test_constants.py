"""A number that a module chooses says what it is for, and what gets worse if it is changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "pytest_dp"
MODULES = sorted(str(file.relative_to(HOUSE).with_suffix("")) for file in HOUSE.rglob("*.py"))


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


@pytest.mark.slow
def test_a_constant_says_what_it_is_for():
    assert not [
        f"{module}: {name}"
        for module in MODULES
        for name, value, remark in constants(tree_of(HOUSE / f"{module}.py"))
        if is_bare(value) and not remark
    ]


@pytest.mark.slow
def test_no_number_is_shared_by_purposes_that_have_nothing_in_common():
    """A name for a size, such as FEW, says nothing of what is limited."""
    sizes = {"FEW", "SEVERAL", "DOZENS", "MANY", "HUNDREDS", "THOUSAND", "MILLION", "ENOUGH"}
    assert not [
        f"{module}: {name}"
        for module in MODULES
        for name, *_ in constants(tree_of(HOUSE / f"{module}.py"))
        if name in sizes
    ]
