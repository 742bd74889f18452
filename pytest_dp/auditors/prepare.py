"""The first stage of an audit: from a claim to its pairs of inputs, and the effort allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_dp.auditors.budget import compute_within, start_watch
from pytest_dp.auditors.past import NOTHING, Past, note_of
from pytest_dp.auditors.session import Session, begin_session
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.claiming.method_settings import Method, OneRun
from pytest_dp.claiming.settings import Settings, unused_settings
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.pairs.canaries import check_relation
from pytest_dp.pairs.sources import PairSource
from pytest_dp.protocols import Search
from pytest_dp.registry import load
from pytest_dp.results.evidence import Evidence
from pytest_dp.running.calling import prepare
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.sampler import Progress
from pytest_dp.running.streams import claim_seed


def prepare_session(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None = None,
    progress: Progress | None = None,
    past: Past = NOTHING,
) -> Session:
    """Return the session of a claim: its mechanism, its pairs, and its budget.

    `root` is where ``"module:attribute"`` inputs are looked up. Raises ClaimError if the inputs are
    no neighbours, or take too long to make.
    """
    call = prepare(mechanism, claim.arguments)
    seed = claim_seed(name, mechanism) if settings.seed is None else settings.seed
    where = "pairs" if claim.promise.inputs is None else "inputs"
    written = f"{where}={on_one_line(getattr(claim.promise, where))}"
    notes: list[str] = []
    settings = replace(settings, seed=seed, method=_method(claim, settings))
    search = _search(claim, settings, notes)

    def prepared() -> tuple[Claim, PairSource, Evidence | None]:
        audited = replace(claim, promise=resolve_promise(claim.promise, root, notes))
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
        source = make_pair_source(
            audited, seed, written, remembered, told, constants, beyond=wanted
        )
        source = source if search is None else search.widen_source(source, promise, call, settings)
        return audited, source, past.evidence(promise, seed)

    load("method", settings.method.name)  # before the watch: what it imports takes a while
    watch = start_watch()
    try:
        claim, source, earlier = compute_within(settings.max_seconds, prepared)
    except OutOfTime:
        raise ClaimError(
            f"{written}{_relation(claim)}: no pairs within max_seconds={settings.max_seconds:g}. A "
            "function that yields inputs or neighbours may go on without end, but has to yield "
            "some; it is asked for a few hundred at most."
        ) from None
    session = begin_session(claim, call, source, settings, name, progress, watch)
    session = replace(session, earlier=earlier)
    if earlier is not None and earlier.runs:
        notes.append(note_of(earlier))
    if useless := unused_settings(claim.effort, settings.method.name):
        notes.append(f"method {settings.method.name} does not use {', '.join(useless)}")
    for note in notes:
        session.sampler.note(note)
    return session


def _relation(claim: Claim) -> str:
    return f" with {claim.promise.relation}" if claim.promise.relation else ""


def _check_method(method: Method, promise: Promise) -> None:
    """Refuse a relation that a method is not for, before pairs are looked for under it."""
    if isinstance(method, OneRun):
        check_relation(promise.relation)


def _method(claim: Claim, settings: Settings) -> Method:
    """Return the method of the settings, or of the claim if it is about games."""
    if claim.promise.games is None:
        return settings.method
    method: Method = claim.effort["method"]
    return method


def _search(claim: Claim, settings: Settings, notes: list[str]) -> Search | None:
    """Return the search for inputs, if the claim is audited by betting and gives some."""
    if settings.method.name != "sequential" or claim.promise.inputs is None:
        return None
    try:
        search: Search = load("search", "inputs")
    except ImportError as error:
        notes.append(f"no inputs were tried beside the claim's own: {error}")
        return None
    return search
