"""The session and the finding of an audit: values that its stages hand to each other."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from joblib import cpu_count

from pytest_dp.auditors.audit_result import AuditResult
from pytest_dp.auditors.budget import Budget, start_watch
from pytest_dp.claiming.claim import Claim
from pytest_dp.claiming.method_settings import Method
from pytest_dp.claiming.settings import Settings
from pytest_dp.data import describe
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.privacy import Guarantee
from pytest_dp.results.evidence import Evidence
from pytest_dp.results.result import Verdict
from pytest_dp.results.screened import Screened
from pytest_dp.running.calling import Call
from pytest_dp.running.sampler import Progress, Sampler
from pytest_dp.running.streams import claim_seed

if TYPE_CHECKING:
    from pytest_dp.basics.clocks import Stopwatch

MAX_SHOWN_INPUT = 120
"""Characters of an input in the description of a pair. Longer ones hide how D and D' differ."""


@dataclass(frozen=True, slots=True)
class Session:
    """One claim to audit: the mechanism, its inputs, and the effort allowed."""

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
    """How far the answer moves on many pairs, once that is known."""

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
        """Return whether what a pair shows is reported beside the verdict, as no part of it."""
        return bool(pair.beyond) and self.settings.beyond != "fail"

    def result(self, verdict: Verdict, **outcome: Any) -> AuditResult:
        """Return a result, with everything filled in that does not depend on the method."""
        defaults: dict[str, Any] = {
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
            **{**_screened_fields(self.screened), **defaults, **outcome},
        )

    def finding(self, verdict: Verdict, **outcome: Any) -> AuditFinding:
        """Return a finding with such a result, as methods of other packages do."""
        return AuditFinding(self.result(verdict, **outcome))


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The finding of a method about a claim."""

    result: AuditResult
    pair: Pair | None = None
    """The pair on which the claim was refuted, if it was."""
    beyond: AuditFinding | None = None
    """What breaks a claim that stands, on inputs beyond those that it gives."""


def begin_session(
    claim: Claim,
    call: Call,
    source: PairSource,
    settings: Settings,
    name: str,
    progress: Progress | None = None,
    watch: Stopwatch | None = None,
) -> Session:
    """Return the session of a claim, whose effort counts from when `watch` was started, or now."""
    seed = claim_seed(name, call.mechanism) if settings.seed is None else settings.seed
    # Where xdist has shared out the cores already, one process each.
    n_jobs = settings.jobs or (1 if "PYTEST_XDIST_WORKER" in os.environ else cpu_count())
    explicit = settings.jobs is not None and n_jobs > 1
    settings = replace(settings, seed=seed)
    sampler = Sampler(call, seed, n_jobs, explicit, progress)
    budget = Budget(settings, sampler, watch or start_watch())
    return Session(claim, source, settings, name, seed, sampler, budget)


def _screened_fields(screened: Screened) -> dict[str, Any]:
    """Return what a result says of the pairs that were screened."""
    if not screened.largest:
        return {"screened": screened.screened}
    largest = screened.largest[0]
    d1, d2 = (describe(data, MAX_SHOWN_INPUT) for data in (largest.pair.d1, largest.pair.d2))
    difference = f" ({largest.pair.difference})" if largest.pair.difference else ""
    return {
        "screened": screened.screened,
        "largest_movement": largest.movement.loss,
        "largest_pair": f"D = {d1}, D' = {d2}{difference}",
    }
