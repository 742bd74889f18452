"""The end of a run with ``dp-claims.json``: what fails, what is written, and how that is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.errors import ClaimsFileError, WeakenedClaim
from pytest_dp.plugin.claims_seen import Failure, Run
from pytest_dp.plugin.failure import decorator_source, relative, represent
from pytest_dp.plugin.selection import BUILTIN, leaves_out, left_out_by_marks, scope
from pytest_dp.records.entries import Entry
from pytest_dp.records.judging import GONE, Collected, Judgement, judge, mechanism_of, updated
from pytest_dp.records.messages import keywords_of, message, summary
from pytest_dp.records.storing import alone, damaged, load
from pytest_dp.records.storing import write as store
from pytest_dp.report import github
from pytest_dp.report.record import Record

_NUMBERED = re.compile(r"#\d+$")


def compare(run: Run, session: pytest.Session) -> None:
    """Fail the run for each claim that is less than on record, or not on record."""
    if not os.path.exists(run.file):  # noqa: PTH110  that of Path may raise
        said = (
            f"There is no {run.file.name} in {run.file.parent}. Write it with pytest "
            "--dp-claims=update, and commit it."
        )
        _fail(run, session, Failure("", "", ClaimsFileError(said), run.file, 1))
        return
    try:
        recorded = load(run.file)
        judged = judge(recorded, _collected(run, session.config, recorded), _expected(run, session))
    except ClaimsFileError as error:
        _fail(run, session, Failure("", "", error, run.file, 1))
        return
    except (TypeError, ValueError, KeyError, AttributeError) as damage:  # edited
        said = damaged(run.file, damage)
        _fail(run, session, Failure("", "", ClaimsFileError(said), run.file, 1))
        return
    for judgement in judged:
        if judgement.fails:
            path, line, hint = _place(run, session.config, judgement)
            weakened = WeakenedClaim(message(judgement, run.file.name, hint))
            start = judgement.collected.line if judgement.collected is not None else line
            _fail(run, session, Failure(judgement.kind, judgement.id, weakened, path, line, start))
    run.lines += summary(judged, run.file.name)


def write(run: Run, session: pytest.Session) -> None:
    """Put on record what this run has found; what it was not about stays as it was."""
    try:
        with alone(run.file):
            recorded = load(run.file)
            collected = _collected(run, session.config, recorded)
            entries = updated(recorded, collected, _expected(run, session))
            changed = store(run.file, entries)
    except (ClaimsFileError, OSError) as error:
        ours = error if isinstance(error, ClaimsFileError) else ClaimsFileError(str(error))
        _fail(run, session, Failure("", "", ours, run.file, 1))
        return
    new, gone = sorted(entries.keys() - recorded.keys()), sorted(recorded.keys() - entries.keys())
    altered = [name for name in entries.keys() & recorded if entries[name] != recorded[name]]
    count = f"{len(entries)} claim{'s' * (len(entries) != 1)} on record"
    run.lines.append(f"{run.file.name}: {count}" + ("" if changed else ", as before"))
    for word, names in (("added", new), ("changed", sorted(altered)), ("removed", gone)):
        run.lines += [f"  {word}: {name}" for name in names]


def _collected(run: Run, config: pytest.Config, recorded: Mapping[str, Entry]) -> list[Collected]:
    return [
        claim
        for nodeid, test in run.tests.items()
        for claim in _of_test(run, config, recorded, nodeid, test)
    ]


def _of_test(
    run: Run,
    config: pytest.Config,
    recorded: Mapping[str, Entry],
    nodeid: str,
    test: Mapping[str, Any],
) -> Iterator[Collected]:
    """The claims of a test, as far as they are known."""
    name = run.id_of(config.rootpath, nodeid)
    marks = sorted(set(test["marks"]) - BUILTIN)
    extra: Entry = {"marks": marks} if marks else {}
    if test["state"] == "collected":
        hidden, selected = _not_audited(run, nodeid), True
    else:
        hidden, selected = _left_out(config, test, _before(recorded, name))
    path, line = str(test["path"]), int(test["line"])
    audits = run.audited.get(nodeid, [])
    for number, entry, broken in audits:
        which = name if number == 1 else f"{name}#{number}"
        if not broken or hidden:
            yield Collected(which, entry | extra, path, line, hidden, selected)
        elif which in recorded:
            why = "violated: as the test expects"
            yield Collected(which, None, path, line, why, selected)
    if not audits:
        known = None if test["entry"] is None else test["entry"] | extra
        yield Collected(name, known, path, line, hidden, selected)


def _not_audited(run: Run, nodeid: str) -> str:
    """Why a test that was collected has audited nothing, where it does not say so by failing."""
    ended = run.ended.get(nodeid, "")
    if ended not in ("", "ran"):
        return ended
    if run.stopped or nodeid in run.failed or nodeid in run.audited:
        return ""
    if nodeid not in run.reported:
        return "not run: it was collected, and conftest.py or a plugin kept it from being run"
    return "passed: without an audit" if ended == "ran" else ""


def _before(recorded: Mapping[str, Entry], name: str) -> Entry:
    """The entry of a claim, or of another one of its mechanism; empty if there is none."""
    alike = (entry for id_, entry in recorded.items() if mechanism_of(id_) == mechanism_of(name))
    return recorded.get(name) or next(alike, {})


def _left_out(config: pytest.Config, test: Mapping[str, Any], before: Entry) -> tuple[str, bool]:
    """Why a test was left out, if somebody hides it; and whether this run is about it."""
    by_marks = left_out_by_marks(config, test["marks"], before.get("marks", ())) if before else ""
    if by_marks:
        return by_marks, True
    deselected = test["state"] == "deselected"
    if leaves_out(config, test["marks"], deselected=deselected):
        return "", False
    if deselected:
        return "deselected: by addopts, by conftest.py or by a plugin", True
    return "removed: from the tests that were collected, by conftest.py or a plugin", True


def _expected(run: Run, session: pytest.Session) -> Callable[[str], bool]:
    """Whether this run should have found a claim of that id."""
    if run.uncollected:
        return lambda name: False  # noqa: ARG005
    collected = scope(session.config, run.folder)
    root = session.config.rootpath
    silent = {run.id_of(root, test) for test in run.tests if test not in run.audited}
    # What has failed already may have come to no claim, or not to the last of them.
    failed = {mechanism_of(run.id_of(root, test)) for test in run.failed}

    def expected(name: str) -> bool:
        test = _NUMBERED.sub("", name)
        return test not in silent and mechanism_of(test) not in failed and collected(name)

    return expected


def _place(run: Run, config: pytest.Config, judgement: Judgement) -> tuple[Path, int, str]:
    """File and line of what has changed, and what else is known of it."""
    if judgement.collected is not None:
        file = config.rootpath / judgement.collected.path
        lines = decorator_source(file, judgement.collected.line)
        wanted = [re.compile(rf"\b{name}\s*=") for name in keywords_of(judgement)]
        for at, text in enumerate(lines):
            if any(pattern.search(text) for pattern in wanted):
                return file, judgement.collected.line + at, ""
        return file, judgement.collected.line, ""
    assert judgement.kind == GONE
    path, _, test = judgement.id.partition("::")
    file = run.folder / path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return run.file, _line_in(run.file, judgement.id), f"There is no {path} any more."
    name = mechanism_of(test).rpartition("::")[2].rpartition(".")[2]
    defined = re.search(rf"^\s*(async )?def {re.escape(name)}\b", text, re.MULTILINE)
    if defined is None:
        return run.file, _line_in(run.file, judgement.id), f"There is no {name} in {path} any more."
    line = text.count("\n", 0, defined.end()) + 1
    hint = ""
    if "dp_claim" in text and not any(f.partition("::")[0] == path for f in _ids(run, config)):
        hint = (
            f"No claim of {path} was collected: look at testpaths, dp_modules, --ignore and "
            "conftest.py."
        )
    return file, line, hint


def _ids(run: Run, config: pytest.Config) -> list[str]:
    return [run.id_of(config.rootpath, nodeid) for nodeid in run.tests]


def _line_in(file: Path, name: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((at for at, text in enumerate(lines, 1) if f'"{name}"' in text), 1)


def _fail(run: Run, session: pytest.Session, failure: Failure) -> None:
    """Report a failure of the claims file as a failed test."""
    config = session.config
    path = relative(run.file, config.rootpath)
    nodeid = f"{path}::{failure.name}" if failure.name else path
    run.failures.append(failure)
    shown = represent(failure.error, config, failure.file, failure.line, failure.source_line)
    place = relative(failure.file, config.rootpath), failure.line - 1, _heading(failure, path)
    failed = pytest.TestReport(nodeid, place, {}, "failed", shown, "call")
    after = pytest.TestReport(nodeid, place, {}, "passed", None, "teardown")
    record = Record.of_error(nodeid, place[0], failure.line, str(failure.error), status="weakened")
    failed.__dict__["dp_records"] = [record.as_dict()]
    _on_a_new_line(config, path)
    session.testscollected += 1
    config.hook.pytest_runtest_logstart(nodeid=nodeid, location=place)
    for report in (failed, after):
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=place)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    last_failed = config.pluginmanager.get_plugin("lfplugin")
    if last_failed is not None:  # there is no such test to run again
        last_failed.lastfailed.pop(getattr(failed, "id", nodeid), None)


def _on_a_new_line(config: pytest.Config, path: str) -> None:
    """Begin a new line of progress for the claims file."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    terminal.currentfspath = None
    if not terminal.showfspath and not terminal.showlongtestinfo:  # as with xdist
        terminal.write(f"\n{path} ")


def _heading(failure: Failure, path: str) -> str:
    return f"{failure.name} is {failure.kind}" if failure.name else f"{path} cannot be used"


def annotate(run: Run, reporter: pytest.TerminalReporter) -> None:
    """On GitHub, mark the lines that have changed, and say so in the summary of the job."""
    if not run.failures or os.environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or reporter.config.rootpath)
    for failure in run.failures:
        path = relative(failure.file, workspace)
        what = f" {failure.kind}: {failure.name}" if failure.name else "s on record"
        title = f"Privacy claim{what}"
        reporter.write_line(github.command("error", path, failure.line, title, str(failure.error)))
    summarised = os.environ.get("GITHUB_STEP_SUMMARY")
    if summarised:
        try:
            failures = [(failure.name, str(failure.error)) for failure in run.failures]
            github.append(summarised, github.on_record(failures))
        except OSError as error:
            reporter.write_line(f"pytest-dp could not write the job summary: {error}", yellow=True)
