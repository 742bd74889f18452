"""The outcomes of one session, and which claims a crashed worker of pytest-xdist left without one.

Workers tell what they collected by a file, before they run anything: what a process would tell at
its end, one that dies does not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.plugin.claim_session import claim_session_of
from pytest_dp.plugin.names import MARKER, option_or_ini, reports

TOLD = "dp_told"
"""The input of a worker that says where to tell what it collected."""


class Outcomes:
    """Outcomes of the claims of one session: the last report of each test that audited one."""

    def __init__(self, config: pytest.Config) -> None:
        self.reports: dict[str, pytest.TestReport] = {}
        self.ended: set[str] = set()
        self.crashed: dict[str, str] | None = None
        self.files: list[Path] = []
        self.problems: list[str] = []
        self.session: pytest.Session | None = None
        self.audited: set[Path] = set()
        """Files with claims that tests came of, whether they are run or not."""
        if reports(config):
            from pytest_dp.plugin.summary import report_files

            files = report_files(config)
            self.files = [] if config.option.collectonly else files

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Take reports of earlier runs away: should this one be killed, they are not its own."""
        if self.files:
            from pytest_dp.plugin.summary import remove_reports

            remove_reports(self.files)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note whose claims are tests."""
        if hasattr(item, "declaration"):
            self.audited.add(item.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Note that an xdist worker crashed."""
        if error is not None and self.crashed is None:
            self.crashed = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Note the test that a worker was running when it crashed."""
        self.crashed = (self.crashed or {}) | {crashitem: str(report.longrepr)}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the report; that of a later rerun takes its place."""
        if report.when == "teardown":
            self.ended.add(report.nodeid)
        if hasattr(report, "dp_records"):
            self.reports[report.nodeid] = report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what is wanted as files, also where no claim was met; call the hook of others."""
        if self.crashed is not None:
            self.reports |= _reports_of_unaudited(session.config, self.crashed, self.ended)
        if not self.reports and not self.files:
            return
        from pytest_dp.plugin.failure import reason
        from pytest_dp.plugin.summary import report_records

        records = report_records(self.reports.values())
        try:
            session.config.hook.pytest_dp_report(records=records, config=session.config)
        except Exception as error:  # of others; what was found is told in any case
            self.problems.append(f"pytest_dp_report of another plugin failed: {reason(error)}")
        if self.files:
            from pytest_dp.plugin.summary import write_reports

            self.problems += write_reports(self.files, records, session.config)
        self.session = session
        if self.problems:
            self.fail(session)

    def fail(self, session: pytest.Session) -> None:
        """Let the run fail for what could not be told."""
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of claims; on GitHub, write annotations and the job summary as well."""
        if self.reports:
            from pytest_dp.plugin.summary import report_records, show_table

            failed = show_table(terminalreporter, report_records(self.reports.values()))
            self.problems += failed
            if failed and self.session is not None:
                self.fail(self.session)
        for file in self.files:
            if not any(f"--dp-report={file} " in problem for problem in self.problems):
                terminalreporter.write_line(f"report of the privacy claims: {file}")
        for line in _not_collected(terminalreporter.config, self.audited):
            terminalreporter.write_line(line, yellow=True)
        faults = sys.modules.get("pytest_dp.basics.faults")
        for line in faults.pop_noted() if faults is not None else ():  # those of no audit
            terminalreporter.write_line(line, yellow=True)
        for problem in self.problems:
            from pytest_dp.plugin.failure import count_as_error

            terminalreporter.write_line(f"ERROR: {problem}", red=True, bold=True)
            count_as_error(terminalreporter, "pytest-dp", problem)


def _not_collected(config: pytest.Config, audited: Collection[Path]) -> list[str]:
    """Return a line for imported files with claims that no test of a whole run audits."""
    declaration = sys.modules.get("pytest_dp.declaration")
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    if declaration is None or chosen or config.option.collectonly:
        return []
    from pytest_dp.basics.whose_code import is_project_file
    from pytest_dp.plugin.failure import relative

    declared: dict[str, tuple[Any, Any]] = declaration.DECLARED
    files = {
        Path(str(spec.origin))
        for name, (spec, _) in declared.items()
        if getattr(sys.modules.get(name), "__spec__", None) is spec and spec is not None
    }
    switch = "" if option_or_ini(config, "modules") else "dp_modules = true, and "
    return [
        f"no test audits the claims in {place}: write {switch}{place} or its folder into testpaths"
        for file in sorted(files - {*audited})
        if is_project_file(str(file)) and config.rootpath in file.parents
        for place in [relative(file, config.rootpath)]
    ]


def tell(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Write a worker's claims and places for the main process; all workers collect the same."""
    file = config.workerinput.get(TOLD)  # type: ignore[attr-defined]
    claims = [item for item in items if item.get_closest_marker(MARKER) is not None]
    if not claims or file is None:
        return
    from pytest_dp.basics.writing import write_whole
    from pytest_dp.plugin.markers import place

    places = {item.nodeid: place(item) for item in claims}
    with suppress(OSError):  # on another machine, or where nothing can be written
        write_whole(Path(file), json.dumps(places).encode())


def _reports_of_unaudited(
    config: pytest.Config, crashed: Mapping[str, str], ended: Collection[str]
) -> dict[str, pytest.TestReport]:
    """Make reports of the claims whose audits did not end, by the ids of their tests.

    `crashed` has what pytest-xdist said of each test in which a worker crashed, `ended` the ids of
    tests that came to an end.
    """
    from pytest_dp.report.record import Record

    try:
        file = claim_session_of(config).collected_file or Path()
        told = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return {}
    reports = {}
    for nodeid, (path, line) in told.items():
        if nodeid in ended:
            continue
        message = "This claim was not audited: " + (
            f"{crashed[nodeid]}. Run it without pytest-xdist to see where: -n 0."
            if nodeid in crashed
            else "a worker process of pytest-xdist crashed, and the run ended before this claim "
            "did. Mend the test that crashed, or allow for more processes: --max-worker-restart."
        )
        report = pytest.TestReport(nodeid, (path, line - 1, nodeid), {}, "failed", message, "call")
        record = Record.of_error(nodeid, path, line, message)
        report.__dict__["dp_records"] = [record.as_dict()]
        reports[nodeid] = report
    return reports
