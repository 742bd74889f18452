"""The claims of tests as entries of ``dp-claims.json``, compared with it and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimsFileError, WeakenedClaim
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.claim import Claim
from pytest_dp.plugin.claim_session import audits_of
from pytest_dp.plugin.claims_of_run import ClaimsOfRun
from pytest_dp.plugin.failure import decorator_source, relative, represent
from pytest_dp.plugin.markers import place
from pytest_dp.plugin.options import settings_of_files
from pytest_dp.plugin.selection import leaves_out, scope
from pytest_dp.records.entries import Entry, entry
from pytest_dp.records.judging import (
    Collected,
    counterparts,
    judge,
    judge_claim,
    mechanism_of,
    message,
    summarize,
    test_of,
    update_entries,
)
from pytest_dp.records.storing import alone, load_entries
from pytest_dp.records.storing import write_entries as store
from pytest_dp.report.record import Record

_GROUP = re.compile(r"@[^\]@]*$")
"""What xdist appends to an id with ``--dist=loadgroup``."""


def id_of(file: Path, test: Path, nodeid: str, marks: Collection[str] = ()) -> str:
    """Return the id of a test of a file as in the file of claims, whatever pytest's root is."""
    _, colons, name = nodeid.partition("::")
    if "xdist_group" in marks:
        name = _GROUP.sub("", name)
    return relative(test, file.parent) + colons + name


def describe_test(item: pytest.Item, file: Path, state: str) -> dict[str, Any]:
    """Describe a test without an audit, as in `ClaimsOfRun.tests`."""
    path, line = place(item)
    marks = sorted({mark.name for mark in item.iter_markers()})
    claim = getattr(item, "claim", None)
    return {
        "id": id_of(file, item.path, item.nodeid, marks),
        "path": path,
        "line": line,
        "entry": _entry(item, claim) if isinstance(claim, Claim) else None,
        "state": state,
    }


def _entry(item: pytest.Item, claim: Claim, resolved: Any = None) -> Entry:
    return entry(claim, settings_of_files(item.config, claim), resolved)


