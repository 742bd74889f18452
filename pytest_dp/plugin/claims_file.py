"""``dp-claims.json`` at the end of a run: it is written, or what no test was about is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.plugin.claims_seen import OUTPUT, Run, Seen
from pytest_dp.plugin.failure import count_as_error
from pytest_dp.plugin.names import claims_path, ini
from pytest_dp.plugin.selection import TYPED, command_line, scope

CHOICES = ("auto", "check", "update", "off")
_JUDGED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def _mode(config: pytest.Config, worker: bool) -> str:
    """What was asked for, one of `CHOICES`."""
    option = getattr(config.option, "dp_claims", None)
    mode: str = option or ini(config, "claims") or "auto"
    if mode not in CHOICES:
        where = "--dp-claims" if option else "ini key dp_claims"
        raise pytest.UsageError(
            f"{where}: Invalid claims={mode!r}. Valid choices: {', '.join(map(repr, CHOICES))}."
        )
    typed = worker or any(word.startswith("--dp-claims") for word in command_line(config))
    if mode in ("update", "off") and not typed:
        raise pytest.UsageError(
            f"dp_claims={mode} stands in a file, where a change would not be seen. Allowed there: "
            f"auto and check. Write --dp-claims={mode} on the command line."
        )
    return mode


def register(config: pytest.Config) -> None:
    """Compare claims with those on record, if there are any, or write them."""
    worker = hasattr(config, "workerinput")
    mode = _mode(config, worker)
    update = mode == "update"
    if update and config.option.collectonly:
        raise pytest.UsageError(
            "--dp-claims=update: some claims are known only once they are audited. Leave out "
            "--collect-only."
        )
    file = claims_path(config)
    if config.option.collectonly or mode == "off" or (mode == "auto" and not file.exists()):
        return
    seen = Seen(config, file, update=update)
    config.pluginmanager.register(seen, "dp_claims_seen")
    if not worker:
        config.pluginmanager.register(ClaimsFile(file, seen, update=update), "dp_claims_file")


class ClaimsFile:
    """Collects what became of all claims, and compares or writes them at the end of the run."""

    def __init__(self, file: Path, seen: Seen, *, update: bool) -> None:
        self.run = Run(file, seen.tests, update)
        self.crashed = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what was typed."""
        node.workerinput[TYPED] = command_line(node.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker has seen; nothing, if it crashed."""
        output = getattr(node, "workeroutput", {}).get(OUTPUT)
        self.crashed = self.crashed or output is None
        self.run.tests.update(json.loads(output or "{}"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Where something could not be collected, nothing is known of what is missing."""
        self.run.uncollected = self.run.uncollected or report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What became of a test; that of a later rerun takes its place."""
        test = report.nodeid
        self.run.reported.add(test)
        if hasattr(report, "dp_audited"):
            self.run.audited[test] = report.dp_audited
        if report.when == "setup":
            self.run.failed.discard(test)
        if report.failed:
            self.run.failed.add(test)
        if hasattr(report, "wasxfail"):
            self.run.ended[test] = _reason("xfailed", report.wasxfail)
        elif report.skipped:
            skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.run.ended[test] = _reason("skipped", skipped.removeprefix("Skipped: "))
        elif report.when == "call":
            self.run.ended.setdefault(test, "ran")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare or write, before reports are written and the end of the run is shown."""
        if session.exitstatus not in _JUDGED:
            if self.run.update:
                name = self.run.file.name
                self.run.lines.append(f"{name} is as it was: this run did not end as it should.")
            return
        self.run.stopped = bool(self.crashed or session.shouldstop or session.shouldfail)
        if self.crashed and not self.run.tests:
            self.run.uncollected = True
        if not self.run.update and self._about_none(session.config):
            return
        from pytest_dp.plugin.claims_judged import conclude

        conclude(self.run, session)

    def _about_none(self, config: pytest.Config) -> bool:
        """Whether this run was about no claim at all, so that nothing needs to be loaded."""
        if self.run.tests:
            return False
        try:
            names = list(json.loads(self.run.file.read_text(encoding="utf-8"))["claims"])
        except Exception:  # what is wrong with it is said by `conclude`
            return False
        return not any(map(scope(config, self.run.file.parent), names))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What is worth knowing of the claims on record; failures and changes with -q too."""
        quiet = terminalreporter.config.get_verbosity() < 0
        lines = [] if quiet and not self.run.update else self.run.lines
        if self.run.failures or (lines and not quiet):
            terminalreporter.write_sep("=", "claims on record")
        for failure in self.run.failures:
            terminalreporter.write_line(f"ERROR: {failure.name}", red=True, bold=True)
            for line in failure.message.splitlines():
                terminalreporter.write_line(f"  {line}".rstrip())
            count_as_error(terminalreporter, failure.name, failure.message)
        for line in lines:
            terminalreporter.write_line(line)


def _reason(word: str, text: str) -> str:
    text = " ".join(re.sub(r"^reason: ", "", text).split())
    return f"{word}: {text}" if text else word
