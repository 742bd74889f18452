"""Whoever does what the tutorial says sees what it shows."""

from __future__ import annotations

import re
import shlex
import sys

import pytest
from pages import ROOT, blocks, commands
from test_readme import without_times

TUTORIAL = blocks(ROOT / "docs/tutorial.md")


def comparable(text):
    """What is the same in every run; by other Pythons, which compile otherwise, a search sees
    other ways through the same code."""
    text = without_times(text)
    if sys.version_info[:2] == (3, 11):
        return text
    return re.sub(r"[ ─-]+", " ", re.sub(r"\d[\d.,]*", "N", text))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_tutorial_step_by_step(pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    printed, compared = "", 0
    for block in TUTORIAL:
        if block.file:
            file = pytester.path / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.language == "console":
            for command in commands(block.text):
                program, *arguments = shlex.split(command)
                if program == "pytest":
                    printed = pytester.runpytest_subprocess(*arguments).stdout.str()
        else:
            assert block.language == "text"
            assert comparable(block.text) in comparable(printed), block.where
            compared += 1
    assert compared == 5
    workflow = next(block.text for block in TUTORIAL if block.file.endswith(".yml"))
    monkeypatch.setenv("CI", "true")
    command = re.search(r"python -m pytest (.*)", workflow)[1].split()
    assert pytester.runpytest_subprocess(*command).ret == pytest.ExitCode.OK
