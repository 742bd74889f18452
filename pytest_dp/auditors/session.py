"""The first stage of an audit: from a claim to its session; and the finding that stages hand on."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from joblib import cpu_count

from pytest_dp.auditors.budget import Budget, compute_within, start_watch
from pytest_dp.basics.clocks import Stopwatch
from pytest_dp.basics.errors import ClaimError, PytestDPError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.claiming.method_settings import Method, OneRun
from pytest_dp.claiming.settings import Settings, unused_settings
from pytest_dp.pairs import Pair, make_pair_source, resolve_promise
from pytest_dp.pairs.sources import PairSource, Screened
from pytest_dp.pairs.targets import check_relation
from pytest_dp.privacy import Guarantee
from pytest_dp.protocols import Search
from pytest_dp.registry import load
from pytest_dp.results.outcome import Evidence, e_value
from pytest_dp.results.result import Result, Verdict
from pytest_dp.running.calling import Call, prepare
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.generators import claim_seed
from pytest_dp.running.sampler import Progress, Sampler


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Result):  # noqa: D101  its base says it
    __doc__ = Result.__doc__  # for help()

    def __str__(self) -> str:
        """Return the outcome in a line."""
        from pytest_dp.report.violation import headline

        why = f"; {self.reason}" if self.verdict == "inconclusive" else ""
        return f"{self.name}: {headline(self)}{why}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, ready for JSON; inputs and events as text.

        It has the keys of a claim in a JSON file of ``--dp-report``, which
        `pytest_dp/report/record.schema.json` describes.
        """
        from pytest_dp.report.record import Record

        return Record.of(self).as_dict()

    def _repr_html_(self) -> str:
        """Return the claim with its counterexample and its pictures, for notebooks."""
        from pytest_dp.report.html import fragment
        from pytest_dp.report.record import Record

        return fragment(Record.of(self, pictures=True))

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        import json

        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


