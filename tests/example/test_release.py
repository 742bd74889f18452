"""What a release is made of: the version of its tag, and its notes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

RELEASE = runpy.run_path(str(Path(__file__).parents[2] / ".github/release.py"))
CHANGELOG = (
    "# Changelog\n\n## 1.1.0 (unreleased)\n\n* new\n\n## 1.0.0 (2026-11-25)\n\n* old\n* two\n"
)


@pytest.mark.parametrize(
    ("tag", "notes"),
    [("v1.0.0", "* old\n* two\n"), ("v1.1.0rc1", "* new\n")],
)
def test_notes_are_those_of_the_changelog(tag, notes):
    assert RELEASE["notes_of"](RELEASE["version_of"](tag), CHANGELOG) == notes


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("v1.0", r"Write v1\.2\.3"),
        ("v1.1.0", r"has '## 1\.1\.0 \(unreleased\)'\. Write '## 1\.1\.0 \(the day"),
        ("v2.0.0", r"has no such heading\. Write '## 2\.0\.0"),
    ],
)
def test_what_is_not_ready_is_not_released(tag, reason):
    with pytest.raises(SystemExit, match=reason):
        RELEASE["notes_of"](RELEASE["version_of"](tag), CHANGELOG)


def test_the_tree_gets_the_version(tmp_path, monkeypatch):
    monkeypatch.setitem(RELEASE["main"].__globals__, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    source = tmp_path / "pytest_dp/__init__.py"
    source.parent.mkdir()
    source.write_text('"""Audit."""\n\n__version__ = "0.1.0"\n')
    RELEASE["main"]("v1.1.0rc1")
    assert '\n__version__ = "1.1.0rc1"\n' in source.read_text()
    assert (tmp_path / "release-notes.md").read_text() == "* new\n"
