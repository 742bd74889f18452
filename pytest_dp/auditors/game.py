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
from pytest_dp.auditors.bandit import Bandit
from pytest_dp.auditors.bets import Bets
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.known import Known, Proposal
from pytest_dp.auditors.pair_state import PairState, hope, learn
from pytest_dp.auditors.pool import Pool, always_raises
from pytest_dp.auditors.rejected_inputs import skip_rejected_input
from pytest_dp.auditors.stopping import Caught, Margin
from pytest_dp.inputs import Pair
from pytest_dp.inputs.sources import PairSource
from pytest_dp.limits import (
    DOZENS,
    GROWTH,
    LONG_STEP_TIME,
    RESERVE,
    SEVERAL,
    TIME_SHARE,
)
from pytest_dp.results.evidence import Evidence
from pytest_dp.sampling.deadline import Deadline, OutOfTime, within
from pytest_dp.sampling.streams import Purpose
from pytest_dp.statistics.ledger import Ledger

OF_THE_MISSING = 0.5
"""Of the outputs that should do to win, the share that a batch takes where that is less than it
would be: luck may do with less, and the next batch is soon drawn. Claims of pure eps are refuted as
soon without it; others take 1.2 times the samples. Measured."""


class Game(Bets):
    """An audit under way.

    In each round (`play`), a pair of inputs is picked whose edge may be the largest. If it is new,
    a first batch is only looked at (`look_first`); otherwise all bets on the next batch are placed
    before it is drawn (`_bet`). Then what the pair has taught is brought up to date (`_learn`), and
    it is asked whether enough is known (`Margin`).

    `key` is the first part of the keys of its samples, and `share` is the part of alpha that it may
    spend: with none, it only searches, until its runs are used up. Where the pairs do not come from
    the claim, `source` says from where. The verdict is decided by `ledger`: bets on pairs inside
    the claim, or on all where those beyond are not told by themselves.
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
        urgent = context.screened.urgent if source is None else ()
        pairs = Bandit(source or context.source, Pool(), context.guarantee, urgent)
        earlier = context.earlier if source is None else Evidence()
        super().__init__(context, key, share, known or Known(), pairs, earlier, coupled=coupled)
        self.bandit: Bandit = pairs
        self.proposals: dict[int, Proposal] = {}
        self.pace, self.max_kept = context.pace, context.pace.max_kept
        self.margin = Margin(context, self.bandit, share)
        self.learning = 0.0  # seconds

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
            if state.edge_bound < least_hope:
                return
            if self._may_end_at_margin and self.margin.is_reached(self.ledger):
                self.satisfied = True
                return

    def play_beyond(self, deadline: Deadline) -> None:
        """Do nothing, as `play` has bet on these pairs too."""

    def _go_on(self, state: PairState, size: int, deadline: Deadline) -> None:
        """Draw, bet and learn; where the loss is known, only draw."""
        if not state.drawn:
            self.look_first(state, size, deadline)
        elif self.bearing_out.missing(state):
            self.draw(state, size, deadline)
        else:
            if not state.binnings:
                self._learn(state, deadline)
            self._bet(state, size, deadline)
        # Features and classifiers of users' are asked all the same: errors of theirs show then.
        own = self.context.settings.features, self.context.method.classifier
        is_asked = own != (None, None) or not self.bearing_out.decides(state)
        if is_asked and self._has_outgrown(state):
            self._learn(state, deadline)
        edge = self._proposed_edge(state)
        if state.binnings:
            # To look where a better model may find more costs wealth, but for games without stakes.
            learned = math.inf if self.share else state.learned
            edge = max(edge, hope(state.record, self.context.guarantee, learned))
        state.edge_bound = edge

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
                    return max(unknown, key=lambda state: state.edge_bound)
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
    def caught(self) -> Caught:
        """What would have been caught, with 95 % power, on the pairs that the claim gives."""
        return self.margin.caught

    @property
    def is_broken_beyond(self) -> bool:
        """Whether the claim is refuted on pairs beyond what it gives, which is told apart."""
        return self.ledger_beyond.refuted

    @property
    def runs_needed(self) -> int:
        """Roughly how many runs reach the margin, by powers of two; 0 if none do."""
        return self.margin.runs_needed

    def could_see_delta(self, times: float) -> bool:
        """Whether so many times the runs would see leaks a few times as likely as delta."""
        return self.margin.could_see_delta(times)

    def refit(self, state: PairState) -> None:
        """Learn anew from all outputs on a pair."""
        learn(self.context, state)

    def on_pair(self, pair: Pair, *, coupled: bool) -> Game:
        """Return a game of the same kind on another pair alone, with samples of its own."""
        source = PairSource([pair])
        game = Game(self.context, Purpose.SMALLER, self.share, coupled=coupled, source=source)
        return game.beyond() if self.context.only_told(pair) else game

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
            total = bandit.drawn_on_proposed if bandit.is_proposed(state) else bandit.drawn
            size = max(size, int(max(GROWTH * state.drawn, (GROWTH / 5) * total)))
            if missing := self.bearing_out.missing(state):
                size = max(missing, DOZENS // 2)
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
        state.coupled = self.couple(state, deadline)
        self.draw(state, size, deadline)
        self.seen.append(state)
        self._propose(state)
        skip_rejected_input(self.context, self.bandit, state)
        if self.bandit.all_seen:
            always_raises(self.context, self.pool)
        self.look_without_noise(state)

    def _propose(self, state: PairState) -> None:
        """Bet on what breaks the claim by what is known, as long as it may be won."""
        context = self.context
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
        self.bandit.inside_only |= ledger is not self.ledger and ledger.refuted

    def is_quick(self, size: int) -> bool:
        """Return whether so many pairs of outputs take no more than a batch should."""
        return self._limited_to_time(size) == size