class PrivacyViolation(PytestDPError, AssertionError):  # noqa: N818
    """The claim is broken; the message is the counterexample.

    Attributes
    ----------
    result : AuditResult
        The audit that found it.
    """

    __module__ = "pytest_dp"

    def __init__(self, message: str, result: AuditResult | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class InconclusiveAudit(PytestDPError, AssertionError):  # noqa: N818  named like PrivacyViolation
    """The audit showed nothing, or too little; raised only if ``at_least`` asks for more."""

    __module__ = "pytest_dp"


@dataclass(frozen=True, slots=True)
class Past:
    """Functions that return pairs and evidence of earlier audits, given a promise."""

    pairs: Callable[[Promise], list[Pair]] = lambda promise: []  # noqa: ARG005
    """What broke the promise before, to be tried first."""
    evidence: Callable[[Promise, int], Evidence | None] = lambda promise, seed: None  # noqa: ARG005
    """What runs of the same audit with other seeds have shown; None if nobody collects it, so that
    this one leaves none either."""


NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Session:
    """One claim under audit: the mechanism, its pairs of inputs, and the effort allowed."""

    claim: Claim
    source: PairSource
    """The pairs of the claim, and those that a search proposes."""
    settings: Settings
    name: str
    seed: int
    sampler: Sampler
    budget: Budget
    earlier: Evidence | None = None
    """Evidence of runs of the same audit with other random numbers; None if nobody collects it."""
    screened: Screened = field(default_factory=Screened)
    """How far the answer moves on many pairs; nothing until the sequential method has screened."""

    @property
    def guarantee(self) -> Guarantee:
        return self.claim.promise.guarantee

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs that the claim gives."""
        return self.source.given

    @property
    def method(self) -> Method:
        return self.settings.method

    @property
    def call(self) -> Call:
        return self.sampler.call

    def is_report_only(self, pair: Pair) -> bool:
        """Return whether a violation on a pair is only reported beside the verdict.

        True for pairs outside of the declared inputs, unless the setting `beyond` is "fail".
        """
        return bool(pair.beyond) and self.settings.beyond != "fail"

    def result(self, verdict: Verdict, **outcome: Any) -> AuditResult:
        """Return a result with a verdict, the fields in `outcome`, and all that the session knows.

        By default `lower` is 0, `resolution` infinite, and p-value and e-value are None.
        """
        fields: dict[str, Any] = {
            "lower": 0.0,
            "p_value": None,
            "e_value": None,
            "resolution": math.inf,
        }
        return AuditResult(
            verdict=verdict,
            claim=self.claim,
            name=self.name,
            method=self.method.name,
            alpha=self.budget.alpha,
            samples=self.sampler.runs,
            max_samples=self.settings.max_samples,
            max_seconds=self.settings.max_seconds,
            margin=self.settings.margin,
            seconds=self.budget.seconds,
            seed=self.seed,
            replayable=self.sampler.replayable,
            notes=tuple(self.sampler.notes),
            hindrances=tuple(self.sampler.hindrances),
            earlier_runs=self.earlier.runs if self.earlier else 0,
            **{**fields, **outcome},
        )

    def finding(self, verdict: Verdict, **outcome: Any) -> AuditFinding:
        """Return a finding with `result(verdict, **outcome)`, for methods of other packages."""
        return AuditFinding(self.result(verdict, **outcome))


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The finding of a method about a claim."""

    result: AuditResult
    pair: Pair | None = None
    """The pair on which the claim was refuted; None if it was not."""
    beyond: AuditFinding | None = None
    """A violation outside of the declared inputs, of a claim that is not refuted."""


def begin_session(
    claim: Claim,
    call: Call,
    source: PairSource,
    settings: Settings,
    name: str,
    progress: Progress | None = None,
    watch: Stopwatch | None = None,
) -> Session:
    """Return a session with a new sampler and budget.

    Without a seed in the settings, the seed follows from `name` and the mechanism; the settings of
    the session hold it. Time counts from the start of `watch`, without one from now.
    """
    seed = claim_seed(name, call.mechanism) if settings.seed is None else settings.seed
    # Where xdist has shared out the cores already, one process each.
    n_jobs = settings.jobs or (1 if "PYTEST_XDIST_WORKER" in os.environ else cpu_count())
    explicit = settings.jobs is not None and n_jobs > 1
    settings = replace(settings, seed=seed)
    sampler = Sampler(call, seed, n_jobs, explicit, progress)
    budget = Budget(settings, sampler, watch or start_watch())
    return Session(claim, source, settings, name, seed, sampler, budget)


def prepare_session(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None = None,
    progress: Progress | None = None,
    past: Past = NO_PAST,
) -> Session:
    """Resolve the inputs of a claim, and return its session.

    `root` is where ``"module:attribute"`` inputs are looked up. `past` has pairs to try first, and
    evidence that counts as well. Raises ClaimError if the inputs are no neighbours or take too long
    to make.
    """
    call = prepare(mechanism, claim.arguments)
    seed = claim_seed(name, mechanism) if settings.seed is None else settings.seed
    where = "pairs" if claim.promise.inputs is None else "inputs"
    written = f"{where}={on_one_line(getattr(claim.promise, where))}"
    notes: list[str] = []
    # a claim about games gives its method
    method = settings.method if claim.promise.games is None else claim.effort["method"]
    settings = replace(settings, seed=seed, method=method)
    search = _load_search(claim, settings, notes)

    def prepared() -> tuple[Claim, PairSource, Evidence | None]:
        promise = resolve_promise(claim.promise, root, notes)
        audited = replace(claim, promise=promise)
        if isinstance(settings.method, OneRun):
            check_relation(promise.relation)  # before pairs are looked for under it
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
        relation = f" with {claim.promise.relation}" if claim.promise.relation else ""
        raise ClaimError(
            f"{written}{relation}: no pairs within max_seconds={settings.max_seconds:g}. A "
            "function that yields inputs or neighbours may go on without end, but has to yield "
            "some; it is asked for a few hundred at most."
        ) from None
    session = begin_session(claim, call, source, settings, name, progress, watch)
    session = replace(session, earlier=earlier)
    if earlier is not None and earlier.runs:
        runs = "an earlier run" if earlier.runs == 1 else f"{earlier.runs:,} earlier runs"
        value = f"{e_value(earlier.log_e_value):.2g}"
        notes.append(
            f"the evidence of {runs} counts as well: an e-value of {value} before this one"
        )
    if useless := unused_settings(claim.effort, settings.method.name):
        notes.append(f"method {settings.method.name} does not use {', '.join(useless)}")
    for note in notes:
        session.sampler.note(note)
    return session


def _load_search(claim: Claim, settings: Settings, notes: list[str]) -> Search | None:
    """Return the search for inputs; None if the method or the claim has no use for one.

    If the search cannot be imported, return None and add the reason to `notes`.
    """
    if settings.method.name != "sequential" or claim.promise.inputs is None:
        return None
    try:
        search: Search = load("search", "inputs")
    except ImportError as error:
        notes.append(f"no inputs were tried beside the claim's own: {error}")
        return None
    return search
