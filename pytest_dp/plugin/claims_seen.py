"""Claims on record where tests are run: each claim's own test fails with what is less.

With xdist that is another process than the one that ends the run, which is told in plain values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.plugin.names import AUDITED, MARKER

if TYPE_CHECKING:
    from pytest_dp.records.judging import Collected, Judgement
    from pytest_dp.report.record import Record

OUTPUT = "dp_claims"
_GROUP = re.compile(r"@[^\]@]*$")
"""What xdist appends to an id with ``--dist=loadgroup``."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What no test could fail with: a claim that none was about, or the file itself."""

    name: str
    """The claim's id, or the name of the file."""
    message: str
    file: Path
    """Where to look."""
    line: int


@dataclass
class Run:
    """What is known of a run at its end."""

    file: Path
    """Where claims are on record."""
    tests: dict[str, dict[str, Any]]
    """What was collected, as `Seen` tells it."""
    update: bool
    audited: dict[str, list[Any]] = field(default_factory=dict)
    """By test, the number of each audit, the entry of its claim, and whether the test expects it to
    be broken."""
    ended: dict[str, str] = field(default_factory=dict)
    """By test, ``"ran"``, or why it did not, in words."""
    failed: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    """Tests of which there was a report."""
    uncollected: bool = False
    """Whether something could not be collected."""
    stopped: bool = False
    """Whether the run ended before all tests were run, and says so."""
    lines: list[str] = field(default_factory=list)
    """What is worth knowing at the end."""
    failures: list[Failure] = field(default_factory=list)


def id_of(file: Path, root: Path, nodeid: str, marks: Collection[str] = ()) -> str:
    """The id of a test as in the file, whatever the root of this run is."""
    from pytest_dp.plugin.failure import relative

    path, colons, name = nodeid.partition("::")
    if "xdist_group" in marks:
        name = _GROUP.sub("", name)
    return relative(root / path, file.parent) + colons + name


def ids(file: Path, root: Path, tests: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The ids of tests as in the file, by their node ids."""
    return {nodeid: id_of(file, root, nodeid, test["marks"]) for nodeid, test in tests.items()}


class Seen:
    """The tests with claims of one process, by their node ids.

    Each has ``path`` and ``line``, its ``marks``, the ``entry`` of its claim as far as that is
    known without an audit, and ``state``: "collected", "deselected", or "removed" by something that
    does not say so.
    """

    def __init__(self, config: pytest.Config, file: Path, *, update: bool) -> None:
        self.config, self.file, self.update = config, file, update
        self.tests: dict[str, dict[str, Any]] = {}
        self._recorded: dict[str, Any] | None = None
        self._looked_up = False
        self._known: dict[str, str] = {}
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
        """Send along what was audited; fail a test whose claim is less than on record."""
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
            if report.passed and not hasattr(report, "wasxfail") and not self.update:
                self._compare(item, report, entries)
        return report

    def _compare(self, item: pytest.Item, report: pytest.TestReport, audits: Sequence[Any]) -> None:
        """Let a test that passed fail for the first of its claims that is less than on record."""
        from pytest_dp.records.judging import judged

        recorded = self._on_record()
        if recorded is None:
            return
        if len(self._known) != len(self.tests):
            self._known = ids(self.file, self.config.rootpath, self.tests)
        known = self._known
        if item.nodeid not in known:
            return
        for number, entry, expected in audits:
            name = numbered(known[item.nodeid], number)
            told = judged(recorded, found(recorded, known.values(), name, entry))
            if told is not None and told.fails and not expected:
                hint = f"This is call {number} of dp_check in the test." if number > 1 else ""
                self._fail(item, report, told, hint)
                return

    def _on_record(self) -> dict[str, Any] | None:
        """The entries on record; None if there are none that can be compared with."""
        from pytest_dp.errors import ClaimsFileError
        from pytest_dp.records.storing import load

        if not self._looked_up and self.file.exists():
            self._looked_up = True
            with suppress(ClaimsFileError):  # which is told once, at the end of the run
                self._recorded = load(self.file)
        return self._recorded

    def _fail(
        self, item: pytest.Item, report: pytest.TestReport, told: Judgement, hint: str
    ) -> None:
        from pytest_dp.errors import WeakenedClaim
        from pytest_dp.plugin.failure import decorator_source, represent
        from pytest_dp.plugin.markers import place
        from pytest_dp.records.judging import message

        path, start = place(item)
        wanted = [re.compile(rf"\b{name}\s*=") for name in told.keywords]
        lines = enumerate(decorator_source(item.path, start), start)
        line = next((at for at, text in lines if any(p.search(text) for p in wanted)), start)
        error = WeakenedClaim(message(told, self.file.name, hint))
        report.outcome = "failed"
        report.longrepr = represent(error, self.config, item.path, line, start)
        record = record_of(item.nodeid, path, line, str(error))
        report.__dict__.setdefault("dp_records", []).append(record.as_dict())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """From a worker, to the process that started it."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OUTPUT] = json.dumps(self.tests)


def record_of(name: str, path: str, line: int, message: str) -> Record:
    """What reports are told of a claim that is not as on record."""
    from pytest_dp.report.record import Record

    record = Record.of_error(name, path, line, message, status="weakened")
    return replace(record, headline=" ".join(message.partition("\n\n")[0].split()))


def numbered(name: str, number: int) -> str:
    """The id of one of the audits of a test."""
    return name if number == 1 else f"{name}#{number}"


def found(
    recorded: Mapping[str, Any],
    known: Collection[str],
    name: str,
    entry: dict[str, Any] | None,
    hidden: str = "",
    selected: bool = True,
) -> Collected:
    """A claim beside what is on record of it."""
    from pytest_dp.records.judging import Collected, counterpart

    return Collected(name, entry, hidden, selected, counterpart(recorded, known, name, entry))


def _described(item: pytest.Item, state: str) -> dict[str, Any]:
    from pytest_dp.claim import Claim
    from pytest_dp.plugin.markers import place

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
    settings = written(item.config, claim)
    own_ones = {name: written(item.config, claim, profile(name)) for name in of_project()}
    kept = entry(claim, settings, mechanism, parts, resolved, profiles=own_ones)
    chosen = typed_profile(item.config)
    if chosen in own_ones:
        usual = written(item.config, claim, own(chosen))
        kept["chosen"] = {"profile": chosen, "usual": differing(usual, kept["effort"])}
    return kept
