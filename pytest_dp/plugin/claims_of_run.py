"""State of a run whose claims are compared with ``dp-claims.json``."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.basics.errors import ClaimsFileError

if TYPE_CHECKING:
    from pytest_dp.report.record import Record


class ClaimsOfRun:
    """The claims of a run, and the tests that they belong to, by node ids.

    Attributes
    ----------
    tests : dict
        The tests with claims: their ``id`` in the file, ``path`` and ``line``, the ``entry`` of the
        claim as far as that is known without an audit, and ``state``: "collected", "deselected", or
        "removed" by something that does not say so.
    audited : dict
        The number of each audit, the entry of its claim, and whether the test expects it to be
        broken.
    ended : dict
        ``"ran"``, or why it did not, in words; empty where it has not come to an end.
    failed : set
    uncollected, stopped : bool
        Whether something could not be collected; whether the run ended before all tests were run.
    lines : list of str
        What is worth knowing at the end.
    failures : list of Record
        What no test could fail with: a claim that none was about, or the file itself.
    """

    def __init__(self, config: pytest.Config, file: Path, update: bool) -> None:
        self.config, self.file, self.update = config, file, update
        self.tests: dict[str, dict[str, Any]] = {}
        self.audited: dict[str, list[Any]] = {}
        self.ended: dict[str, str] = {}
        self.failed: set[str] = set()
        self.uncollected = self.stopped = False
        self.lines: list[str] = []
        self.failures: list[Record] = []
        self._announced: set[int] = set()

    @cached_property
    def recorded(self) -> dict[str, Any] | None:
        """The entries on record; None where there are none, which is told as the run ends."""
        from pytest_dp.records.storing import load_entries

        with suppress(ClaimsFileError):
            return load_entries(self.file) if self.file.exists() else None
        return None
