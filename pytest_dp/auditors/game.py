"""The bets of the sequential auditor, batch by batch.

Each batch is drawn for one pair, which a `bandit` picks, after the bets on it are made: by what the
batches before have taught (`states`). Wealth that reaches 1 / alpha refutes the claim
(`pytest_dp.statistics.ledger`).
"""

from __future__ import annotations

import copy
import math
from functools import cached_property, partial

import numpy as np

from pytest_dp import clocks
from pytest_dp.arrays import Ints
from pytest_dp.attacks.binning import Reader
from pytest_dp.auditors.bandit import Bandit, heed_refusal
from pytest_dp.auditors.bearing_out import BearingOut
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.known import Known, Proposal
from pytest_dp.auditors.pair_state import PairState, hope, joints_of, learn, make_room
from pytest_dp.auditors.past import learned_by, remind
from pytest_dp.auditors.pool import Pool, always_raises
from pytest_dp.auditors.stopping import Margin
from pytest_dp.inputs.sources import PairSource
from pytest_dp.limits import (
    DOZENS,
    FEW,
    GROWTH,
    LONG_STEP_TIME,
    MANY,
    RESERVE,
    SEVERAL,
    TIME_SHARE,
)
from pytest_dp.outputs.hashed import has_seed
from pytest_dp.outputs.table import concatenated
from pytest_dp.outputs.targeted import target_of
from pytest_dp.results.evidence import Evidence, e_value
from pytest_dp.sampling.deadline import Deadline, OutOfTime, within
from pytest_dp.statistics.ledger import Ledger

OF_THE_MISSING = 0.5
"""Of the outputs that should do to win, the share that a batch takes where that is less than it
would be: luck may do with less, and the next batch is soon drawn. Claims of pure eps are refuted as
soon without it; others take 1.2 times the samples. Measured."""


