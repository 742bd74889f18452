"""The betting loop: pick a pair, fix the bets on its next batch, draw it, pay out, learn, stop.

The size of a batch and its pair depend on counts and past outputs alone. If time runs out, the
sampler raises, and the wealth won until then stands.

An edge is what a bet on one pair of outputs gains on average, over the standard deviation of what
it pays; log wealth then grows by half its square for each pair of outputs. The queue is a bandit
that picks by an upper confidence bound on the edge: no pair is given up on a few outputs, and few
outputs are spent on pairs that cannot win.

Source: Auer, Cesa-Bianchi, Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem",
Machine Learning 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.detector import Binning, Detector
from pytest_dp.data.relations import Pair
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.paired_outputs import PairedOutputs
from pytest_dp.outputs.user_features import Targeted
from pytest_dp.statistics.ledger import BetRecord, Ledger

EDGE_ERRORS = 1.5
"""Standard errors added to an edge. More: hopeless pairs are drawn on; fewer: bad luck decides."""
NEW_PAIR_EDGE = 0.4
"""Edge assumed of a new pair. Larger: all pairs come before bets on the best; smaller: they
wait."""
PROPOSED_SHARE = 0.05
"""Share of outputs on proposed pairs that do not look broken. Larger: claims of few pairs wait."""
FIRST_PROPOSED = 500
"""Pairs of outputs that may be drawn on proposed pairs of inputs in any case."""

WON_BY_CHANCE = 3.0
"""Log wealth won by chance once in 20 times. Smaller: lucky proposed pairs are drawn on."""
FIRST_BATCH = 12
"""Pairs of outputs in the first batch on a pair. Fewer: there is nothing to learn from."""
BATCH_GROWTH = 0.2
"""Next batch by the outputs of the pair. Larger: bets learn later; smaller: bets take more time."""
BATCH_SHARE = 0.04
"""The same as a share of all pairs of outputs, so that late pairs are not drawn in tiny batches."""
NEXT_BATCH_FRACTION = 0.5
"""Share of the outputs missing for a refutation in a batch. Larger: too many are drawn."""
LEAST_BATCH_SHARE = 0.1
"""Share of its usual size that such a batch has at least. Smaller: bets take more time."""
MIN_BATCH = 8
"""Pairs of outputs that a batch has at least. Larger and smaller: the same."""
REFIT_GROWTH = 2.0
"""Growth of a pair's outputs between fits. Larger: bets keep detectors of few outputs (with 4.0, a
rare value in one of 100 numbers is found 1 time in 4); smaller: fits take more time."""
MAX_FITTED_PAIRS = 40_000
"""Pairs of outputs that a detector is fitted on. More take longer and hardly teach more."""


@dataclass(slots=True, eq=False)
class PairState:
    """A pair of inputs in an audit, with its outputs, detector and bets of past batches."""

    number: int
    pair: Pair
    outputs: PairedOutputs = field(default_factory=PairedOutputs)
    """Past outputs on both inputs, as many as there is room for."""
    coupled: bool = False
    """Whether both inputs are run with the same random numbers."""
    refused: bool = False
    """Whether the mechanism refuses one of the inputs, so that nothing is bet on the pair."""
    drawn: int = 0
    """Pairs of outputs."""
    batches: int = 0
    earned: float = 0.0
    """What the bets on it have added to the log wealth."""
    detector: Detector = field(default_factory=Detector)
    record: BetRecord = field(default_factory=lambda: BetRecord([]))
    """Counts of past batches through the detector: what bets on it would have earned."""
    edge_bound: float = math.inf
    """Upper confidence bound on the edge, in standard deviations of a single payoff."""
    input1: int = 0
    """The position of D among the inputs of the audit."""
    input2: int = 0
    """The position of D' among the inputs of the audit."""
    added: list[Feature] | None = None
    """Features that only StatDP looks at; None until it has looked for them."""
    target: Targeted | None = None
    """Features of the record that only one of the inputs has, where outputs are tables of the same
    columns as the inputs; else None."""

    @property
    def binnings(self) -> tuple[Binning, ...]:
        """The binnings that are bet on, the one by score first; empty before the first fit."""
        return self.detector.binnings


