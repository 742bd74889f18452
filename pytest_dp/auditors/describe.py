"""The last stage of an audit: from what was found to what users get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_dp.auditors.audit_result import AuditResult
from pytest_dp.auditors.budget import explaining_seconds
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.basics.faults import describe_error, note_fault, pop_noted
from pytest_dp.data.conversion import kind_of, rebuilt
from pytest_dp.data.record_relations import OfRecords
from pytest_dp.pairs import Pair
from pytest_dp.protocols import Explainer, Violation
from pytest_dp.registry import load, names


def describe_finding(
    session: Session, finding: AuditFinding, root: Path | None = None
) -> AuditResult:
    """Return the result with the lines to blame, and with notes on faults of this package."""
    result = finding.result
    if finding.beyond is not None:
        beyond = _with_blame(session, finding.beyond.result, root)
        samples, seconds = beyond.samples, beyond.seconds
        result = replace(result, beyond=beyond, samples=samples, seconds=seconds)
    elif result.violated:
        result = _with_blame(session, result, root)
    return replace(result, notes=(*result.notes, *pop_noted()))


def _with_nobody(session: Session, example: Any) -> list[tuple[Any, Any]]:
    """Return the empty dataset, twice, where the claim speaks of it."""
    relation = session.claim.promise.relation
    if not isinstance(relation, OfRecords) or relation.keeps_length or not kind_of(example):
        return []
    nobody = rebuilt(example, [])
    is_inside = not relation.name.startswith("replace") and session.source.bounds.holds(nobody)
    return [(nobody, nobody)] if is_inside else []


def _with_blame(session: Session, result: AuditResult, root: Path | None) -> AuditResult:
    """Return the result with what explainers say of the counterexample."""
    example = result.counterexample
    if example is None:
        return result
    others = [given.inputs for given in session.source.pairs if not given.beyond]
    others += _with_nobody(session, example.d1) if not example.params else []
    violation = Violation(
        session.call,
        Pair(example.d1, example.d2, params=example.params),
        session.guarantee,
        result.lower,
        example.event,
        others,
        [data for given in session.pairs for data in (given.d1, given.d2)],
        root,
    )
    deadline = session.budget.explaining_deadline()
    notes, blame, idle = list(result.notes), result.blame, example.idle
    for name in names("explainer"):
        try:
            explainer: Explainer = load("explainer", name)
            found = explainer(violation, explaining_seconds(deadline))
        except Exception as error:  # such as of an output that cannot be compared
            work = "looking for the lines that leak" if name == "blame" else f"explaining by {name}"
            note_fault(error, work)
            notes.append(describe_error(error, work))
        else:
            blame, idle = (*blame, *found.lines), (*idle, *found.idle)
    example = replace(example, idle=idle)
    seconds, said = session.budget.seconds, tuple(notes)
    return replace(result, blame=blame, counterexample=example, seconds=seconds, notes=said)
