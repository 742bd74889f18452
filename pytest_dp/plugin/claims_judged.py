"""The end of a run with ``dp-claims.json``: what no test could tell, and what is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dp.errors import ClaimsFileError
from pytest_dp.plugin.claims_seen import Failure, Run, found, ids, numbered, record_of
from pytest_dp.plugin.failure import relative
from pytest_dp.plugin.selection import BUILTIN, leaves_out, left_out_by_marks, scope
from pytest_dp.records.entries import Entry
from pytest_dp.records.judging import (
    Collected,
    judge,
    mechanism_of,
    message,
    summary,
    updated,
)
from pytest_dp.records.storing import alone, load
from pytest_dp.records.storing import write as store
from pytest_dp.reprs import counted

_NUMBER = re.compile(r"#\d+$")
"""Of an audit after the first one of a test."""


def conclude(run: Run, session: pytest.Session) -> None:
    """Compare with what is on record, or write it; fail the run for what no test failed with."""
    try:
        (_write if run.update else _compare)(run, session)
    except (ClaimsFileError, OSError) as error:
        run.failures.append(Failure(run.file.name, str(error), run.file, 1))
    if not run.failures:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    outcomes: Any = session.config.pluginmanager.get_plugin("dp_outcomes")
    for failure in run.failures:
        place = relative(failure.file, session.config.rootpath)
        record = record_of(failure.name, place, failure.line, failure.message)
        outcomes.reports[failure.name] = SimpleNamespace(dp_records=[record.as_dict()])


def _compare(run: Run, session: pytest.Session) -> None:
    """Look for what is on record and no test was about, and for what no test could fail with."""
    if not run.file.exists():
        raise ClaimsFileError(
            f"There is no {run.file.name} in {run.file.parent}. Write it with pytest "
            "--dp-claims=update, and commit it."
        )
    recorded = load(run.file)
    known = ids(run.file, session.config.rootpath, run.tests)
    claims = list(_collected(run, session.config, recorded, known))
    judged = judge(recorded, claims, _expected(run, session, known))
    failed = {known[test] for test in run.failed if test in known}
    for judgement in judged:
        claim = judgement.collected
        if judgement.fails and (claim is None or _NUMBER.sub("", claim.id) not in failed):
            file, line, hint = _place(run, session.config, known, judgement.id, claim)
            said = message(judgement, run.file.name, hint)
            run.failures.append(Failure(judgement.id, said, file, line))
    run.lines += summary(judged, run.file.name)


def _write(run: Run, session: pytest.Session) -> None:
    """Put on record what this run has found; what it was not about stays as it was."""
    with alone(run.file):
        recorded = load(run.file)
        known = ids(run.file, session.config.rootpath, run.tests)
        claims = list(_collected(run, session.config, recorded, known))
        entries = updated(recorded, claims, _expected(run, session, known))
        changed = store(run.file, entries)
    new, gone = sorted(entries.keys() - recorded.keys()), sorted(recorded.keys() - entries.keys())
    altered = [name for name in entries.keys() & recorded if entries[name] != recorded[name]]
    count = f"{counted(len(entries), 'claim')} on record"
    run.lines.append(f"{run.file.name}: {count}" + ("" if changed else ", as before"))
    for word, names in (("added", new), ("changed", sorted(altered)), ("removed", gone)):
        run.lines += [f"  {word}: {name}" for name in names]


def _collected(
    run: Run, config: pytest.Config, recorded: Mapping[str, Entry], known: dict[str, str]
) -> Iterator[Collected]:
    """The claims of all tests, as far as they are known."""
    for nodeid, test in run.tests.items():
        name = known[nodeid]
        marks = sorted(set(test["marks"]) - BUILTIN)
        extra: Entry = {"marks": marks} if marks else {}
        entry = None if test["entry"] is None else test["entry"] | extra
        claim = found(recorded, known.values(), name, entry)
        if test["state"] == "collected":
            hidden, selected = _not_audited(run, nodeid), True
        else:
            hidden, selected = _left_out(config, test, recorded.get(claim.on_record, {}))
        audits = run.audited.get(nodeid, [(1, test["entry"], False)])
        for number, audited, broken in audits:
            which = numbered(name, number)
            entry = None if audited is None else audited | extra
            claim = found(recorded, known.values(), which, entry, hidden, selected)
            if not broken or hidden:
                yield claim
            elif which in recorded:
                why = "violated: as the test expects"
                yield Collected(which, None, why, selected, which)


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


def _expected(run: Run, session: pytest.Session, known: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether this run should have found a claim of that id."""
    if run.uncollected:
        return lambda name: False  # noqa: ARG005
    collected = scope(session.config, run.file.parent)
    silent = {known[test] for test in run.tests if test not in run.audited}
    # What has failed already may have come to no claim, or not to the last of them.
    failed = {mechanism_of(known[test]) for test in run.failed if test in known}

    def expected(name: str) -> bool:
        test = _NUMBER.sub("", name)
        return test not in silent and mechanism_of(test) not in failed and collected(name)

    return expected


def _place(
    run: Run,
    config: pytest.Config,
    known: Mapping[str, str],
    name: str,
    claim: Collected | None,
) -> tuple[Path, int, str]:
    """File and line to look at for a claim that no test was about, and what else is known of it."""
    for nodeid, test in run.tests.items():
        if claim is not None and known[nodeid] == _NUMBER.sub("", claim.id):
            return config.rootpath / test["path"], int(test["line"]), ""
    path, _, inside = name.partition("::")
    file = run.file.parent / path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return run.file, _line_in(run.file, name), f"There is no {path} any more."
    function = mechanism_of(_NUMBER.sub("", inside)).rpartition("::")[2].rpartition(".")[2]
    defined = re.search(rf"^\s*(async )?def {re.escape(function)}\b", text, re.MULTILINE)
    if defined is None:
        hint = f"There is no {function} in {path} any more."
        return run.file, _line_in(run.file, name), hint
    hint = ""
    if re.search("(dp|risk)_claim", text) and not any(
        other.partition("::")[0] == path for other in known.values()
    ):
        hint = (
            f"No claim of {path} was collected: look at testpaths, dp_modules, --ignore and "
            "conftest.py."
        )
    return file, text.count("\n", 0, defined.end()) + 1, hint


def _line_in(file: Path, name: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((at for at, text in enumerate(lines, 1) if f'"{name}"' in text), 1)
