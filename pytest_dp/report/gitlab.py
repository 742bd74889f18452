"""Claims that alarm somebody, as GitLab's merge requests show them: a code quality report.

Source: GitLab, "Code Quality", section on tools of one's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pytest_dp.report.record import Record
from pytest_dp.report.sarif import fingerprint

_SEVERITIES = {
    "violated": "critical",
    "weakened": "major",
    "error": "major",
    "inconclusive": "minor",
    "beyond": "info",
}


def code_quality(
    records: Sequence[Record], located: Callable[[str], str] = lambda path: path
) -> str:
    """An entry for each claim that is violated, was not audited, or told nothing.

    What a test expects to be violated is passed over. `located` leads from the path of a record to
    one relative to the root of the repository.
    """
    entries: list[dict[str, Any]] = [
        {
            "description": f"{record.name}: {record.headline}",
            "check_name": f"dp-claim-{record.status}",
            "fingerprint": fingerprint(record),
            "severity": _SEVERITIES[record.status],
            "location": _place(located(record.path), record.line or 1),
            **({"other_locations": others} if (others := _others(record, located)) else {}),
        }
        for told in records
        for record in told.all
        if record.status in _SEVERITIES and not told.expected
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _others(record: Record, located: Callable[[str], str]) -> list[dict[str, Any]]:
    """Lines at which privacy leaks; of Code Climate's format, which GitLab's is a part of."""
    return [_place(located(leak.file), leak.line) for leak in record.blame]


def _place(path: str, line: int) -> dict[str, Any]:
    return {"path": path, "lines": {"begin": line}}
