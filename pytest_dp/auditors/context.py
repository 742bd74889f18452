"""What all auditors have in common: the claim, the effort that is left, and making the result."""

from __future__ import annotations

import math
import os
from typing import Any

from joblib import cpu_count

from pytest_dp.auditors.result import AuditResult
from pytest_dp.basics import clocks
from pytest_dp.basics.errors import MechanismError
from pytest_dp.betting.expected_bounds import PlannedTest
from pytest_dp.claiming.claim import Claim
from pytest_dp.claiming.settings import Settings
from pytest_dp.data import describe
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.results.evidence import Evidence
from pytest_dp.results.result import Verdict
from pytest_dp.results.screened import Screened
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.sampler import Progress, Sampler
from pytest_dp.running.streams import claim_seed

MAX_REPLAYS = 2_048
"""Runs beside the samples that an audit may take, at most. More take longer; fewer: losses are not
known."""
CONFIRMING_RUNS = 512
"""Runs for which time is kept to confirm a violation. More: less is shown of violations of slow
mechanisms; fewer: these are not confirmed."""
SHOWN_RUNS = 20_000
"""Runs that show a violation that was soon found. More take longer; fewer: bounds are wider."""
TIMES_SHOWN = 4
"""How many times as many runs show a violation as refuted the claim, where these are more. More
take longer; fewer: bounds on small violations are wider."""
OVERTIME = 0.05
"""Share of the time by which an audit may take longer to conclude. Larger: it ends later; smaller:
nothing is concluded."""
RESERVE = 0.1
"""Share of the samples that is kept for counting the strongest attack, and for copies. Larger:
bets get fewer; smaller: bounds are wider."""
CONFIRMING_TIME = 0.5
"""Share of the time that is left which is kept to confirm a violation, at most. Larger: less is
shown of it; smaller: it is not confirmed."""
SHOWN_SECONDS = 5.0
"""Seconds after which what is shown of a violation that was soon found is cut off. More: a red
build waits; fewer: bounds on violations of slow mechanisms are wider."""
SHOWN_SHARE = 0.2
"""The same as a share of the time spent, where that is more."""
MIN_SECONDS = 0.25
"""Seconds of each step that confirms a violation, in any case. More: audits end later; fewer: quick
mechanisms are not confirmed where time is up."""

MAX_SHOWN_INPUT = 120
"""Characters of an input in the description of a pair. Longer ones hide how D and D' differ."""


