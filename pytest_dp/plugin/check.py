"""Running an audit inside a test: the fixture, the marker, and what becomes of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_dp.auditors import run
from pytest_dp.auditors.result import AuditResult, InconclusiveAudit, PrivacyViolation
from pytest_dp.claim import Claim, expand, variants
from pytest_dp.errors import ClaimError, InconclusiveWarning, PytestDPError
from pytest_dp.keywords import read
from pytest_dp.plugin.earlier import Earlier
from pytest_dp.plugin.failure import relative, represent
from pytest_dp.plugin.names import AUDITED, CONTENT, MARKER, reports
from pytest_dp.plugin.options import settings_of, strict
from pytest_dp.plugin.progress import Progress
from pytest_dp.records.code import source_digest
from pytest_dp.report.alarms import properties
from pytest_dp.report.record import Record
from pytest_dp.report.violation import headline, violation
from pytest_dp.sampling.streams import claim_seed

_RECORDS = pytest.StashKey[list[tuple[Record, AuditResult]]]()
_CALLS = pytest.StashKey[int]()
_UNUSED = pytest.StashKey[bool]()
_UNAUDITED = pytest.StashKey[str]()
"""Of a test: the module or class around it with a marker that no test makes use of."""


def run_audit(item: pytest.Item, mechanism: Any, claim: Claim, number: int = 1) -> AuditResult:
    """Audit a claim with the settings of this run; `number` counts the audits of a test."""
    settings = settings_of(item.config, claim)
    if number > 1 and settings.seed is None:
        settings = replace(settings, seed=claim_seed(f"{item.nodeid}#{number}", mechanism))
    ends_early = settings.method.name == "sequential" and settings.margin > 1
    goal = claim.promise.guarantee.with_noise_over(settings.margin) if ends_early else None
    earlier = Earlier(item, number, claim, mechanism, settings)
    with Progress(item.config, item.name, settings.max_seconds, goal) as progress:
        root = item.config.rootpath
        result = run(claim, mechanism, settings, item.nodeid, root, progress.wanted, earlier.past)
    earlier.keep(result)
    item.stash.setdefault(AUDITED, []).append((number, mechanism, claim, result))
    return result


def conclude(item: pytest.Item, mechanism: Any, result: AuditResult) -> None:
    """Keep the result for the table, and fail the test if the claim is broken."""
    __tracebackhide__ = True
    path, line = place(item)
    drawn = any(file.name.lower().endswith(".html") for file in reports(item.config))
    source = source_digest(mechanism)
    record = Record.of(result, item.nodeid, path, line, source, pictures=drawn)
    item.stash.setdefault(_RECORDS, []).append((record, result))
    item.user_properties += [
        said for said in properties(record) if said not in item.user_properties
    ]
    if result.violated:
        raise PrivacyViolation(violation(result), result)
    if result.verdict == "inconclusive":
        if strict(item.config):
            raise InconclusiveAudit(f"{headline(result)}\n{result.reason}")
        said = f"{item.nodeid}: {headline(result)}; {result.reason}"
        item.warn(InconclusiveWarning(said))


def checker(request: pytest.FixtureRequest) -> Any:
    """The function that the fixture ``dp_check`` gives to a test."""
    item: pytest.Item = request.node
    _, markers = _claimed(item)
    if not markers:
        pytest.fail(
            "dp_check audits the claim of the test's marker, and this test has none. Write "
            "@pytest.mark.dp_claim(eps=1.0, ...) above it.",
            pytrace=False,
        )
    keywords = getattr(request, "param", None) or dict(markers[0].kwargs)

    item.stash[_UNUSED] = True

    def check(mechanism: Any, **overrides: Any) -> AuditResult:
        __tracebackhide__ = True
        item.stash[_UNUSED] = False
        number = item.stash.get(_CALLS, 0) + 1
        item.stash[_CALLS] = number
        try:
            claim = _one_claim(keywords, overrides)
            result = run_audit(item, mechanism, claim, number)
            conclude(item, mechanism, result)
        except PytestDPError as error:
            raise error.with_traceback(None) from None
        return result

    return check


def parametrize(metafunc: pytest.Metafunc) -> None:
    """One item for each claim, if the markers of a test make several."""
    variations: list[tuple[dict[str, Any], str]] = []
    for marker in reversed(_claimed(metafunc.definition)[1]):  # the topmost first
        try:
            claims = variants(_read(marker))
        except ClaimError:
            return  # `before` shows it when the test is run
        for arguments, label in claims:
            keywords = dict(marker.kwargs)
            if arguments.params or arguments.drawn:
                params = {name: [value] for name, value in arguments.params.items()}
                keywords["params"] = params | dict(arguments.drawn)
            variations.append((keywords, label))
    if len(variations) > 1:
        metafunc.parametrize(
            "dp_check",
            [k for k, _ in variations],
            ids=[label or None for _, label in variations],
            indirect=True,
        )


def before(item: pytest.Item) -> None:
    """Forget earlier runs of a marked test, and refuse a marker that makes no sense."""
    item.stash[_RECORDS] = []
    item.stash[AUDITED] = []
    item.stash[_CALLS] = 0
    item.stash[_UNUSED] = False
    whose = item.stash.get(_UNAUDITED, "")
    if not hasattr(item, "declaration"):  # a generated item has a marker of its own
        for marker in (marker for marker in item.own_markers if marker.name == MARKER):
            variants(_read(marker))
            whose = whose if _takes_dp_check(item) else "This test"
    if whose:
        raise ClaimError(
            f"{whose} has the marker dp_claim but never audits anything. Take the fixture dp_check "
            "as an argument and call dp_check(mechanism)."
        )


def refuse_unaudited(marked: Sequence[pytest.Collector], items: Sequence[pytest.Item]) -> None:
    """Let a test fail for each marker of a module or a class that none of its tests audits.

    A class that inherits the marker may leave the audit to others that inherit it.
    """
    by_owner: dict[int, list[pytest.Collector]] = {}
    for node in marked:
        by_owner.setdefault(id(_written_on(node)[0]), []).append(node)
    for owner, nodes in by_owner.items():
        tests = [test for node in nodes for test in _tests(node)]
        if not any(test is None or _audits(test, owner) for test in tests):
            first = next((item for item in items if item in tests), None)
            if first is not None:
                first.stash[_UNAUDITED] = nodes[0].name


def _tests(node: pytest.Item | pytest.Collector) -> Iterator[pytest.Item | None]:
    """All tests in a module or a class, also those not asked for; None for what is not known."""
    if isinstance(node, pytest.Item):
        yield node
        return
    content = node.stash.get(CONTENT, None)
    for child in (None,) if content is None else content:
        yield from (None,) if child is None else _tests(child)


def _audits(item: pytest.Item, owner: int) -> bool:
    """Whether a test audits the claim that is written on the object of this identity."""
    return _takes_dp_check(item) and id(_claimed(item)[0]) == owner


def _claimed(item: pytest.Item) -> tuple[object, list[pytest.Mark]]:
    """The closest test, class or module with markers, and these."""
    written = map(_written_on, reversed(item.listchain()))
    return next(((owner, marks) for owner, marks in written if marks), (item, []))


def _written_on(node: Any) -> tuple[object, list[pytest.Mark]]:
    """The markers of a test, class or module, and what they are written on: maybe a base class."""
    own = [marker for marker in node.own_markers if marker.name == MARKER]
    for kind in getattr(getattr(node, "obj", None), "__mro__", ()):
        marks = vars(kind).get("pytestmark", ())
        listed = [getattr(m, "mark", m) for m in (marks if isinstance(marks, list) else [marks])]
        here = [marker for marker in own if any(marker is mark for mark in listed)]
        if here:
            return kind, here
    return node, own


def _takes_dp_check(item: pytest.Item) -> bool:
    return "dp_check" in getattr(item, "fixturenames", ())


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the records of this test on its report, and show our own errors in our own way."""
    error = call.excinfo.value if call.excinfo is not None else None
    if call.when == "call" and report.passed and item.stash.get(_UNUSED, False):
        error = ClaimError(
            "This test took the fixture dp_check and never called it, so nothing was audited. Call "
            "dp_check(mechanism)."
        )
        report.outcome = "failed"
    ours = isinstance(error, PytestDPError)
    if ours and (call.when == "setup" or call.excinfo is None):
        report.longrepr = represent(error, item.config, item.path, place(item)[1])  # type: ignore[arg-type]
    # Whatever went wrong around a generated item, its claim was not audited.
    unaudited = ours or (report.failed and hasattr(item, "declaration"))
    if call.when != "call" and not (unaudited and call.when == "setup"):
        return
    passed = report.outcome != "failed"  # for an xfail, a violation is no alarm
    records = _of_results(item, error, passed)
    if unaudited and not isinstance(error, PrivacyViolation | InconclusiveAudit):
        path, line = place(item)
        message = str(error) if ours else f"{type(error).__name__}: {error}"
        record = Record.of_error(item.nodeid, path, line, message, seconds=call.duration)
        records.append(replace(record, expected=passed))
    if records:
        report.__dict__["dp_records"] = [record.as_dict() for record in records]


