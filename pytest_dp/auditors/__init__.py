"""The stages of an audit: prepare a session, refute the claim, confirm and describe what was found.

Each takes what the one before it has made, and changes none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from inspect import Signature, signature
from pathlib import Path
from typing import Any

from pytest_dp.auditors.confirm import confirm_finding
from pytest_dp.auditors.session import (
    NO_PAST,
    AuditFinding,
    AuditResult,
    Past,
    Session,
    prepare_session,
)
from pytest_dp.basics.errors import ClaimError, describe_error, invalid, note_fault, pop_noted
from pytest_dp.claiming.claim import Claim, expand
from pytest_dp.claiming.settings import Settings, seed_of, settings_for
from pytest_dp.data.conversion import kind_of, rebuild
from pytest_dp.data.record_relations import OfRecords
from pytest_dp.declaration import dp_claim
from pytest_dp.pairs import Pair
from pytest_dp.protocols import AuditMethod, Explainer, Violation
from pytest_dp.registry import load, names
from pytest_dp.running.deadline import OutOfTime, end_if_hung
from pytest_dp.running.sampler import Progress


def audit(
    mechanism: Callable[..., Any],
    *,
    seed: int | str | None = None,
    n_jobs: int | None = None,
    **claim: Any,
) -> AuditResult:
    """Audit one claim, without pytest.

    Keywords that the method has no use for are named in the notes of the result.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, ...)``, one output a call unless `vectorized`.
    seed : int or str, optional
        Replays an audit; as text, a hexadecimal number, as reports print it. By default it
        follows from the mechanism's source and the claim.
    n_jobs : int, optional
        Processes at most; by default one per core if that is faster. The result does not depend on
        it.
    **claim
        The keywords of `dp_claim`, which describes them. A list in `params` must hold one value, as
        this function audits one claim.

    Returns
    -------
    AuditResult

    Raises
    ------
    ClaimError
        If the claim makes no sense, or needs a package that is not installed.
    MechanismError
        If the mechanism always raises, hangs, takes its process down, or keeps something from run
        to run.

    Examples
    --------
    >>> from pytest_dp import audit
    >>> def noisy_count(records, rng):
    ...     return len(records) + rng.laplace(scale=0.5)
    >>> result = audit(noisy_count, eps=1.0, pairs=[([0], [])], seed=1)
    >>> result.verdict
    'violated'
    """
    claims = expand(claim)
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} claims; audit() takes one at a time. Call it in a loop."
        )
    seed = seed_of(seed)
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs < 1):
        raise invalid("n_jobs", n_jobs, "Allowed: a whole number, 1 or more.")
    vectorized = claims[0].arguments.vectorized is not None
    settings = settings_for(claims[0].effort, vectorized=vectorized)
    settings = replace(settings, seed=seed, jobs=n_jobs)
    name = f"{getattr(mechanism, '__qualname__', type(mechanism).__qualname__)}[{claims[0].label}]"
    return run(claims[0], mechanism, settings, name)


def _signature_with_claim(function: Callable[..., Any]) -> Signature:
    """Return a function's signature, extended by the keywords of `dp_claim`, for ``help``."""
    named = [p for p in signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    of_claim = [p for p in signature(dp_claim).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = sorted([*named, *of_claim], key=lambda p: (p.kind, p in named))
    return signature(function).replace(parameters=parameters)


audit.__signature__ = _signature_with_claim(audit)  # type: ignore[attr-defined]


def run(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None = None,
    progress: Progress | None = None,
    past: Past = NO_PAST,
) -> AuditResult:
    """Audit a validated claim, and return the result.

    `root` is the folder in which inputs given as ``"module:attribute"`` are looked up; `past` has
    pairs and evidence of earlier audits. Raises ClaimError and MechanismError, as `audit` does.
    """

    def audited() -> AuditResult:
        session = prepare_session(claim, mechanism, settings, name, root, progress, past)
        with closing(session.sampler):
            try:
                finding = confirm_finding(session, refute_claim(session))
                return describe_finding(session, finding, root)
            except OutOfTime as out:
                session.budget.refuse_hung(out)
                raise

    return end_if_hung(name, settings.max_seconds, audited)


def refute_claim(session: Session) -> AuditFinding:
    """Run the method of a session on its claim; return the finding, with or without a violation.

    Raises ClaimError, MechanismError or OutOfTime, and ImportError if the method cannot be loaded.
    """
    method: AuditMethod = load("method", session.method.name)
    finding: AuditFinding = method(session)
    return finding


def describe_finding(
    session: Session, finding: AuditFinding, root: Path | None = None
) -> AuditResult:
    """Run explainers on a violation; return the result with lines to blame and further notes.

    If a violation lies outside of the declared inputs (`beyond`), its result is explained. Without
    any violation, only notes are added: on faults of this package, which are then forgotten.
    """
    result = finding.result
    if finding.beyond is not None:
        beyond = _add_blame(session, finding.beyond.result, root)
        samples, seconds = beyond.samples, beyond.seconds
        result = replace(result, beyond=beyond, samples=samples, seconds=seconds)
    elif result.violated:
        result = _add_blame(session, result, root)
    return replace(result, notes=(*result.notes, *pop_noted()))


def _pair_of_empty_datasets(session: Session, example: Any) -> list[tuple[Any, Any]]:
    """Return a list of one pair, the empty dataset twice; [] if the claim does not contain it.

    [] as well if the inputs are not datasets of records, or their number of records is fixed.
    """
    relation = session.claim.promise.relation
    if not isinstance(relation, OfRecords) or relation.keeps_length or not kind_of(example):
        return []
    nobody = rebuild(example, [])
    is_inside = not relation.name.startswith("replace") and session.source.bounds.holds(nobody)
    return [(nobody, nobody)] if is_inside else []


def _add_blame(session: Session, result: AuditResult, root: Path | None) -> AuditResult:
    """Run all explainers; return the result with the lines to blame and the idle fields they find.

    An explainer that raises adds a note instead. A result without a counterexample is unchanged.
    """
    example = result.counterexample
    if example is None:
        return result
    others = [given.inputs for given in session.source.pairs if not given.beyond]
    others += _pair_of_empty_datasets(session, example.d1) if not example.params else []
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
    notes, blame, idle = list(result.notes), result.blame, example.idle
    for name in names("explainer"):
        try:
            explainer: Explainer = load("explainer", name)
            found = explainer(violation, session.budget.seconds_to_explain)
        except Exception as error:  # such as of an output that cannot be compared
            work = "looking for the lines that leak" if name == "blame" else f"explaining by {name}"
            note_fault(error, work)
            notes.append(describe_error(error, work))
        else:
            blame, idle = (*blame, *found.lines), (*idle, *found.idle)
    example = replace(example, idle=idle)
    seconds, said = session.budget.seconds, tuple(notes)
    return replace(result, blame=blame, counterexample=example, seconds=seconds, notes=said)
