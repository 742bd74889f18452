"""The formats of ``--dp-report``, by the ending of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dp import __version__
from pytest_dp.errors import ClaimError
from pytest_dp.report.document import as_json, versions
from pytest_dp.report.gitlab import code_quality
from pytest_dp.report.html import page
from pytest_dp.report.record import Record
from pytest_dp.report.sarif import sarif

Located = Callable[[str], str]
"""From the path of a file to the path as seen from the root of the repository."""

FORMATS: dict[str, Callable[[Sequence[Record], Located], str]] = {
    ".json": lambda records, located: as_json(records),  # noqa: ARG005
    ".gitlab.json": code_quality,
    ".sarif": lambda records, located: sarif(records, __version__, located),
    ".html": lambda records, located: page(records, versions()),  # noqa: ARG005
}
"""What writes the report of a run, by the ending of its file. The longest ending counts."""


def ending(file: Path) -> str:
    """The ending that says which format a file has.

    Raises ClaimError if there is no such format.
    """
    fitting = [known for known in FORMATS if file.name.lower().endswith(known)]
    if not fitting:
        raise ClaimError(
            f"the ending of {file.name} names no format. Allowed: {', '.join(FORMATS)}, such as "
            f"{file.with_suffix('.html').name}."
        )
    return max(fitting, key=len)
