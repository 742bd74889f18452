"""The pages of docs/ name files, functions, options and tests: all of them exist."""

from __future__ import annotations

import re

import api_page
import options_page
import pytest
from pages import DOCUMENTATION, PAGES, ROOT, TEMPLATES, anchors, links, own_links
from pages import name as name_of

from pytest_dp.claiming.keywords import KEYWORDS
from pytest_dp.claiming.settings import _PROFILES

PROOFS = sorted(page for page in (ROOT / "docs/proofs").glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.stem)
def test_a_proof_names_code_and_tests_that_exist(page):
    text = page.read_text()
    parts = text.split("\n## ")
    headings = [part.splitlines()[0] for part in parts[1:]]
    assert headings == ["Proof", "Where in the code", "Which test"]
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


def test_pages_about_the_code_use_words_of_it():
    files = [file for folder in ("pytest_dp", "tests") for file in (ROOT / folder).rglob("*.py")]
    known = {"test_adding_", *(file.stem for file in files)}
    known.update(*(re.findall(r"\w+", file.read_text()) for file in files))
    for page in ("architecture.md", "extending.md", "proofs/*.md"):
        text = "".join(file.read_text() for file in (ROOT / "docs").glob(page))
        named = " ".join(re.findall(r"`([^`\n]+)`", text))
        assert set(re.findall(r"[A-Za-z_]\w+", named)) <= known, page


def test_links_lead_somewhere():
    found = [(page, path, anchor) for page in PAGES for path, anchor in links(page)]
    assert len(found) > len(PAGES)
    for page, path, anchor in found:
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), (name_of(page), path)
        if anchor:
            assert anchor in anchors(target), (name_of(page), path, anchor)


def test_urls_of_this_project_lead_somewhere():
    files = [*PAGES, *TEMPLATES, *(ROOT / "pytest_dp").rglob("*.py")]
    files += [ROOT / name for name in ("CITATION.cff", "pyproject.toml", "mkdocs.yml")]
    found = [(file, *link) for file in files for link in own_links(file.read_text())]
    assert len(found) > 1
    for file, path, anchor in found:
        assert (ROOT / path).exists(), (name_of(file), path)
        assert not anchor or anchor in anchors(ROOT / path), (name_of(file), path, anchor)


def test_the_site_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    listed = re.findall(r"([\w/-]+\.md)$", nav, re.MULTILINE)
    pages = [name_of(page).removeprefix("docs/") for page in DOCUMENTATION if page.parent != ROOT]
    assert sorted(listed) == sorted(pages)


def test_the_reference_has_every_keyword_and_profile():
    claims = (ROOT / "docs/reference/claims.md").read_text()
    options = (ROOT / "docs/reference/options.md").read_text()
    assert [keyword for keyword in KEYWORDS if f"`{keyword}`" not in claims] == []
    assert [profile for profile in _PROFILES if f"`{profile}`" not in options] == []


@pytest.mark.parametrize("page", [api_page, options_page], ids=["api", "options"])
def test_the_reference_says_what_the_code_says(page):
    assert page.written() == page.PAGE.read_text(), "write it anew: make pages"