def edge_upper_bound(growth: float, pairs: float) -> float:
    """Return an upper confidence bound on an edge, in standard deviations of a payoff.

    `growth` is the log growth of the best bet on `pairs` past pairs of outputs. The bound allows
    for chance, not for what a detector of few outputs misses: with that too, claims of many pairs
    took nearly twice the outputs.
    """
    pairs = max(pairs, 1.0)
    return math.sqrt(2 * max(growth, 0.0) / pairs) + EDGE_ERRORS / math.sqrt(pairs)


class PairQueue:
    """The pairs of inputs of an audit: those that the claim gives, then proposed ones.

    `propose` returns a further pair, or None if there is none; `make` returns the state of a pair,
    given its number. The given pairs numbered `first` are drawn before all other pairs, then the
    `urgent` ones: proposed pairs for which no samples have to be set aside.
    """

    def __init__(
        self,
        given: Sequence[Pair],
        propose: Callable[[], Pair | None],
        make: Callable[[int, Pair], PairState],
        first: Sequence[int] = (),
        urgent: Iterable[Pair] = (),
    ) -> None:
        self._propose, self._make = propose, make
        self.claimed = len(given)
        """The number of pairs that the claim gives, which are the first of `states`."""
        self.states: list[PairState] = []
        """The pairs of the claim, then those that were proposed."""
        self.seen: list[PairState] = []
        """The pairs that were picked so far, in that order."""
        for pair in given:
            self._add(pair)
        self._turns = self._urgent_then_given(first, urgent)
        self._are_turns_over = self._is_search_over = False

    @property
    def seen_given(self) -> list[PairState]:
        """The pairs of the claim that were picked so far."""
        return [status for status in self.seen if not self.is_proposed(status)]

    @property
    def draw_count(self) -> int:
        """The number of pairs of outputs drawn so far."""
        return sum(status.drawn for status in self.seen)

    @property
    def drawn_on_proposed(self) -> int:
        """The number of pairs of outputs drawn on pairs of inputs that the claim does not give."""
        return sum(status.drawn for status in self.seen if self.is_proposed(status))

    @property
    def unseen(self) -> int:
        """The number of pairs of the claim that were not picked so far."""
        return self.claimed - len(self.seen_given)

    @property
    def is_searched(self) -> bool:
        """True once no pair is left to propose, or no proposed pair may be drawn on."""
        return self._are_turns_over and (self._is_search_over or not self._may_search)

    def is_proposed(self, status: PairState) -> bool:
        """Return whether a pair was proposed, not given by the claim."""
        return status.number >= self.claimed

    def pick_pair(self) -> PairState | None:
        """Return the pair to draw next: a promising one, else a new one, else the best one.

        A new pair is added to `seen`. None if no seen pair may be drawn on and there is no new one.
        """
        open_pairs = [status for status in self.seen if self._may_go_on(status)]
        best = max(open_pairs, key=lambda status: status.edge_bound, default=None)
        if best is not None and best.edge_bound >= NEW_PAIR_EDGE:
            return best
        return self.pick_new_pair() or best

    def pick_new_pair(self) -> PairState | None:
        """Add a pair that was not picked so far to `seen`, and return its state.

        None if the given pairs are used up and no further pair is proposed or may be drawn on.
        """
        status = next(self._turns, None)
        self._are_turns_over = status is None
        if status is None and self._may_search:
            pair = self._propose()
            self._is_search_over = pair is None
            status = None if pair is None else self._add(pair)
        if status is not None:
            self.seen.append(status)
        return status

    def _urgent_then_given(
        self, first: Sequence[int], urgent: Iterable[Pair]
    ) -> Iterator[PairState]:
        """Yield the given pairs numbered `first`, the urgent ones, and all other given pairs."""
        yield from (self.states[number] for number in first)
        yield from map(self._add, urgent)
        yield from (self.states[k] for k in range(self.claimed) if k not in first)

    def _add(self, pair: Pair) -> PairState:
        """Add a pair to `states`, and return its new state."""
        status = self._make(len(self.states), pair)
        self.states.append(status)
        return status

    @property
    def _may_search(self) -> bool:
        """True while a new proposed pair may be drawn on: up to 500 pairs of outputs, or 5 %."""
        return self.drawn_on_proposed <= max(FIRST_PROPOSED, PROPOSED_SHARE * self.draw_count)

    def _may_go_on(self, status: PairState) -> bool:
        """Return whether more may be drawn on a pair that was picked before.

        Refused pairs may not; proposed pairs beyond their share of outputs only if they look
        broken.
        """
        if status.refused:
            return False
        in_share = self.drawn_on_proposed <= PROPOSED_SHARE * self.draw_count
        if in_share or not self.is_proposed(status):
            return True
        return status.edge_bound >= NEW_PAIR_EDGE or status.earned >= WON_BY_CHANCE


