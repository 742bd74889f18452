"""Claims audited with DP-Sniper: what a failure and the table say."""

from __future__ import annotations

import re

import pytest
from projects import QUICK, laplace

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


def test_an_attack_is_shown_with_examples(project):
    project.write("test_a.py", SPREAD)
    result = project.run()
    result.assert_outcomes(failed=1)
    text = "\n".join(failure(result))
    assert "claimed eps = 0.9, but eps >= " in text
    assert "score(output) > " in text or "A learned attack on the same pair" in text
    assert "DP-Sniper bound" in text
    assert "Traceback" not in result.stdout.str()


def test_the_option_is_for_all_claims(project):
    project.write("shop/stats.py", laplace("good", 1.0), laplace("broken", 0.2))
    project.ini("dp_modules = true")
    result = project.run("--dp-method=dpsniper", "-v", "--dp-max-samples=4000")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert len(re.findall(r"^  method +dpsniper", text, re.MULTILINE)) == 2
    assert not re.search("statdp|sequential", text)
    rows = project.rows(result)
    assert [row["status"] for [row] in rows.values()] == ["no violation", "violated"]
    # What a claim says comes before the ini file, and the option before the claim.
    project.write("shop/stats.py", laplace("good", 1.0, claim(", method='statdp'")))
    assert "method statdp" in " ".join(project.run("-v").stdout.str().split())


def test_the_ini_file_can_choose_the_method(project):
    project.write("test_a.py", laplace("good", 1.0))
    project.ini("dp_method = dpsniper")
    text = " ".join(project.run("-v").stdout.str().split())
    assert "method dpsniper" in text


def test_verbose_shows_the_strongest_attack(project):
    project.write("test_a.py", laplace("good", 1.0, claim(", method='dpsniper'")))
    result = project.run("-v")
    result.assert_outcomes(passed=1)
    [line] = [line for line in result.outlines if line.startswith("  strongest ")]
    assert "output" in line
    shown = " ".join(result.stdout.str().split())
    assert re.search(r"[\d,]+ of [\d,]+ against [\d,]+ of [\d,]+, a loss of [\d.]+ to", shown)


def test_a_claim_far_above_everything_found_is_noted(project):
    project.write("test_a.py", laplace("shy", 10.0, claim(", method='dpsniper'")))
    result = project.run("-v")
    result.assert_outcomes(passed=1)
    assert "more noise than needed" in " ".join(result.stdout.str().split())


def test_the_fixture_and_the_marker(project):
    project.write(
        "test_a.py",
        """
        def noisy(records, rng, size):
            return len(records) + rng.laplace(scale=0.2, size=size)

        @pytest.mark.dp_claim(
            eps=1.0,
            pairs=[([1], [])],
            vectorized="size",
            max_samples=20_000,
            method="dpsniper",
        )
        def test_fixture(dp_check):
            with pytest.raises(PrivacyViolation) as caught:
                dp_check(noisy)
            assert caught.value.result.method == "dpsniper"
            assert caught.value.result.eps_lower > 3
        """,
    )
    project.run().assert_outcomes(passed=1)


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


def test_a_classifier_that_fails_is_an_error_of_the_claim(project):
    project.write(
        "test_a.py",
        f"""
        class Flat:
            def fit(self, rows, labels):
                return self

            def predict_proba(self, rows):
                return [0.5] * len(rows)

        @dp_claim({claim()}, method=DPSniper(classifier=Flat()))
        def noisy(records, rng, size):
            return len(records) + rng.laplace(size=size)
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "ClaimError: Flat.predict_proba returned" in result.stdout.str()
    [[row]] = project.rows(result).values()
    assert row["status"] == "error"


def test_keywords_that_the_other_method_does_not_use_are_noted(project):
    project.write(
        "test_a.py", laplace("good", 1.0, f"eps=1.0, {QUICK}, margin=1.5, floating_point=True")
    )
    shown = " ".join(project.run("-v", "--dp-method=statdp").stdout.str().split())
    assert "method statdp does not use floating_point, margin" in shown
    shown = " ".join(project.run("-v").stdout.str().split())
    assert "does not use" not in shown
    shown = " ".join(project.run("-v", "--dp-method=dpsniper").stdout.str().split())
    assert "method dpsniper does not use margin" in shown


def test_a_failure_can_be_replayed(project):
    project.write("test_a.py", laplace("broken", 0.2, claim(", method='dpsniper'")))
    one, same = (project.facts(project.run("--dp-seed=5")) for _ in range(2))
    assert one == same
    assert one != project.facts(project.run("--dp-seed=6"))
