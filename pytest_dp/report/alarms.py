"""Statuses of claims, and those that alarm somebody, for code scanning, GitLab and test reports.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub, "SARIF
support for code scanning", which says what of it is shown; GitLab, "Code Quality", section on tools
of one's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pytest_dp.report.record import Record


@dataclass(frozen=True, slots=True)
class StatusLook:
    """How a status is shown."""

    words: str
    """Of one claim: ``"not audited"``."""
    heading: str
    """Of several."""
    sign: str
    """In a page."""
    emoji: str
    """On GitHub."""
    style: str
    """The class of a page's style sheet: ``"bad"``, ``"warn"`` or ``"good"``."""
    alarm: AlarmEntry | None = None
    """None where nothing is wrong."""

    @property
    def colour(self) -> dict[str, bool]:
        """The marks of pytest's terminal."""
        return _COLOURS[self.style]

    @property
    def rule(self) -> str:
        """The name of the status in code scanning."""
        return f"dp-claim-{self.words.replace(' ', '-')}"


@dataclass(frozen=True, slots=True)
class AlarmEntry:
    """The entry of a status in code scanning."""

    help: str
    level: str
    """Of SARIF and of GitHub's annotations: ``"error"``, ``"warning"`` or ``"note"``."""
    severity: str
    """From 0.0 to 10.0, as GitHub takes it."""
    gitlab: str


_COLOURS = {"bad": {"red": True, "bold": True}, "warn": {"yellow": True}, "good": {"green": True}}
STATUSES = {
    "violated": StatusLook(
        *("violated", "Violated", "✗", "❌", "bad"),
        AlarmEntry(
            "Two neighbouring inputs and an event show that the mechanism loses more privacy than "
            "it claims. Compare the noise with the sensitivity between exactly these two inputs.",
            *("error", "8.0", "critical"),
        ),
    ),
    "weakened": StatusLook(
        *("not as on record", "Not as on record", "✗", "❌", "bad"),
        AlarmEntry(
            "The claim is less than dp-claims.json has on record, hidden, gone, or not on record. "
            "If this is intended, run pytest --dp-claims=update and commit the file.",
            *("error", "6.0", "major"),
        ),
    ),
    "error": StatusLook(
        *("not audited", "Not audited", "✗", "❌", "bad"),
        AlarmEntry(
            "The claim or the mechanism raised an error, so nothing is known about it.",
            *("error", "5.0", "major"),
        ),
    ),
    "inconclusive": StatusLook(
        *("inconclusive", "Inconclusive", "?", "⚠️", "warn"),
        AlarmEntry("The message says why, and what to do.", *("warning", "2.0", "minor")),
    ),
    "no violation": StatusLook("no violation", "No violation found", "✓", "✅", "good"),
    "unchanged": StatusLook("unchanged", "Unchanged", "✓", "✅", "good"),
    "beyond": StatusLook(
        *("broken outside the declared inputs", "Outside the declared inputs", "!", "⚠️", "warn"),
        AlarmEntry(
            "If the mechanism takes such data, add it to the claim's inputs and fix the "
            'mechanism. If it never gets any, write beyond="off" into the claim.',
            *("note", "1.0", "info"),
        ),
    ),
}
"""The statuses of a record, the most alarming first, but for `beyond`, which is told beside one."""
ORDER = list(STATUSES)
ALARMS = {status: shown.alarm for status, shown in STATUSES.items() if shown.alarm is not None}

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
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
                "name": "pytest-dp",
                "semanticVersion": version,
                "rules": [_rule(STATUSES[status], alarm) for status, alarm in ALARMS.items()],
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


def _rule(status: StatusLook, alarm: AlarmEntry) -> dict[str, Any]:
    return {
        "id": status.rule,
        "shortDescription": {"text": f"A differential privacy claim is {status.words}"},
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
        "ruleId": STATUSES[record.status].rule,
        "ruleIndex": list(ALARMS).index(record.status),
        "level": alarm.level,
        "message": {"text": text},
        "locations": [_location(located(record.path), record.line)],
        "relatedLocations": related,
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
            "check_name": STATUSES[record.status].rule,
            "fingerprint": alarm_fingerprint(record),
            "severity": ALARMS[record.status].gitlab,
            "location": {"path": located(record.path), "lines": {"begin": record.line or 1}},
        }
        for record in _select_alarms(records)
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def junit_properties(record: Record) -> list[tuple[str, object]]:
    """Return the JUnit properties of a claim: ``dp_verdict``, fields that have a value, blame."""
    known = [(f"dp_{name}", getattr(record, name)) for name in _IN_JUNIT]
    known += [("dp_lower", "infinity")] if record.lower is None else []
    known += [("dp_blame", f"{leak.place}: {leak.message}") for leak in record.blame]
    return [("dp_verdict", record.status), *((n, v) for n, v in known if v not in (None, ""))]
