"""Running an audit inside a test: the fixture, the marker, and what becomes of the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dp.basics.errors import ClaimError, InconclusiveWarning, PytestDPError
from pytest_dp.claiming.claim import Claim, expand, variants
from pytest_dp.claiming.setting_fields import FIELDS, GRADES
from pytest_dp.plugin.claim_session import MARKER, audits_of, claim_session_of, reports
from pytest_dp.plugin.collect import closest_markers, place, read_marker, takes_dp_check
from pytest_dp.plugin.options import only_changed, settings_of
from pytest_dp.plugin.terminal import Progress, represent
from pytest_dp.report.record import Record, claim_fields, junit_properties
from pytest_dp.report.violation import headline, violation
from pytest_dp.running.generators import claim_seed

if TYPE_CHECKING:  # audits load much, and a claim that is unchanged needs none of it
    from pytest_dp.auditors.session import AuditResult

FIXED = (
    "A violation is expected here, by the mark xfail(strict=True), and none was found. If it is "
    "fixed, take the mark away."
)


UNTOLD = (
    "A violation is expected here, by the mark xfail(strict=True), and the audit could tell "
    "nothing: give it more samples or seconds."
)


def audit_or_look_up(
    item: pytest.Item, mechanism: Any, claim: Claim, keywords: Mapping[str, Any]
) -> None:
    """Audit a claim, unless it passed before and nothing has changed since, if that is wanted."""
    __tracebackhide__ = True
    looked = None
    if only_changed(item.config):
        from pytest_dp.plugin.earlier import PassLookup

        looked = PassLookup(item, mechanism, claim, place(item))
    if looked is not None and looked.record is not None:
        audits = audits_of(item)
        audits.made.append((1, mechanism, claim, looked.result))
        audits.records.append((looked.record, looked.result))
        item.user_properties += junit_properties(looked.record)
        return
    conclude_audit(item, run_audit(item, mechanism, claim, keywords))
    if looked is not None:
        ((record, _),) = audits_of(item).records
        looked.keep(record)


def run_audit(
    item: pytest.Item,
    mechanism: Any,
    claim: Claim,
    keywords: Mapping[str, Any],
    number: int = 1,
) -> AuditResult:
    """Audit a claim of these keywords with the settings of this run.

    `number` counts the audits of a test.
    """
    from pytest_dp.auditors import run
    from pytest_dp.plugin.earlier import Earlier, with_file
    from pytest_dp.running import deadline

    settings = settings_of(item.config, claim)
    if number > 1 and settings.seed is None:
        settings = replace(settings, seed=claim_seed(f"{item.nodeid}#{number}", mechanism))
    ends_early = settings.method.name in FIELDS["margin"].methods and settings.margin > 1
    goal = claim.promise.guarantee.with_noise_over(settings.margin) if ends_early else None
    earlier = Earlier(item, number, claim, mechanism, settings)
    root, stderr = item.config.rootpath, claim_session_of(item.config).stderr
    shown = Progress(item.config, item.name, settings.max_seconds, goal)
    with shown as progress, deadline.writing_to(stderr):
        # an audit needs time to say how far it is
        show = progress.show if progress.writer is not None else None
        result = run(claim, mechanism, settings, item.nodeid, root, show, earlier.past)
    earlier.keep(result)
    result = with_file(item, number, mechanism, keywords, result)
    audits_of(item).made.append((number, mechanism, claim, result))
    return result


def conclude_audit(item: pytest.Item, result: AuditResult) -> None:
    """Keep the result for the table, and fail the test if the claim is broken."""
    __tracebackhide__ = True
    from pytest_dp.auditors.session import InconclusiveAudit, PrivacyViolation

    path, line = place(item)
    drawn = any(file.name.lower().endswith(".html") for file in reports(item.config))
    record = Record.of(result, item.nodeid, path, line, pictures=drawn)
    settings = settings_of(item.config, result.claim)
    record = replace(record, too_little=_too_little(result, settings.at_least))
    audits_of(item).records.append((record, result))
    item.user_properties += [
        said for said in junit_properties(record) if said not in item.user_properties
    ]
    if result.violated:
        raise PrivacyViolation(violation(result), result)
    told_nothing = result.verdict == "inconclusive"
    if record.too_little or (told_nothing and settings.at_least != GRADES[0]):
        untold = _untold(item, result.claim) if told_nothing else ""
        said = headline(result), result.reason, record.too_little, untold
        raise InconclusiveAudit("\n".join(filter(None, said)))
    if told_nothing:
        item.warn(InconclusiveWarning(f"{item.nodeid}: {headline(result)}; {result.reason}"))


def _untold(item: pytest.Item, claim: Claim) -> str:
    """Return why an audit that told nothing fails its test, and what to do."""
    asked = settings_of(item.config, claim).at_least
    lenient = replace(claim, effort={**claim.effort, "at_least": GRADES[0]})
    profile = claim_session_of(item.config).profile
    by = f" (profile {profile})" if profile and "at_least" not in claim.effort else ""
    said = f"at_least={asked!r}{by} asks for a pass: do what the line above says"
    if settings_of(item.config, lenient).at_least != GRADES[0]:  # options ask for it
        return f"{said}."
    return f"{said}, or accept that nothing is known, with at_least={GRADES[0]!r} in the claim."


def _too_little(result: AuditResult, at_least: str) -> str:
    """Return why a pass is worth too little to be one; empty if it is not."""
    is_pass = result.verdict == "no violation"
    if not is_pass or GRADES.index(result.strength) >= GRADES.index(at_least):
        return ""
    asked = f"The pass is {result.strength}, and at_least={at_least!r} is asked for"
    return f"{asked}: {_remedy(result, at_least)}."


def _remedy(result: AuditResult, at_least: str) -> str:
    """Return what may help a pass to reach a grade."""
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


def checker(request: pytest.FixtureRequest) -> Any:
    """Return the function that the fixture ``dp_check`` gives to a test."""
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
            conclude_audit(item, result)
        except PytestDPError as error:
            raise error.with_traceback(None) from None
        return result

    return check


def before(item: pytest.Item) -> None:
    """Forget earlier runs of a marked test, and refuse a marker that makes no sense."""
    audits = audits_of(item)
    whose = audits.unaudited
    audits.made, audits.records, audits.calls, audits.is_uncalled = [], [], 0, False
    if not hasattr(item, "declaration"):  # a generated item has a marker of its own
        for marker in (marker for marker in item.own_markers if marker.name == MARKER):
            variants(read_marker(marker))
            whose = whose if takes_dp_check(item) else "This test"
    if whose:
        raise ClaimError(
            f"{whose} has the marker dp_claim but never audits anything. Take the fixture dp_check "
            "as an argument and call dp_check(mechanism)."
        )


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the records of this test on its report, and show our own errors in our own way."""
    error = call.excinfo.value if call.excinfo is not None else None
    if call.when == "call" and report.passed and audits_of(item).is_uncalled:
        error = ClaimError(
            "This test took the fixture dp_check and never called it, so nothing was audited. Call "
            "dp_check(mechanism)."
        )
        report.outcome = "failed"
    ours = isinstance(error, PytestDPError)
    if ours and (call.when == "setup" or call.excinfo is None):
        report.longrepr = represent(error, item.config, item.path, place(item)[1])  # type: ignore[arg-type]
    if (
        hasattr(report, "wasxfail")
        and _is_a(error, "InconclusiveAudit")
        and _expects_violation(item)
    ):
        del report.wasxfail  # what is not known to be broken is not the violation that was expected
        report.outcome = "failed"
        report.longrepr = f"{UNTOLD}\n{error}"
    is_fixed = str(report.longrepr).startswith("[XPASS(strict)]")
    if is_fixed and (found := audits_of(item).records):
        told = UNTOLD if found[-1][0].status == "inconclusive" else FIXED
        report.longrepr = f"{told}\n{report.longrepr}"
    # Whatever else went wrong around a generated item, its claim was not audited.
    unaudited = ours or (report.failed and hasattr(item, "declaration") and not is_fixed)
    if call.when != "call" and not (unaudited and call.when == "setup"):
        return
    passed = report.outcome != "failed"  # for an xfail, a violation is no alarm
    records = _of_results(item, error, passed)
    if unaudited and not _is_a(error, "PrivacyViolation", "InconclusiveAudit"):
        path, line = place(item)
        message = str(error) if ours else f"{type(error).__name__}: {error}"
        record = Record.of_error(item.nodeid, path, line, message, seconds=call.duration)
        claim = getattr(item, "claim", audits_of(item).claim)
        said = claim_fields(claim) if isinstance(claim, Claim) else {}  # else it cannot be read
        records.append(replace(record, expected=passed, **said))
    if records:
        report.__dict__["dp_records"] = [record.as_dict() for record in records]


