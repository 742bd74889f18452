"""Search and evidence together: a claim in, an `AuditResult` out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from inspect import Signature, signature
from pathlib import Path
from typing import Any

from pytest_dp.auditors.confirming import confirmed
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.past import NOTHING, Past, note_of
from pytest_dp.auditors.result import AuditResult
from pytest_dp.basics import clocks
from pytest_dp.basics.clocks import QUIET_SECONDS
from pytest_dp.basics.errors import ClaimError, MechanismError, invalid
from pytest_dp.basics.faults import describe_error, note_fault, pop_noted
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.claim import Claim, Promise, expand
from pytest_dp.claiming.method_settings import Method, OneRun
from pytest_dp.claiming.settings import Settings, seed_of, settings_for, unused_settings
from pytest_dp.data.conversion import kind_of, rebuilt
from pytest_dp.data.record_relations import OfRecords
from pytest_dp.declaration import dp_claim
from pytest_dp.pairs import Pair, resolved, source_of
from pytest_dp.pairs.canaries import check_relation
from pytest_dp.pairs.sources import PairSource
from pytest_dp.protocols import Explainer, Search, Violation
from pytest_dp.registry import load, names
from pytest_dp.results.evidence import Evidence
from pytest_dp.running.calling import prepare
from pytest_dp.running.deadline import (
    Deadline,
    OutOfTime,
    ended_if_native,
    interrupt_if_hung,
    within,
)
from pytest_dp.running.sampler import Progress
from pytest_dp.running.streams import claim_seed

BLAME_SECONDS = 3.0
"""Seconds in which lines are blamed. More: a red build waits; fewer: no line is named for slow
mechanisms."""
LEAST_SECONDS = 0.1
"""Seconds that are left for it in any case. Fewer: nothing is named where time is up."""


def auditor(method: str) -> Callable[[Context], AuditResult]:
    """Return the function that audits by a method, loaded when it is first used."""
    audit_by: Callable[[Context], AuditResult] = load("method", method)
    return audit_by


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
        Processes at most; by default as many as there are cores, where that pays. The result does
        not depend on it.
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
        If the mechanism always raises, hangs, or takes its process down.

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
    """A signature that lists the keywords of a claim too, for ``help`` and for completion."""
    named = [p for p in signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    of_claim = [p for p in signature(dp_claim).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = sorted([*named, *of_claim], key=lambda p: (p.kind, p in named))
    return signature(function).replace(parameters=parameters)


audit.__signature__ = _signature_with_claim(audit)  # type: ignore[attr-defined]


def _relation(claim: Claim) -> str:
    return f" with {claim.promise.relation}" if claim.promise.relation else ""


def _check_method(method: Method, promise: Promise) -> None:
    """Refuse a relation that a method is not for, before pairs are looked for under it."""
    if isinstance(method, OneRun):
        check_relation(promise.relation)


def _method(claim: Claim, settings: Settings) -> Method:
    """That of the settings; games have one method, whatever else a run asks for."""
    if claim.promise.games is None:
        return settings.method
    method: Method = claim.effort["method"]
    return method


def run(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None = None,
    progress: Progress | None = None,
    past: Past = NOTHING,
) -> AuditResult:
    """Audit a validated claim; `root` is where ``"module:attribute"`` inputs are looked up."""
    with ended_if_native(name, settings.max_seconds):
        return _run(claim, mechanism, settings, name, root, progress, past)


def _run(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None,
    progress: Progress | None,
    past: Past,
) -> AuditResult:
    call = prepare(mechanism, claim.arguments)
    seed = claim_seed(name, mechanism) if settings.seed is None else settings.seed
    where = "pairs" if claim.promise.inputs is None else "inputs"
    written = f"{where}={on_one_line(getattr(claim.promise, where))}"
    notes: list[str] = []
    settings = replace(settings, seed=seed, method=_method(claim, settings))
    search = _search(claim, settings, notes)

    def prepared() -> tuple[Claim, PairSource, Evidence | None]:
        audited = replace(claim, promise=resolved(claim.promise, root, notes))
        promise = audited.promise
        _check_method(settings.method, promise)
        constants = [] if search is None else search.compared_values(call, promise, settings)
        remembered = past.pairs(promise)
        if remembered:
            notes.append(
                "the pair that broke this claim the last time was tried first; an audit that is "
                "repeated by its seed leaves it out"
            )
        wanted, told = settings.beyond != "off", notes if settings.method.repeats else None
        source = source_of(audited, seed, written, remembered, told, constants, beyond=wanted)
        source = source if search is None else search.widened(source, promise, call, settings)
        return audited, source, past.evidence(promise, seed)

    audit_by = auditor(settings.method.name)  # before the watch: what it imports takes a while
    watch = clocks.Stopwatch()
    try:
        claim, source, earlier = within(settings.max_seconds, prepared)
    except OutOfTime:
        raise ClaimError(
            f"{written}{_relation(claim)}: no pairs within max_seconds={settings.max_seconds:g}. A "
            "function that yields inputs or neighbours may go on without end, but has to yield "
            "some; it is asked for a few hundred at most."
        ) from None
    context = Context(claim, call, source, settings, name, progress, earlier)
    context.count_from(watch)
    for note in notes:
        context.sampler.note(note)
    if earlier is not None and earlier.runs:
        context.sampler.note(note_of(earlier))
    useless = unused_settings(claim.effort, settings.method.name)
    if useless:
        context.sampler.note(f"method {settings.method.name} does not use {', '.join(useless)}")
    with closing(context.sampler):
        try:
            with interrupt_if_hung(context.deadline):
                result = confirmed(context, audit_by(context))
                if result.beyond is not None:
                    result = _with_confirmed_beyond(context, result)
                return _explained(context, result, root)
        except OutOfTime as out:
            context.refuse_hung(out)
            raise


def _with_confirmed_beyond(context: Context, result: AuditResult) -> AuditResult:
    """The result, without what it found beyond the claim's inputs if copies do not confirm it."""
    assert isinstance(result.beyond, AuditResult)
    try:
        beyond = confirmed(context, result.beyond)
    except MechanismError as error:
        reason = str(error)
    else:
        if beyond.violated:
            return replace(result, beyond=beyond, samples=beyond.samples)
        reason = beyond.reason
    note = f"not told is what was seen on inputs beyond those that the claim gives: {reason}"
    samples = context.sampler.runs
    return replace(result, beyond=None, samples=samples, notes=(*result.notes, note))


