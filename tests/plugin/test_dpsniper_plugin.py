"""Claims audited with DP-Sniper: what a failure and the table say."""

from __future__ import annotations

import re

import pytest
from projects import laplace

pytestmark = pytest.mark.slow

SPREAD = """
@dp_claim(eps=0.9, method="dpsniper", pairs=[([1], [])], vectorized="size", max_samples=60_000)
def spread(records, rng, size):
    return 0.3 * len(records) + rng.laplace(size=(size, 40))
"""


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
    assert row["samples"] <= 20_200
    assert row["lower"] > 3
    assert all(len(line) <= 80 for line in failure(result))


@pytest.mark.nightly
def test_an_attack_is_shown_with_examples(project):
    project.write("test_a.py", SPREAD)
    result = project.run()
    result.assert_outcomes(failed=1)
    text = "\n".join(failure(result))
    assert "claimed eps = 0.9, but eps >= " in text
    assert "score(output) > " in text or "A learned attack on the same pair" in text
    assert "DP-Sniper bound" in text
    assert "Traceback" not in result.stdout.str()


def test_verbose_shows_the_strongest_attack(project):
    project.write("test_a.py", laplace("good", 1.0, claim(", method='dpsniper'")))
    result = project.run("-v")
    result.assert_outcomes(passed=1)
    [line] = [line for line in result.outlines if line.startswith("  strongest ")]
    assert "output" in line
    shown = " ".join(result.stdout.str().split())
    assert re.search(r"[\d,]+ of [\d,]+ against [\d,]+ of [\d,]+, a loss of [\d.]+ to", shown)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("method=DPSniper(classifier='boosted')", "Valid choices: 'additive', 'logistic', 'mlp'"),
        ("method=DPSniper(classifier=object())", "It has no fit and no predict_proba"),
        ("method=DPSniper(c=1.5)", "Invalid c=1.5"),
        ("features=3", "Invalid features=3"),
    ],
)
def test_bad_keywords_are_errors_before_anything_is_sampled(project, more, said):
    project.write(
        "test_a.py",
        f"""
        from pathlib import Path

        @dp_claim({claim()}, {more})
        def noisy(records, rng, size):
            Path("called").touch()
            return len(records) + rng.laplace(size=size)
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    assert said in " ".join(result.stdout.str().split())
    assert "ClaimError" in result.stdout.str()
    [[row]] = project.rows(result).values()
    assert row["status"] == "error"
    assert any(line.endswith("ERROR") for line in project.table(result))
    assert not (project.root / "called").exists()
