"""All records of a run as one document: what a JSON report is, and what it can be read from."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pytest_dp import clocks
from pytest_dp.report.record import VERSION, Record

PACKAGES = ("pytest-dp", "pytest", "numpy", "scipy")


def versions() -> dict[str, str]:
    """What ran: Python, this package, and those that it stands on."""
    numbers = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:  # run from its source, without being installed
            continue
    return numbers


def as_json(records: Iterable[Record], created: datetime | None = None) -> str:
    """The document that `pytest_dp/report/record.schema.json` describes."""
    document = {
        "version": VERSION,
        "created": (created or clocks.now()).isoformat(timespec="seconds"),
        "versions": versions(),
        "claims": [replace(record, pictures=None).as_dict() for record in records],
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def read(text: str) -> list[Record]:
    """The records of a document.

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
    except (KeyError, TypeError) as error:
        raise ValueError(f"This report of pytest-dp is damaged: {error!r}.") from None
