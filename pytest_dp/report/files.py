"""Reports for programs and code hosts: the files of ``--dp-report``, and marks on GitHub.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub, "SARIF
support for code scanning", which says what of it is shown; GitLab, "Code Quality", section on tools
of one's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import ClaimError
from pytest_dp.registry import load_entry_points
from pytest_dp.report.html import page
from pytest_dp.report.record import VERSION, Record
from pytest_dp.report.summary_table import (
    HEADS,
    ORDER,
    PASSING,
    STATUSES,
    StatusLook,
    legend,
    look_of,
    table_cells,
    total,
    verdict,
)
from pytest_dp.results.outcome import as_json_value

_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
MAX_SUMMARY_BYTES = 900_000
"""Given by GitHub, which drops a summary above 1 MiB; counterexamples are left out before that."""
PACKAGES = ("pytest-dp", "pytest", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Return the versions of Python, pytest-dp and its main packages, if they are installed."""
    numbers = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:  # run from its source, without being installed
            continue
    return numbers


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON report, which `pytest_dp/report/record.schema.json` describes."""

    version: Annotated[int, {"const": VERSION}]
    """It grows when a field is taken away, or means something else. Fields may be added in any
    version."""
    created: Annotated[str, {"format": "date-time"}]
    """Date and time, with its zone."""
    versions: dict[str, str]
    """Python and the packages that ran."""
    claims: tuple[Record, ...]
    """One for each claim that was audited or should have been."""


def as_json(records: Iterable[Record], created: datetime | None = None) -> str:
    """Return a run as JSON, without pictures; `created` is the time, by default now."""
    time = (created or clocks.now()).isoformat(timespec="seconds")
    document = as_json_value(Document(VERSION, time, versions(), ()))
    document["claims"] = [replace(record, pictures=None).as_dict() for record in records]
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def read_records(text: str) -> list[Record]:
    """Return the records of a JSON report; raise ValueError for others, damaged or newer ones."""
    document: Any = json.loads(text)
    number = document.get("version") if isinstance(document, Mapping) else None
    if number not in range(1, VERSION + 1):
        raise ValueError(
            f"A report of pytest-dp has a version from 1 to {VERSION}, and this one has {number!r}"
            ": it is something else, or a newer pytest-dp wrote it."
        )
    try:
        return [Record.from_dict(fields) for fields in document["claims"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"This report of pytest-dp is damaged: {error!r}.") from None


def sarif(records: Sequence[Record], located: Callable[[str], str] = str) -> str:
    """Return a SARIF log of the alarming records; without any, the log closes earlier alerts.

    `located` leads from the path of a record to one relative to the root of the repository.
    """
    alarming = [(status, look) for status, look in STATUSES.items() if look.level]
    driver = {"name": "pytest-dp", "rules": [_sarif_rule(*alarm) for alarm in alarming]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "pytest-dp/"},
        "results": [_sarif_result(record, located) for record in alarming_records(records)],
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def code_quality(records: Sequence[Record], located: Callable[[str], str] = str) -> str:
    """Return GitLab's JSON entries for the alarming records; `located` is as for `sarif`."""
    entries = [
        {
            "description": f"{record.name}: {record.headline}",
            "check_name": _rule_id(record.status),
            "fingerprint": alarm_fingerprint(record),
            "severity": STATUSES[record.status].gitlab,
            "location": {"path": located(record.path), "lines": {"begin": record.line or 1}},
        }
        for record in alarming_records(records)
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def alarming_records(records: Iterable[Record]) -> list[Record]:
    """Return the records of unexpected failures, and of violations outside the declared inputs."""
    shown = (part for record in records if not record.expected for part in record.parts)
    return [record for record in shown if STATUSES[record.status].level]


def alarm_fingerprint(record: Record) -> str:
    """Return a fingerprint of a test's id and status, which does not depend on lines."""
    about = f"{record.nodeid}\0{record.status}".encode("utf-8", "backslashreplace")
    return hashlib.sha256(about).hexdigest()[:32]


def _rule_id(status: str) -> str:
    return f"dp-claim-{STATUSES[status].words.replace(' ', '-')}"


def _sarif_rule(status: str, look: StatusLook) -> dict[str, Any]:
    return {
        "id": _rule_id(status),
        "shortDescription": {"text": f"A differential privacy claim is {look.words}"},
        "help": {"text": look.advice},
        "properties": {"tags": ["security", "privacy"], "security-severity": look.severity},
    }


def _sarif_result(record: Record, located: Callable[[str], str]) -> dict[str, Any]:
    """Return a SARIF result for a record, with the lines to blame as related locations."""
    blamed = "\n".join(f"{leak.place}: {leak.message}" for leak in record.blame)
    about = record.name, *record.paragraphs, blamed, record.reproduce
    related = [
        {
            "id": number,
            **_sarif_location(located(leak.file), leak.line),
            "message": {"text": leak.message},
        }
        for number, leak in enumerate(record.blame, 1)
    ]
    return {
        "ruleId": _rule_id(record.status),
        "level": STATUSES[record.status].level,
        "message": {"text": "\n\n".join(part for part in about if part)},
        "locations": [_sarif_location(located(record.path), record.line)],
        "relatedLocations": related,
        "partialFingerprints": {"dpClaim/v1": alarm_fingerprint(record)},
    }


def _sarif_location(path: str, line: int | None) -> dict[str, Any]:
    uri = quote(path, errors="backslashreplace")
    place: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the writers of reports need it, besides its records."""

    located: Callable[[str], str]
    """From the path of a file to the path as seen from the root of the repository."""
    project: str = ""
    """Name and commit of the project."""


FORMATS: dict[str, Callable[[Sequence[Record], Run], str]] = {
    ".json": lambda records, run: as_json(records),  # noqa: ARG005
    ".gitlab.json": lambda records, run: code_quality(records, run.located),
    ".sarif": lambda records, run: sarif(records, run.located),
    ".html": lambda records, run: page(records, versions(), project=run.project),
}
"""What writes the report of a run, by the ending of its file. The longest ending counts."""


def format_suffix(file: Path) -> str:
    """Load extensions, and return the longest known ending of a name; raise ClaimError if none."""
    load_entry_points()  # which may add formats
    fitting = [known for known in FORMATS if file.name.lower().endswith(known)]
    if not fitting:
        raise ClaimError(
            f"the ending of {file.name} names no format. Allowed: {', '.join(FORMATS)}, such as "
            f"{file.with_suffix('.html').name}."
        )
    return max(fitting, key=len)


def annotation(record: Record, workspace_relative_path: str) -> str:
    """Return the workflow command that marks the line of a claim; empty if nothing is wrong.

    Source: GitHub, "Workflow commands for GitHub Actions", and the escaping of actions/toolkit.
    """
    look = STATUSES[record.status]
    if not look.level:
        return ""
    kind = "error" if look.level == "error" else "warning"
    title = f"Privacy claim {look.words}: {record.name}"
    body = "\n\n".join(record.paragraphs)
    return workflow_command(kind, workspace_relative_path, record.line, title, body)


def blame_commands(record: Record, located: Callable[[str], str]) -> list[str]:
    """Return workflow commands that mark the lines to blame for a violated claim; may be empty.

    `located` leads from a path relative to the root directory to one relative to the workspace.
    """
    title = f"Privacy leaks here: {record.name}"
    return [
        workflow_command("warning", located(b.file), b.line, title, b.message) for b in record.blame
    ]


def workflow_command(kind: str, path: str, line: int | None, title: str, body: str) -> str:
    """Return a workflow command that marks a line, of kind "error", "warning" or "notice"."""
    fields = {"file": path.replace(os.sep, "/"), "line": str(line or ""), "title": title}
    escaped = {
        key: _escape_message(value).replace(":", "%3A").replace(",", "%2C")
        for key, value in fields.items()
        if value
    }
    properties = ",".join(f"{key}={value}" for key, value in escaped.items())
    return f"::{kind} {properties}::{_escape_message(body)}"


def job_summary(records: Sequence[Record]) -> str:
    """Return Markdown for ``$GITHUB_STEP_SUMMARY``: the verdict, blocks of claims, and a table.

    Claims that did not pass have a block each, also inconclusive and weakened ones; the table has
    all that were audited. Empty without records. Blocks beyond `MAX_SUMMARY_BYTES` are only
    counted.
    """
    if not records:
        return ""
    ordered = sorted(records, key=lambda record: ORDER.index(record.status))
    blocks = [f"## {STATUSES[ordered[0].status].sign} Privacy: {total(records)}"]
    audited = [record for record in ordered if record.status != "weakened"]
    table = _markdown_table(audited)
    room = MAX_SUMMARY_BYTES - len(_encode(table))
    left_out = 0
    for record in (part for claimed in ordered for part in claimed.parts):
        if record.status in PASSING:
            continue
        block = _failure_block(record)
        room -= len(_encode(block))
        if room < 0:
            left_out += 1
        else:
            blocks.append(block)
    if left_out:
        blocks.append(f"{left_out} more did not fit here; the log of this job has them all.")
    blocks += [table, _markdown(" ".join(legend(audited)))] if audited else []
    return "\n\n".join(blocks) + "\n"


def append_summary(path: str, text: str) -> None:
    """Append a block of Markdown to a file; raise OSError."""
    with Path(path).open("ab") as file:
        file.write((b"\n" if file.tell() else b"") + _encode(text))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _failure_block(record: Record) -> str:
    """Return a heading, the place of the claim, and its message; else headline, reason, notes."""
    look = STATUSES[record.status]
    heading = f"### {look.sign} {_code_span(record.name)}: {look.words}"
    blocks = [heading, _code_span(record.place)]
    if record.details:
        blocks.append(_code_block(record.details))
    else:
        texts = dict.fromkeys((record.headline, record.reason, *record.notes))
        blocks += map(_markdown, filter(None, texts))
    return "\n\n".join(blocks)


def _markdown_table(records: Sequence[Record]) -> str:
    """Return a Markdown table with a row for each claim."""
    lines = [
        f"| verdict | claim | {' | '.join(HEADS)} |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for record in records:
        shown = f"{look_of(record).sign} {_markdown(verdict(record))}"
        columns = [shown, _code_span(record.nodeid), *table_cells(record)]
        cells = (cell.replace("|", "\\|") for cell in columns)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _markdown(text: str) -> str:
    """Return a text on one line, escaped for Markdown and HTML."""
    return escape(re.sub(r"([\\`*_\[\]~#|@])", r"\\\1", " ".join(text.split())), quote=False)


def _code_span(text: str) -> str:
    """Return a code span; its fence is longer than any run of backticks inside."""
    flat = " ".join(text.split())
    fence = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _code_block(text: str) -> str:
    """Return a code block without colours; its fence is longer than any run of backticks inside."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
