"""Claims audited with DP-Sniper: what a failure and the table say."""

from __future__ import annotations

import re

import pytest
from projects import laplace

pytestmark = pytest.mark.slow


def failure(result) -> list[str]:
    """The lines of the failure."""
    return [line for line in result.outlines if line.startswith("E ")]


def claim(more: str = "") -> str:
    return f'eps=1.0, pairs=[([1], [])], vectorized="size", max_samples=20_000{more}'


def test_a_broken_claim_shows_its_counterexample(project):
    project.write("test_a.py", laplace("broken", 0.2, claim(", method='dpsniper'")))
    result = project.run()
    result.assert_outcomes(failed=1)
    text = "\n".join(failure(result))
    assert re.search(r"PrivacyViolation: claimed eps = 1\.0, but eps >= [34]\.\d+ ", text)
    assert re.search(r"^E +D += \[1?\]$", text, re.MULTILINE)
    assert re.search(r"^E +D' += \[1?\]$", text, re.MULTILINE)
    assert re.search(r"^E +S += \{.*output.*\}$", text, re.MULTILINE)
    for side in (r"D\) ", r"D'\)"):
        assert re.search(rf"Pr\[M\({side} in S\] +[\d,]+/[\d,]+ = [\d.]+ +at (least|most)", text)
    assert re.search(r"DP-Sniper bound [2-5]\.\d+", text)
    [row] = next(iter(project.rows(result).values()))
    assert row["status"] == "violated"
    assert row["samples"] <= 20_000 * 1.15
    assert row["lower"] > 3
    assert all(len(line) <= 80 for line in failure(result))


def test_verbose_shows_the_strongest_attack(project):
    project.write("test_a.py", laplace("good", 1.0, claim(", method='dpsniper'")))
    result = project.run("-v")
    result.assert_outcomes(passed=1)
    [line] = [line for line in result.outlines if line.startswith("  strongest ")]
    assert "output" in line
    shown = " ".join(result.stdout.str().split())
    assert re.search(r"[\d,]+ of [\d,]+ against [\d,]+ of [\d,]+, a loss of [\d.]+ to", shown)
