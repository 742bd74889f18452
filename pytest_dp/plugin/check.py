"""Running an audit inside a test: the fixture, the marker, and what becomes of the result."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pytest

from pytest_dp.basics.clocks import QUIET_SECONDS
from pytest_dp.basics.errors import ClaimError, InconclusiveWarning, PytestDPError
from pytest_dp.claiming.claim import Claim, expand, variants
from pytest_dp.claiming.setting_fields import GRADES
from pytest_dp.claiming.settings import NO_LIMIT, Settings
from pytest_dp.plugin.claim_session import (
    MARKER,
    Audit,
    audits_of,
    claim_session_of,
    report_paths,
    represent,
)
from pytest_dp.plugin.collect import closest_markers, path_and_line, read_marker, takes_dp_check
from pytest_dp.plugin.options import audits_only_changed, settings_of
from pytest_dp.report.record import Record, claim_fields, junit_properties
from pytest_dp.running.generators import claim_seed

if TYPE_CHECKING:  # audits load much, and a claim that is unchanged needs none of it
    from pytest_dp.auditors.session import AuditResult


def audit_or_look_up(
    item: pytest.Item, mechanism: Any, claim: Claim, keywords: Mapping[str, Any]
) -> None:
    """Audit an item's claim, or with ``--dp-changed`` note an earlier pass.

    Raises as `run_audit` and `conclude_audit`.
    """
    __tracebackhide__ = True
    lookup = None
    if audits_only_changed(item.config):
        from pytest_dp.plugin.earlier import PassLookup

        lookup = PassLookup(item, mechanism, claim, path_and_line(item))
    if lookup is not None and lookup.record is not None:
        audits_of(item).ended.append(Audit(1, claim, lookup.result, lookup.record))
        item.user_properties += junit_properties(lookup.record)
        return
    conclude_audit(item, claim, run_audit(item, mechanism, claim, keywords))
    if lookup is not None:
        lookup.keep(audits_of(item).ended[-1].record)


def run_audit(
    item: pytest.Item,
    mechanism: Any,
    claim: Claim,
    keywords: Mapping[str, Any],
    number: int = 1,
) -> AuditResult:
    """Run an audit with this run's settings, write files for later runs, and return the result.

    Writes the evidence, and the pair that broke the claim. `keywords` are those of the claim, and
    `number` counts the audits of a test from 1. Raises ClaimError and MechanismError as ``audit``.
    """
    from pytest_dp.auditors import run
    from pytest_dp.plugin.earlier import Earlier, write_pair_file
    from pytest_dp.running import deadline

    settings = settings_of(item.config, claim)
    if number > 1 and settings.seed is None:
        settings = replace(settings, seed=claim_seed(f"{item.nodeid}#{number}", mechanism))
    earlier = Earlier(item, number, claim, mechanism, settings)
    root, stderr = item.config.rootpath, claim_session_of(item.config).stderr
    shown = Progress(item.config, item.name, settings.max_seconds)
    with shown as progress, deadline.writing_to(stderr):
        # an audit needs time to say how far it is
        show = progress.show if progress.writer is not None else None
        result = run(claim, mechanism, settings, item.nodeid, root, show, earlier.past)
    earlier.keep(result)
    return write_pair_file(item, number, mechanism, keywords, result)


def conclude_audit(item: pytest.Item, claim: Claim, result: AuditResult, number: int = 1) -> None:
    """Append the result's record to the test's audits; then raise or warn unless the claim passed.

    Raises PrivacyViolation for a violation, and InconclusiveAudit if ``at_least`` asks for more
    than the result. Other inconclusive results, which it permits, give an InconclusiveWarning.
    """
    __tracebackhide__ = True
    from pytest_dp.auditors.session import InconclusiveAudit, PrivacyViolation

    path, line = path_and_line(item)
    drawn = any(file.name.lower().endswith(".html") for file in report_paths(item.config))
    record = Record.of(result, item.nodeid, path, line, pictures=drawn)
    settings = settings_of(item.config, result.claim)
    record = replace(record, too_little=_grade_reason(result, settings.at_least))
    audits_of(item).ended.append(Audit(number, claim, result, record))
    item.user_properties += [
        pair for pair in junit_properties(record) if pair not in item.user_properties
    ]
    if result.violated:
        raise PrivacyViolation(record.details, result)
    is_inconclusive = result.verdict == "inconclusive"
    if record.too_little or (is_inconclusive and settings.at_least != GRADES[0]):
        asked = _what_asks_for_a_pass(item, result.claim, settings) if is_inconclusive else ""
        lines = record.headline, result.reason, record.too_little, asked
        raise InconclusiveAudit("\n".join(filter(None, lines)))
    if is_inconclusive:
        item.warn(InconclusiveWarning(f"{item.nodeid}: {record.headline}; {result.reason}"))


def _what_asks_for_a_pass(item: pytest.Item, claim: Claim, settings: Settings) -> str:
    """Return a sentence on what asks for a pass where an audit is inconclusive, and what to do."""
    profile = claim_session_of(item.config).profile
    by = f" (profile {profile})" if profile and "at_least" not in claim.effort else ""
    return (
        f"at_least={settings.at_least!r}{by} asks for a pass: do what the line above says, or ask "
        f"for less, with at_least={GRADES[0]!r}."
    )


def _grade_reason(result: AuditResult, at_least: str) -> str:
    """Return why a pass has a lower grade than `at_least`, and what may help; else ""."""
    is_pass = result.verdict == "no violation"
    if not is_pass or GRADES.index(result.strength) >= GRADES.index(at_least):
        return ""
    asked = f"The pass is {result.strength}, and at_least={at_least!r} is asked for"
    return f"{asked}: {_remedy(result, at_least)}."


def _remedy(result: AuditResult, at_least: str) -> str:
    """Return what may help a pass to reach the grade `at_least`."""
    if result.unreached and result.strength == "fair":
        return "inputs that reach all of its code may help"
    if result.far_below is not None:
        return "less noise, or features= in which inputs differ, may help"
    if at_least in ("aligned", "exact"):
        why = f", and here none was found ({result.not_exact})" if result.not_exact else ""
        return f"this grade needs a loss that is computed{why}"
    if not result.stopped_early:
        return "more samples or seconds may help"
    return (
        "the audit stopped by itself, so more samples or seconds alone change nothing; a smaller "
        "margin, or margin=None, which uses all of them, may help"
    )


def make_checker(request: pytest.FixtureRequest) -> Any:
    """Make the function ``dp_check`` of a test, which audits a mechanism and returns the result.

    A test with a marker that never calls ``dp_check`` fails later; a test without a marker fails at
    once. ``dp_check`` records each audit. It raises PrivacyViolation, InconclusiveAudit,
    MechanismError, and ClaimError for wrong keywords or several claims.
    """
    item: pytest.Item = request.node
    markers = closest_markers(item)
    if not markers:
        pytest.fail(
            "dp_check audits the claim of the test's marker, and this test has none. Write "
            "@pytest.mark.dp_claim(eps=1.0, ...) above it.",
            pytrace=False,
        )
    keywords = getattr(request, "param", None) or dict(markers[0].kwargs)
    audits = audits_of(item)
    audits.is_uncalled = True

    def check(mechanism: Any, **overrides: Any) -> AuditResult:
        __tracebackhide__ = True
        audits.is_uncalled = False
        audits.calls += 1
        try:
            written = _merge_keywords(keywords, overrides)
            audits.claim = _one_claim(written)
            result = run_audit(item, mechanism, audits.claim, written, audits.calls)
            conclude_audit(item, audits.claim, result, audits.calls)
        except PytestDPError as error:
            raise error.with_traceback(None) from None
        return result

    return check


def reset_audits(item: pytest.Item) -> None:
    """Forget audits of earlier runs of a test; raise ClaimError for wrong or unused markers."""
    audits = audits_of(item)
    who = audits.unaudited
    audits.ended, audits.calls, audits.is_uncalled = [], 0, False
    if not hasattr(item, "declaration"):  # a generated item has a marker of its own
        for marker in (marker for marker in item.own_markers if marker.name == MARKER):
            variants(read_marker(marker))
            who = who if takes_dp_check(item) else "This test"
    if who:
        raise ClaimError(
            f"{who} has the marker dp_claim but never audits anything. Take the fixture dp_check "
            "as an argument and call dp_check(mechanism)."
        )


def attach_records(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> None:
    """Put the records of a test's audits on its report, and show our errors at the claim's line.

    A test that took ``dp_check`` and never called it fails. An error of a claim that was not
    audited has a record as well.
    """
    error = call.excinfo.value if call.excinfo is not None else None
    if call.when == "call" and report.passed and audits_of(item).is_uncalled:
        error = ClaimError(
            "This test took the fixture dp_check and never called it, so nothing was audited. Call "
            "dp_check(mechanism)."
        )
        report.outcome = "failed"
    ours = isinstance(error, PytestDPError)
    if ours and (call.when == "setup" or call.excinfo is None):
        report.longrepr = represent(error, item.config, item.path, path_and_line(item)[1])  # type: ignore[arg-type]
    is_fixed = str(report.longrepr).startswith("[XPASS(strict)]")
    is_verdict = ours and isinstance(error, AssertionError)  # the claim was audited
    # Whatever else went wrong around a generated item, its claim was not audited.
    unaudited = ours or (report.failed and hasattr(item, "declaration") and not is_fixed)
    if call.when != "call" and not (unaudited and call.when == "setup"):
        return
    passed = report.outcome != "failed"  # for an xfail, a violation is no alarm
    records = _records_of_audits(item, error, passed)
    if unaudited and not is_verdict:
        path, line = path_and_line(item)
        message = str(error) if ours else f"{type(error).__name__}: {error}"
        record = Record.of_error(item.nodeid, path, line, message, seconds=call.duration)
        claim = getattr(item, "claim", audits_of(item).claim)
        fields = claim_fields(claim) if isinstance(claim, Claim) else {}  # else it cannot be read
        records.append(replace(record, expected=passed, **fields))
    if records:
        report.__dict__["dp_records"] = [record.as_dict() for record in records]


def _records_of_audits(
    item: pytest.Item, error: BaseException | None, passed: bool
) -> list[Record]:
    """Return the records of a test's audits; violations that fail no test are expected ones."""
    records = []
    for audit in audits_of(item).ended:
        is_expected = passed or getattr(error, "result", None) is not audit.result
        records.append(replace(audit.record, expected=audit.result.violated and is_expected))
    return records


