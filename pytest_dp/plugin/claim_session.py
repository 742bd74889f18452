"""The state of one run of pytest, how options are read, and our errors as pytest shows them.

Every run of pytest loads this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from _pytest._code.code import ReprEntry, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_dp.basics.errors import InconclusiveWarning, PytestDPError
from pytest_dp.claiming.setting_fields import OPTIONS

if TYPE_CHECKING:
    from pytest_dp.report.record import Record

MARKER = "dp_claim"
PLUGIN = "dp_session"
"""The name under which pytest knows the `ClaimSession`."""
_CLAIMS = "__dp_claims__"
MAX_SOURCE_LINES = 24
"""Lines of a claim's source in a failure. More hide what is wrong; fewer cut the claim."""

_WITHOUT_CONFIDENCE = re.compile(r" \([^()]* confidence\)$")


class Audit(NamedTuple):
    """An audit of a test that has ended."""

    number: int
    """Its place among the audits of the test, from 1."""
    claim: Any
    """The claim as written."""
    result: Any
    record: Any


@dataclass(slots=True)
class Audits:
    """A list of the audits of one test."""

    ended: list[Audit] = field(default_factory=list)
    calls: int = 0
    """How often ``dp_check`` was called."""
    claim: Any = None
    """The claim of the last call."""
    is_uncalled: bool = False
    """Whether the test took ``dp_check`` and has not called it."""
    unaudited: str = ""
    """The module or class around the test with a marker that no test makes use of."""


class ClaimSession:
    """A plugin of pytest with the state of a run, and the outcomes of its claims.

    Workers of pytest-xdist have a session too; reports of tests reach that of the main process.

    Attributes
    ----------
    parser : pytest.Parser
        It knows what options are called, and which of them take values.
    profile : str
        The name of the profile of this run, where it sets anything.
    stderr : int or None
        A copy of the file descriptor of errors, from before pytest captured it.
    searched : set of Collector
        Modules of which pytest looked at each name, which it does not for doctests.
    audits : dict
        The `Audits` of each test that this process runs.
    reports : dict
        The last report of each test that audited a claim, by its node id.
    started : dict
        File and line of each test that was started.
    files : list of Path
        The files of ``--dp-report`` to write.
    problems : list of str
        What went wrong in reporting, which fails the run.
    tested : set of Path
        Files with claims that tests came of, whether they are run or not.
    """

    def __init__(self, parser: pytest.Parser) -> None:
        self.parser = parser
        self.profile = ""
        self.stderr: int | None = None
        self.searched: set[pytest.Collector] = set()
        self.audits: dict[pytest.Item, Audits] = {}
        self.reports: dict[str, pytest.TestReport] = {}
        self.started: dict[str, tuple[str, int]] = {}
        self.files: list[Path] = []
        self.problems: list[str] = []
        self.tested: set[Path] = set()
        self._config: Any = None
        self._session: pytest.Session | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep `config` and a copy of standard error; raise UsageError for wrong report files."""
        self._config = config
        with suppress(OSError):  # there is none
            self.stderr = os.dup(2)
            config.add_cleanup(partial(os.close, self.stderr))
        if report_paths(config) and not hasattr(config, "workerinput"):
            from pytest_dp.plugin.summary import report_files

            files = report_files(config)
            self.files = [] if config.option.collectonly else files

    @cached_property
    def typed_options(self) -> frozenset[str]:
        """The names of options that differ from the ini file with its ``addopts``."""
        by_files = vars(self.parser.parse_known_args(self._config.getini("addopts")))
        given = vars(self._config.option).items()
        return frozenset(name for name, value in given if value != by_files.get(name))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Remove reports of earlier runs, as a run that is killed writes none."""
        for file in self.files:
            with suppress(OSError):  # writing will say why
                file.unlink()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note the file of a generated test."""
        if hasattr(item, "declaration"):
            self.tested.add(item.path)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Note file and line of a test, for a worker that may crash."""
        self.started[nodeid] = location[0], (location[1] or 0) + 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Add the record of an error for the claim at which a worker of pytest-xdist crashed."""
        path, line = self.started.get(crashitem, (report.location[0], 1))
        with suppress(OSError):
            if b"claim" in (self._config.rootpath / path).read_bytes():
                from pytest_dp.report.record import Record

                why = f"This claim was not audited: {report.longrepr}."
                advice = "Run it without pytest-xdist to see where: -n 0."
                record = Record.of_error(crashitem, path, line, f"{why} {advice}")
                report.__dict__["dp_records"] = [record.as_dict()]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the last report of a claim, in the main process."""
        if hasattr(report, "dp_records") and not hasattr(self._config, "workerinput"):
            self.reports[report.nodeid] = report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Call ``pytest_dp_report``, and write the files of reports, also without claims."""
        if not self.reports and not self.files:
            return
        from pytest_dp.plugin.summary import report_records, write_reports

        records = report_records(self.reports.values())
        try:
            session.config.hook.pytest_dp_report(records=records, config=session.config)
        except Exception as error:  # of others; what was found is shown in any case
            self.problems.append(
                f"pytest_dp_report of another plugin failed: {error_reason(error)}"
            )
        self.problems += write_reports(self.files, records, session.config)
        self._session = session
        self._fail_for_problems()

    def _fail_for_problems(self) -> None:
        """Make a run that passed fail if something could not be reported."""
        session = self._session
        if self.problems and session and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of claims, files, faults and problems; on GitHub, annotations too."""
        if self.reports:
            from pytest_dp.plugin.summary import report_records, show_table

            self.problems += show_table(terminalreporter, report_records(self.reports.values()))
            self._fail_for_problems()
        for file in self.files:
            if not any(f"--dp-report={file} " in problem for problem in self.problems):
                terminalreporter.write_line(f"report of the privacy claims: {file}")
        for line in _lines_on_uncollected(self._config, self.tested):
            terminalreporter.write_line(line, yellow=True)
        faults = sys.modules.get("pytest_dp.basics.errors")
        for line in faults.pop_noted() if faults is not None else ():  # those of no audit
            terminalreporter.write_line(line, yellow=True)
        for problem in self.problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True, bold=True)
            count_as_error(terminalreporter, "pytest-dp", problem)


