"""The files of ``--dp-report``, by their ending; a JSON report can be read again.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub, "SARIF
support for code scanning", which says what of it is shown; GitLab, "Code Quality", section on tools
of one's own.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import ClaimError
from pytest_dp.registry import load_entry_points
from pytest_dp.report.html import page
from pytest_dp.report.record import VERSION, Record
from pytest_dp.report.summary_table import STATUSES, StatusLook
from pytest_dp.results.outcome import plain

_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
PACKAGES = ("pytest-dp", "pytest", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the main packages that it needs."""
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
    """Return the document of a run."""
    time = (created or clocks.now()).isoformat(timespec="seconds")
    document = plain(Document(VERSION, time, versions(), ()))
    document["claims"] = [replace(record, pictures=None).as_dict() for record in records]
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def read_records(text: str) -> list[Record]:
    """Read the records of a document.

    Raises ValueError if it is none, or one that a later version wrote.
    """
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
    """Return a log of one run; with no results where nothing alarms, which closes earlier alerts.

    Records that a test expects to be violated are left out, as are passes. `located` leads from the
    path of a record to one relative to the root of the repository.
    """
    alarming = [(status, look) for status, look in STATUSES.items() if look.level]
    driver = {"name": "pytest-dp", "rules": [_sarif_rule(*alarm) for alarm in alarming]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "pytest-dp/"},
        "results": [_sarif_result(record, located) for record in alarms_of(records)],
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def code_quality(records: Sequence[Record], located: Callable[[str], str] = str) -> str:
    """Return GitLab's entries for the records of `sarif`."""
    entries = [
        {
            "description": f"{record.name}: {record.headline}",
            "check_name": _rule_id(record.status),
            "fingerprint": alarm_fingerprint(record),
            "severity": STATUSES[record.status].gitlab,
            "location": {"path": located(record.path), "lines": {"begin": record.line or 1}},
        }
        for record in alarms_of(records)
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def alarms_of(records: Iterable[Record]) -> list[Record]:
    """Return the records that somebody has to look at, those beside a verdict as well."""
    shown = (part for record in records if not record.expected for part in record.all)
    return [record for record in shown if STATUSES[record.status].level]


def alarm_fingerprint(record: Record) -> str:
    """Return a fingerprint that survives moved lines, from the test's id and the status."""
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
    blamed = "\n".join(f"{leak.place}: {leak.message}" for leak in record.blame)
    about = record.name, *record.told, blamed, record.reproduce
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
    """Facts of a run as a whole, for its reports."""

    located: Callable[[str], str]
    """From the path of a file to the path as seen from the root of the repository."""
    linked: Callable[[str], str]
    """To the path as seen from the report."""


FORMATS: dict[str, Callable[[Sequence[Record], Run], str]] = {
    ".json": lambda records, run: as_json(records),  # noqa: ARG005
    ".gitlab.json": lambda records, run: code_quality(records, run.located),
    ".sarif": lambda records, run: sarif(records, run.located),
    ".html": lambda records, run: page(records, versions(), linked=run.linked),
}
"""What writes the report of a run, by the ending of its file. The longest ending counts."""


def format_suffix(file: Path) -> str:
    """Return the ending that says which format a file has.

    Raises ClaimError if there is no such format.
    """
    load_entry_points()  # which may add formats
    fitting = [known for known in FORMATS if file.name.lower().endswith(known)]
    if not fitting:
        raise ClaimError(
            f"the ending of {file.name} names no format. Allowed: {', '.join(FORMATS)}, such as "
            f"{file.with_suffix('.html').name}."
        )
    return max(fitting, key=len)
