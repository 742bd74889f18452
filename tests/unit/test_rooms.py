"""Rooms that are optional: the kernel names none of them, and audits claims without them."""

from __future__ import annotations

import re
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


@pytest.mark.slow
def test_the_kernel_names_no_optional_room():
    """Neither at the top of a module nor inside of a function."""
    names = "|".join(OPTIONAL[:-1])
    naming = re.compile(rf"(from|import) pytest_dp(\.| import )({names})\b")
    files = [file for room in KERNEL for file in (HOUSE / room).glob("*.py")]
    assert len(files) > 50
    assert not [file for file in files if naming.search(file.read_text())]


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
