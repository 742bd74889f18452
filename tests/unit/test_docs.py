"""The pages of docs/ name files, functions and tests: all of them exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = sorted(page for page in (ROOT / "docs/proofs").glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.stem)
def test_a_proof_names_code_and_tests_that_exist(page):
    text = page.read_text()
    parts = text.split("\n## ")
    assert [part.splitlines()[0] for part in parts[1:]] == [
        "Proof",
        "Where in the code",
        "Which test",
    ]
    assert "**Claim.**" in parts[0]
    for part in parts[2:]:
        named = re.findall(r"`([^`]+)`", part)
        files = [ROOT / name for name in named if "/" in name]
        assert files
        assert all(file.is_file() for file in files), files
        code = "".join(file.read_text() for file in files)
        for name in named:
            if "/" not in name:
                defined = name.rpartition(".")[2]
                assert re.search(rf"(def|class) {defined}\b", code), name


def test_the_index_lists_every_proof():
    index = (ROOT / "docs/proofs/README.md").read_text()
    assert sorted(re.findall(r"\(([\w-]+\.md)\)", index)) == [page.name for page in PROOFS]


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
