"""Gives the package the version of a tag, and writes its release notes; see `make release`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version_of(tag: str) -> str:
    """Of the tag ``v1.2.3``, or ``v1.2.3rc1``: without its v."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        sys.exit(f"Invalid tag {tag!r}. Write v1.2.3, or v1.2.3rc1 for one that comes before.")
    return tag[1:]


def notes_of(version: str, changelog: str) -> str:
    """The section of a version; what comes before it may be unreleased."""
    final = re.sub(r"(a|b|rc)\d+$", "", version)
    heading, *_ = re.findall(rf"^## {re.escape(final)}\b.*$", changelog, re.M) or [""]
    if not heading or (final == version and "unreleased" in heading):
        said = f"has {heading!r}" if heading else "has no such heading"
        sys.exit(f"CHANGELOG.md {said}. Write '## {final} (the day of its release)' first.")
    return changelog.partition(heading)[2].partition("\n## ")[0].strip() + "\n"


def main(tag: str) -> None:
    """Change the version in the tree, which is not committed."""
    version = version_of(tag)
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    (ROOT / "release-notes.md").write_text(notes, "utf-8")
    package = ROOT / "pytest_dp/__init__.py"
    source = package.read_text("utf-8")
    package.write_text(re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', source))


if __name__ == "__main__":
    main(sys.argv[1])