def entries_of(
    seen: ClaimsOfRun, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> list[tuple[int, Entry, bool]]:
    """Return the audits of a test, as `ClaimsOfRun.audited` has them."""
    raised = getattr(call.excinfo.value, "result", None) if call.excinfo is not None else None
    known = seen.tests.get(item.nodeid, {}).get("entry") or {}
    before = {name: known[name] for name in ("effort", "params") if name in known}
    entries = []
    for number, _, claim, result in audits_of(item).made:
        # As it was before: runs may leave something in what functions name.
        of_claim = _entry(item, claim, result.claim.promise) | before
        expected = result.violated and (report.outcome != "failed" or result is not raised)
        entries.append((number, of_claim, expected))
    return entries


def compare_with_record(
    seen: ClaimsOfRun, item: pytest.Item, report: pytest.TestReport, audits: Sequence[Any]
) -> None:
    """Let a test that passed fail for the first of its claims that is less than on record."""
    if seen.recorded is None or item.nodeid not in seen.tests:
        return
    for number, of_claim, expected in audits:
        name = _audit_id(seen.tests[item.nodeid]["id"], number)
        on_record = name if name in seen.recorded else _on_record(seen, name, of_claim)
        told = judge_claim(seen.recorded, Collected(name, of_claim, on_record=on_record))
        if told is not None and told.fails and not expected:
            hint = f"This is call {number} of dp_check in the test." if number > 1 else ""
            path, start = place(item)
            wanted = [re.compile(rf"\b{name}\s*=") for name in told.keywords]
            lines = enumerate(decorator_source(item.path, start), start)
            line = next((at for at, text in lines if any(p.search(text) for p in wanted)), start)
            error = WeakenedClaim(message(told, seen.file.name, hint))
            report.outcome = "failed"
            report.longrepr = represent(error, seen.config, item.path, line, start)
            record = _report_failure(item.nodeid, path, line, str(error))
            report.__dict__.setdefault("dp_records", []).append(record.as_dict())
            return


def _report_failure(name: str, path: str, line: int, said: str) -> Record:
    """Return what reports show of a claim, or a claims file, that fails against the record."""
    record = Record.of_error(name, path, line, said, status="weakened")
    return replace(record, headline=" ".join(said.partition("\n\n")[0].split()))


def _seen_ids(seen: ClaimsOfRun) -> set[str]:
    return {test["id"] for test in seen.tests.values()}


def _audit_id(name: str, number: int) -> str:
    """Return the id of one of the audits of a test."""
    return name if number == 1 else f"{name}#{number}"


def _on_record(seen: ClaimsOfRun, name: str, of_claim: Entry) -> str:
    """Return the id on record of a claim while tests are still run; empty if it has none."""
    assert seen.recorded is not None
    found = {test["id"]: test["entry"] for test in seen.tests.values()} | {name: of_claim}
    return counterparts(seen.recorded, found, _seen_ids(seen)).get(name, "")


def conclude_claims(seen: ClaimsOfRun, session: pytest.Session) -> None:
    """Compare with what is on record, or write it; fail the run for what no test failed with."""
    try:
        (_write if seen.update else _compare)(seen)
    except (ClaimsFileError, OSError) as error:
        shown = relative(seen.file, seen.config.rootpath)
        seen.failures.append(_report_failure(seen.file.name, shown, 1, str(error)))
    if not seen.failures:
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    outcomes: Any = seen.config.pluginmanager.get_plugin("dp_outcomes")
    for record in seen.failures:
        outcomes.reports[record.nodeid] = SimpleNamespace(dp_records=[record.as_dict()])


def _compare(seen: ClaimsOfRun) -> None:
    """Look for what is on record and no test was about, and for what no test could fail with."""
    if not seen.file.exists():
        raise ClaimsFileError(
            f"There is no {seen.file.name} in {seen.file.parent}. Write it with pytest "
            "--dp-claims=update, and commit it."
        )
    recorded = load_entries(seen.file)
    told = judge(recorded, list(_collected_claims(seen, recorded)), _expects(seen))
    failed = {seen.tests[test]["id"] for test in seen.failed if test in seen.tests}
    for judgement in told:
        claim = judgement.collected
        if judgement.fails and (claim is None or test_of(claim.id) not in failed):
            file, line, hint = _place(seen, judgement.id, claim)
            said = message(judgement, seen.file.name, hint)
            shown = relative(file, seen.config.rootpath)
            seen.failures.append(_report_failure(judgement.id, shown, line, said))
    seen.lines += summarize(told, seen.file.name)


def _write(seen: ClaimsOfRun) -> None:
    """Put on record what this run has found; what it was not about stays as it was."""
    with alone(seen.file):
        recorded = load_entries(seen.file)
        entries = update_entries(recorded, list(_collected_claims(seen, recorded)), _expects(seen))
        changed = store(seen.file, entries)
    count = f"{plural(len(entries), 'claim')} on record"
    seen.lines.append(f"{seen.file.name}: {count}" + ("" if changed else ", as before"))
    altered = [name for name in entries.keys() & recorded if entries[name] != recorded[name]]
    news = {"added": entries.keys() - recorded, "changed": altered}
    for word, names in (news | {"removed": recorded.keys() - entries}).items():
        seen.lines += [f"  {word}: {name}" for name in sorted(names)]


def _collected_claims(seen: ClaimsOfRun, recorded: Mapping[str, Entry]) -> Iterator[Collected]:
    """Yield the claims of all tests, with what is known of each."""
    audits = {
        node: seen.audited.get(node, [(1, test["entry"], False)])
        for node, test in seen.tests.items()
    }
    found: dict[str, Entry | None] = {
        _audit_id(seen.tests[node]["id"], number): audited
        for node, of_test in audits.items()
        for number, audited, broken in of_test
        if not broken or _not_audited(seen, node)
    }
    on_record = counterparts(recorded, found, _seen_ids(seen))
    for node, test in seen.tests.items():
        hidden, selected = _not_audited(seen, node), True
        if test["state"] != "collected":
            hidden, selected = _left_out(seen.config, test["state"])
        for number, audited, broken in audits[node]:
            name = _audit_id(test["id"], number)
            if not broken or hidden:
                yield Collected(name, audited, hidden, selected, on_record.get(name, ""))
            elif name in recorded:
                yield Collected(name, None, "violated: as the test expects", selected, name)


def _not_audited(seen: ClaimsOfRun, nodeid: str) -> str:
    """Return why a collected test audited nothing; empty if it did, or if it failed."""
    ended = seen.ended.get(nodeid)
    if ended not in (None, "", "ran"):
        return str(ended)
    if seen.stopped or nodeid in seen.failed or nodeid in seen.audited:
        return ""
    if ended is None:
        return "not run: it was collected, and conftest.py or a plugin kept it from being run"
    return "passed: without an audit" if ended else ""


def _left_out(config: pytest.Config, state: str) -> tuple[str, bool]:
    """Return why a test was left out, if somebody hides it; and whether this run is about it."""
    if leaves_out(config, deselected=state == "deselected"):
        return "", False
    if state == "deselected":
        return "deselected: by addopts, by conftest.py or by a plugin", True
    return "removed: from the tests that were collected, by conftest.py or a plugin", True


def _expects(seen: ClaimsOfRun) -> Callable[[str], bool]:
    """Return a function that says whether this run should have found the claim of an id."""
    if seen.uncollected:
        return lambda name: False  # noqa: ARG005
    collected = scope(seen.config, seen.file.parent)
    silent = {test["id"] for nodeid, test in seen.tests.items() if nodeid not in seen.audited}
    # What has failed already may have come to no claim, or not to the last of them.
    failed = {mechanism_of(seen.tests[test]["id"]) for test in seen.failed if test in seen.tests}

    def is_expected(name: str) -> bool:
        test = test_of(name)
        return test not in silent and mechanism_of(test) not in failed and collected(name)

    return is_expected


def _place(seen: ClaimsOfRun, name: str, claim: Collected | None) -> tuple[Path, int, str]:
    """Return a file, a line and a hint for a claim that no test was about."""
    for test in seen.tests.values():
        if claim is not None and test["id"] == test_of(claim.id):
            return seen.config.rootpath / test["path"], int(test["line"]), ""
    path = name.partition("::")[0]
    lines = seen.file.read_text(encoding="utf-8").splitlines()
    line = next((at for at, text in enumerate(lines, 1) if f'"{name}"' in text), 1)
    hint = ""
    if not any(other.partition("::")[0] == path for other in _seen_ids(seen)):
        hint = (
            f"No claim of {path} was collected: look at testpaths, dp_modules, --ignore and "
            "conftest.py."
        )
    return seen.file, line, hint
