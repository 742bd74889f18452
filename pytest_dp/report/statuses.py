"""Statuses of claims: their names, their looks, and their severity for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    colour: dict[str, Any]
    """In a terminal."""
    alarm: AlarmEntry | None = None
    """None where nothing is wrong."""


@dataclass(frozen=True, slots=True)
class AlarmEntry:
    """The entry of a status in code scanning."""

    rule: str
    title: str
    help: str
    level: str
    """Of SARIF and of GitHub's annotations: ``"error"``, ``"warning"`` or ``"note"``."""
    severity: str
    """From 0.0 to 10.0, as GitHub takes it."""
    gitlab: str


_BAD: dict[str, Any] = {"red": True, "bold": True}
STATUSES = {
    "violated": StatusLook(
        *("violated", "Violated", "✗", "❌", "bad", _BAD),
        AlarmEntry(
            "dp-claim-violated",
            "A differential privacy claim is violated",
            "Two neighbouring inputs and an event show that the mechanism loses more privacy than "
            "it claims. Compare the noise with the sensitivity between exactly these two inputs.",
            *("error", "8.0", "critical"),
        ),
    ),
    "weakened": StatusLook(
        *("not as on record", "Not as on record", "✗", "❌", "bad", _BAD),
        AlarmEntry(
            "dp-claim-weakened",
            "A differential privacy claim is not as on record",
            "The claim is less than dp-claims.json has on record, hidden, gone, or not on record. "
            "If this is intended, run pytest --dp-claims=update and commit the file.",
            *("error", "6.0", "major"),
        ),
    ),
    "error": StatusLook(
        *("not audited", "Not audited", "✗", "❌", "bad", _BAD),
        AlarmEntry(
            "dp-claim-not-audited",
            "A differential privacy claim could not be audited",
            "The claim or the mechanism raised an error, so nothing is known about it.",
            *("error", "5.0", "major"),
        ),
    ),
    "inconclusive": StatusLook(
        *("inconclusive", "Inconclusive", "?", "⚠️", "warn", {"yellow": True}),
        AlarmEntry(
            "dp-claim-inconclusive",
            "An audit of a differential privacy claim could tell nothing",
            "The message says why, and what to do.",
            *("warning", "2.0", "minor"),
        ),
    ),
    "no violation": StatusLook(
        *("no violation", "No violation found", "✓", "✅", "good", {"green": True})
    ),
    "unchanged": StatusLook(*("unchanged", "Unchanged", "✓", "✅", "good", {"green": True})),
    "beyond": StatusLook(
        *("broken outside the declared inputs", "Outside the declared inputs", "!", "⚠️", "warn"),
        {"yellow": True},
        AlarmEntry(
            "dp-claim-broken-beyond-examples",
            "A differential privacy claim is broken outside the declared inputs",
            "If the mechanism takes such data, add it to the claim's inputs and fix the "
            'mechanism. If it never gets any, write beyond="off" into the claim.',
            *("note", "1.0", "info"),
        ),
    ),
}
"""The statuses of a record, the most alarming first, but for `beyond`, which is told beside one."""
ORDER = list(STATUSES)
ALARMS = {status: shown.alarm for status, shown in STATUSES.items() if shown.alarm is not None}
