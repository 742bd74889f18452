"""`docs/libraries.md`, from the reports that `make libraries` has written to a directory.

Exit status 1 if a claim is broken that no pack knows of, or an audit has failed; or if a count by
hand does not confirm a violation.
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
its objects [say of themselves](how-to/third-party.md#a-table-of-claims). The claims are in
`benchmarks/libraries/`. An audit had {effort}, unless its claim gives it more. A pass is no proof:
[its grade](explanation/what-a-pass-means.md) says what it would have seen.
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
            f"The first has a probability of {counted['at_least']:.4f} at least (Clopper-Pearson,",
            f"1 - 1e-9), where {counted['allowed']:.4f} is allowed. {known}",
        ]
    return "\n".join([*lines, ""])


def label(record: dict[str, Any]) -> str:
    return str(re.findall(r"\[(.*)\]", record["name"])[0])


def section(pack: str, folder: Path) -> tuple[str, bool]:
    """What was found in a library, and whether that is as expected and confirmed."""
    report = json.loads((folder / f"{pack}.json").read_text())
    file = folder / f"{pack}_counts.json"
    counts = json.loads(file.read_text()) if file.exists() else {}
    source = (Path(__file__).parent / f"{pack}.py").read_text()
    required = ", ".join(re.findall(r"^# requirements: (.*)", source, re.MULTILINE)[0].split())
    reasons = re.findall(r'reason="(.*?)"', source)
    known = f"Known: {reasons[0]}." if reasons and "#" in reasons[0] else "Not reported yet."
    records = report["claims"]
    broken = [r for r in records if r["status"] == "violated"]
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
    shown = [violation(r, counts.get(label(r)), known) for r in broken]
    confirmed = all(r["expected"] and counts.get(label(r), {}).get("broken") for r in broken)
    return "\n".join([text, *shown]), confirmed and all(r["status"] != "error" for r in records)


def main() -> None:
    folder, effort, *packs = Path(sys.argv[1]), *sys.argv[2:]
    sections = [section(pack, folder) for pack in packs]
    page = HEAD.format(effort=effort) + "".join(text for text, _ in sections)
    (ROOT / "docs/libraries.md").write_text(page.rstrip() + "\n")
    sys.exit(not all(fine for _, fine in sections))


if __name__ == "__main__":
    main()
