"""Blocks of output in the documentation are what the code and the commands beside them print."""

from __future__ import annotations

import pytest
from pages import DOCUMENTATION, ROOT, blocks, name
from shown import OUTPUT, Session, comparable, made, sample

APART = ("README.md", "docs/tutorial.md")
"""Pages with tests of their own."""
PAGES = [
    page
    for page in DOCUMENTATION
    if name(page) not in APART and any(b.mark in ("printed", "shown") for b in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_shows_what_is_printed(page, tmp_path):
    found = made(page, Session(tmp_path))
    assert found
    for block, output in found:
        assert comparable(block.text) == comparable(output), block.where


def test_samples_are_parts_of_what_another_page_shows():
    texts = {name(each): each.read_text(encoding="utf-8") for each in DOCUMENTATION}
    samples = [block for page in DOCUMENTATION for block in blocks(page) if block.mark == "sample"]
    assert samples
    for block in samples:
        assert block.text == sample(block, texts), block.where


def test_each_block_of_output_says_where_it_comes_from():
    shown = [block for page in DOCUMENTATION for block in blocks(page) if block.mark in OUTPUT]
    assert len(shown) > 10
    assert {name(page) for page in PAGES} > {"docs/explanation/how-it-works.md"}
    assert (ROOT / "Makefile").read_text().count("tests/shown.py") == 1
