"""What breaks a claim beyond its examples is told beside the pass, or red where that is wanted."""

from __future__ import annotations

import json

import pytest

GATE = """
@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[18, 90, 35]], max_samples=20_000)
def adults(ages, rng):
    if 0 in ages:
        return len(ages)
    return len(ages) + rng.laplace()
"""
SAID = "outside the declared inputs: eps >* for 0 (they have 18 to 90)"


@pytest.mark.slow
def test_its_letter_count_counterexample_line_and_example(project, monkeypatch):
    project.write("test_a.py", GATE)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = project.run("--dp-report=found.json", "--dp-report=found.sarif")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "test_a.py b *",
            "* pass  *",
            f"  {SAID}",
            "outside the declared inputs: eps >*",
            "  for 0 (they have 18 to 90)",
            "Leaks at test_a.py:7, in adults:",
            "  D  = [[]0[]]",
            "  inputs=[[]..., [[]0[]][]]",
            f"::warning file=test_a.py,*title=Privacy claim broken outside the*inputs*::{SAID}*",
            "::warning file=test_a.py,line=7,*",
            "* 1 outside the declared inputs in *",
        ]
    )
    (claim,) = json.loads((project.root / "found.json").read_text())["claims"]
    assert (claim["status"], claim["beyond"]["status"]) == ("no violation", "beyond")
    assert claim["beyond"]["witness"]["d1"] == "[0]"
    (told,) = json.loads((project.root / "found.sarif").read_text())["runs"][0]["results"]
    assert (told["level"], told["ruleId"]) == (
        "note",
        "dp-claim-broken-outside-the-declared-inputs",
    )
