"""Rooms that are optional: the kernel names none of them, and audits claims without them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2] / "pytest_dp"
KERNEL = ("auditors", "betting", "statistics", "privacy", "data", "pairs", "running")
OPTIONAL = ("methods", "known_losses", "explain", "proposers", "oracles", "black_boxes")
OPTIONAL += ("libraries", "report.html")
CLAIMS = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        if (name + ".").startswith("pytest_dp.{room}."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Gone())
import pytest_dp

def count(records, rng, scale):
    return len(records) + rng.laplace(scale=scale)

for scale in (0.25, 1.0):
    result = pytest_dp.audit(
        count,
        eps=1.0,
        neighbors="add_remove_one",
        inputs=[[1, 2, 3]],
        params={{"scale": scale}},
        max_samples=20_000,
        seed=1,
        n_jobs=1,
    )
    print(result.verdict, *result.notes, sep="; ")
"""


def imported_rooms(file: Path) -> set[str]:
    """Return the optional rooms that a module imports from, at its top or inside of functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    rooms = {f"pytest_dp.{room}" for room in OPTIONAL}
    return {room for room in rooms for name in found if f"{name}.".startswith(f"{room}.")}


@pytest.mark.slow
def test_the_kernel_names_no_optional_room():
    naming = {
        str(file.relative_to(HOUSE)): rooms
        for room in KERNEL
        for file in sorted((HOUSE / room).glob("*.py"))
        if (rooms := imported_rooms(file) - {"pytest_dp.report.html"})
    }
    assert not naming


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(OPTIONAL))
def test_claims_are_audited_without_a_room(room):
    code = CLAIMS.format(room=room)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    broken, kept = ran.stdout.splitlines()
    assert broken.startswith("violated")
    assert kept.startswith("no violation")
    if room in ("explain", "proposers", "oracles", "known_losses"):  # what is left out is said
        assert f"No module named 'pytest_dp.{room}" in broken