def _explained(context: Context, result: AuditResult, root: Path | None) -> AuditResult:
    """Return the result with the lines to blame, and with notes on faults of this package."""
    if isinstance(result.beyond, AuditResult):
        result = replace(result, beyond=_with_blame(context, result.beyond, root))
    elif result.violated:
        result = _with_blame(context, result, root)
    return replace(result, notes=(*result.notes, *pop_noted()))


def _search(claim: Claim, settings: Settings, notes: list[str]) -> Search | None:
    """Return the search for inputs, if the claim is audited by betting and gives some."""
    if settings.method.name != "sequential" or claim.promise.inputs is None:
        return None
    try:
        search: Search = load("search", "inputs")
    except ImportError as error:
        notes.append(f"no inputs were looked for but those of the claim: {error}")
        return None
    return search


def _with_nobody(context: Context, example: Any) -> list[tuple[Any, Any]]:
    """The empty dataset, twice, where the claim speaks of it."""
    relation = context.claim.promise.relation
    if not isinstance(relation, OfRecords) or relation.keeps_length or not kind_of(example):
        return []
    nobody = rebuilt(example, [])
    is_inside = not relation.name.startswith("replace") and context.source.bounds.holds(nobody)
    return [(nobody, nobody)] if is_inside else []


def _with_blame(context: Context, result: AuditResult, root: Path | None) -> AuditResult:
    """Return the result with what explainers say of the counterexample."""
    example = result.counterexample
    if example is None:
        return result
    others = [given.inputs for given in context.source.pairs if not given.beyond]
    others += _with_nobody(context, example.d1) if not example.params else []
    violation = Violation(
        context.call,
        Pair(example.d1, example.d2, params=example.params),
        context.guarantee,
        result.lower,
        example.event,
        others,
        [data for given in context.pairs for data in (given.d1, given.d2)],
        root,
    )
    left = Deadline(max(context.to_tell(), min(QUIET_SECONDS, context.before_the_limit())))
    notes, blame, idle = list(result.notes), result.blame, example.idle
    for name in names("explainer"):
        seconds = min(BLAME_SECONDS, max(left.remaining(), LEAST_SECONDS))
        try:
            explainer: Explainer = load("explainer", name)
            said = explainer(violation, seconds)
        except Exception as error:  # such as of an output that cannot be compared
            work = "looking for the lines that leak" if name == "blame" else f"explaining by {name}"
            note_fault(error, work)
            notes.append(describe_error(error, work))
        else:
            blame, idle = (*blame, *said.lines), (*idle, *said.idle)
    example = replace(example, idle=idle)
    seconds = clocks.seconds() - context.started
    return replace(result, blame=blame, counterexample=example, seconds=seconds, notes=tuple(notes))
