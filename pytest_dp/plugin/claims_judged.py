"""The claims of tests as entries of ``dp-claims.json``, compared with it and written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimsFileError, WeakenedClaim
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.claim import Claim
from pytest_dp.plugin.claim_session import audits_of, claim_session_of, relative_path, represent
from pytest_dp.plugin.claims_file import ClaimsFile
from pytest_dp.plugin.collect import path_and_line
from pytest_dp.plugin.options import settings_of_files
from pytest_dp.records.entries import Entry, load_entries, make_entry, write_entries
from pytest_dp.records.judging import (
    Collected,
    counterparts,
    failure_message,
    judge,
    judge_claim,
    mechanism_of,
    summarize,
    test_of,
    update_entries,
)
from pytest_dp.report.record import Record

_GROUP = re.compile(r"@[^\]@]*$")
"""What xdist appends to an id with ``--dist=loadgroup``."""

_SELECTING = {"keyword", "markexpr", "deselect", "lf", "stepwise", "stepwise_skip"}
_SELECTING |= {"testmon", "picked", "splits", "group", "shard_id", "num_shards"}
"""Options that leave tests out of one run, of pytest and of common plugins."""
_LEAVING_FILES_OUT = ("lf", "pyargs", "ignore", "ignore_glob")
"""Options that leave out files whose claims are then not known."""


def describe_test(item: pytest.Item, file: Path, left_out: bool) -> dict[str, Any]:
    """Return the description of a test for `ClaimsFile.tests`, before its audits.

    The id is relative to the folder of the claims file. The entry is None for tests with
    ``dp_check`` and for broken claims.
    """
    path, line = path_and_line(item)
    _, colons, name = item.nodeid.partition("::")
    if item.get_closest_marker("xdist_group") is not None:
        name = _GROUP.sub("", name)
    claim = getattr(item, "claim", None)
    return {
        "id": relative_path(item.path, file.parent) + colons + name,
        "path": path,
        "line": line,
        "entry": _make_test_entry(item, claim) if isinstance(claim, Claim) else None,
        "left_out": left_out,
    }


def _make_test_entry(item: pytest.Item, claim: Claim, resolved: Any = None) -> Entry:
    """Return the entry of a claim with the settings of files; `resolved` is as in `make_entry`."""
    return make_entry(claim, settings_of_files(item.config, claim), resolved)


def audited_entries(
    run: ClaimsFile, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> list[tuple[int, Entry, bool]]:
    """Return number, entry, and whether a violation was expected, for each audit of a test."""
    raised = getattr(call.excinfo.value, "result", None) if call.excinfo is not None else None
    known = run.tests.get(item.nodeid, {}).get("entry") or {}
    before = {name: known[name] for name in ("effort", "params") if name in known}
    entries = []
    for audit in audits_of(item).ended:
        # As it was before: runs may leave something in what functions name.
        of_claim = _make_test_entry(item, audit.claim, audit.result.claim.promise) | before
        is_expected = report.outcome != "failed" or audit.result is not raised
        entries.append((audit.number, of_claim, audit.result.violated and is_expected))
    return entries


def fail_weakened_test(
    run: ClaimsFile, item: pytest.Item, report: pytest.TestReport, audits: Sequence[Any]
) -> None:
    """Make the report of a passed test a failure, with a record, if a claim is less than before."""
    recorded = run.entries_on_record
    if recorded is None or item.nodeid not in run.tests:
        return
    for number, of_claim, expected in audits:
        name = _audit_id(run.tests[item.nodeid]["id"], number)
        found = {test["id"]: test["entry"] for test in run.tests.values()} | {name: of_claim}
        on_record = counterparts(recorded, found, _ids_of_tests(run)).get(name, "")
        judgement = judge_claim(recorded, Collected(name, of_claim, on_record=on_record))
        if judgement is not None and judgement.is_failure and not expected:
            path, line = path_and_line(item)
            error = WeakenedClaim(failure_message(judgement, run.file.name))
            report.outcome = "failed"
            report.longrepr = represent(error, run.config, item.path, line)
            record = _report_failure(item.nodeid, path, line, str(error))
            report.__dict__.setdefault("dp_records", []).append(record.as_dict())
            return


def _report_failure(name: str, path: str, line: int, text: str) -> Record:
    """Return the record of a claim, or a claims file, that fails against what is on record."""
    record = Record.of_error(name, path, line, text, status="weakened")
    return replace(record, headline=" ".join(text.partition("\n\n")[0].split()))


def _ids_of_tests(run: ClaimsFile) -> set[str]:
    return {test["id"] for test in run.tests.values()}


def _audit_id(name: str, number: int) -> str:
    """Return the id of one of the audits of a test: ``test_a``, ``test_a#2``."""
    return name if number == 1 else f"{name}#{number}"


def conclude_claims(run: ClaimsFile, session: pytest.Session) -> None:
    """Compare the claims of the run with the file, or write the file; add lines and failures.

    Failures make the run fail, and stand in its reports; an unreadable file is a failure too.
    """
    try:
        (_update_file if run.update else _compare_claims)(run)
    except (ClaimsFileError, OSError) as error:
        shown = relative_path(run.file, run.config.rootpath)
        run.failures.append(_report_failure(run.file.name, shown, 1, str(error)))
    if not run.failures:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    reports: dict[str, Any] = claim_session_of(run.config).reports
    for record in run.failures:
        reports[record.nodeid] = SimpleNamespace(dp_records=[record.as_dict()])


