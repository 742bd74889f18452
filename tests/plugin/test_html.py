"""``--dp-report`` as HTML: the file is there, whole, in every kind of run."""

from __future__ import annotations

import json

import pytest
from projects import laplace

BROKEN = """
@dp_claim(eps=1.0, pairs=[([1], [])])
def broken(records, rng):
    raise ValueError("<i>no</i>")
"""
LEAKS = """
@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[1, 0]], max_samples=2000)
def leaks(records, rng):
    return len(records) + rng.laplace(scale=0.1)
"""
SHOP = laplace("leaky_count", 0.2), laplace("fine_count", 1.0), BROKEN


@pytest.mark.nightly
@pytest.mark.slow
def test_a_report_with_pictures(project, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "0123abcd")
    project.write("test_shop.py", *SHOP, LEAKS)
    result = project.run("--dp-report=out/claims.html", "--dp-report=claims.json")
    file = project.root / "out/claims.html"
    result.stdout.fnmatch_lines([f"report of the privacy claims: {file}"])
    text = file.read_text(encoding="utf-8")
    assert "Privacy: 4 claims, 2 violated, 1 not audited" in text
    assert f"{project.root.name}, commit 0123abcd, " in text  # no repository of git
    assert "&lt;i&gt;no&lt;/i&gt;" in text
    assert text.count("<svg") >= 2  # those of the violation
    assert [path.name for path in file.parent.iterdir()] == ["claims.html"]
    written = json.loads((project.root / "claims.json").read_text(encoding="utf-8"))
    statuses = [claim["status"] for claim in written["claims"]]
    assert statuses == ["violated", "no violation", "error", "violated"]
    assert not any("pictures" in claim for claim in written["claims"])
