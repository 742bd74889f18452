"""A number that a module chooses says what it is for, and what gets worse if it is changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from trees import trees


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
        for module, tree in trees().items()
        for name, value, remark in constants(tree)
        if is_bare(value) and not remark
    ]


@pytest.mark.slow
def test_no_number_is_shared_by_purposes_that_have_nothing_in_common():
    """A name for a size, such as FEW, says nothing of what is limited."""
    sizes = {"FEW", "SEVERAL", "DOZENS", "MANY", "HUNDREDS", "THOUSAND", "MILLION", "ENOUGH"}
    assert not [
        f"{module}: {name}"
        for module, tree in trees().items()
        for name, *_ in constants(tree)
        if name in sizes
    ]
