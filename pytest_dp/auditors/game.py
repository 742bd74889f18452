"""The bets of the sequential auditor: which pair of inputs is next, and on how many outputs.

Each batch is drawn for one pair, after the bets on it are made: by what the batches before have
taught (`arms`). Which pair that is, is decided as by a bandit: the one whose edge may still be the
largest. Wealth that reaches 1 / alpha refutes the claim (`pytest_dp.evidence.betting`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from functools import partial

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.attacks.binning import Reader
from pytest_dp.auditors.arms import Arm, hope, joints_of, learn, make_room
from pytest_dp.auditors.context import MIN_COPY_RUNS, Context
from pytest_dp.auditors.earlier import learned_by, remind
from pytest_dp.auditors.enumerating import NOTHING, Enumerated
from pytest_dp.auditors.kept import MIN_ROOM, TOTAL_ROOM, Kept
from pytest_dp.auditors.outlook import (
    MIN_AT_MARGIN,
    PROPOSED_SUSPICION,
    in_doubt,
    suspicion_of,
    would_catch,
)
from pytest_dp.auditors.pace import pace_of
from pytest_dp.auditors.pool import Pool, always_raises
from pytest_dp.auditors.proposals import Proposal
from pytest_dp.evidence.betting import Ledger
from pytest_dp.inputs import Pair
from pytest_dp.inputs.sources import PairSource, Tried
from pytest_dp.outputs.outcome import all_raised
from pytest_dp.outputs.table import concatenated
from pytest_dp.results.evidence import Evidence
from pytest_dp.sampling.deadline import Deadline, OutOfTime, within

FIRST_BATCH, MIN_BATCH = 12, 8
"""Pairs of outputs in the first look at a pair of inputs, and in any batch at least. What never
agrees on both inputs shows in so few."""
GROWTH_OF_ARM, GROWTH_OF_ALL = 0.2, 0.04
"""The next batch, as a share of what its own pair of inputs, and of what all pairs, have been
given. Bets on a batch are fixed before it is drawn, so smaller batches let them learn sooner."""
RELEARN_FIRST = 4
"""What a pair has to grow by after the first look, from which only what never agrees can be
learned, until its binnings are made anew; later as its `Pace` says."""
OF_THE_MISSING = 0.5
"""Of what should do to win, what a batch takes where that is less than it would be: luck may do
with less, and the next batch is soon drawn."""
LEARNING_TIME_SHARE = 0.5
"""Share of max_seconds that learning may take; after that, what was learned will do."""
RESERVE = 0.1
"""Share of the samples, and of the time, for counting what was found on held-out samples."""
HOPE_UNSEEN = 0.6
"""What `Arm.hope` is taken to be for pairs of inputs that were not looked at: a pair of which more
is hoped is bet on before new ones are tried."""
CHECK_GROWTH = 1.15
"""By what factor samples grow between two looks whether to stop: audits end so much later than they
could, and a look costs as much as many outputs."""
SEARCH_SHARE, MIN_SEARCHED = 0.05, 500
"""Share of the pairs of outputs that goes to pairs of inputs which the claim does not give, and how
many they get at least before an audit may end at its margin."""
BATCH_TIME_SHARE = 0.2
"""Share of the time that one batch may take; slow mechanisms get smaller batches."""


class Game:
    """An audit under way: a bandit, whose arms are pairs of inputs and whose gains are bets won.

    In each round (`play`), the arm is picked whose edge may be the largest (`_pick`). If it is new,
    a first batch is only looked at (`_look`); otherwise all bets on the next batch are placed
    before it is drawn (`_bet`). Then what the arm has taught is brought up to date (`_learn`), and
    it is asked whether enough is known (`_knows_enough`).

    Parameters
    ----------
    context : Context
    key : int
        First part of the keys of its samples.
    share : float
        The part of alpha that it may spend.
    coupled : bool
        As in a claim, until a mechanism proves unfit for it.
    source : PairSource, optional
        Where its pairs come from, if not from where the claim's do.
    found : Enumerated, optional
        Distributions on pairs of inputs, by which events are proposed.

    Attributes
    ----------
    trail : list of (int, float)
        After each bet: samples that were bet on so far, and the logarithm of the e-value.
    """

    def __init__(
        self,
        context: Context,
        key: int,
        share: float,
        *,
        coupled: bool,
        source: PairSource | None = None,
        found: Enumerated = NOTHING,
    ) -> None:
        self.key, self.share = key, share
        self.context, self.pool, self.coupled = context, Pool(), coupled
        self.found = found
        self.proposals: dict[int, Proposal] = {}
        self.source = context.source if source is None else source
        self.arms: list[Arm] = []
        for pair in self.source.pairs:
            self._join(pair)
        earlier = context.earlier if source is None else Evidence()
        self.refuted_before = earlier.refutes(context.alpha)
        before = () if self.refuted_before else earlier.log_e_values  # then, to show it is left
        self.ledger = Ledger(context.guarantee, share * context.alpha, before)
        self.pace = pace_of(context.guarantee)
        self.seen: list[Arm] = []
        self.late = self.satisfied = False
        self._next_look_up = 0.0
        self._doubtful: Arm | None = None
        self.learning = 0.0  # seconds
        self.trail: list[tuple[int, float]] = []

    def _join(self, pair: Pair) -> Arm:
        """A pair that takes part from now on: at any time, as bets are made before draws."""
        input1, input2 = map(self.pool.add, pair.inputs)
        kept = Kept(max(MIN_ROOM, TOTAL_ROOM // len(self.source.given)))
        arm = Arm(len(self.arms), pair, input1, input2, [], kept)
        self.arms.append(arm)
        return arm

    def play(
        self, deadline: Deadline, most: float = math.inf, least_hope: float = -math.inf
    ) -> None:
        """Bet until the claim is refuted, enough is known, or only the reserve is left.

        Parameters
        ----------
        deadline : Deadline
        most : float, optional
            Runs of the audit in all at which to give up.
        least_hope : float, optional
            Give up as soon as less is hoped of the pair that was bet on.
        """
        context = self.context
        budget = min(most, (1 - RESERVE) * context.max_samples)
        while not self.ledger.refuted:
            arm = self._pick()
            size = self._size(arm)
            if context.sampler.runs + 2 * size > budget:
                size = int(budget - context.sampler.runs) // 2
                if size < MIN_BATCH:
                    return
            if not arm.binnings:
                self._look(arm, size, deadline)
            else:
                self._bet(arm, size, deadline)
            if self._has_outgrown(arm):
                self._learn(arm, deadline)
            arm.hope = max(hope(arm.record, context.guarantee, arm.learned), self._promised(arm))
            if arm.hope < least_hope:
                return
            if self._knows_enough():
                self.satisfied = True
                return

    def _promised(self, arm: Arm) -> float:
        """The edge that was proposed, until it should have won."""
        proposal = self.proposals.get(arm.number)
        return proposal.edge if proposal is not None and proposal.is_open(arm.drawn) else 0.0

    def _has_outgrown(self, arm: Arm) -> bool:
        """Whether the binnings of a pair have been made from too few outputs."""
        kept, growth = arm.kept.pairs, self.pace.relearn
        if kept >= arm.learned * (growth if arm.learned > FIRST_BATCH else RELEARN_FIRST):
            return True
        no_more_is_kept = kept < arm.drawn
        return self.pace.relearn_last and no_more_is_kept and arm.learned < kept

    def _learn(self, arm: Arm, deadline: Deadline) -> None:
        """Make new binnings, unless learning has had its share; the first ones in any case."""
        share = LEARNING_TIME_SHARE * self.context.settings.max_seconds - self.learning
        left = deadline.remaining()
        if arm.binnings:
            if share <= 0:
                return
            left = min(left, share)
        started = time.monotonic()
        try:
            within(left, partial(learn, self.context, arm))
        except OutOfTime:
            if not arm.binnings or deadline.remaining() <= 0:
                raise
            return  # the binnings that there are will do
        finally:
            self.learning += time.monotonic() - started
        if arm.coupled and self.ledger.prefers_apart(arm.record):
            arm.draw_apart()

    def _pick(self) -> Arm:
        """The pair with the largest edge that is possible by all that is known.

        Before an audit ends at its margin: what is in doubt.
        """
        if self._doubtful is not None:
            return self._doubtful
        best = max(self._in_play(), key=lambda arm: arm.hope, default=None)
        if best is None:
            return self.arms[0]
        return (self._newcomer() if best.hope < HOPE_UNSEEN else None) or best

    @property
    def _taken(self) -> list[Arm]:
        """Pairs that were looked at, but for what the mechanism refused: nobody promised that."""
        return [arm for arm in self.seen if not arm.refused]

    def _in_play(self) -> Iterable[Arm]:
        """What may be bet on: proposed pairs while their share lasts, or if they look broken."""
        if self._proposed <= SEARCH_SHARE * self.drawn:
            return self._taken
        given, suspicious = (
            len(self.source.given),
            partial(suspicion_of, guarantee=self.context.guarantee),
        )
        return (
            arm
            for arm in self._taken
            if arm.number < given or arm.hope >= HOPE_UNSEEN or suspicious(arm) > PROPOSED_SUSPICION
        )

    def _newcomer(self) -> Arm | None:
        """The next pair of inputs to look at, if one is left, and the search has not had its share.

        First those that the claim gives, then those that are proposed by what is known of them.
        """
        if len(self.seen) < len(self.arms):
            return self.arms[len(self.seen)]
        if not self._may_search:
            return None
        past = [Tried(arm.pair, arm.drawn, arm.hope) for arm in self.seen]
        pair = self.source.more(past)
        return None if pair is None else self._join(pair)

    @property
    def _may_search(self) -> bool:
        """Whether pairs of inputs that were proposed have not had their share yet."""
        return self._proposed <= max(MIN_SEARCHED, SEARCH_SHARE * self.drawn)

    @property
    def _proposed(self) -> int:
        """Pairs of outputs that were drawn for pairs of inputs which the claim does not give."""
        return sum(arm.drawn for arm in self.seen[len(self.source.given) :])

    @property
    def e_value(self) -> float:
        """Evidence against the claim: what its share of the money has become.

        A game that was given up counts for nothing, so it is an e-value of the whole audit.
        Rounding does not make it disagree with the verdict.
        """
        value = self.share * math.exp(min(self.ledger.log_e_value, 700.0))
        if self.refuted_before:  # perhaps by these very samples: they count once
            value = math.exp(min(self.context.earlier.log_e_value, 700.0))
        return max(value, 1 / self.context.alpha) if self.refuted else value

    @property
    def p_value(self) -> float:
        """Valid at any time; of earlier runs, if it was them that refuted the claim."""
        if self.refuted_before:
            return math.exp(-self.context.earlier.log_e_value)
        return self.ledger.p_value / self.share

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, by this run or by it and earlier ones."""
        return self.refuted_before or self.ledger.refuted

    @property
    def evidence(self) -> Evidence:
        """What this run leaves to later ones: its own alone."""
        earned = math.log(self.share) + self.ledger.log_wealth - self.ledger.before
        learned = learned_by(self.seen[: len(self.source.given)])
        return Evidence(tuple(map(float, earned)), 1, 2 * self.drawn, learned)

    def _knows_enough(self) -> bool:
        """Whether the claim's margin is reached and nothing is in doubt; looked up now and then."""
        if self.drawn < self._next_look_up or self.ledger.refuted:
            return False
        if any(map(self._promised, self.seen)):
            return False
        context, guarantee = self.context, self.context.guarantee
        level = guarantee, self.share * context.alpha
        told = context.sampler.progress is not None and all(arm.binnings for arm in self.seen)
        searched = self.source.exhausted or not self._may_search
        given = len(self.source.given)
        may_end = searched and len(self.seen) == len(self.arms) and self.drawn >= MIN_AT_MARGIN
        doubts = None
        if told or may_end:
            caught = would_catch(self.seen[:given], given, *level)
            context.sampler.caught = caught
            if may_end and guarantee.noise_below(caught) <= context.settings.margin:
                left = max((1 - RESERVE) * context.max_samples - context.sampler.runs, 0) / 2
                margin = context.settings.margin
                doubts = in_doubt(self._taken, caught, left, *level, margin, given)
        self._doubtful = doubts[0] if doubts else None
        self._next_look_up = 0.0 if doubts else CHECK_GROWTH * self.drawn
        return doubts == []

    @property
    def drawn(self) -> int:
        """Pairs of outputs so far."""
        return sum(arm.drawn for arm in self.seen)

    def _size(self, arm: Arm) -> int:
        proposed = arm.number >= len(self.source.given)
        total = self._proposed if proposed else self.drawn
        size = (
            max(FIRST_BATCH, int(max(GROWTH_OF_ARM * arm.drawn, GROWTH_OF_ALL * total)))
            if arm.drawn
            else FIRST_BATCH
        )
        if arm.earned > 0:
            rate = arm.earned / arm.drawn
            missing = self.ledger.enough - self.ledger.log_e_value
            enough = OF_THE_MISSING * missing / rate
            size = max(MIN_BATCH, int(np.clip(enough, self.pace.least_batch * size, size)))
        return self._at_most(size)

    def _at_most(self, size: int) -> int:
        """So many pairs of outputs, or fewer if the mechanism is slow."""
        context = self.context
        affordable = context.runs_within(BATCH_TIME_SHARE * context.settings.max_seconds / 2, size)
        affordable = int(min(affordable, context.affordable() / 2))
        if affordable >= size:
            return size
        context.sampler.note(
            f"a run takes {context.a_run}: looked at the clock, so another run "
            "may show somewhat different numbers"
        )
        return min(size, max(MIN_BATCH, affordable))

    def _look(self, arm: Arm, size: int, deadline: Deadline) -> None:
        """The first look at a pair, without a bet."""
        privacy_param, inputs = self.context.privacy_param, self.pool.inputs
        if self.coupled:
            arm.coupled = self.context.sampler.can_couple(
                inputs[arm.input1], inputs[arm.input2], deadline
            )
            if arm.number < len(self.source.given):
                self.coupled = arm.coupled
        self._draw(arm, size, deadline)
        self.seen.append(arm)
        self._propose(arm)
        remind(arm, self.context.earlier.learned if self.source is self.context.source else ())
        proposed = arm.number >= len(self.source.given) and self.source.generated is None
        arm.refused = proposed and any(map(all_raised, arm.kept.sides()))
        if len(self.seen) == len(self.arms):
            always_raises(self.context, self.pool)
        answers = [self.context.sampler.noiseless(d, privacy_param) for d in arm.pair.inputs]
        arm.references = [answer for answer in answers if answer is not None]

    def _propose(self, arm: Arm) -> None:
        """Bet on what breaks the claim by enumeration, as long as it may be won."""
        context = self.context
        most = (1 - RESERVE) * context.max_samples / 2 - self.drawn
        level = self.share * context.alpha
        proposal = self.found.proposal(arm.number, context.guarantee, level, most)
        if proposal is not None:
            self.proposals[arm.number], arm.proposed = proposal, proposal.binning

    def _bet(self, arm: Arm, size: int, deadline: Deadline) -> None:
        before = self.ledger.log_e_value
        cash = float(max(len(self.source.given), arm.number + 1))
        wager = self.ledger.wager(arm.record, cash)
        self.ledger.settle(wager, arm.record, lambda: self._draw(arm, size, deadline))
        after = self.ledger.log_e_value
        arm.earned += after - before
        self.trail.append((2 * self.drawn, math.log(self.share) + after))

    def _draw(self, arm: Arm, size: int, deadline: Deadline) -> list[Ints]:
        """A new batch of outputs on both inputs, counted through the binnings of the pair."""
        kept = arm.kept
        if kept.extract is None and not kept.has_room(size):
            within(deadline.remaining(), partial(make_room, self.context, arm))
        keep = kept.pairs + size <= self.pace.kept and kept.has_room(size)
        draws = arm.draws(self.pool, size, self.key, arm.batches)
        arm.batches += 1
        reader = Reader(arm.binnings, keep, kept.extract)
        parts = self.context.sampler.measure(draws, reader, deadline)
        arm.drawn += size
        if keep:
            batch1, batch2 = (
                concatenated([table for _, table in part if table is not None]) for part in parts
            )
            kept.add(batch1, batch2, coupled=arm.coupled)
            self.pool.see(arm.input1, batch1)
            self.pool.see(arm.input2, batch2)
        return joints_of(parts, arm.binnings)

    def look_closer(self, arm: Arm, pairs: int) -> None:
        """Bring a pair up to so many outputs, if that is quick, and learn from them."""
        size = pairs - arm.drawn
        left = self.context.max_samples - self.context.sampler.runs - 2 * MIN_COPY_RUNS
        affordable = min(left, self.context.affordable()) / 4
        if 0 < size <= affordable and self._at_most(size) == size:
            self._draw(arm, size, self.context.deadline)
            within(self.context.deadline.remaining(), partial(learn, self.context, arm))
