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

import contextlib
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.attacks.lenses import Reader, joint_counts
from pytest_dp.auditors import fresh
from pytest_dp.auditors.arms import Arm, hope, learn, make_room
from pytest_dp.auditors.job import Job
from pytest_dp.auditors.outlook import in_doubt, runs_to_margin, tells_apart, would_catch
from pytest_dp.auditors.pool import (
    LEAST_ROOM,
    ROOM,
    Pool,
    always_raises,
    cannot_be_read,
    never_varies,
)
from pytest_dp.auditors.result import AuditResult, Counterexample, Verdict
from pytest_dp.auditors.strongest import (
    SMALLEST,
    Strongest,
    grows,
    seen_before,
    shorter,
    strongest,
)
from pytest_dp.evidence.betting import Ledger
from pytest_dp.outputs.table import Ints
from pytest_dp.sampling.deadline import Deadline, OutOfTime, within
from pytest_dp.sampling.pieces import Input
from pytest_dp.sampling.restarting import CannotCouple
from pytest_dp.sampling.sampler import Draw

BET, BET_AGAIN = 5, 6
"""First parts of the keys of samples that are bet on, and of those after a start without coupling.
"""
FIRST, FEWEST = 12, 8
"""Pairs of outputs in the first look at a pair of inputs, and in any batch."""
GROWTH, STEP = 0.2, 0.04
"""The next batch, as a share of what its pair of inputs, and of what all, have been given."""
RELEARN, RELEARN_FIRST = 8, 4
"""What a pair has to grow by until its lenses are made anew; sooner after the first look, from
which only what never agrees can be learned."""
LEARNING = 0.5
"""Share of the time that learning may take."""
RESERVE = 0.1
"""Share of the samples, and of the time, for counting what was found on fresh samples."""
UNSEEN = 0.6
"""Edge, as in `Arm.hope`, that a pair of inputs may have before it is looked at."""
PROBED, COMPARED = 4_000, 400
"""Pairs of outputs by which the event to show is chosen, and losses on inputs are compared."""
FIRST_GAME = 0.95
"""Share of alpha for bets on coupled draws; what is left is for a start without them."""
MOST_KEPT = 100_000
"""Pairs of outputs, for one pair of inputs, that are kept at most."""
LOOK_UP = 1.15
"""Growth of all samples until the next look whether enough is known to stop."""
NO_DIFFERENCE = (
    "with the same random numbers, both inputs of every pair gave the same outputs: do the inputs "
    "differ in anything that the mechanism looks at?"
)
NOT_TOLD_APART = (
    "nothing that was tried tells the two inputs of any pair apart: the mechanism has far more "
    "noise than its claim needs, or leaks in a way that was not looked for"
)
A_BATCH = 0.2
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
    given = Input(job.pairs[0].d1)
    try:
        job.sampler.warm_up(given, job.deadline)
    except OutOfTime as out:
        if out.stack:
            raise job.hung(out) from None
    if not job.claim.coupled:
        return _played(job, Game(job, BET, 1.0, coupled=False))
    try:
        return _played(job, Game(job, BET, FIRST_GAME, coupled=True))
    except CannotCouple as reason:  # so all that was won is worth nothing
        job.sampler.note(f"started again without shared random numbers, as {reason}")
        return _played(job, Game(job, BET_AGAIN, 1 - FIRST_GAME, coupled=False))


def _played(job: Job, game: Game) -> AuditResult:
    try:
        game.play(job.deadline.sooner(1 - RESERVE))
    except OutOfTime as out:
        if out.stack:
            raise job.hung(out) from None
        game.late = True
    return game.conclude()