class PairSampler(Protocol):
    """Runs the mechanism on both inputs of a pair, and fits detectors on its outputs."""

    def decide_coupling(self, status: PairState) -> bool:
        """Return whether both inputs are to share random numbers; may run the mechanism."""

    def draw(self, status: PairState, size: int) -> list[Ints]:
        """Draw `size` pairs of outputs, and return the counts of their bins, a table a binning.

        Adds to `status.drawn`, and to `status.outputs` while there is room.
        """

    def look_at_first_batch(self, status: PairState) -> None:
        """Set `status.refused` by the first batch on a pair: whether its inputs are refused."""

    def fit(self, status: PairState) -> tuple[Detector, BetRecord]:
        """Return a detector fitted on the outputs of a pair, and the counts of their bins."""


class BettingLoop:
    """A running audit: a queue of pairs, a ledger of bets, and a sampler."""

    def __init__(self, queue: PairQueue, ledger: Ledger, sampler: PairSampler) -> None:
        self.queue, self.ledger, self.sampler = queue, ledger, sampler

    def play(self, pairs: float, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Play batches until the claim is refuted, or `pairs` pairs of outputs are drawn in all.

        Also ends when `should_stop`, called after each batch, returns True, and when no pair is
        left to draw on. Passes on errors of the sampler, such as OutOfTime.
        """
        while not self.ledger.is_refuted and self.queue.draw_count < pairs:
            status = self.queue.pick_pair()
            if status is None:
                return
            self.play_batch(status, int(pairs - self.queue.draw_count))
            if should_stop():
                return

    def play_batch(self, status: PairState, left: int) -> None:
        """Fix the bets on a batch of at most `left` pairs of outputs, draw it, pay out, and refit.

        Updates the wealth of the ledger, and the record, detector and edge bound of the pair.
        Nothing is bet before the first fit; refits only if outputs have doubled since the last.
        """
        size = min(left, batch_size(status, self.queue.draw_count, self.ledger))
        prior = float(max(self.queue.claimed, status.number + 1))
        portfolio = self.ledger.stake(status.record, prior) if status.binnings else None
        batch = self.draw(status, size)
        if portfolio is not None:
            before = self.ledger.log_e_value
            self.ledger.settle(portfolio, batch)
            status.earned += self.ledger.log_e_value - before
            status.record = status.record.with_batch(batch)
        if status.outputs.pairs >= REFIT_GROWTH * status.detector.pairs:
            self.refit(status)
        if not status.binnings:
            return
        growth = max(self.ledger.growth(status.record))
        status.edge_bound = edge_upper_bound(growth, status.record.pairs)

    def draw(self, status: PairState, size: int) -> list[Ints]:
        """Draw a batch without a bet on it, and return the counts of its bins.

        Before the first batch on a pair, decides whether its draws are coupled; after it, whether
        its inputs are refused.
        """
        first = not status.drawn
        if first:
            status.coupled = self.sampler.decide_coupling(status)
        batch = self.sampler.draw(status, size)
        if first:
            self.sampler.look_at_first_batch(status)
        return batch

    def refit(self, status: PairState) -> None:
        """Fit the detector of a pair anew, unless it has fewer outputs than the smallest batch.

        If bets would have won more without shared random numbers, the pair is drawn so from then
        on.
        """
        if status.outputs.pairs < MIN_BATCH:
            return
        status.detector, status.record = self.sampler.fit(status)
        if status.coupled and self.ledger.prefers_independent_draws(status.record):
            status.coupled, status.record = False, status.record.as_independent()


def batch_size(status: PairState, drawn: int, ledger: Ledger) -> int:
    """Return the pairs of outputs in the next batch on a pair; `drawn` are those on all pairs.

    12 for the first batch, and at least 8. Smaller than usual if bets are close to a refutation.
    """
    if not status.drawn:
        return FIRST_BATCH
    size = max(FIRST_BATCH, int(max(BATCH_GROWTH * status.drawn, BATCH_SHARE * drawn)))
    if status.earned <= 0:
        return size
    missing = (ledger.enough - ledger.log_e_value) * status.drawn / status.earned
    least = max(MIN_BATCH, int(LEAST_BATCH_SHARE * size))
    return max(least, min(size, int(NEXT_BATCH_FRACTION * missing)))
