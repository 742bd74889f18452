"""Reports for GitHub Actions: annotations on the changed line, and the summary of the job."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import (
    HEADS,
    ORDER,
    PASSING,
    STATUSES,
    legend,
    look_of,
    row_cells,
    total,
    verdict,
)

LIMIT = 900_000
"""Given by GitHub, which drops a summary above 1 MiB; counterexamples are left out before that."""


def annotation(record: Record, workspace_relative_path: str) -> str:
    """Return the workflow command that marks the line of a claim; empty if nothing is wrong.

    Source: GitHub, "Workflow commands for GitHub Actions", and the escaping of actions/toolkit.
    """
    look = STATUSES[record.status]
    if not look.level:
        return ""
    kind = "error" if look.level == "error" else "warning"
    title = f"Privacy claim {look.words}: {record.name}"
    body = "\n\n".join(record.told)
    return workflow_command(kind, workspace_relative_path, record.line, title, body)


def blame_commands(record: Record, located: Callable[[str], str]) -> list[str]:
    """Return workflow commands that mark lines at which a violated claim leaks.

    `located` leads from a path relative to the root directory to one relative to the workspace.
    """
    title = f"Privacy leaks here: {record.name}"
    return [
        workflow_command("warning", located(b.file), b.line, title, b.message) for b in record.blame
    ]


def workflow_command(kind: str, path: str, line: int | None, title: str, body: str) -> str:
    """Return a workflow command that marks a line: of kind "error", "warning" or "notice"."""
    fields = {"file": path.replace(os.sep, "/"), "line": str(line or ""), "title": title}
    escaped = {
        key: _message(value).replace(":", "%3A").replace(",", "%2C")
        for key, value in fields.items()
        if value
    }
    properties = ",".join(f"{key}={value}" for key, value in escaped.items())
    return f"::{kind} {properties}::{_message(body)}"


def job_summary(records: Sequence[Record]) -> str:
    """Return markdown for ``$GITHUB_STEP_SUMMARY``: verdict, failures, the table of claims."""
    if not records:
        return ""
    ordered = sorted(records, key=lambda record: ORDER.index(record.status))
    blocks = [f"## {STATUSES[ordered[0].status].sign} Privacy: {total(records)}"]
    audited = [record for record in ordered if record.status != "weakened"]
    table = _table(audited)
    room = LIMIT - len(_encode(table))
    left_out = 0
    for record in (told for claimed in ordered for told in claimed.all):
        if record.status in PASSING:
            continue
        block = _failure(record)
        room -= len(_encode(block))
        if room < 0:
            left_out += 1
        else:
            blocks.append(block)
    if left_out:
        blocks.append(f"{left_out} more did not fit here; the log of this job has them all.")
    blocks += [table, _text(" ".join(legend(audited)))] if audited else []
    return "\n\n".join(blocks) + "\n"


def append(path: str, text: str) -> None:
    """Append a block of Markdown to a file; raises OSError if that is not possible."""
    with Path(path).open("ab") as file:
        file.write((b"\n" if file.tell() else b"") + _encode(text))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _failure(record: Record) -> str:
    look = STATUSES[record.status]
    lines = [f"### {look.sign} {_code(record.name)}: {look.words}", ""]
    lines.append(f"{_text(record.headline)}  \n{_code(record.place)}")
    if record.counterexample:
        lines += ["", _fence(record.counterexample)]
    lines += [f"\n{_code(leak.place)}: {_text(leak.message)}" for leak in record.blame]
    lines += [f"\n{_text(record.remedy)}"] if record.remedy else []
    if record.details and record.details != record.headline:
        is_shown = record.status in ("violated", "beyond")
        folded = "Full counterexample" if is_shown else "Full message"
        name = html.escape(" ".join(record.name.split()), quote=False)
        lines += ["", f"<details><summary>{folded}: {name}</summary>", ""]
        lines += [_fence(record.details), "", "</details>"]
    if record.status == "inconclusive":
        others = (note for note in record.notes if note != record.reason)
        lines += [f"\n{_text(said)}" for said in (record.reason, *others)]
    return "\n".join(lines)


def _table(records: Sequence[Record]) -> str:
    lines = [
        f"| verdict | claim | {' | '.join(HEADS)} |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for record in records:
        shown = f"{look_of(record).sign} {_text(verdict(record))}"
        columns = [shown, _code(record.nodeid), *row_cells(record)]
        cells = (cell.replace("|", "\\|") for cell in columns)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _text(text: str) -> str:
    """Return words that Markdown and HTML leave as they are."""
    return html.escape(re.sub(r"([\\`*_\[\]~#|@])", r"\\\1", " ".join(text.split())), quote=False)


def _code(text: str) -> str:
    """Return a code span; its fence is longer than any run of backticks inside."""
    flat = " ".join(text.split())
    fence = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _fence(text: str) -> str:
    """Make a code block, its fence longer than any run of backticks inside, without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