def _is_a(error: BaseException | None, *names: str) -> bool:
    """Return whether an error is the verdict of an audit; its module is loaded only then."""
    module = sys.modules.get("pytest_dp.auditors.session")
    return any(isinstance(error, getattr(module, name)) for name in names if module is not None)


def _expects_violation(item: pytest.Item) -> bool:
    """Return whether a strict mark says that the test fails, by whatever error."""
    strict = item.config.getini("xfail_strict")
    marks = [mark.kwargs for mark in item.iter_markers("xfail")]
    return any(mark.get("strict", strict) and not mark.get("raises") for mark in marks)


def _of_results(item: pytest.Item, error: BaseException | None, passed: bool) -> list[Record]:
    """Return records of what was audited; violations that fail no test are expected ones."""
    records = []
    for record, result in audits_of(item).records:
        raised = getattr(error, "result", None) is result
        records.append(replace(record, expected=result.violated and (passed or not raised)))
    return records


def _merge_keywords(keywords: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Merge the keywords of a marker with those of a call, which come first."""
    merged = {**keywords, **overrides}
    for given, other in (("pairs", "inputs"), ("inputs", "pairs")):
        if given in overrides and other not in overrides:
            merged.pop(other, None)
    return merged


def _one_claim(keywords: dict[str, Any]) -> Claim:
    claims = expand(keywords)
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} claims, and dp_check audits one a call. Give each "
            "parameter one value, or put the list into the marker for one test each."
        )
    return claims[0]
