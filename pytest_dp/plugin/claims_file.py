"""``dp-claims.json`` beside the claims of a run: each claim's own test fails with what is less.

What no test can fail with is told at the end of the run. With xdist, that is another process than
those which run tests: it is told of them in plain values. Little is loaded before a claim is met.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from pytest_dp.plugin.claim_session import audits_of
from pytest_dp.plugin.claims_of_run import ClaimsOfRun
from pytest_dp.plugin.failure import count_as_error
from pytest_dp.plugin.names import MARKER, claims_path, ini
from pytest_dp.plugin.selection import scope, typed_options

CHOICES = ("auto", "check", "update", "off")
_JUDGED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_OUTPUT = "dp_claims"


def _mode(config: pytest.Config, worker: bool) -> str:
    """Return the mode that is set, one of `CHOICES`."""
    option = getattr(config.option, "dp_claims", None)
    mode: str = option or ini(config, "claims") or "auto"
    if mode not in CHOICES:
        where = "--dp-claims" if option else "ini key dp_claims"
        raise pytest.UsageError(
            f"{where}: Invalid claims={mode!r}. Valid choices: {', '.join(map(repr, CHOICES))}."
        )
    if mode in ("update", "off") and not worker and "dp_claims" not in typed_options(config):
        raise pytest.UsageError(
            f"dp_claims={mode} stands in a file, where a change would not be seen. Allowed there: "
            f"auto and check. Write --dp-claims={mode} on the command line."
        )
    return mode


def register_claims_file(config: pytest.Config) -> None:
    """Compare claims with those on record, if there are any, or write them."""
    mode = _mode(config, hasattr(config, "workerinput"))
    if mode == "update" and config.option.collectonly:
        raise pytest.UsageError(
            "--dp-claims=update: some claims are known only once they are audited. Leave out "
            "--collect-only."
        )
    file = claims_path(config)
    if config.option.collectonly or mode == "off" or (mode == "auto" and not file.exists()):
        return
    config.pluginmanager.register(ClaimsFile(config, file, mode == "update"), "dp_claims_file")


class ClaimsFile(ClaimsOfRun):
    """The hooks by which the claims of a run are seen, compared and told."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Look at the tests before any are left out, and after."""
        before = [item for item in items if item.get_closest_marker(MARKER) is not None]
        outcome = yield
        left = {id(item) for item in items}
        for item in before:
            from pytest_dp.plugin.claims_judged import describe_test

            gone = "deselected" if id(item) in self._announced else "removed"
            state = "collected" if id(item) in left else gone
            self.tests[item.nodeid] = describe_test(item, self.file, state)
        return outcome

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note the items that pytest reports as deselected."""
        self._announced |= {id(item) for item in items}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send along what was audited; fail a test whose claim is less than on record."""
        report = yield
        if call.when == "call" and audits_of(item).made:
            from pytest_dp.plugin.claims_judged import compare_with_record, entries_of

            entries = entries_of(self, item, call, report)
            report.__dict__["dp_audited"] = entries
            if report.passed and not hasattr(report, "wasxfail") and not self.update:
                compare_with_record(self, item, report, entries)
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the claims that a worker has seen; none, if it crashed."""
        output = getattr(node, "workeroutput", {}).get(_OUTPUT)
        self.stopped = self.stopped or output is None
        self.tests.update(json.loads(output or "{}"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note whether a collector failed, as missing claims are then unknown."""
        self.uncollected = self.uncollected or report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test; a later rerun replaces it."""
        test = report.nodeid
        if hasattr(report, "dp_audited"):
            self.audited[test] = report.dp_audited
        if report.when == "setup":
            self.failed.discard(test)
        if report.failed:
            self.failed.add(test)
        ended = self.ended.setdefault(test, "")
        if hasattr(report, "wasxfail"):
            self.ended[test] = _reason("xfailed", report.wasxfail)
        elif report.skipped:
            skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.ended[test] = _reason("skipped", skipped.removeprefix("Skipped: "))
        elif report.when == "call":
            self.ended[test] = ended or "ran"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare or write, before reports are written and the end of the run is shown."""
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
        if self.update or not self._about_none():
            from pytest_dp.plugin.claims_judged import conclude_claims

            conclude_claims(self, session)

    def _about_none(self) -> bool:
        """Return whether this run had no claims at all, so that nothing needs to be loaded."""
        if self.tests:
            return False
        try:
            names = list(json.loads(self.file.read_text(encoding="utf-8"))["claims"])
        except Exception:  # what is wrong with it is said by `conclude`
            return False
        return not any(map(scope(self.config, self.file.parent), names))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print changes of claims on record; failures and updates with -q, too."""
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


def _reason(word: str, text: str) -> str:
    text = " ".join(re.sub(r"^reason: ", "", text).split())
    return f"{word}: {text}" if text else word
