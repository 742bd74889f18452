"""``dp-claims.json`` beside the claims of a run: each claim's own test fails with what is less.

What no test can fail with is told at the end of the run. With xdist, that is another process than
those which run tests: it is told of them in plain values. Little is loaded before a claim is met.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.basics.errors import ClaimsFileError
from pytest_dp.plugin.claim_session import (
    MARKER,
    audits_of,
    claim_session_of,
    claims_path,
    count_as_error,
    read_ini,
)

if TYPE_CHECKING:
    from pytest_dp.report.record import Record

CHOICES = ("auto", "check", "update", "off")
_JUDGED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_OUTPUT = "dp_claims"


def _claims_mode(config: pytest.Config, worker: bool) -> str:
    """Return the mode that is set; raise UsageError for unknown ones, and for lax ones in files."""
    option = getattr(config.option, "dp_claims", None)
    mode: str = option or read_ini(config, "claims") or "auto"
    if mode not in CHOICES:
        where = "--dp-claims" if option else "ini key dp_claims"
        raise pytest.UsageError(
            f"{where}: Invalid claims={mode!r}. Valid choices: {', '.join(map(repr, CHOICES))}."
        )
    if (
        mode in ("update", "off")
        and not worker
        and "dp_claims" not in claim_session_of(config).typed_options
    ):
        raise pytest.UsageError(
            f"dp_claims={mode} stands in a file, where a change would not be seen. Allowed there: "
            f"auto and check. Write --dp-claims={mode} on the command line."
        )
    return mode


def register_claims_file(config: pytest.Config) -> None:
    """Register the plugin that compares claims with ``dp-claims.json``, or writes the file.

    Registers nothing if the mode is "off", or "auto" without a file, or if tests are only
    collected. Raises UsageError as `_claims_mode`, and for an update without audits.
    """
    mode = _claims_mode(config, hasattr(config, "workerinput"))
    if mode == "update" and config.option.collectonly:
        raise pytest.UsageError(
            "--dp-claims=update: some claims are known only once they are audited. Leave out "
            "--collect-only."
        )
    file = claims_path(config)
    if config.option.collectonly or mode == "off" or (mode == "auto" and not file.exists()):
        return
    config.pluginmanager.register(ClaimsFile(config, file, mode == "update"), "dp_claims_file")


class ClaimsFile:
    """A plugin of pytest that compares the claims of a run with ``dp-claims.json``, or writes it.

    Attributes
    ----------
    tests : dict
        The tests with claims: their ``id`` in the file, ``path`` and ``line``, the ``entry`` of the
        claim as far as that is known without an audit, and whether it is ``left_out`` of the run.
    audited : dict
        The number of each audit, the entry of its claim, and whether the test expects it to be
        broken.
    ended : dict
        By node id: ``"ran"``, or why the test did not run; empty if it has not ended.
    failed : set
    uncollected, stopped : bool
        Whether something could not be collected; whether the run ended before all tests were run.
    lines : list of str
        What the end of the run prints.
    failures : list of Record
        Failures of the run beside its tests: a claim that no test was about, or the file itself.
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

    @cached_property
    def entries_on_record(self) -> dict[str, Any] | None:
        """The entries on record; None for a missing or damaged file, which the end reports."""
        from pytest_dp.records.entries import load_entries

        with suppress(ClaimsFileError):
            return load_entries(self.file) if self.file.exists() else None
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Add each test with a claim to `tests`, and note whether the run leaves it out."""
        before = [item for item in items if item.get_closest_marker(MARKER) is not None]
        outcome = yield
        left = {id(item) for item in items}
        for item in before:
            from pytest_dp.plugin.claims_judged import describe_test

            self.tests[item.nodeid] = describe_test(item, self.file, id(item) not in left)
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put audited entries on the report; fail a passed test if they are less than on record."""
        report = yield
        if call.when == "call" and audits_of(item).ended:
            from pytest_dp.plugin.claims_judged import audited_entries, fail_weakened_test

            entries = audited_entries(self, item, call, report)
            report.__dict__["dp_audited"] = entries
            if report.passed and not hasattr(report, "wasxfail") and not self.update:
                fail_weakened_test(self, item, report, entries)
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the tests that a worker has collected; if it crashed, note that the run stopped."""
        output = getattr(node, "workeroutput", {}).get(_OUTPUT)
        self.stopped = self.stopped or output is None
        self.tests.update(json.loads(output or "{}"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note whether a collector failed, as missing claims are then unknown."""
        self.uncollected = self.uncollected or report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test; a rerun replaces it."""
        test = report.nodeid
        if hasattr(report, "dp_audited"):
            self.audited[test] = report.dp_audited
        if report.when == "setup":
            self.failed.discard(test)
        if report.failed:
            self.failed.add(test)
        ended = self.ended.setdefault(test, "")
        if hasattr(report, "wasxfail"):
            self.ended[test] = _reason_in_words("xfailed", report.wasxfail)
        elif report.skipped:
            skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.ended[test] = _reason_in_words("skipped", skipped.removeprefix("Skipped: "))
        elif report.when == "call":
            self.ended[test] = ended or "ran"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare claims with the file, or write it, after a normal end; a worker sends tests."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = json.dumps(self.tests)
            return
        if session.exitstatus not in _JUDGED:
            if self.update:
                name = self.file.name
                self.lines.append(f"{name} was not changed: this run did not end normally.")
            return
        if self.stopped and not self.tests:  # as workers crashed
            self.uncollected = True
        self.stopped = bool(self.stopped or session.shouldstop or session.shouldfail)
        from pytest_dp.plugin.claims_judged import conclude_claims

        conclude_claims(self, session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print changes of claims on record; with -q, only failures and updates."""
        quiet = terminalreporter.config.get_verbosity() < 0
        lines = [] if quiet and not self.update else self.lines
        if self.failures or (lines and not quiet):
            terminalreporter.write_sep("=", "claims on record")
        for failure in self.failures:
            terminalreporter.write_line(f"ERROR: {failure.nodeid}", red=True, bold=True)
            for line in failure.details.splitlines():
                terminalreporter.write_line(f"  {line}".rstrip())
            count_as_error(terminalreporter, failure.nodeid, failure.details)
        for line in lines:
            terminalreporter.write_line(line)


def _reason_in_words(word: str, text: str) -> str:
    """Return ``"WORD: TEXT"``, on one line; only the word without a text."""
    text = " ".join(re.sub(r"^reason: ", "", text).split())
    return f"{word}: {text}" if text else word