def _merge_keywords(keywords: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a marker and a call; the call wins, ``pairs`` replaces ``inputs``."""
    merged = {**keywords, **overrides}
    for given, other in (("pairs", "inputs"), ("inputs", "pairs")):
        if given in overrides and other not in overrides:
            merged.pop(other, None)
    return merged


def _one_claim(keywords: dict[str, Any]) -> Claim:
    """Return the claim of these keywords; raise ClaimError if they give several, or are wrong."""
    claims = expand(keywords)
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} claims, and dp_check audits one a call. Give each "
            "parameter one value, or put the list into the marker for one test each."
        )
    return claims[0]


class Progress:
    """A text such as ``120,000 samples, 4 of 60 s, detects 1.4`` on a terminal in long audits."""

    def __init__(self, config: pytest.Config, name: str, max_seconds: float) -> None:
        self.name = name
        self.limit = f" of {max_seconds:g}" if max_seconds < NO_LIMIT else ""
        self.shown = 0
        self.capture = config.pluginmanager.get_plugin("capturemanager")
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        is_seen = not is_worker and getattr(reporter, "isatty", False)
        writer = config.get_terminal_writer() if is_seen else None
        self.writer = writer if writer is not None and writer.hasmarkup else None

    def show(self, runs: int, seconds: float, caught: float | None = None) -> None:
        """Write the progress in place of the last one; shortened or left out if the line is full.

        Nothing in the first seconds. `runs` are samples; `caught` is the smallest loss in nats that
        would have been detected by now.
        """
        if self.writer is None or seconds < QUIET_SECONDS:
            return
        clock = f"{seconds:.0f}{self.limit} s"
        text = f"{self.name}: {runs:,} samples, {clock}"
        if caught is not None and math.isfinite(caught):
            text += f", detects {caught:.3g}"
        room = self.writer.fullwidth - self.writer.width_of_current_line - len(" []")
        text = text if len(text) < room else clock
        if len(text) < room:
            self._erase()
            self._write(f" [{text}]")
            self.shown = len(f" [{text}]")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def _erase(self) -> None:
        """Erase the text that is shown, if any."""
        if self.shown:
            self._write(f"\x1b[{self.shown}D\x1b[K")
            self.shown = 0

    def _write(self, text: str) -> None:
        """Write a text to the terminal, past pytest's capture and its count of columns."""
        if self.writer is None:
            return
        # Straight to the stream: the writer would count these characters as part of the line.
        stream = self.writer._file  # noqa: SLF001
        # While a test runs, what is written to the terminal would be captured.
        with self.capture.global_and_fixture_disabled() if self.capture else nullcontext():
            stream.write(text)
            stream.flush()
