"""Training that is run once: canaries in or out by coins, and guesses from the output which.

A score says of each canary how much the output looks as if it was in. The largest scores are
guessed to be in, the smallest to be out, and the rest is left open; how many of each is decided
before anything is run. Of one run, how many guesses are right has a p-value; several are bet on
(`pytest_dp.statistics.one_run`), each with coins of its own, until the claim is refuted.

Source: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import agreeing
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.basics.arrays import Ints
from pytest_dp.basics.bisection import smallest
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.method_settings import OneRun
from pytest_dp.methods.canary_scores import canary_scores
from pytest_dp.outputs.outcome import Raised
from pytest_dp.pairs.canaries import Canaries
from pytest_dp.results.evidence import e_value
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.streams import Purpose, stream
from pytest_dp.statistics import clopper_pearson
from pytest_dp.statistics import one_run as evidence
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA

FIRST_TIMES = 1.25
"""Multiple of the claim that is tried first. Larger and smaller: the same result takes longer."""
MAX_TIMES = 1e6
"""Multiple of the claim beyond which nothing is found. Larger ones are as good as no privacy."""
STEP_ERROR = 1e-3
"""Relative error of the multiple. Larger: what is told is less exact; smaller: it takes longer."""

NO_BETTER = (
    "the scores separate canaries inside and outside the data no better than coins: write "
    "OneRun(score=...), or canaries that stand out more"
)

TOO_FEW = "one_run was stopped before its guesses could show anything: raise max_seconds, or runs="


def audit(session: Session) -> AuditFinding:
    """Audit one claim by guessing which canaries were in the data.

    The result is ``violated`` if the p-value of one run is at most alpha, or the bets of several
    gain 1 / alpha; ``inconclusive`` if scores tell nothing, or time was up before a run ended.
    Raises ClaimError if the claim is not about single records, if there are too few canaries
    to show anything, or if they cannot be scored; MechanismError if a run raises.
    """
    guessing = _Guessing(session)
    try:
        while guessing.runs < guessing.method.runs and not guessing.refuted:
            guessing.play()
    except OutOfTime as out:
        if not guessing.runs:
            session.budget.refuse_hung(out)
        session.sampler.note(
            f"stopped after {guessing.runs} of {guessing.method.runs} runs: raise max_seconds="
            f"{session.settings.max_seconds:g}",
            hinders=True,
        )
    return AuditFinding(guessing.result())


class _Guessing:
    """Runs with canaries, and what was guessed of each."""

    def __init__(self, session: Session) -> None:
        assert isinstance(session.method, OneRun)
        self.session, self.method = session, session.method
        self.sticks, self.alpha = evidence.sticks_of(session.guarantee), session.budget.alpha
        if session.claim.arguments.drawn:
            raise ClaimError("one_run draws no parameters: give each of params= a value or a list.")
        inputs = session.claim.promise.inputs  # of large ones, pairs have a part
        base = inputs[0] if isinstance(inputs, list | tuple) else session.pairs[0].d1
        self.canaries = Canaries(base, self.method.canaries, session.seed)
        m = len(self.canaries)
        self.placed = evidence.bets(m) if self.method.runs > 1 else []
        planned = evidence.plan_guesses(m, self.sticks, self.alpha)
        self.guesses: tuple[int, int] = self.method.guesses or planned  # type: ignore[assignment]
        self._check_enough()
        self.counted = [self.guesses, *(bet.guesses for bet in self.placed)]
        self._right: list[list[int]] = []

    @property
    def runs(self) -> int:
        return len(self._right)

    @property
    def right(self) -> Ints:
        """For each run, how many of the guesses were right, and of those of each bet."""
        return np.array(self._right, dtype=int).reshape(-1, len(self.counted))

    def play(self) -> None:
        """Run once: coins, data, an output, scores, and which guesses are right."""
        session, m = self.session, len(self.canaries)
        rng = np.random.default_rng(stream(session.seed, Purpose.COINS, self.runs))
        inside, order = rng.random(m) < 0.5, rng.permutation(m)
        data = Input(self.canaries.holding(inside))
        output = session.sampler.untried(data, (Purpose.BET, self.runs), session.budget.deadline)
        if isinstance(output, Raised):
            raise MechanismError(f"{session.sampler.name} {output!r}\n{output.trace}".rstrip())
        scores = canary_scores(self.method.score, output, self.canaries.dataset, self.canaries.base)
        ranked = inside[order][np.argsort(scores[order], kind="stable")]
        self._right.append(evidence.rights(ranked, self.counted))

    @property
    def p_value(self) -> float:
        if not self.runs:
            return 1.0
        if not self.placed:
            reached = evidence.tails(sum(self.guesses), len(self.canaries), self.sticks)
            return float(reached[self.right[0, 0]])
        return min(1.0, math.exp(-self.log_e_value))

    @property
    def log_e_value(self) -> float:
        m = len(self.canaries)
        return float(evidence.log_e_value(self.right[:, 1:], self.placed, m, self.sticks))

    @property
    def refuted(self) -> bool:
        return self.runs > 0 and self.p_value <= self.alpha

    @property
    def lower(self) -> float:
        m, guarantee = len(self.canaries), self.session.guarantee
        if not self.runs:
            return 0.0
        if not self.placed:
            right = int(self.right[0, 0])
            return evidence.lower(right, sum(self.guesses), m, guarantee, self.alpha)
        return evidence.lower_of_runs(self.right[:, 1:], m, guarantee, self.alpha)

    def result(self) -> AuditResult:
        """Return the verdict, and how much less noise would have been caught."""
        session, guarantee = self.session, self.session.guarantee
        said: dict[str, Any] = {"strongest": self._in_words()} if self.runs else {}
        if self.placed and self.runs:
            said |= {"e_value": e_value(self.log_e_value)}
            said |= {"bet_samples": self.runs}
        lower, alpha = self.lower, session.budget.alpha
        p_value = agreeing(self.p_value, alpha, violated=self.refuted)
        if self.refuted:
            lower = max(lower, math.nextafter(guarantee.claimed, math.inf))
            return session.result("violated", lower=lower, p_value=p_value, **said)
        times = self._times_to_find() if self.runs else math.inf
        caught = guarantee.with_noise_over(times) if math.isfinite(times) else math.inf
        verdict: Verdict = "no violation" if math.isfinite(caught) else "inconclusive"
        return session.result(verdict, lower=lower, p_value=p_value, resolution=caught, **said)

    def _times_to_find(self) -> float:
        """Return how many times too small noise would have been found, by what was guessed.

        That is in 19 of 20 simulated audits. Of scores by which as many guesses may be right by
        chance nothing is known: with less noise they may tell no more. What ran may have less noise
        already than its claim asks for.
        """
        right, total = int(np.sum(self.right[:, 0])), self.runs * sum(self.guesses)
        if clopper_pearson.lower(right, total, SHOWN_ALPHA) <= 0.5:
            self.session.sampler.note(NO_BETTER, hinders=True)
            return math.inf
        times = smallest(self._is_found, 1.0, FIRST_TIMES, MAX_TIMES, STEP_ERROR)
        if math.isinf(times):
            self.session.sampler.note(TOO_FEW, hinders=True)
        first = self.right[:, 0], sum(self.guesses)
        return times * evidence.above(*first, len(self.canaries), self.sticks)

    def _is_found(self, times: float) -> bool:
        m = len(self.canaries)
        right = evidence.simulate_right_guesses(self.right, self.counted, times, self.session.seed)
        if self.placed:
            won = evidence.log_e_value(right[..., 1:], self.placed, m, self.sticks)
            found = won >= -math.log(self.alpha)
        else:
            reached = evidence.tails(sum(self.guesses), m, self.sticks)
            found = reached[right[:, 0, 0]] <= self.alpha
        return bool(np.mean(found) >= 1 - SHOWN_ALPHA)

    def _in_words(self) -> str:
        m, right = len(self.canaries), int(np.sum(self.right[:, 0]))
        each = "" if self.runs == 1 else f", in each of {self.runs} runs"
        total = self.runs * sum(self.guesses)
        at_most = evidence.to_refute(total, self.runs * m, self.sticks, SHOWN_ALPHA)
        return (
            f"There are {m:,} canaries, each in the data or not by a coin{each}. "
            f"{self.guesses[0]:,} were guessed to be in and {self.guesses[1]:,} to be out: "
            f"{right:,} of these {total:,} guesses are right"
            + (
                f"; the claim allows {at_most:,} of them in 1 of {1 / SHOWN_ALPHA:.0f} runs"
                if at_most
                else ""
            )
        )

    def _check_enough(self) -> None:
        """Refuse fewer canaries, or guesses, than can show anything."""
        m, guessed, runs = len(self.canaries), sum(self.guesses), self.method.runs
        if guessed > m:
            raise ClaimError(f"guesses={self.guesses} of {m:,} canaries: at most one of each.")
        level = self.sticks, self.alpha
        at_least = evidence.runs_needed(m, *level)
        if at_least <= runs if self.placed else evidence.to_refute(guessed, m, *level) is not None:
            return
        needed = evidence.fewest(*level)
        ways = [] if needed is None else [f"{needed:,} canaries or more"]
        ways += [f"runs={max(at_least, 2)}"] if math.isfinite(at_least) else []
        ways += [] if self.alpha >= SHOWN_ALPHA else [f"alpha={SHOWN_ALPHA}"]
        raise ClaimError(
            f"{m:,} canaries, of which {guessed:,} are guessed in {plural(runs, 'run')}, can show "
            f"nothing against {self.session.guarantee} at alpha={self.alpha:g}, even if all "
            f"guesses were right. Allowed: {', or '.join(ways) or 'a claim of less'}."
        )