class Context:
    """One claim to audit: the mechanism, its inputs, and the effort allowed.

    `earlier` is evidence of runs of the same audit with other random numbers; None if nobody
    collects it. `screened` is how far the answer moves on many pairs, once that is known. Once the
    claim was refuted, `broken` is the pair on which it was, `shown_runs` is by how many runs the
    violation is shown, and `told` is when what takes longer than was planned is cut off.
    """

    def __init__(
        self,
        claim: Claim,
        call: Call,
        source: PairSource,
        settings: Settings,
        name: str,
        progress: Progress | None = None,
        earlier: Evidence | None = None,
    ) -> None:
        self.claim, self.guarantee, self.source = claim, claim.promise.guarantee, source
        self.earlier, self.collects = earlier or Evidence(), earlier is not None
        self.pairs = source.given
        self.settings, self.method, self.name = settings, settings.method, name
        seed = settings.seed
        self.seed = claim_seed(name, call.mechanism) if seed is None else seed
        self.alpha, self.max_samples = settings.alpha, settings.max_samples
        self.count_from(clocks.Stopwatch())
        self.started = clocks.seconds()
        # Where xdist has shared out the cores already, one process each.
        n_jobs = settings.jobs or (1 if "PYTEST_XDIST_WORKER" in os.environ else cpu_count())
        explicit = settings.jobs is not None and n_jobs > 1
        self.sampler = Sampler(call, self.seed, n_jobs, explicit, progress)
        self.screened = Screened()
        self.broken: Pair | None = None
        self.told: Deadline | None = None
        self.shown_runs = SHOWN_RUNS

    def count_from(self, watch: clocks.Stopwatch) -> None:
        """Count the effort of the audit from when a stopwatch was started."""
        seconds = self.settings.max_seconds
        self.deadline = Deadline(seconds, watch=watch)
        self._end = Deadline((1 + OVERTIME) * seconds, watch=watch)

    @property
    def call(self) -> Call:
        return self.sampler.call

    def only_told(self, pair: Pair) -> bool:
        """Whether what is shown on a pair is told beside the verdict, and is no part of it."""
        return bool(pair.beyond) and self.settings.beyond == "tell"

    @property
    def short_name(self) -> str:
        return self.sampler.name

    @property
    def to_test(self) -> int:
        """Samples that are left for a test; a violation takes some more to be confirmed."""
        return max(int(self.left - self.to_confirm), 0)

    @property
    def used(self) -> int:
        """Runs so far, with those that only showed what the mechanism does."""
        return self.sampler.runs + self.sampler.looked

    @property
    def left(self) -> int:
        """Runs that are left in all."""
        return self.max_samples - self.used

    @property
    def to_confirm(self) -> float:
        """Samples that are set aside to confirm a violation."""
        return min(RESERVE * self.max_samples, MAX_REPLAYS)

    def plan(self, runs: float, *, paired: bool = False) -> PlannedTest:
        """Return a test of the claim with so many samples, which may be counted in pairs."""
        return PlannedTest(self.guarantee, runs, self.alpha, paired)

    def refuted(self) -> None:
        """Plan how a refuted claim is told: by how many runs, and when these are cut off."""
        spent, left = self._end.spent(), self.to_conclude()
        self.shown_runs = max(SHOWN_RUNS, TIMES_SHOWN * self.sampler.runs)
        self.told = Deadline(min(max(SHOWN_SECONDS, SHOWN_SHARE * spent), left))
        cost = self.sampler.seconds_a_run or 0.0
        self.deadline = Deadline(left - min(CONFIRMING_RUNS * cost, CONFIRMING_TIME * left))

    def to_tell(self) -> float:
        """Seconds left for what is worth no longer wait than planned for a violation's report."""
        return self.to_conclude() if self.told is None else self.told.remaining()

    def seconds_for(self, runs: int) -> float:
        """Return after how many seconds a step that confirms a violation is cut off.

        Those that are left to tell of it, or those of so many `runs` if they take longer.
        """
        return max(self.to_tell(), runs * (self.sampler.seconds_a_run or 0.0), MIN_SECONDS)

    def to_conclude(self) -> float:
        """Seconds left to show a verdict that is known already."""
        return self._end.remaining()

    def allow_more(self, seconds: float) -> None:
        """Give what is left to do of a refuted claim more time, as far as `max_seconds` allows."""
        if self.told is not None and seconds > 0:
            left = self.told.remaining()
            self.told = Deadline(max(left, min(left + seconds, self.before_the_limit())))

    def before_the_limit(self) -> float:
        """Seconds left of max_seconds, however much of them the verdict took."""
        return float(self.settings.max_seconds - self._end.spent())

    def agreeing(self, p_value: float, violated: bool) -> float:
        """A p-value that rounding does not make disagree with the verdict of the same test."""
        alpha = self.alpha
        return min(p_value, alpha) if violated else max(p_value, math.nextafter(alpha, 1))

    @property
    def a_run(self) -> str:
        """What a run takes, for people: ``2.1 ms``, ``0.3 s``."""
        cost = self.sampler.time_a_run or 0.0
        return f"{1e3 * cost:.2g} ms" if cost < 0.0995 else f"{cost:.2g} s"

    def refuse_hung(self, out: OutOfTime) -> None:
        """Raise MechanismError if there was no time because the mechanism does not return."""
        if out.stack:
            raise MechanismError(
                f"{self.short_name} hangs: a run, with what reads its output, did not end within "
                f"max_seconds={self.settings.max_seconds:g}. It was here:\n{out.stack}"
            ) from None

    def result(self, verdict: Verdict, **outcome: Any) -> AuditResult:
        """The result, with everything that does not depend on the auditor filled in."""
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
            method=self.settings.method.name,
            alpha=self.alpha,
            samples=self.sampler.runs,
            max_samples=self.settings.max_samples,
            max_seconds=self.settings.max_seconds,
            margin=self.settings.margin,
            seconds=clocks.seconds() - self.started,
            seed=self.seed,
            replayable=self.sampler.replayable,
            notes=tuple(self.sampler.notes),
            hindrances=tuple(self.sampler.hindrances),
            earlier_runs=self.earlier.runs,
            **_screened_fields(self.screened),
            **{**defaults, **outcome},
        )


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