class Game:
    """An audit under way.

    In each round (`play`), a pair of inputs is picked whose edge may be the largest. If it is new,
    a first batch is only looked at (`look_first`); otherwise all bets on the next batch are placed
    before it is drawn (`_bet`). Then what the pair has taught is brought up to date (`_learn`), and
    it is asked whether enough is known (`Margin`).

    `key` is the first part of the keys of its samples, and `share` is the part of alpha that it may
    spend: with none, it only searches, until its runs are used up. Where the pairs do not come from
    the claim, `source` says from where. The verdict is decided by `ledger`: bets on pairs inside
    the claim, or on all where those beyond are not told by themselves. After each bet `trail` gets
    the number of samples that were bet on so far, and the logarithm of the e-value.
    """

    def __init__(
        self,
        context: Context,
        key: int,
        share: float,
        known: Known | None = None,
        *,
        coupled: bool,
        source: PairSource | None = None,
    ) -> None:
        self.key, self.share = key, share
        self.context, self.pool, self.coupled = context, Pool(), coupled
        self.known = known or Known()
        self.proposals: dict[int, Proposal] = {}
        self.bandit = Bandit(source or context.source, self.pool, context.guarantee)
        self.bearing_out = BearingOut(context, self.known, self.bandit)
        earlier = context.earlier if source is None else Evidence()
        self.refuted_before = earlier.refutes(context.alpha)
        before = () if self.refuted_before else earlier.log_e_values  # then, to show it is left
        self.ledger = Ledger(context.guarantee, share * context.alpha, before)
        self.pace = context.pace
        self.late = self.satisfied = False
        self.margin = Margin(context, self.bandit, share)
        self.learning = 0.0  # seconds
        self.trail: list[tuple[int, float]] = []

    def play(
        self, deadline: Deadline, max_runs: float = math.inf, least_hope: float = -math.inf
    ) -> None:
        """Bet until the claim is refuted, enough is known, or only the reserve is left.

        It also gives up at `max_runs` runs of the audit in all, or as soon as less than
        `least_hope` is hoped of the pair that was bet on.
        """
        context = self.context
        budget = min(max_runs, (1 - RESERVE) * context.max_samples)
        while not self.ledger.refuted:
            if (state := self._next_pair()) is None:
                self.satisfied = True
                self.bearing_out.rest()
                return
            size = self._batch_size(state)
            if context.sampler.runs + 2 * size > budget:
                size = int(budget - context.sampler.runs) // 2
                if size < SEVERAL:
                    return
            self._go_on(state, size, deadline)
            if state.hope < least_hope:
                return
            if self._may_end_at_margin and self.margin.is_reached(self.ledger):
                self.satisfied = True
                return

    def rest_on_what_is_known(self) -> None:
        """Let a pass rest on the known loss where effort ended in bets on pairs without one."""
        bearing_out = self.bearing_out
        broken = any(
            self.bandit.looks_broken(state)
            for state in self.bandit.accepted
            if state.binnings and not self.context.only_told(state.pair)
        )
        if not (self.refuted or self.satisfied or broken) and bearing_out.is_enough():
            self.satisfied = True
            bearing_out.rest()

    def _go_on(self, state: PairState, size: int, deadline: Deadline) -> None:
        """Draw, bet and learn; where the loss is known, learn once, from half of what is drawn."""
        bearing_out = self.bearing_out
        if not state.drawn:
            self.look_first(state, size, deadline)
        elif not state.binnings and 2 * bearing_out.missing(state) > bearing_out.wanted:
            self.draw(state, size, deadline)
        else:
            if not state.binnings:
                self._learn(state, deadline)
            self._bet(state, size, deadline)
        if bearing_out.wanted and bearing_out.is_known(state):
            unseen = bearing_out.missing(state) or self.bandit.is_proposed(state)
            should_learn = not state.binnings and not unseen
        else:
            should_learn = self._has_outgrown(state)
        if should_learn:
            self._learn(state, deadline)
        edge = self._proposed_edge(state)
        if state.binnings:
            # To look where a better model may find more costs wealth, but for games without stakes.
            learned = math.inf if self.share else state.learned
            edge = max(edge, hope(state.record, self.context.guarantee, learned))
        state.hope = edge

    def _next_pair(self) -> PairState | None:
        """The pair to draw next; None where the loss is known on all that there are.

        While it is known on all so far, first come those that a search proposes: one of them may be
        unlike the others.
        """
        bandit, bearing_out = self.bandit, self.bearing_out
        if not self.share:
            return bandit.next_pair(eager=True)
        if bearing_out.wanted and not self._has_open_proposals:
            if (newcomer := bandit.newcomer()) is not None:
                return newcomer
            least = max(self.seen, key=bearing_out.missing)
            if bearing_out.missing(least):
                return least
            if bandit.source.exhausted:
                if unknown := bearing_out.unknown:
                    return max(unknown, key=lambda state: state.hope)
                if bearing_out.is_enough():
                    return None
        unlearned = (state for state in bandit.accepted if not state.binnings)
        if not bearing_out.wanted and (state := next(unlearned, None)) is not None:
            return state
        return self.margin.doubtful or bandit.next_pair()

    def _proposed_edge(self, state: PairState) -> float:
        """The edge of what was proposed; 0 once it should have won by now."""
        proposal = self.proposals.get(state.number)
        return proposal.edge if proposal is not None and proposal.is_open(state.drawn) else 0.0

    @property
    def _may_end_at_margin(self) -> bool:
        if not self.share or self._has_open_proposals or self.bearing_out.exceeds:
            return False
        return not (
            self.bearing_out.wanted and self.bandit.source.exhausted
        )  # then by what is known

    @property
    def _has_open_proposals(self) -> bool:
        return any(map(self._proposed_edge, self.bandit.accepted))

    def _has_outgrown(self, state: PairState) -> bool:
        """Whether a pair has so many new outputs that its binnings should be made anew."""
        available, growth = state.outputs.pairs, self.pace.relearn
        if available >= state.learned * (growth if state.learned > DOZENS // 2 else 4):
            return True
        no_more_to_come = available < state.drawn
        return self.pace.relearn_last and no_more_to_come and state.learned < available

    def _learn(self, state: PairState, deadline: Deadline) -> None:
        """Make new binnings, unless learning has had its share; the first ones in any case."""
        left = deadline.remaining()
        if state.binnings:
            allowed = LONG_STEP_TIME * self.context.settings.max_seconds
            left = min(left, allowed - self.learning)
            if self.learning >= allowed:
                return
        started = clocks.Stopwatch()
        try:
            within(left, partial(learn, self.context, state))
        except OutOfTime:
            if not state.binnings or deadline.remaining() <= 0:
                raise
            return  # the binnings that there are will do
        finally:
            self.learning += started.spent()
        if state.coupled and self.ledger.prefers_apart(state.record):
            state.draw_apart()

    @property
    def e_value(self) -> float:
        """Evidence against the claim: what its share of the money has become.

        A game that was given up counts for nothing, so it is an e-value of the whole audit.
        Rounding does not make it disagree with the verdict.
        """
        value = self.share * e_value(self.ledger.log_e_value)
        if self.refuted_before:  # perhaps by these very samples: they count once
            value = e_value(self.context.earlier.log_e_value)
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
        """The evidence of this run alone, for later ones."""
        earned = math.log(self.share) + self.ledger.log_wealth - self.ledger.before
        learned = learned_by(self.seen[: self.bandit.claimed])
        return Evidence(tuple(map(float, earned)), 1, 2 * self.drawn, learned)

    @property
    def seen(self) -> list[PairState]:
        return self.bandit.seen

    @property
    def drawn(self) -> int:
        return self.bandit.drawn

    @cached_property
    def ledger_beyond(self) -> Ledger:
        """Bets on pairs beyond what the claim gives, from the first of them on."""
        return Ledger(self.context.guarantee, self.share * self.context.alpha)

    def ledger_of(self, state: PairState) -> Ledger:
        return self.ledger_beyond if self.context.only_told(state.pair) else self.ledger

    def beyond(self) -> Game:
        """The same game, as it stands for pairs beyond what the claim gives."""
        ledger = self.ledger_beyond  # which the copy then has too
        game = copy.copy(self)
        game.ledger, game.refuted_before = ledger, False
        return game

    def _batch_size(self, state: PairState) -> int:
        """How many pairs of outputs the next batch has."""
        bandit, ledger, size = self.bandit, self.ledger_of(state), DOZENS // 2
        if state.drawn:
            total = bandit.drawn_for_proposed if bandit.is_proposed(state) else bandit.drawn
            size = max(size, int(max(GROWTH * state.drawn, (GROWTH / 5) * total)))
            if missing := self.bearing_out.missing(state):
                size = missing if 2 * missing <= self.bearing_out.wanted else missing // 2
                size = max(size, DOZENS // 2)
        if state.earned > 0:
            rate = state.earned / state.drawn
            enough = OF_THE_MISSING * (ledger.enough - ledger.log_e_value) / rate
            size = max(SEVERAL, int(np.clip(enough, self.pace.least_batch * size, size)))
        return self._limited_to_time(size)

    def _limited_to_time(self, size: int) -> int:
        """The size, or less if the mechanism is too slow for it."""
        context = self.context
        affordable = context.runs_within(TIME_SHARE * context.settings.max_seconds / 2, size)
        affordable = int(min(affordable, context.affordable() / 2))
        if affordable >= size:
            return size
        context.sampler.note(
            f"a run takes {context.a_run}: looked at the clock, so another run "
            "may show somewhat different numbers"
        )
        return min(size, max(SEVERAL, affordable))

    def look_first(self, state: PairState, size: int, deadline: Deadline) -> None:
        """The first look at a pair, without a bet."""
        privacy_param, inputs = self.context.privacy_param, self.pool.inputs
        if self.coupled and not self.bearing_out.is_slow:
            state.coupled = self.context.sampler.can_couple(
                inputs[state.input1], inputs[state.input2], deadline
            )
            if not self.bandit.is_proposed(state):
                self.coupled = state.coupled
        self.draw(state, size, deadline)
        self.seen.append(state)
        self._propose(state)
        source = self.bandit.source
        remind(state, self.context.earlier.learned if source is self.context.source else ())
        heed_refusal(self.context, self.bandit, state)
        if self.bandit.all_seen:
            always_raises(self.context, self.pool)
        if self.context.settings.features is None:
            state.target = target_of(
                *state.pair.inputs, state.outputs.examples().raw, self.context.seed
            )
        if self.bearing_out.is_slow:
            return
        answers = [self.context.sampler.noiseless(d, privacy_param) for d in state.pair.inputs]
        state.references = [answer for answer in answers if answer is not None]
        if any(map(has_seed, state.outputs.sides()[0][:FEW])):
            items = inputs[state.input1], inputs[state.input2]
            state.hashed = self.context.sampler.hash_templates(items)

    def _propose(self, state: PairState) -> None:
        """Bet on what breaks the claim by what is known, as long as it may be won."""
        context = self.context
        self.known.add(state.number, state.pair)
        left = (1 - RESERVE) * context.max_samples / 2 - self.drawn
        level = self.share * context.alpha
        proposal = self.known.proposal(state.number, context.guarantee, level, left)
        if proposal is not None:
            self.proposals[state.number], state.proposed = proposal, proposal.binning

    def _bet(self, state: PairState, size: int, deadline: Deadline) -> None:
        if not self.share:  # nothing is at stake
            new = self.draw(state, size, deadline)
            state.record = state.record.with_batch(new)
            return
        ledger = self.ledger_of(state)
        before = ledger.log_e_value
        cash = float(max(self.bandit.claimed, state.number + 1))
        portfolio = ledger.stake(state.record, cash)
        batch = self.draw(state, size, deadline)  # after the bets on it are fixed
        ledger.settle(portfolio, batch)
        state.record = state.record.with_batch(batch)
        state.earned += ledger.log_e_value - before
        self.trail.append((2 * self.drawn, math.log(self.share) + self.ledger.log_e_value))
        self.bandit.inside_only |= ledger is not self.ledger and ledger.refuted

    def draw(self, state: PairState, size: int, deadline: Deadline) -> list[Ints]:
        """A new batch of outputs on both inputs, counted through the binnings of the pair."""
        outputs = state.outputs
        if outputs.extract is None and not outputs.has_room(size):
            within(deadline.remaining(), partial(make_room, self.context, state))
        keep = outputs.pairs + size <= self.pace.max_kept and outputs.has_room(size)
        draws = state.draws(self.pool, size, self.key, state.batches)
        state.batches += 1
        reader = Reader(state.binnings, keep, outputs.extract)
        parts = self.context.sampler.measure(draws, reader, deadline)
        state.drawn += size
        if keep:
            batch1, batch2 = (
                concatenated([table for _, table in part if table is not None]) for part in parts
            )
            outputs.add(batch1, batch2, coupled=state.coupled)
            self.pool.see(state.input1, batch1)
            self.pool.see(state.input2, batch2)
        return joints_of(parts, state.binnings)

    def look_closer(self, state: PairState, pairs: int) -> None:
        """Bring a pair up to so many outputs, if that is quick, and learn from them."""
        size = pairs - state.drawn
        left = self.context.max_samples - self.context.sampler.runs - 2 * (MANY // 2)
        affordable = min(left, self.context.affordable()) / 4
        if 0 < size <= affordable and self._limited_to_time(size) == size:
            self.draw(state, size, self.context.deadline)
            within(self.context.deadline.remaining(), partial(learn, self.context, state))