def _compare_claims(run: ClaimsFile) -> None:
    """Add lines on all claims, and failures unless their tests failed; raise ClaimsFileError."""
    if not run.file.exists():
        raise ClaimsFileError(
            f"There is no {run.file.name} in {run.file.parent}. Write it with pytest "
            "--dp-claims=update, and commit it."
        )
    recorded = load_entries(run.file)
    judgements = judge(recorded, list(_collected_claims(run, recorded)), _make_is_expected(run))
    failed = {run.tests[test]["id"] for test in run.failed if test in run.tests}
    for judgement in judgements:
        claim = judgement.collected
        if judgement.is_failure and (claim is None or test_of(claim.id) not in failed):
            file, line = _place_on_record(run, judgement.id, claim)
            text = failure_message(judgement, run.file.name)
            shown = relative_path(file, run.config.rootpath)
            run.failures.append(_report_failure(judgement.id, shown, line, text))
    run.lines += summarize(judgements, run.file.name)


def _update_file(run: ClaimsFile) -> None:
    """Write this run's claims into the file, and add lines on changes; raise ClaimsFileError."""
    recorded = load_entries(run.file)
    entries = update_entries(
        recorded, list(_collected_claims(run, recorded)), _make_is_expected(run)
    )
    changed = write_entries(run.file, entries)
    count = f"{plural(len(entries), 'claim')} on record"
    run.lines.append(f"{run.file.name}: {count}" + ("" if changed else ", as before"))
    altered = [name for name in entries.keys() & recorded if entries[name] != recorded[name]]
    news = {"added": entries.keys() - recorded, "changed": altered}
    for word, names in (news | {"removed": recorded.keys() - entries}).items():
        run.lines += [f"  {word}: {name}" for name in sorted(names)]


def _collected_claims(run: ClaimsFile, recorded: Mapping[str, Entry]) -> Iterator[Collected]:
    """Yield each audit of each test with its id on record; the claim itself of a test not run.

    An expected violation is left out, or counts as hidden if it is on record.
    """
    audits = {
        node: run.audited.get(node, [(1, test["entry"], False)]) for node, test in run.tests.items()
    }
    found: dict[str, Entry | None] = {
        _audit_id(run.tests[node]["id"], number): audited
        for node, of_test in audits.items()
        for number, audited, broken in of_test
        if not broken or _reason_not_audited(run, node)
    }
    on_record = counterparts(recorded, found, _ids_of_tests(run))
    # else the command line itself may leave it out
    is_whole = claim_session_of(run.config).typed_options.isdisjoint(_SELECTING)
    for node, test in run.tests.items():
        hidden, selected = _reason_not_audited(run, node), True
        if test["left_out"]:
            hidden, selected = "left out: by addopts, by conftest.py or by a plugin", is_whole
        for number, audited, broken in audits[node]:
            name = _audit_id(test["id"], number)
            if not broken or hidden:
                yield Collected(name, audited, hidden, selected, on_record.get(name, ""))
            elif name in recorded:
                yield Collected(name, None, "violated: as the test expects", selected, name)


def _reason_not_audited(run: ClaimsFile, nodeid: str) -> str:
    """Return why a collected test audited nothing; empty if it did, or if it failed."""
    ended = run.ended.get(nodeid)
    if ended not in (None, "", "ran"):
        return str(ended)
    if run.stopped or nodeid in run.failed or nodeid in run.audited:
        return ""
    if ended is None:
        return "not run: it was collected, and conftest.py or a plugin kept it from being run"
    return "passed: without an audit" if ended else ""


def _make_is_expected(run: ClaimsFile) -> Callable[[str], bool]:
    """Return a function from an id to whether this run should have found the claim."""
    if run.uncollected:
        return lambda name: False  # noqa: ARG005
    collected = make_is_in_scope(run.config, run.file.parent)
    silent = {test["id"] for nodeid, test in run.tests.items() if nodeid not in run.audited}
    # What has failed already may have come to no claim, or not to the last of them.
    failed = {mechanism_of(run.tests[test]["id"]) for test in run.failed if test in run.tests}

    def is_expected(name: str) -> bool:
        test = test_of(name)
        return test not in silent and mechanism_of(test) not in failed and collected(name)

    return is_expected


def _place_on_record(run: ClaimsFile, name: str, claim: Collected | None) -> tuple[Path, int]:
    """Return the file and line of a claim's test or, if it is gone, of its entry."""
    for test in run.tests.values():
        if claim is not None and test["id"] == test_of(claim.id):
            return run.config.rootpath / test["path"], int(test["line"])
    lines = run.file.read_text(encoding="utf-8").splitlines()
    return run.file, next((at for at, text in enumerate(lines, 1) if f'"{name}"' in text), 1)


def make_is_in_scope(config: pytest.Config, folder: Path) -> Callable[[str], bool]:
    """Return a function from the id of a claim to whether this run should collect it.

    False for all ids in a run of some node ids, or with typed options that leave out files.
    """
    is_partial = any("::" in arg for arg in config.args)
    if is_partial or not claim_session_of(config).typed_options.isdisjoint(_LEAVING_FILES_OUT):
        return lambda name: False  # noqa: ARG005
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return lambda name: True  # noqa: ARG005
    given = [Path(os.path.abspath(config.invocation_params.dir / arg)) for arg in config.args]  # noqa: PTH100

    def is_in_scope(name: str) -> bool:
        file = Path(os.path.abspath(folder / name.partition("::")[0]))  # noqa: PTH100
        return any(file == path or path in file.parents for path in given)

    return is_in_scope