class Game:
    """An audit under way.

    Parameters
    ----------
    job : Job
    key : int
        First part of the keys of its samples.
    share : float
        The part of alpha that it may spend.
    coupled : bool
        As in a claim, until a mechanism proves unfit for it.
    """

    def __init__(self, job: Job, key: int, share: float, *, coupled: bool) -> None:
        self.key, self.share = key, share
        self.job, self.pool, self.coupled = job, Pool(), coupled
        self.arms = [
            Arm(number, pair, self.pool.add(pair.d1), self.pool.add(pair.d2), [])
            for number, pair in enumerate(job.pairs)
        ]
        self.pool.room = max(LEAST_ROOM, ROOM // len(self.arms))
        for arm in self.arms:
            arm.room = self.pool.room
        self.ledger = Ledger(job.claim.eps, job.claim.delta, share * job.alpha)
        self.earned = np.zeros(len(self.arms))
        self.seen: list[Arm] = []
        self.bet = 0  # pairs of outputs, on the pair of inputs that refuted the claim
        self.late = self.satisfied = False
        self._next_look_up = 0.0
        self._doubtful: Arm | None = None
        self.learning = 0.0  # seconds

    def play(self, deadline: Deadline) -> None:
        """Bet until the claim is refuted, enough is known, or only the reserve is left."""
        job = self.job
        budget = (1 - RESERVE) * job.max_samples
        while not self.ledger.refuted:
            arm = self._next()
            size = self._size(arm)
            if job.sampler.runs + 2 * size > budget:
                size = int(budget - job.sampler.runs) // 2
                if size < FEWEST:
                    return
            if not arm.lenses:
                self._look(arm, size, deadline)
            else:
                self._bet(arm, size, deadline)
            if arm.kept >= arm.learned * (RELEARN if arm.learned > FIRST else RELEARN_FIRST):
                self._learn(arm, deadline)
            arm.hope = hope(arm.record, job.claim.eps, job.claim.delta, arm.learned)
            if self._knows_enough():
                self.satisfied = True
                return

    def _learn(self, arm: Arm, deadline: Deadline) -> None:
        """Make new lenses, unless learning has had its share; the first ones in any case."""
        share = LEARNING * self.job.settings.max_seconds - self.learning
        left = deadline.remaining()
        if arm.lenses:
            if share <= 0:
                return
            left = min(left, share)
        started = time.monotonic()
        try:
            within(left, partial(learn, self.job, arm))
        except OutOfTime:
            if not arm.lenses or deadline.remaining() <= 0:
                raise
            return  # the lenses that there are will do
        finally:
            self.learning += time.monotonic() - started
        if arm.coupled and self.ledger.prefers_apart(arm.record):
            arm.draw_apart()

    def _next(self) -> Arm:
        """The pair with the largest edge that is possible by all that is known.

        Before an audit ends at its margin: what is in doubt.
        """
        if self._doubtful is not None:
            return self._doubtful
        best = max(self.seen, key=lambda arm: arm.hope, default=None)
        unseen = len(self.seen) < len(self.arms)
        if best is None or (unseen and best.hope < UNSEEN):
            return self.arms[len(self.seen)]
        return best

    def _knows_enough(self) -> bool:
        """Whether the claim's margin is reached and nothing is in doubt; looked up now and then."""
        if self.drawn < self._next_look_up or self.ledger.refuted:
            return False
        job, claim = self.job, self.job.claim
        promise = claim.eps, claim.delta, self.share * job.alpha
        if job.sampler.progress is not None and all(arm.lenses for arm in self.seen):
            job.sampler.caught = would_catch(self.seen, len(self.arms), *promise)
        left = max((1 - RESERVE) * job.max_samples - job.sampler.runs, 0) / 2
        doubts = in_doubt(self.seen, len(self.arms), left, *promise, job.settings.margin)
        self._doubtful = doubts[0] if doubts else None
        self._next_look_up = 0.0 if doubts else LOOK_UP * self.drawn
        return doubts == []

    @property
    def drawn(self) -> int:
        """Pairs of outputs so far."""
        return sum(arm.drawn for arm in self.seen)

    def _size(self, arm: Arm) -> int:
        total = self.drawn
        size = max(FIRST, int(max(GROWTH * arm.drawn, STEP * total))) if arm.drawn else FIRST
        return self._at_most(size)

    def _at_most(self, size: int) -> int:
        """So many pairs of outputs, or fewer if the mechanism is slow."""
        job = self.job
        affordable = job.runs_within(A_BATCH * job.settings.max_seconds / 2, size)
        affordable = int(min(affordable, job.affordable() / 2))
        if affordable >= size:
            return size
        job.sampler.note(
            f"a run takes {job.a_run}: looked at the clock, so another run "
            "may show somewhat different numbers"
        )
        return min(size, max(FEWEST, affordable))

    def _look(self, arm: Arm, size: int, deadline: Deadline) -> None:
        """The first look at a pair, without a bet."""
        eps_param, inputs = self.job.claim.eps_param, self.pool.inputs
        if self.coupled:
            self.coupled = self.job.sampler.can_couple(
                inputs[arm.first], inputs[arm.second], deadline
            )
        arm.coupled = self.coupled
        self._draw(arm, size, deadline)
        self.seen.append(arm)
        if len(self.seen) == len(self.arms):
            always_raises(self.job, self.pool)
        answers = [self.job.sampler.noiseless(d, eps_param) for d in (arm.pair.d1, arm.pair.d2)]
        arm.references = [answer for answer in answers if answer is not None]

    def _bet(self, arm: Arm, size: int, deadline: Deadline) -> None:
        before = self.ledger.log_e_value
        wager = self.ledger.wager(arm.record, cash=float(len(self.arms)))
        self.ledger.settle(wager, arm.record, lambda: self._draw(arm, size, deadline))
        self.earned[arm.number] += self.ledger.log_e_value - before

    def _draw(self, arm: Arm, size: int, deadline: Deadline) -> list[Ints]:
        """A new batch of outputs on both inputs, counted through the lenses of the pair."""
        if arm.extract is None and not arm.has_room(size):
            within(deadline.remaining(), partial(make_room, self.job, arm))
        keep = arm.kept + size <= MOST_KEPT and arm.has_room(size)
        key = self.key, arm.number, arm.batches
        arm.batches += 1
        sides = arm.first, arm.second
        draws = [
            Draw(self.pool.inputs[i], size, key if arm.coupled else (*key, side), arm.coupled)
            for side, i in enumerate(sides)
        ]
        parts = self.job.sampler.measure(draws, Reader(arm.lenses, keep, arm.extract), deadline)
        arm.drawn += size
        if keep:
            arm.keep(self.pool, [[kept for _, kept in part] for part in parts])
        one, two = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
        return [
            joint_counts(a, b, lens.width) for a, b, lens in zip(one, two, arm.lenses, strict=True)
        ]

    def conclude(self) -> AuditResult:
        """Count what was found on fresh samples, and say so."""
        job, ledger = self.job, self.ledger
        tried = len(self.seen), len(self.arms)
        if tried[0] < tried[1] > 1 and not ledger.refuted:
            job.sampler.note(
                f"tried {tried[0]} of {tried[1]:,} pairs: raise max_samples or max_seconds, or "
                "name the pairs that matter with pairs=",
                hinders=True,
            )
        bets: dict[str, Any] = {
            "e_value": math.exp(min(ledger.log_e_value, 700.0)),
            "bet_samples": 2 * self.drawn,
            "pairs": tried,
        }
        known = [arm for arm in self.seen if arm.lenses]
        if not known:
            self._note_if_late()
            return job.result("inconclusive", **bets)
        violated = ledger.refuted
        claim, alpha = job.claim, self.share * job.alpha
        caught = would_catch(known, len(self.arms), claim.eps, claim.delta, alpha)
        found = self._shown(known)
        eps_lower = ledger.eps_lower
        verdict: Verdict = "violated" if violated else "no violation"
        extra: dict[str, Any] = {}
        if found is not None:
            witness, tested = found.witness, found.tested
            if violated and tested is not None and tested.clumps:
                raise job.clumped(str(witness.event or witness.attack), tested.clumps)
            bounded = [] if tested is None else fresh.bounds(job, tested)
            if bounded:
                extra = {"strongest": bounded[0].described(witness), "loss": bounded[0].loss}
            if violated:
                with contextlib.suppress(OutOfTime):
                    extra["counterexample"] = self._counterexample(found, bounded)
                eps_lower = max([eps_lower, *(one.eps_lower for one in bounded)])
        self._note_if_late()
        silent = not violated and never_varies(job, self.pool)  # which notes it
        if not violated and (math.isinf(caught) or silent):
            verdict = "inconclusive"
        if not (violated or silent or tells_apart(known) or cannot_be_read(self.pool)):
            if all(arm.alike() for arm in known):
                job.sampler.note(NO_DIFFERENCE, hinders=True)
            elif math.isfinite(caught):
                job.sampler.note(NOT_TOLD_APART, hinders=True)
        if self.satisfied and verdict == "no violation":
            job.sampler.note(
                f"stopped at the margin: a true eps of {job.settings.margin:g} times the claim "
                "would have been caught"
            )
        return job.result(
            verdict,
            eps_lower=eps_lower,
            p_value=job.agreeing(min(ledger.p_value / self.share, 1.0), violated),
            resolution=caught,
            **bets,
            **extra,
        )

    def _counterexample(self, found: Strongest, bounded: list[fresh.Bounded]) -> Counterexample:
        witness = found.witness
        shown = fresh.shown(bounded, self.job.claim.eps) if bounded else None
        seen = partial(seen_before, found.arm, witness, pairs=self.bet)
        show = partial(fresh.counterexample, self.job, self.pool, witness, shown, seen)
        example = within(self.job.to_conclude(), show)
        longer = self._compared(found.arm)
        return replace(example, diagnosis=(*example.diagnosis, longer)) if longer else example

    def _note_if_late(self) -> None:
        job = self.job
        if self.late:
            job.sampler.note(
                f"stopped after max_seconds={job.settings.max_seconds:g}, with "
                f"{job.sampler.runs:,} of {job.max_samples:,} samples"
            )
            claim, alpha = job.claim, self.share * job.alpha
            known = len(self.arms), claim.eps, claim.delta, alpha, job.settings.margin
            needed = runs_to_margin(*known)
            if job.sampler.runs < needed / 4:
                about = round(needed, 1 - len(str(needed)))
                job.sampler.note(f"the margin takes about {about:,} runs, {job.a_run} each")

    def _compared(self, worst: Arm) -> str:
        """Whether inputs that are shorter lose less, by a few more samples; empty if not."""
        others = shorter([arm for arm in self.seen if arm.lenses], worst)
        try:
            for arm in (worst, *others) if others else ():
                self._look_closer(arm, COMPARED)
        except OutOfTime:  # it was only to say more
            return ""
        return grows(others, worst)

    def _look_closer(self, arm: Arm, pairs: int) -> None:
        """Bring a pair up to so many outputs, if that is quick, and learn from them."""
        size = pairs - arm.drawn
        affordable = min(self.job.max_samples - self.job.sampler.runs, self.job.affordable()) / 4
        if 0 < size <= affordable and self._at_most(size) == size:
            self._draw(arm, size, self.job.deadline)
            within(self.job.deadline.remaining(), partial(learn, self.job, arm))

    def _shown(self, known: list[Arm]) -> Strongest | None:
        """What was found, on fresh samples; None if there is no time for them."""
        try:
            if self.ledger.refuted:
                winner = max(known, key=lambda arm: float(self.earned[arm.number]))
                self.bet = winner.kept
                self._look_closer(winner, PROBED)
                known = [winner]
            left = self.job.max_samples
            if self.satisfied:
                left = max(SMALLEST, int(RESERVE / (1 - RESERVE) * self.job.sampler.runs))
            return strongest(self.job, self.pool, known, self.ledger.refuted, left)
        except OutOfTime as out:
            if out.stack:
                raise self.job.hung(out) from None
            self.late = True
            return None
