"""Claims that alarm somebody, for code scanning: SARIF 2.1.0.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub, "SARIF
support for code scanning", which says what of it is shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from pytest_dp.report.record import Record

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_RULES = {
    "violated": (
        "dp-claim-violated",
        "A differential privacy claim is violated",
        "Two neighbouring inputs and an event show that the mechanism loses more privacy than it "
        "claims. Compare the noise with the sensitivity between exactly these two inputs.",
        "error",
        "8.0",
    ),
    "weakened": (
        "dp-claim-weakened",
        "A differential privacy claim is not as on record",
        "The claim is less than dp-claims.json has on record, hidden, gone, or not on record. If "
        "that is meant, run pytest --dp-claims=update and commit the file.",
        "error",
        "6.0",
    ),
    "error": (
        "dp-claim-not-audited",
        "A differential privacy claim could not be audited",
        "The claim or the mechanism raised an error, so nothing is known about it.",
        "error",
        "5.0",
    ),
    "inconclusive": (
        "dp-claim-inconclusive",
        "An audit of a differential privacy claim could tell nothing",
        "The message says why, and what to do.",
        "warning",
        "2.0",
    ),
    "beyond": (
        "dp-claim-broken-beyond-examples",
        "A differential privacy claim is broken on inputs beyond those that it gives",
        "If the mechanism takes such data, add it to the claim's inputs and mend the mechanism. If "
        'it never gets any, write beyond="off" into the claim.',
        "note",
        "1.0",
    ),
}
"""For each status: id, title, help, level, and how severe code scanning takes it to be."""


def sarif(
    records: Sequence[Record],
    version: str,
    located: Callable[[str], str] = lambda path: path,
) -> str:
    """A log of one run; with no results where nothing alarms, which closes earlier alerts.

    What a test expects to be violated is passed over, as is what stands. The version is that of
    this package. `located` leads from the path of a record to one relative to the root of the
    repository.
    """
    told = (told for record in records if not record.expected for told in record.all)
    alarming = [record for record in told if record.status in _RULES]
    run = {
        "tool": {
            "driver": {
                "name": "pytest-dp",
                "semanticVersion": version,
                "rules": [_rule(*rule) for rule in _RULES.values()],
            }
        },
        "automationDetails": {"id": "pytest-dp/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(record, located) for record in alarming],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def fingerprint(record: Record) -> str:
    """What stays the same while lines move: told by the test's id, and by what is wrong."""
    said = f"{record.nodeid}\0{record.status}".encode("utf-8", "backslashreplace")
    return hashlib.sha256(said).hexdigest()[:32]


def _rule(name: str, title: str, text: str, level: str, severity: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": text},
        "help": {"text": text},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["security", "privacy"], "security-severity": severity},
    }


def _result(record: Record, located: Callable[[str], str]) -> dict[str, Any]:
    name, _, _, level, _ = _RULES[record.status]
    blamed = "\n".join(f"{leak.place}: {leak.message}" for leak in record.blame)
    about = [record.headline, record.reason, record.counterexample, blamed, record.reproduce]
    if record.status == "weakened":
        about = [record.details]
    text = "\n\n".join(part for part in (record.name, *about) if part)
    related = [
        {
            "id": number,
            **_location(located(leak.file), leak.line),
            "message": {"text": leak.message},
        }
        for number, leak in enumerate(record.blame, 1)
    ]
    return {
        "ruleId": name,
        "ruleIndex": list(_RULES).index(record.status),
        "level": level,
        "message": {"text": text},
        "locations": [_location(located(record.path), record.line)],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"dpClaim/v1": fingerprint(record)},
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
