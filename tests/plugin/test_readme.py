"""What the README shows is what a user gets."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, blocks

README = blocks(ROOT / "README.md")


@pytest.mark.slow
def test_the_first_example_prints_what_the_readme_says(pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)
    code = next(block.text for block in README if block.file == "stats.py")
    shown = next(block.text for block in README if block.text.startswith("stats.py"))
    pytester.path.joinpath("stats.py").write_text(code)
    printed = pytester.runpytest_subprocess("stats.py").stdout.str()
    assert without_times(shown) in without_times(printed)


def without_times(text: str) -> str:
    """What is printed, without seconds, and without how many runs a busy machine affords a pass."""
    text = re.sub(r"[\d.]+k +[\d.]+ m?s  (?=no violation)", "SEEN  ", text)
    text = re.sub(r"as [\d,]+ runs bear", "as runs bear", text)
    return re.sub(r" +[\d.]+ m?s  ", "  TIME  ", text).rstrip()
