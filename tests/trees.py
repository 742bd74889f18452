"""The code of the package as syntax trees, parsed once for all tests that read it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

HOUSE = Path(__file__).parents[1] / "pytest_dp"


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the tree of each module, by its path in the package."""
    files = sorted(HOUSE.rglob("*.py"))
    return {file.relative_to(HOUSE): ast.parse(file.read_text("utf-8")) for file in files}
