"""`docs/libraries.md`, from the reports that `make libraries` has written to a directory.

A violation is shown with its public issue, which its pack names. One that is not public is counted,
without its name, and nothing in its pack tells it from other claims: SECURITY.md says how it is
reported. Exit status 1 if an audit has failed, or if a count by hand does not confirm a public
violation.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HEAD = """# Released libraries, audited

Made by `make libraries`, which installs each library in an environment of its own and audits what
its objects [promise](how-to/third-party.md#a-table-of-claims). The claims are in
`benchmarks/libraries/`. An audit had {effort}, unless its claim gives more. A pass is not a proof:
[its grade](explanation/what-a-pass-means.md) says how much would have been found.
"""
HIDDEN = """
{claims} more claims, of {packages} of these packages, are violated. They are named here once they
are public, as [SECURITY.md](https://github.com/pytest-dp/pytest-dp/blob/main/SECURITY.md) says.
"""


def outcome(record: dict[str, Any]) -> str:
    """The verdict, with its grade; a violation that is expected says so."""
    if record["status"] == "violated":
        return "**violated**, expected" if record["expected"] else "**violated**"
    return f"{record['status']}, {record['strength']}" if record["strength"] else record["status"]


def violation(record: dict[str, Any], counted: dict[str, Any] | None, known: str) -> str:
    shown = ["<!-- not run: an audit gave it -->", "```text", record["witness"]["text"], "```"]
    lines = [f"### {label(record)}", "", *shown, ""]
    if counted:
        (one, other), runs = counted["counts"], counted["runs"]
        lines += [
            *textwrap.wrap(counted["why"], 100),
            f"Counted by hand, without pytest-dp: {one:,} and {other:,} of {runs:,} runs.",
            f"The first probability is {counted['at_least']:.4f} at least (Clopper-Pearson,",
            f"1 - 1e-9), where {counted['allowed']:.4f} is allowed. {known}",
        ]
    return "\n".join([*lines, ""])


def label(record: dict[str, Any]) -> str:
    return str(re.findall(r"\[(.*)\]", record["name"])[0])


def reasons_in(source: str) -> dict[str, str]:
    """Return the reason for which each claim of a pack is expected to fail, by its label."""
    tree, reasons = ast.parse(source), dict[str, str]()

    def reason_in(node: ast.AST) -> str:
        names = (reasons.get(part.id, "") for part in ast.walk(node) if isinstance(part, ast.Name))
        written = re.findall(r"reason='(.*?)'", ast.unparse(node))
        return next(filter(None, (*written, *names)), "")

    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            reasons[node.targets[0].id] = reason_in(node.value)
    entries = (
        (key.value, reason_in(value))
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call)
    )
    return {str(label): reason for label, reason in entries if reason}


def is_public(reason: str) -> bool:
    """Return whether a reason names an issue: ``"opendp/opendp#2922"``."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", reason) is not None


def section(pack: str, folder: Path) -> tuple[str, bool, int]:
    """Return what was found in a library, whether that is as expected, and what is not shown.

    The first is without violations that are not public, the last is how many these are.
    """
    report = json.loads((folder / f"{pack}.json").read_text())
    file = folder / f"{pack}_counts.json"
    counts = json.loads(file.read_text()) if file.exists() else {}
    source = (Path(__file__).parent / f"{pack}.py").read_text()
    required = ", ".join(re.findall(r"^# requirements: (.*)", source, re.MULTILINE)[0].split())
    reasons = reasons_in(source)
    found = [r for r in report["claims"] if r["status"] == "violated"]
    hidden = [r for r in found if not is_public(reasons.get(label(r), ""))]
    records = [r for r in report["claims"] if r not in hidden]
    broken = [r for r in found if r not in hidden]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    seconds = sum(r["seconds"] for r in records)
    promise = ast.get_docstring(ast.parse(source))
    text = f"\n## {pack}\n\n{promise}\n\n"
    text += f"{required}; {versions}; {report['created'][:10]}. "
    text += f"{len(records)} claims, {len(broken)} violated, {seconds:.0f} s.\n\n"
    text += "| claim | promised | found | samples | s |\n| --- | --- | --- | ---: | ---: |\n"
    for r in records:
        row = [label(r), f"`{r['claim']}`", outcome(r), f"{r['samples']:,}", f"{r['seconds']:.1f}"]
        text += f"| {' | '.join(row)} |\n"
    shown = [violation(r, counts.get(label(r)), f"Known: {reasons[label(r)]}.") for r in broken]
    confirmed = all(r["expected"] and counts.get(label(r), {}).get("broken") for r in broken)
    fine = confirmed and all(r["status"] != "error" for r in records)
    return "\n".join([text, *shown]), fine, len(hidden)


def main() -> None:
    folder, effort, *packs = Path(sys.argv[1]), *sys.argv[2:]
    sections = [section(pack, folder) for pack in packs]
    hidden = [count for _, _, count in sections if count]
    page = HEAD.format(effort=effort)
    if hidden:
        page += HIDDEN.format(claims=sum(hidden), packages=len(hidden))
    page += "".join(text for text, _, _ in sections)
    (ROOT / "docs/libraries.md").write_text(page.rstrip() + "\n")
    sys.exit(not all(fine for _, fine, _ in sections))


if __name__ == "__main__":
    main()