def _of_results(item: pytest.Item, error: BaseException | None, passed: bool) -> list[Record]:
    """Records of what was audited; violations that fail no test are expected ones."""
    records = []
    for record, result in item.stash.get(_RECORDS, []):
        raised = isinstance(error, PrivacyViolation) and error.result is result
        records.append(replace(record, expected=result.violated and (passed or not raised)))
    return records


def _read(marker: pytest.Mark) -> dict[str, Any]:
    """What a marker says of a claim; ``dp_check`` may be given the rest."""
    if marker.args:
        raise ClaimError(
            f"pytest.mark.dp_claim was given {marker.args[0]!r} without a keyword. "
            "Write the name: @pytest.mark.dp_claim(eps=1.0, ...)."
        )
    return read(marker.kwargs)


def _one_claim(keywords: dict[str, Any], overrides: dict[str, Any]) -> Claim:
    merged = {**keywords, **overrides}
    for given, other in (("pairs", "inputs"), ("inputs", "pairs")):
        if given in overrides and other not in overrides:
            merged.pop(other, None)
    claims = expand(merged)
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} claims, and dp_check audits one a call. Give each "
            "parameter one value, or put the list into the marker for one test each."
        )
    return claims[0]


def place(item: pytest.Item) -> tuple[str, int]:
    """Path, relative to the root, and line of a test."""
    _, line, _ = item.reportinfo()
    return relative(item.path, item.config.rootpath), (line or 0) + 1
