"""The state of one run of pytest, its outcomes with the hook for them, and how options are read.

Every run of pytest loads this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.claiming.setting_fields import OPTIONS

if TYPE_CHECKING:
    from pytest_dp.report.record import Record

MARKER = "dp_claim"
PLUGIN = "dp_session"
"""The name under which pytest knows the `ClaimSession`."""
_CLAIMS = "__dp_claims__"


@dataclass(slots=True)
class Audits:
    """The audits of one test."""

    made: list[tuple[int, Any, Any, Any]] = field(default_factory=list)
    """The number of each audit, the mechanism, the claim as written, and the result."""
    records: list[tuple[Any, Any]] = field(default_factory=list)
    """The record of each audit that ended, and its result."""
    calls: int = 0
    """How often ``dp_check`` was called."""
    claim: Any = None
    """The claim of the last call."""
    is_uncalled: bool = False
    """Whether the test took ``dp_check`` and has not called it."""
    unaudited: str = ""
    """The module or class around the test with a marker that no test makes use of."""


class ClaimSession:
    """The state of a run, from the time when pytest loads this plugin.

    Attributes
    ----------
    parser : pytest.Parser
        It knows what options are called, and which of them take values.
    profile : str
        The name of the profile of this run, where it says anything.
    stderr : int or None
        A copy of the file descriptor of errors, from before pytest captured it.
    searched : set of Collector
        Modules of which pytest looked at each name, which it does not for doctests.
    audits : dict
        The `Audits` of each test.
    """

    def __init__(self, parser: pytest.Parser) -> None:
        self.parser = parser
        self.profile = ""
        self.stderr: int | None = None
        self.searched: set[pytest.Collector] = set()
        self.audits: dict[pytest.Item, Audits] = {}
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep `config`, and a copy of standard error from before pytest captures it."""
        self._config = config
        with suppress(OSError):  # there is none
            self.stderr = os.dup(2)
            config.add_cleanup(partial(os.close, self.stderr))

    @cached_property
    def typed(self) -> frozenset[str]:
        """The names of options that are not as the ini file with its ``addopts`` says."""
        by_files = vars(self.parser.parse_known_args(self._config.getini("addopts")))
        given = vars(self._config.option).items()
        return frozenset(name for name, value in given if value != by_files.get(name))


def claim_session_of(config: pytest.Config) -> ClaimSession:
    """Return the state of a run."""
    session: Any = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(session, ClaimSession)
    return session


def audits_of(item: pytest.Item) -> Audits:
    """Return the audits of a test."""
    return claim_session_of(item.config).audits.setdefault(item, Audits())


def ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an ini key; None if it is not set."""
    try:
        return config.getini(f"dp_{name}")
    except (pytest.UsageError, TypeError, ValueError) as error:
        is_flag = name in OPTIONS and OPTIONS[name].kind == "flag"
        allowed = " Allowed: true or false." if is_flag else ""
        raise pytest.UsageError(f"ini key dp_{name}: {error}.{allowed}") from None


def option_or_ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an option or, if it is not given, of its ini key."""
    option = getattr(config.option, f"dp_{name}", None)
    return ini(config, name) if option is None else option


def claims_path(config: pytest.Config) -> Path:
    """Return the file of this run: beside the ini file, or at the root of the tests.

    Its name is fixed: else a change of settings could put a file of weaker claims in its place.
    """
    root = config.inipath.parent if config.inipath is not None else config.rootpath
    return root / "dp-claims.json"


def reports(config: pytest.Config) -> list[Path]:
    """Return the files of the options, and those of the ini key, which are relative to the root."""
    typed = map(Path, getattr(config.option, "dp_report", None) or ())
    return [*typed, *(config.rootpath / line for line in ini(config, "report") or ())]


def has_claims(obj: object) -> bool:
    """Return whether an object has a claim or, if it is a class, something in its body has one.

    Asks carefully: mocks make up any attribute, and proxies may raise anything when touched.
    """
    try:
        if type(getattr(obj, _CLAIMS, None)) is tuple:
            return True
        inside = list(vars(obj).values()) if issubclass(type(obj), type) else []
        inside += [value.__func__ for value in inside if type(value) in (classmethod, staticmethod)]
        return any(type(getattr(value, _CLAIMS, None)) is tuple for value in inside)
    except Exception:  # whatever it raises, it was not made by @dp_claim
        return False


def pytest_dp_report(records: Sequence[Record], config: pytest.Config) -> None:
    """Report the claims, once at the end of a run and before anything of it is printed.

    Parameters
    ----------
    records : sequence of pytest_dp.report.record.Record
        One for each claim that was audited, or should have been; plain values throughout.
    config : pytest.Config
    """


class Outcomes:
    """Outcomes of the claims of one session: the last report of each test that audited one."""

    def __init__(self, config: pytest.Config) -> None:
        self.reports: dict[str, pytest.TestReport] = {}
        self.root = config.rootpath
        self.started: dict[str, tuple[str, int]] = {}
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

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Note where a test is, which nothing else says of it once a worker has crashed."""
        self.started[nodeid] = location[0], (location[1] or 0) + 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Make an error of the claim at which a worker of pytest-xdist crashed."""
        path, line = self.started.get(crashitem, (report.location[0], 1))
        with suppress(OSError):
            if b"claim" in (self.root / path).read_bytes():
                from pytest_dp.report.record import Record

                why = f"This claim was not audited: {report.longrepr}."
                advice = "Run it without pytest-xdist to see where: -n 0."
                record = Record.of_error(crashitem, path, line, f"{why} {advice}")
                report.__dict__["dp_records"] = [record.as_dict()]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the report; that of a later rerun takes its place."""
        if hasattr(report, "dp_records"):
            self.reports[report.nodeid] = report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what is wanted as files, also where no claim was met; call the hook of others."""
        if not self.reports and not self.files:
            return
        from pytest_dp.plugin.summary import report_records
        from pytest_dp.plugin.terminal import reason

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
        faults = sys.modules.get("pytest_dp.basics.errors")
        for line in faults.pop_noted() if faults is not None else ():  # those of no audit
            terminalreporter.write_line(line, yellow=True)
        for problem in self.problems:
            from pytest_dp.plugin.terminal import count_as_error

            terminalreporter.write_line(f"ERROR: {problem}", red=True, bold=True)
            count_as_error(terminalreporter, "pytest-dp", problem)


def _not_collected(config: pytest.Config, audited: Collection[Path]) -> list[str]:
    """Return a line for imported files with claims that no test of a whole run audits."""
    declaration = sys.modules.get("pytest_dp.declaration")
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    if declaration is None or chosen or config.option.collectonly:
        return []
    from pytest_dp.basics.whose_code import is_project_file
    from pytest_dp.plugin.terminal import relative

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
