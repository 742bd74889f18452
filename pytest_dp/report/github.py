"""Reports for GitHub Actions: annotations on the changed line, and the summary of the job."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_dp.report.text import STRENGTHS, Row, legend

LIMIT = 900_000
"""GitHub drops a summary above 1 MiB; counterexamples are left out before that."""

_ORDER = {"violated": 0, "error": 1, "inconclusive": 2, "no violation": 3}
_MARKS = {"violated": "❌", "error": "❌", "inconclusive": "⚠️", "no violation": "✅"}
_WORDS = {"violated": "violated", "error": "not audited", "inconclusive": "inconclusive"}


def annotation(row: Row, workspace_relative_path: str) -> str:
    """The workflow command that marks the line of the claim; empty if nothing is wrong with it.

    Source: GitHub, "Workflow commands for GitHub Actions", and the escaping of actions/toolkit.
    """
    if row.status == "no violation":
        return ""
    kind = "warning" if row.status == "inconclusive" else "error"
    place = {"file": workspace_relative_path.replace(os.sep, "/"), "line": str(row.line or "")}
    title = {"title": f"Privacy claim {_WORDS[row.status]}: {row.name}"}
    properties = ",".join(f"{key}={_property(v)}" for key, v in (place | title).items() if v)
    told = row.headline, row.reason, row.counterexample
    body = "\n\n".join(part for part in told if part)
    return f"::{kind} {properties}::{_message(body)}"


def summary(rows: Sequence[Row]) -> str:
    """Markdown for ``$GITHUB_STEP_SUMMARY``: verdict, failures, then the table of all claims."""
    if not rows:
        return ""
    ordered = sorted(rows, key=lambda row: _ORDER[row.status])
    blocks = [f"## {_heading(rows)}"]
    table = _table(ordered)
    room = LIMIT - len(table.encode())
    left_out = 0
    for row in ordered:
        if row.status == "no violation":
            continue
        block = _failure(row)
        room -= len(block.encode())
        if room < 0:
            left_out += 1
        else:
            blocks.append(block)
    if left_out:
        blocks.append(f"{left_out} more did not fit here; the log of this job has them all.")
    blocks += [table, *(_text(said) for said in legend(rows))]
    return "\n\n".join(blocks) + "\n"


def append(path: str | Path, text: str) -> None:
    """Append a block of Markdown in a single write, so that no half of it is ever left behind."""
    if not text:
        return
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666)
    try:
        size = os.fstat(handle).st_size
        block = text.encode("utf-8", errors="backslashreplace")
        block = (b"\n" if size else b"") + block + (b"" if block.endswith(b"\n") else b"\n")
        if os.write(handle, block) < len(block):
            os.ftruncate(handle, size)
            raise OSError(f"No room to append {len(block)} bytes to {path}.")
    finally:
        os.close(handle)


def _heading(rows: Sequence[Row]) -> str:
    counts = {status: sum(row.status == status for row in rows) for status in _ORDER}
    total = f"of {len(rows)}"
    parts = []
    if counts["violated"]:
        parts.append(f"{counts['violated']} {total} violated")
    if counts["error"]:
        parts.append(f"{counts['error']} {'' if parts else total + ' '}not audited")
    if counts["inconclusive"]:
        parts.append(f"{counts['inconclusive']} {'' if parts else total + ' '}inconclusive")
    mark = _MARKS[min((row.status for row in rows), key=_ORDER.__getitem__)]
    return f"{mark} Privacy claims: {', '.join(parts) or _passed(rows)}"


def _passed(rows: Sequence[Row]) -> str:
    """All rows, with what they are worth."""
    strengths = [row.strength for row in rows]
    each = [f"{strengths.count(word)} {word}" for word in STRENGTHS if word in strengths]
    return f"no violation found in {len(rows)}" + (f" ({', '.join(each)})" if each else "")


def _failure(row: Row) -> str:
    place = row.path if row.line is None else f"{row.path}:{row.line}"
    lines = [f"### {_MARKS[row.status]} {_code(row.name)}: {_WORDS[row.status]}", ""]
    lines.append(f"{_text(row.headline)}  \n{_code(place)}" if place else _text(row.headline))
    if row.counterexample:
        lines += ["", _fenced(row.counterexample)]
    if row.details and row.details != row.headline:
        folded = "Full counterexample" if row.status == "violated" else "Full message"
        name = html.escape(" ".join(row.name.split()), quote=False)
        lines += ["", f"<details><summary>{folded}: {name}</summary>", ""]
        lines += [_fenced(row.details), "", "</details>"]
    if row.status == "inconclusive":
        others = (note for note in row.notes if note != row.reason)
        lines += [f"\n{_text(said)}" for said in (row.reason, *others)]
    return "\n".join(lines)


def _table(rows: Iterable[Row]) -> str:
    lines = [
        "| status | claim | claimed | would catch from | samples | time |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        status = f"{_MARKS[row.status]} {_text(row.outcome)}"
        cells = [status, _code(row.nodeid), *row.cells()]
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _text(text: str) -> str:
    """Words that Markdown and HTML leave as they are."""
    return html.escape(re.sub(r"([\\`*_\[\]~#|@])", r"\\\1", " ".join(text.split())), quote=False)


def _code(text: str) -> str:
    """A code span; its fence is longer than any run of backticks inside."""
    flat = " ".join(text.split())
    fence = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _fenced(text: str) -> str:
    """A code block, its fence longer than any run of backticks inside, without terminal colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
