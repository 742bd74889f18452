"""The pages of the documentation: their code blocks, what is said of them, links and headings."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTATION = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [
    *DOCUMENTATION,
    *sorted(ROOT.glob("C*.md")),
    ROOT / "SECURITY.md",
    ROOT / "benchmarks/README.md",
    ROOT / "example_project/README.md",
    ROOT / "example_project/regressions/README.md",
    ROOT / ".github/pull_request_template.md",
]
TEMPLATES = [
    *sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")),
    ROOT / ".github/pull_request_template.md",
]
OWN_URL = "https://github.com/pytest-dp/pytest-dp"
SITE_URL = "https://pytest-dp.github.io/pytest-dp/"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[\w ]+): (?P<about>.*?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes
    ----------
    where : str
        Page and line.
    language, text : str
    mark, about : str
        What a comment right above says: ``<!-- not run: the reason -->``,
        or where an output comes from (`shown`); empty without one.
    """

    where: str
    language: str
    text: str
    mark: str
    about: str

    @property
    def file(self) -> str:
        """The file that it is, by the comment in its first line; empty if that names none."""
        found = re.match(r"# ([\w./-]+)$", self.text.partition("\n")[0])
        return found[1] if found else ""


def name(page: Path) -> str:
    """A page as seen from the root."""
    return (page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).as_posix()


def blocks(page: Path) -> list[Block]:
    """All blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found_in, read, line = [], 0, 0
    for found in _BLOCK.finditer(text):
        line += text.count("\n", read, found.start("text"))
        read = found.start("text")
        where = f"{name(page)}:{line}"
        marks = found["mark"] or "", found["about"] or ""
        found_in.append(Block(where, found["language"], found["text"], *marks))
    return found_in


def commands(text: str) -> list[str]:
    """What is typed in a block: the lines after a ``$``, without comments."""
    typed = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    return [re.sub(r"\s+# .*", "", line) for line in typed]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[tuple[str, str]]:
    """The links of a page to other pages and files: a path, may be empty, and an anchor, alike."""
    found = re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", prose(page))
    return [(path, anchor) for path, _, anchor in (link.partition("#") for link in found)]


def own_links(text: str) -> list[tuple[str, str]]:
    """The files of this repository that URLs in a text lead to, with their anchors."""
    found = re.findall(rf"{OWN_URL}/(?:blob|tree|raw)/main/([\w./-]+)(?:#([\w-]+))?", text)
    pages = re.findall(rf"{SITE_URL}([\w/-]+)\.html(?:#([\w-]+))?", text)
    return [*found, *((f"docs/{page}.md", anchor) for page, anchor in pages)]


def anchors(page: Path) -> set[str]:
    """What links to headings of a page may name: what GitHub and the site both know."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading).strip() for heading in headings]
    return set(map(_on_github, plain)) & set(map(_on_the_site, plain))


def _on_github(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _on_the_site(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
