"""What the README shows is what a user gets."""

from __future__ import annotations

import pytest
from pages import ROOT
from shown import Session, comparable, made


@pytest.mark.slow
def test_the_first_example_prints_what_the_readme_says(tmp_path):
    shown = made(ROOT / "README.md", Session(tmp_path))
    assert len(shown) == 2
    for block, output in shown:
        assert comparable(block.text) == comparable(output)