def claim_session_of(config: pytest.Config) -> ClaimSession:
    """Return the `ClaimSession` of a run."""
    session: Any = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(session, ClaimSession)
    return session


def audits_of(item: pytest.Item) -> Audits:
    """Return the `Audits` of a test; the first call makes them."""
    return claim_session_of(item.config).audits.setdefault(item, Audits())


def read_ini(config: pytest.Config, name: str) -> Any:
    """Return the value of the ini key ``dp_<name>``, or None; raise UsageError if it is wrong."""
    try:
        return config.getini(f"dp_{name}")
    except (pytest.UsageError, TypeError, ValueError) as error:
        is_flag = name in OPTIONS and OPTIONS[name].kind == "flag"
        allowed = " Allowed: true or false." if is_flag else ""
        raise pytest.UsageError(f"ini key dp_{name}: {error}.{allowed}") from None


def option_or_ini(config: pytest.Config, name: str) -> Any:
    """Return an option or, if it is not given, its ini key, or None; raise as `read_ini`."""
    option = getattr(config.option, f"dp_{name}", None)
    return read_ini(config, name) if option is None else option


def claims_path(config: pytest.Config) -> Path:
    """Return the path of ``dp-claims.json``: beside the ini file, or at the root of the tests.

    Its name is fixed: else a change of settings could put a file of weaker claims in its place.
    """
    root = config.inipath.parent if config.inipath is not None else config.rootpath
    return root / "dp-claims.json"


def report_paths(config: pytest.Config) -> list[Path]:
    """Return the files of ``--dp-report``, then those of the ini key, relative to the root."""
    typed = map(Path, getattr(config.option, "dp_report", None) or ())
    return [*typed, *(config.rootpath / line for line in read_ini(config, "report") or ())]


def has_claims(obj: object) -> bool:
    """Return whether an object, or something in the body of a class, has a claim.

    False for mocks, which make up any attribute, and for proxies that raise when touched.
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


def _lines_on_uncollected(config: pytest.Config, audited: Collection[Path]) -> list[str]:
    """Return a line for each imported file of the project with claims of which no test came.

    Empty if the command line names tests, as others are then left out on purpose.
    """
    declaration = sys.modules.get("pytest_dp.declaration")
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    if declaration is None or chosen or config.option.collectonly:
        return []
    from pytest_dp.basics.whose_code import is_project_file

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
        for place in [relative_path(file, config.rootpath)]
    ]


def represent(
    error: PytestDPError | InconclusiveWarning, config: pytest.Config, path: Path, line: int
) -> ReprExceptionInfo:
    """Return an error as pytest shows it: the claim's source, the message, and the place."""
    from pytest_dp.auditors.session import PrivacyViolation  # it loads NumPy

    shown = relative_path(path, config.rootpath)
    kind = type(error).__name__
    message = f"{kind}: {error}"
    summary = message.partition("\n")[0]
    lines = [f"    {text}".rstrip() for text in decorator_source(path, line)]
    lines += [""] if lines else []
    lines += [f"E   {text}".rstrip() for text in message.splitlines()]
    last = _WITHOUT_CONFIDENCE.sub("", summary) if isinstance(error, PrivacyViolation) else kind
    place = ReprFileLocation(shown, line, last)
    entry = ReprEntry(lines, None, None, place, "long")
    return ReprExceptionInfo(
        reprcrash=ReprFileLocation(shown, line, summary),
        reprtraceback=ReprTraceback([entry], None, "long"),
    )


def warn_without_failing(item: pytest.Item, message: str) -> None:
    """Warn that an optional step failed; only record the warning where it would be an error."""
    warning = pytest.PytestCacheWarning(message)
    try:
        item.warn(warning)
    except pytest.PytestCacheWarning:
        path, line, _ = item.reportinfo()
        said = warnings.WarningMessage(warning, type(warning), str(path), (line or 0) + 1)
        told = {"warning_message": said, "nodeid": item.nodeid, "when": "runtest", "location": None}
        item.ihook.pytest_warning_recorded.call_historic(kwargs=told)


def count_as_error(reporter: pytest.TerminalReporter, name: str, message: str) -> None:
    """Add an error that belongs to no test to the counts in pytest's last line."""
    place = ReprFileLocation(name, 1, message.partition("\n")[0])
    told = ReprExceptionInfo(ReprTraceback([], None, "long"), place)  # pytest 8.4 shows no text
    report = pytest.TestReport(name, (name, None, name), {}, "failed", told, "teardown")
    reporter.stats.setdefault("error", []).append(report)


def error_reason(error: Exception) -> str:
    """Return an error as text with its type; of an OSError only the reason, without a file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"


def relative_path(path: Path, root: Path) -> str:
    """Return a path relative to `root`, with forward slashes; absolute if on another drive."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def decorator_source(path: Path, line: int) -> list[str]:
    """Return a decorator's lines up to its function's signature, or the first; empty on errors."""
    try:
        after = path.read_text(encoding="utf-8").splitlines()[line - 1 :][:MAX_SOURCE_LINES]
    except (OSError, UnicodeDecodeError):
        return []
    heads = (n for n, text in enumerate(after, 1) if re.match(r"\s*(async )?(def|class) ", text))
    return textwrap.dedent("\n".join(after[: next(heads, 1)])).splitlines()
