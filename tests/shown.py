"""What pages show of outputs, made anew from the code and the commands beside it.

`make pages` writes it into the pages; tests compare it with what stands there. A block of output
says where it comes from, in a comment above it:

* ``<!-- printed: by the block above -->``: all that this Python code prints;
* ``<!-- shown: "A" to "B" -->``: of what the last command of a console block printed, the lines
  from the first with A to the next with B; ``<!-- shown: pytest stats.py "A" to "B" -->`` of what
  this command prints;
* ``<!-- sample: page.md -->``: a part of a block of another page, from its first line to its last;
  ``<!-- sample: page.md "A" to "B" -->`` names these lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import api_page
import options_page
from pages import DOCUMENTATION, ROOT, Block, blocks, commands, name

_CUT = re.compile(r'(?P<of>.*?) ?"(?P<first>.*)" to "(?P<last>.*)"')
_OF_CI = ("CI", "GITHUB_ACTIONS", "PYTEST_XDIST_WORKER", "BUILD_NUMBER")
OUTPUT = ("printed", "shown", "sample")
"""Marks of blocks that are made by this module."""


class Session:
    """A folder in which code of a page is written, and its commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = ""
        """What the last command printed."""

    def run(self, *command: str) -> str:
        """Return what a command prints, as at a desk with 80 columns."""
        environment = {k: v for k, v in os.environ.items() if k not in _OF_CI}
        paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
        environment |= {"COLUMNS": "80", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        environment["PYTEST_ADDOPTS"] = "--dp-jobs=1 -p patience"
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.output = done.stdout
        return done.stdout

    def pytest(self, command: str) -> str:
        """Return what a command prints that begins with ``pytest``."""
        return self.run("-m", *shlex.split(command))

    def write(self, block: Block) -> Path:
        """Write a block of code as the file that it names, or as one without a name."""
        file = self.folder / (block.file or "unnamed.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        return file


def cut(text: str, first: str, last: str) -> str:
    """Return the lines from one that holds a text to the next with another; else LookupError."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if first in line:
            for end in range(start, len(lines)):
                if last in lines[end]:
                    return "".join(f"{shown.rstrip()}\n" for shown in lines[start : end + 1])
    raise LookupError(f"no lines from {first!r} to {last!r} in:\n{text}")


def made(page: Path, session: Session) -> list[tuple[Block, str]]:
    """Return the blocks of output of a page, and what each should be; samples as they are."""
    found, above = [], None
    for block in blocks(page):
        if block.mark == "printed":
            assert above is not None, block.where
            found.append((block, session.run(session.write(above).name)))
        elif block.mark == "shown":
            part = _CUT.fullmatch(block.about)
            assert part is not None, block.where
            output = session.pytest(part["of"]) if part["of"] else session.output
            found.append((block, cut(output, part["first"], part["last"])))
        elif block.file:
            session.write(block)
        elif block.language == "console" and block.mark != "not run":
            for command in commands(block.text):
                if command.split()[0] == "pytest":
                    session.pytest(command)
        above = block
    return found


def sample(block: Block, texts: dict[str, str]) -> str:
    """Return what a sample should be, by the texts of all pages."""
    part = _CUT.fullmatch(block.about)
    origin = block.about if part is None else part["of"]
    lines = block.text.splitlines()
    first, last = (part["first"], part["last"]) if part else (lines[0], lines[-1])
    page = next(each for each in texts if each.endswith(origin))
    for text in re.findall(r"^```text\n(.*?)^```$", texts[page], re.DOTALL | re.MULTILINE):
        try:
            return cut(text, first, last)
        except LookupError:
            continue
    raise LookupError(f"{block.where}: {page} shows no lines from {first!r} to {last!r}")


def replaced(text: str, block: Block, output: str) -> str:
    """Return the text of a page with another output in the place of a block."""
    opening = f"<!-- {block.mark}: {block.about} -->\n```{block.language}\n"
    old = f"{opening}{block.text}```"
    assert text.count(old) == 1, block.where
    return text.replace(old, f"{opening}{output}```")


def without_times(text: str) -> str:
    """Return an output without seconds, and without the spaces that align figures."""
    text = re.sub(r" +[\d.]+ m?s$", "  TIME", text, flags=re.MULTILINE)
    return re.sub(r"(?<=\S) {2,}", "  ", text).rstrip()


def comparable(text: str) -> str:
    """Return an output without what differs by the machine and by how busy it is.

    Seconds go, and of a pass by samples how many runs it took and the exact limit that it reached.
    Other Pythons compile code otherwise, so that a search sees other ways through it: without all
    figures.
    """
    row = re.compile(r"(detects .*>= )[\d.]+ +[\d.]+[kMG]?(?= +[\d.]+ m?s$)", re.MULTILINE)
    known = re.compile(r"(computed|at most [\d.]+) +[\d.]+[kMG]?(?= +[\d.]+ m?s$)", re.MULTILINE)
    text = known.sub(r"\1  N", row.sub(r"\1N  N", text))
    text = without_times(text)
    if sys.version_info[:2] == (3, 11):
        return text
    return re.sub(r"[ ─-]+", " ", re.sub(r"\d[\d.,]*", "N", text))


def written_anew(wanted: Sequence[str]) -> list[str]:
    """Write the blocks of output into their pages; return the names of pages that changed.

    Of `wanted` pages, what is printed is made anew, or of all if there are none; and all samples.
    A block is written if more than its seconds differ: tests allow other numbers of runs too.
    """
    before = {name(page): page.read_text(encoding="utf-8") for page in DOCUMENTATION}
    texts = before | {name(page.PAGE): page.written() for page in (api_page, options_page)}
    for page in DOCUMENTATION:
        if wanted and name(page) not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for block, output in made(page, Session(Path(folder))):
                if without_times(output) != without_times(block.text):
                    texts[name(page)] = replaced(texts[name(page)], block, output)
    for page in DOCUMENTATION:
        for block in blocks(page):
            if block.mark == "sample":
                output = sample(block, texts)
                texts[name(page)] = replaced(texts[name(page)], block, output)
    changed = [page for page in texts if texts[page] != before[page]]
    for page in changed:
        (ROOT / page).write_text(texts[page], encoding="utf-8")
    return changed


if __name__ == "__main__":
    print(*(written_anew(sys.argv[1:]) or ["all pages are as they should be"]), sep="\n")
