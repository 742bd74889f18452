"""Claims that alarm somebody, for other programs: code scanning, merge requests, test reports.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub, "SARIF
support for code scanning", which says what of it is shown; GitLab, "Code Quality", section on tools
of one's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from pytest_dp.report.record import Record
from pytest_dp.report.statuses import ALARMS, AlarmEntry

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
DRIVER = "pytest-dp"
"""The name of this tool in logs for code scanning."""
CHECKS = "dp-claim-"
"""With this, names of checks for GitLab begin."""
_IN_JUNIT = ("claim", "lower", "resolution", "strength", "samples", "seed")


def sarif(
    records: Sequence[Record],
    version: str,
    located: Callable[[str], str] = lambda path: path,
) -> str:
    """Return a log of one run; with no results where nothing alarms, which closes earlier alerts.

    What a test expects to be violated is passed over, as is what stands. The version is that of
    this package. `located` leads from the path of a record to one relative to the root of the
    repository.
    """
    run = {
        "tool": {
            "driver": {
                "name": DRIVER,
                "semanticVersion": version,
                "rules": [_rule(alarm) for alarm in ALARMS.values()],
            }
        },
        "automationDetails": {"id": "pytest-dp/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(record, located) for record in _select_alarms(records)],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _select_alarms(records: Sequence[Record]) -> list[Record]:
    told = (told for record in records if not record.expected for told in record.all)
    return [record for record in told if record.status in ALARMS]


def alarm_fingerprint(record: Record) -> str:
    """Return a fingerprint that survives moved lines, from the test's id and the status."""
    said = f"{record.nodeid}\0{record.status}".encode("utf-8", "backslashreplace")
    return hashlib.sha256(said).hexdigest()[:32]


def _rule(alarm: AlarmEntry) -> dict[str, Any]:
    return {
        "id": alarm.rule,
        "shortDescription": {"text": alarm.title},
        "fullDescription": {"text": alarm.help},
        "help": {"text": alarm.help},
        "defaultConfiguration": {"level": alarm.level},
        "properties": {"tags": ["security", "privacy"], "security-severity": alarm.severity},
    }


def _result(record: Record, located: Callable[[str], str]) -> dict[str, Any]:
    alarm = ALARMS[record.status]
    blamed = "\n".join(f"{leak.place}: {leak.message}" for leak in record.blame)
    about = record.name, *record.told, blamed, record.reproduce
    text = "\n\n".join(part for part in about if part)
    related = [
        {
            "id": number,
            **_location(located(leak.file), leak.line),
            "message": {"text": leak.message},
        }
        for number, leak in enumerate(record.blame, 1)
    ]
    return {
        "ruleId": alarm.rule,
        "ruleIndex": list(ALARMS).index(record.status),
        "level": alarm.level,
        "message": {"text": text},
        "locations": [_location(located(record.path), record.line)],
        **_if_any(relatedLocations=related),
        "partialFingerprints": {"dpClaim/v1": alarm_fingerprint(record)},
        "properties": {
            "claim": record.claim,
            "lower": record.lower,
            "samples": record.samples,
            "seed": record.seed,
        },
    }


def _location(path: str, line: int | None) -> dict[str, Any]:
    uri = quote(path, errors="backslashreplace")
    place: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def code_quality(
    records: Sequence[Record], located: Callable[[str], str] = lambda path: path
) -> str:
    """Return an entry for each claim that is violated, was not audited, or told nothing.

    What a test expects to be violated is passed over. `located` leads from the path of a record to
    one relative to the root of the repository.
    """
    entries: list[dict[str, Any]] = [
        {
            "description": f"{record.name}: {record.headline}",
            "check_name": f"{CHECKS}{record.status}",
            "fingerprint": alarm_fingerprint(record),
            "severity": ALARMS[record.status].gitlab,
            "location": _place(located(record.path), record.line or 1),
            # of Code Climate's format, which GitLab's is a part of
            **_if_any(other_locations=[_place(located(b.file), b.line) for b in record.blame]),
        }
        for record in _select_alarms(records)
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _if_any(**listed: list[Any]) -> dict[str, list[Any]]:
    return {name: found for name, found in listed.items() if found}


def _place(path: str, line: int) -> dict[str, Any]:
    return {"path": path, "lines": {"begin": line}}


def junit_properties(record: Record) -> list[tuple[str, object]]:
    """Return the JUnit properties of a claim: ``dp_verdict``, fields that have a value, blame."""
    known = [(f"dp_{name}", getattr(record, name)) for name in _IN_JUNIT]
    known += [("dp_lower", "infinity")] if record.lower is None else []
    known += [("dp_blame", f"{leak.place}: {leak.message}") for leak in record.blame]
    return [("dp_verdict", record.status), *((n, v) for n, v in known if v not in (None, ""))]
