"""Whoever does what the tutorial says sees what it shows."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, blocks
from shown import Session, comparable, made

TUTORIAL = ROOT / "docs/tutorial.md"


@pytest.mark.nightly
@pytest.mark.slow
def test_the_tutorial_step_by_step(tmp_path, pytester, monkeypatch):
    found = made(TUTORIAL, Session(tmp_path))
    for block, output in found:
        assert comparable(block.text) == comparable(output), block.where
    assert len(found) == 5
    workflow = next(block.text for block in blocks(TUTORIAL) if block.file.endswith(".yml"))
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(tmp_path)
    command = re.search(r"python -m pytest (.*)", workflow)[1].split()
    assert pytester.runpytest_subprocess(*command).ret == pytest.ExitCode.OK
