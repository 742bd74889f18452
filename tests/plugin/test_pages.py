"""Blocks of output in the documentation are what the code and the commands beside them print."""

from __future__ import annotations

import pytest
from pages import DOCUMENTATION, ROOT, blocks, name
from shown import OUTPUT, Session, comparable, made, replaced, sample

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


PAGE = """
```python
# stats.py
def test_it(): print("a figure:", 0.25)
```

<!-- shown: pytest -s stats.py "a figure" to "figure" -->
```text
a figure: 0.75
```

```python
print(1 + 1)
```

<!-- printed: by the block above -->
```text
3
```
"""


@pytest.mark.slow
def test_what_does_not_hold_any_more_is_seen_and_mended(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "session").mkdir()
    pairs = made_of(page, tmp_path)
    assert [output.split()[-1] for _, output in pairs] == ["0.25", "2"]
    assert not any(comparable(block.text) == comparable(output) for block, output in pairs)
    text = PAGE
    for block, output in pairs:
        text = replaced(text, block, output)
    page.write_text(text)
    assert all(block.text == output for block, output in made_of(page, tmp_path))


def made_of(page, folder):
    return made(page, Session(folder / "session"))


def test_each_block_of_output_says_where_it_comes_from():
    shown = [block for page in DOCUMENTATION for block in blocks(page) if block.mark in OUTPUT]
    assert len(shown) > 10
    assert {name(page) for page in PAGES} > {"docs/explanation/how-it-works.md"}
    assert (ROOT / "Makefile").read_text().count("tests/shown.py") == 1
