"""Which claims a process collects and audits: told to whoever compares them with those on record.

With xdist that is another process; so all of it is plain values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dp.errors import PytestDPError
from pytest_dp.plugin.names import AUDITED, MARKER

OUTPUT = "dp_claims"


_GROUP = re.compile(r"@[^\]@]*$")
"""What xdist appends to an id with ``--dist=loadgroup``."""


class Failure(NamedTuple):
    """What fails: a claim that is less than on record, or the file itself."""

    kind: str
    """What became of the claim; empty for the file."""
    name: str
    """The claim's id; empty for the file."""
    error: PytestDPError
    file: Path
    """Where something has changed."""
    line: int
    source_line: int | None = None
    """Where the claim begins."""


@dataclass
class Run:
    """What is known of a run at its end."""

    file: Path
    """Where claims are on record."""
    tests: dict[str, dict[str, Any]]
    """What was collected, as `Seen` tells it."""
    audited: dict[str, list[Any]] = field(default_factory=dict)
    """By test, the number of each audit, the entry of its claim, and whether the test expects it to
    be broken."""
    ended: dict[str, str] = field(default_factory=dict)
    """By test, ``"ran"``, or why it did not, in words."""
    failed: set[str] = field(default_factory=set)
    """Tests that failed for themselves."""
    reported: set[str] = field(default_factory=set)
    """Tests of which there was a report."""
    uncollected: bool = False
    """Whether something could not be collected."""
    stopped: bool = False
    """Whether the run ended before all tests were run, and says so."""
    lines: list[str] = field(default_factory=list)
    """What is worth knowing at the end."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """What ids are relative to."""
        return self.file.parent

    def id_of(self, root: Path, nodeid: str) -> str:
        """The id of a test as in the file, whatever the root of this run is."""
        from pytest_dp.plugin.failure import relative

        path, colons, name = nodeid.partition("::")
        if "xdist_group" in self.tests.get(nodeid, {}).get("marks", ()):
            name = _GROUP.sub("", name)
        return relative(root / path, self.folder) + colons + name


class Seen:
    """The tests with claims of one process, by their ids.

    Each has ``path`` and ``line``, its ``marks``, the ``entry`` of its claim as far as that is
    known without an audit, and ``state``: "collected", "deselected", or "removed" by something that
    does not say so.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: dict[str, dict[str, Any]] = {}
        self._announced: set[int] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Look at the tests before any are left out, and after."""
        before = [item for item in items if item.get_closest_marker(MARKER) is not None]
        outcome = yield
        left = {id(item) for item in items}
        for item in before:
            gone = "deselected" if id(item) in self._announced else "removed"
            state = "collected" if id(item) in left else gone
            self.tests[item.nodeid] = _described(item, state)
        return outcome

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Those that are left out with notice."""
        self._announced |= {id(item) for item in items}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send along what was audited."""
        report = yield
        audits = item.stash.get(AUDITED, []) if call.when == "call" else []
        if audits:
            error = call.excinfo.value if call.excinfo is not None else None
            raised = getattr(error, "result", None)
            passed = report.outcome != "failed"
            known = self.tests.get(item.nodeid, {}).get("entry") or {}
            before = {name: known[name] for name in ("effort", "params") if name in known}
            entries = []
            for number, mechanism, claim, result in audits:
                entry = _entry(item, mechanism, claim, result.claim.promise)
                entry |= before  # as runs may leave something in what functions name
                expected = result.violated and (passed or result is not raised)
                entries.append((number, entry, expected))
            report.__dict__["dp_audited"] = entries
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """From a worker, to the process that started it."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = json.dumps(self.tests)


def _described(item: pytest.Item, state: str) -> dict[str, Any]:
    from pytest_dp.claim import Claim
    from pytest_dp.plugin.check import place

    path, line = place(item)
    claim = getattr(item, "claim", None)
    entry = _entry(item, item.mechanism, claim) if isinstance(claim, Claim) else None  # type: ignore[attr-defined]
    marks = sorted({mark.name for mark in item.iter_markers()})
    return {"path": path, "line": line, "marks": marks, "entry": entry, "state": state}


def _entry(item: pytest.Item, mechanism: Any, claim: Any, resolved: Any = None) -> dict[str, Any]:
    from pytest_dp.keywords import read_one
    from pytest_dp.plugin.options import typed_profile, written
    from pytest_dp.profiles import of_project, own, profile
    from pytest_dp.records.entries import differing, entry

    declaration = getattr(item, "declaration", None)
    marker = item.get_closest_marker(MARKER)
    given = declaration.keywords if declaration is not None else marker.kwargs if marker else {}
    composes = given.get("composes")
    parts = read_one("composes", composes) if composes is not None else ()
    settings, strict = written(item.config, claim)
    own_ones = {name: written(item.config, claim, profile(name)) for name in of_project()}
    kept = entry(claim, settings, mechanism, parts, resolved, strict=strict, profiles=own_ones)
    chosen = typed_profile(item.config)
    if chosen in own_ones:
        usual = written(item.config, claim, own(chosen))
        kept["chosen"] = {"profile": chosen, "usual": differing(usual, kept["effort"])}
    return kept
