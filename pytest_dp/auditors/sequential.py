"""Betting: search and test on the same samples, until the claim is refuted or effort runs out.

Each batch is drawn for one pair, after the bets on it are made: by what the batches before have
taught (`arms`). Which pair that is, is decided as by a bandit: the one whose edge may still be the
largest. Wealth that reaches 1 / alpha refutes the claim (`pytest_dp.evidence.betting`). What was
found is then counted once more on fresh samples, to be shown.

Where the mechanism's random numbers can be set, both outputs of a pair are drawn with the same
ones: only the noise that their inputs do not share is then left to tell apart.

References
----------
Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018 (correlated draws).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_dp.attacks.lenses import joint_counts
from pytest_dp.auditors import fresh
from pytest_dp.auditors.arms import Arm, hope, learn, reader
from pytest_dp.auditors.dd_search import Witness
from pytest_dp.auditors.job import Job
from pytest_dp.auditors.pool import Pool, always_raises, never_varies
from pytest_dp.auditors.result import AuditResult, Verdict
from pytest_dp.auditors.strongest import strongest
from pytest_dp.evidence.betting import Ledger, smallest_eps
from pytest_dp.outputs.table import Ints
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pieces import joined
from pytest_dp.sampling.sampler import Draw

BET = 5
"""First part of the keys of samples that are bet on."""
FIRST = 24
"""Pairs of outputs in the first look at a pair of inputs."""
GROWTH = 0.15
"""The next batch, as a share of what a pair of inputs has been given so far."""
RESERVE = 0.1
"""Share of the samples, and of the time, for counting what was found on fresh samples."""
UNSEEN = 0.6
"""Edge, as in `Arm.hope`, that a pair of inputs may have before it is looked at."""
MOST_KEPT, MOST_LEAVES = 100_000, 10_000_000
"""Pairs of outputs of an arm, and leaves in all outputs, that are kept at most."""
A_BATCH = 0.05
"""Share of the time that one batch may take; slow mechanisms get smaller batches."""


def audit(job: Job) -> AuditResult:
    """Audit one claim by betting against it.

    Parameters
    ----------
    job : Job

    Returns
    -------
    AuditResult
        ``violated`` exactly if the p-value, which holds at any time, is at most alpha;
        ``inconclusive`` if the outputs never vary, if there were not enough samples for every pair,
        or if there were too few to catch anything.

    Raises
    ------
    ClaimError
        If the user's classifier or features cannot be used on the mechanism's outputs.
    MechanismError
        If every run of the mechanism raises, or if it hangs.
    """
    game = Game(job)
    try:
        job.sampler.warm_up(game.pool.inputs[0], job.deadline, job.max_samples // 10)
        game.play(job.deadline.sooner(1 - RESERVE))
    except OutOfTime as out:
        if out.stack:
            raise job.hung(out) from None
        game.late = True
    return game.conclude()


class Game:
    """An audit under way."""

    def __init__(self, job: Job) -> None:
        self.job, self.pool = job, Pool()
        self.arms = [
            Arm(number, pair, self.pool.add(pair.d1), self.pool.add(pair.d2), [])
            for number, pair in enumerate(job.pairs)
        ]
        self.ledger = Ledger(job.claim.eps, job.claim.delta)
        self.earned = np.zeros(len(self.arms))
        self.seen: list[Arm] = []
        self.leaves = 0
        self.coupled = False
        self.late = False

    @property
    def refuted(self) -> bool:
        """Whether there is enough evidence against the claim."""
        return self.ledger.p_value <= self.job.alpha

    def play(self, deadline: Deadline) -> None:
        """Bet until the claim is refuted, or until only the reserve is left."""
        job = self.job
        budget = (1 - RESERVE) * job.max_samples
        while not self.refuted:
            arm = self._next()
            size = self._size(arm)
            if job.sampler.runs + 2 * size > budget:
                size = int(budget - job.sampler.runs) // 2
                if size < min(FIRST, arm.drawn):
                    return
            if not arm.lenses:
                self._look(arm, size, deadline)
            else:
                self._bet(arm, size, deadline)
            if arm.kept >= 2 * arm.learned:
                learn(job, arm)
            arm.hope = hope(arm.record, job.claim.eps, job.claim.delta)

    def _next(self) -> Arm:
        """The pair with the largest edge that is possible by all that is known."""
        best = max(self.seen, key=lambda arm: arm.hope, default=None)
        unseen = len(self.seen) < len(self.arms)
        if best is None or (unseen and best.hope < UNSEEN):
            return self.arms[len(self.seen)]
        return best

    def _size(self, arm: Arm) -> int:
        size = max(FIRST, int(GROWTH * arm.drawn))
        cost = 2 * (self.job.sampler.seconds_a_run or 0.0)
        if cost * size > (most := A_BATCH * self.job.settings.max_seconds):
            # A power of two: small differences in speed should not change what is done.
            return min(size, max(8, int(2 ** math.floor(math.log2(most / cost)))))
        return size

    def _look(self, arm: Arm, size: int, deadline: Deadline) -> None:
        """The first look at a pair, without a bet."""
        eps_param = self.job.claim.eps_param
        self._draw(arm, size, deadline)
        self.seen.append(arm)
        if len(self.seen) == len(self.arms):
            always_raises(self.job, self.pool)
        answers = [self.job.call.noiseless(d, eps_param) for d in (arm.pair.d1, arm.pair.d2)]
        arm.references = [answer for answer in answers if answer is not None]

    def _bet(self, arm: Arm, size: int, deadline: Deadline) -> None:
        before = self.ledger.log_e_value
        wager = self.ledger.wager(arm.record, cash=float(len(self.arms)))
        self.ledger.settle(wager, arm.record, lambda: self._draw(arm, size, deadline))
        self.earned[arm.number] += self.ledger.log_e_value - before

    def _draw(self, arm: Arm, size: int, deadline: Deadline) -> list[Ints]:
        """A new batch of outputs on both inputs, counted through the lenses of the pair."""
        keep = arm.kept + size <= MOST_KEPT and self.leaves <= MOST_LEAVES
        key = BET, arm.number, arm.batches
        arm.batches += 1
        sides = arm.first, arm.second
        draws = [
            Draw(self.pool.inputs[i], size, key if self.coupled else (*key, side))
            for side, i in enumerate(sides)
        ]
        parts = self.job.sampler.measure(draws, reader(arm, keep), deadline)
        arm.drawn += size
        if keep:
            for i, kept, part in zip(sides, (arm.one, arm.two), parts, strict=True):
                outputs = joined([outputs for _, outputs in part if outputs is not None])
                kept.append(outputs)
                self.pool.drawn[i].append(outputs)
            arm.kept += size
        one, two = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
        return [
            joint_counts(a, b, lens.width) for a, b, lens in zip(one, two, arm.lenses, strict=True)
        ]

    def conclude(self) -> AuditResult:
        """Count what was found on fresh samples, and say so."""
        job, ledger = self.job, self.ledger
        tried = len(self.seen), len(self.arms)
        if tried[0] < tried[1] and not self.refuted:
            job.sampler.note(
                f"tried {tried[0]} of {tried[1]:,} pairs: raise max_samples or max_seconds, or "
                "name the pairs that matter with pairs="
            )
        if self.late:
            job.sampler.note(
                f"stopped after max_seconds={job.settings.max_seconds:g}, with "
                f"{job.sampler.runs:,} of {job.max_samples:,} samples"
            )
        e_value = math.exp(min(ledger.log_e_value, 700.0))
        known = [arm for arm in self.seen if arm.lenses]
        if not known:
            return job.result("inconclusive", e_value=e_value, pairs=tried)
        violated = self.refuted
        found = self._shown(known)
        says_nothing = never_varies(job, self.pool) or tried[0] < tried[1]
        eps_lower = ledger.eps_lower(job.alpha)
        verdict: Verdict = "violated" if violated else "no violation"
        extra: dict[str, Any] = {}
        caught = math.inf
        if found is not None:
            witness, tested = found
            if violated and tested.clumps:
                raise job.clumped(str(witness.event or witness.attack), tested.clumps)
            bounded = fresh.bounds(job, tested)
            caught = self._resolution(bounded[0].counts)
            extra = {"strongest": bounded[0].described(witness), "loss": bounded[0].loss}
            if violated:
                shown = fresh.shown(bounded, job.claim.eps)
                extra["counterexample"] = fresh.counterexample(job, self.pool, witness, shown)
                eps_lower = max(eps_lower, bounded[0].eps_lower)
        if not violated and (says_nothing or math.isinf(caught)):
            verdict = "inconclusive"
        return job.result(
            verdict,
            eps_lower=eps_lower,
            p_value=ledger.p_value,
            e_value=e_value,
            resolution=caught,
            pairs=tried,
            **extra,
        )

    def _shown(self, known: list[Arm]) -> tuple[Witness, fresh.Tested] | None:
        """What was found, on fresh samples; None if there is no time for them."""
        if self.refuted:
            known = [max(known, key=lambda arm: float(self.earned[arm.number]))]
        try:
            return strongest(self.job, self.pool, known, self.refuted)
        except OutOfTime as out:
            if out.stack:
                raise self.job.hung(out) from None
            self.late = True
            return None

    def _resolution(self, counts: fresh.Counts) -> float:
        """The smallest loss that would have been caught (approximate)."""
        claim = self.job.claim
        return smallest_eps(
            min(counts.c1 / counts.n1, 0.5),
            sum(arm.drawn for arm in self.seen),
            len(self.arms),
            claim.eps,
            claim.delta,
            self.job.alpha,
        )
