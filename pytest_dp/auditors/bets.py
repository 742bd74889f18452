"""Bets against a claim: its pairs of inputs, what is drawn on them, and the evidence.

This is what both betting loops have in common, and all that the end of an audit asks of one
(`concluding`, `shrinking`, `lateness`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial

from pytest_dp.arrays import Ints
from pytest_dp.auditors.bearing_out import BearingOut
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.known import Known
from pytest_dp.auditors.pair_batches import draw_batch, look_without_noise
from pytest_dp.auditors.pair_state import PairState, learn
from pytest_dp.auditors.pairs_in_play import PairsInPlay
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.stopping import Caught
from pytest_dp.inputs import Pair
from pytest_dp.limits import MANY
from pytest_dp.results.evidence import Evidence, e_value
from pytest_dp.sampling.deadline import Deadline, within
from pytest_dp.statistics.ledger import Ledger


class Bets(ABC):
    """Bets on the pairs of a claim.

    `key` is the first part of the keys of its samples, and `share` is the part of alpha that it may
    spend. `earlier` is evidence to begin with.
    """

    max_kept: int
    """Pairs of outputs that are kept of a pair of inputs, at most."""

    def __init__(
        self,
        context: Context,
        key: int,
        share: float,
        known: Known,
        pairs: PairsInPlay,
        earlier: Evidence,
        *,
        coupled: bool,
    ) -> None:
        self.context, self.key, self.share, self.known = context, key, share, known
        self.coupled, self.bandit = coupled, pairs
        self.bearing_out = BearingOut(context, known, pairs)
        self.refuted_before = earlier.refutes(context.alpha)
        before = () if self.refuted_before else earlier.log_e_values  # then, to show it is left
        self.ledger = Ledger(context.guarantee, share * context.alpha, before)
        self.late = self.satisfied = False

    @abstractmethod
    def play(
        self, deadline: Deadline, max_runs: float = math.inf, least_hope: float = -math.inf
    ) -> None:
        """Bet until the claim is refuted, enough is known, or only the reserve is left.

        It also gives up at `max_runs` runs of the audit in all, or as soon as less than
        `least_hope` is hoped of the pair that was bet on.
        """

    @abstractmethod
    def play_beyond(self, deadline: Deadline) -> None:
        """Bet on pairs beyond what the claim gives, unless `play` has done so."""

    @abstractmethod
    def on_pair(self, pair: Pair, *, coupled: bool) -> Bets:
        """Return bets of the same kind on another pair alone, with samples of their own."""

    @abstractmethod
    def beyond(self) -> Bets:
        """Return the bets on pairs beyond what the claim gives, where these are told apart."""

    @property
    @abstractmethod
    def is_broken_beyond(self) -> bool:
        """Whether the claim is refuted on pairs beyond what it gives, which is told apart."""

    @abstractmethod
    def refit(self, state: PairState) -> None:
        """Learn anew from all outputs on a pair."""

    @property
    @abstractmethod
    def caught(self) -> Caught:
        """What would have been caught, with 95 % power, on the pairs that the claim gives."""

    @property
    @abstractmethod
    def runs_needed(self) -> int:
        """Roughly how many runs reach the margin, by powers of two; 0 if none do."""

    @abstractmethod
    def could_see_delta(self, times: float) -> bool:
        """Return whether so many times the runs would see leaks a few times as likely as delta."""

    @property
    def evidence(self) -> Evidence:
        """The evidence of this run alone, for later ones."""
        earned = math.log(self.share) + self.ledger.log_wealth - self.ledger.before
        return Evidence(tuple(map(float, earned)), 1, 2 * self.drawn)

    def learned_pairs(self) -> list[PairState]:
        """Return the pairs inside the claim of which bets were learned.

        Where earlier runs refuted the claim and this one made no bets, they are learned now.
        """
        seen = [state for state in self.seen if not self.context.only_told(state.pair)]
        learned = [state for state in seen if state.binnings]
        if learned or not self.refuted:
            return learned
        for state in seen:
            learn(self.context, state)
        return seen

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

    @property
    def pool(self) -> Pool:
        """The inputs, and a few of the outputs on each."""
        return self.bandit.pool

    @property
    def seen(self) -> list[PairState]:
        """The pairs that were looked at."""
        return self.bandit.seen

    @property
    def drawn(self) -> int:
        """Pairs of outputs so far."""
        return self.bandit.drawn

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

    def draw(self, state: PairState, size: int, deadline: Deadline) -> list[Ints]:
        """Draw outputs on both inputs of a pair; return their counts through its binnings."""
        return draw_batch(self.context, self.pool, state, size, self.key, self.max_kept, deadline)

    def couple(self, state: PairState, deadline: Deadline) -> bool:
        """Return whether the inputs of a pair can be run with the same random numbers.

        Where those of a pair of the claim cannot, no others are from then on. They need not be
        where what is known of the pair decides.
        """
        self.known.add(state.number, state.pair)
        if not self.coupled or self.bearing_out.decides(state):
            return False
        input1, input2 = self.pool.inputs[state.input1], self.pool.inputs[state.input2]
        coupled = self.context.sampler.can_couple(input1, input2, deadline)
        if not self.bandit.is_proposed(state):
            self.coupled = coupled
        return coupled

    def look_without_noise(self, state: PairState) -> None:
        """Ask what outputs are without noise, and which records they show."""
        look_without_noise(self.context, state, asked=not self.bearing_out.decides(state))

    def look_closer(self, state: PairState, pairs: int) -> None:
        """Bring a pair up to so many outputs, if that is quick, and learn from them."""
        size = pairs - state.drawn
        left = self.context.max_samples - self.context.sampler.runs - 2 * (MANY // 2)
        affordable = min(left, self.context.affordable()) / 4
        if 0 < size <= affordable and self.is_quick(size):
            self.draw(state, size, self.context.deadline)
            within(self.context.deadline.remaining(), partial(self.refit, state))

    @abstractmethod
    def is_quick(self, size: int) -> bool:
        """Return whether so many pairs of outputs take no more than a batch should."""
