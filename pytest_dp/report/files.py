"""The files of ``--dp-report``, by their ending; a JSON report can be read again."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pytest_dp import __version__
from pytest_dp.basics import clocks
from pytest_dp.basics.errors import ClaimError
from pytest_dp.registry import load_entry_points
from pytest_dp.report.alarms import code_quality, sarif
from pytest_dp.report.html import page
from pytest_dp.report.record import VERSION, Record
from pytest_dp.results.outcome import plain

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


@dataclass(frozen=True, slots=True)
class Run:
    """Facts of a run as a whole, for its reports."""

    located: Callable[[str], str]
    """From the path of a file to the path as seen from the root of the repository."""
    linked: Callable[[str], str]
    """To the path as seen from the report."""
    about: Mapping[str, str]
    """Project, commit, branch and profile, as far as they are known."""


FORMATS: dict[str, Callable[[Sequence[Record], Run], str]] = {
    ".json": lambda records, run: as_json(records),  # noqa: ARG005
    ".gitlab.json": lambda records, run: code_quality(records, run.located),
    ".sarif": lambda records, run: sarif(records, __version__, run.located),
    ".html": lambda records, run: page(records, versions(), about=run.about, linked=run.linked),
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
