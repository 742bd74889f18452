"""Annotations and the job summary on GitHub Actions."""

from __future__ import annotations

import json
import re

import pytest
from projects import laplace


@pytest.fixture
def shop(project, monkeypatch):
    project.write(
        "backend/shop/stats.py",
        laplace("good", 1.0),
        laplace("broken", 0.2),
        laplace("few", 1.0).replace("2000", "20"),
        "@dp_claim(eps=0, pairs=[(0, 1)])\ndef bad(d): return 0",
    )
    project.write("backend/pytest.ini", "[pytest]\ndp_modules = true\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.root))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    return project


def annotations(result) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


@pytest.mark.slow
def test_annotations_and_the_summary_of_a_job(shop):
    """Paths are relative to the workspace, not to the root; also with -q."""
    (shop.root / "summary.md").write_text("# Earlier step\n")
    result = shop.run("--rootdir=backend", "-c", "backend/pytest.ini", "backend", "-q")
    found = annotations(result)
    assert [
        re.match(r"::(\w+) file=(.*),line=(\d+),title=(.*?)::", line).groups() for line in found
    ] == [
        ("error", "backend/shop/stats.py", "8", "Privacy claim violated%3A broken[eps=1.0]"),
        ("warning", "backend/shop/stats.py", "10", "Privacy leaks here%3A broken[eps=1.0]"),
        ("warning", "backend/shop/stats.py", "13", "Privacy claim inconclusive%3A few[eps=1.0]"),
        ("error", "backend/shop/stats.py", "18", "Privacy claim not audited%3A bad[invalid claim]"),
    ]
    assert "claimed eps = 1.0, but eps >= " in found[0]
    assert "(99.9999 %25 confidence)%0A" in found[0]
    assert "To fix it, at shop/stats.py:10: let one record move the answer less" in found[0]
    assert "or use about 5 times as much noise, enough for the pairs tried" in found[0]
    summary = (shop.root / "summary.md").read_text()
    assert summary.index("To fix it, at ") < summary.index("| verdict |")
    assert summary.startswith("# Earlier step\n\n## ❌ Privacy: 4 claims, 1 violated")
    assert summary.index("### ❌ `broken[eps=1.0]`: violated") < summary.index("| verdict |")
    assert summary.count("\n| ❌ violated |") == 1
    assert summary.count("\n| ✅ pass |") == 1


@pytest.mark.usefixtures("no_audits")
def test_a_summary_that_cannot_be_written_does_not_fail_the_run(shop, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shop.root / "missing" / "summary.md"))
    result = shop.run("backend", "--dp-modules", "-k", "good")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["pytest-dp could not write the job summary: *"])


def test_nothing_of_it_elsewhere(shop, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS")
    result = shop.run("backend", "--dp-modules", "-k", "bad")
    assert annotations(result) == []
    assert not (shop.root / "summary.md").exists()


@pytest.mark.usefixtures("no_audits")
def test_paths_are_seen_from_the_root_of_the_repository_on_gitlab_too(project, monkeypatch):
    project.write("backend/test_stats.py", laplace("broken", 0.2))
    project.write("backend/pytest.ini", "[pytest]\n")
    monkeypatch.setenv("CI_PROJECT_DIR", str(project.root))
    project.run(
        "--rootdir=backend", "-c", "backend/pytest.ini", "backend", "--dp-report=q.gitlab.json"
    )
    [entry] = json.loads((project.root / "q.gitlab.json").read_text())
    assert entry["location"]["path"] == "backend/test_stats.py"
