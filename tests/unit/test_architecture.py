"""docs/architecture.md is the house as it stands: its rooms, and the one direction of imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from trees import HOUSE, trees

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
ROOMS = re.findall(r"^\| `([\w.]+)/?` \|", PAGE, re.MULTILINE)


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    return {name_of(HOUSE / file): tree for file, tree in trees().items()}


def imported(tree: ast.Module) -> set[str]:
    """What a module imports of the package: at its top, inside of functions, or for types only."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules() else str(node.module))
    return found & modules().keys()


@cache
def imports() -> dict[str, set[str]]:
    return {n: imported(tree) - {n} for n, tree in modules().items() if n != "pytest_dp"}


def room_of(module: str) -> str:
    return module.split(".")[1]


def test_every_room_has_its_line():
    files = {file.name for file in HOUSE.glob("*.py")} - {"__init__.py"}
    folders = {file.parent.name for file in HOUSE.glob("*/__init__.py")}
    assert sorted(ROOMS) == sorted(files | folders)


def test_no_module_is_long():
    assert not {
        file.name for file in HOUSE.rglob("*.py") if len(file.read_text().split("\n")) > 401
    }


def test_rooms_know_only_those_below():
    order = [room.removesuffix(".py") for room in ROOMS]
    upwards = {
        f"{module} -> {other}"
        for module, others in imports().items()
        for other in others - {"pytest_dp"}
        if order.index(room_of(other)) < order.index(room_of(module))
    }
    assert not upwards


def test_names_that_the_page_gives_exist():
    for dotted in re.findall(r"`((?:\w+\.)+\w+)(?:\(.*?\))?`", PAGE.split("## An audit")[1]):
        if dotted.endswith(".py"):
            continue
        *path, last = dotted.split(".")
        tree = modules().get(".".join(["pytest_dp", *path]))
        assert tree is not None, dotted
        named = {getattr(node, "name", None) for node in tree.body}
        named |= {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        assert last in named or ".".join(["pytest_dp", *path, last]) in modules(), dotted
    for path in re.findall(r"`([\w/]+\.py)`", PAGE.split("## An audit")[1]):
        assert (HOUSE / path).is_file(), path


def test_only_public_modules_of_hypothesis_are_imported():
    private = re.compile(r"hypothesis\.(internal|control|_(?!_)|strategies\._)")
    names = set()
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert not {name for name in names if private.match(name)}


def test_only_the_budget_holds_shares_of_alpha():
    spent = {
        name
        for name, tree in modules().items()
        if name.startswith("pytest_dp.auditors.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id in SHARES_OF_ALPHA
    }
    assert spent == {"pytest_dp.auditors.budget"}


SHARES_OF_ALPHA = {"COUPLED_SHARE", "SHARE_OF_FEW"}


KERNEL = ("auditors", "betting", "statistics")
CLOCKS = {"Deadline", "Stopwatch", "within", "compute_interruptibly"}
"""Calls that begin to count time, or end with it."""
READINGS = {
    "effort_seconds",
    "remaining",
    "remaining_times",
    "with_reserve",
    "seconds_to_interrupt",
}
READINGS |= {"seconds_a_run", "time_a_run", "quickest_run", "process_seconds", "perf_counter"}


def clock_readings(tree: ast.Module) -> set[str]:
    """Return what a module asks of clocks."""
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return (called & CLOCKS) | (asked & READINGS)


def test_only_the_budget_reads_clocks_in_the_kernel():
    reading = {
        name: readings
        for name, tree in modules().items()
        if name.split(".")[1:2] and room_of(name) in KERNEL
        if (readings := clock_readings(tree))
    }
    assert reading.keys() == {"pytest_dp.auditors.budget"}


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
def test_workers_do_without_scipy():
    """Eight of them start at once for a slow mechanism, on two cores perhaps."""
    code = (
        "import sys, pytest_dp.running.workers, pytest_dp.betting.detector\n"
        "print(*(name for name in ('scipy', 'pytest', 'hypothesis') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
