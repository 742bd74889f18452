"""The betting loop: pick a pair, fix the bets on its next batch, draw it, pay out, learn, stop.

How many outputs a batch has, and which pair it is drawn on, depends on counts and on past outputs
alone. Where time runs out, the sampler raises, and what was won until then stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.detector import Detector
from pytest_dp.betting.pair_queue import PairQueue, PairStatus, S, edge_upper_bound
from pytest_dp.statistics.ledger import BetRecord, Ledger

FIRST_BATCH = 12
"""Pairs of outputs in the first batch on a pair of inputs. More: gross violations take longer;
fewer: there is nothing to learn from."""
BATCH_GROWTH = 0.2
"""The next batch, as a share of the pairs of outputs drawn on that pair of inputs. Larger: bets
learn later; smaller: more time goes into bets."""
BATCH_SHARE = 0.04
"""The same as a share of all pairs of outputs, so that late pairs are not drawn in tiny batches."""
NEXT_BATCH_FRACTION = 0.5
"""Of the pairs of outputs that should do to win, the share that a batch has at most. Larger: more
outputs are drawn than were needed; smaller: more time goes into bets."""
LEAST_BATCH_SHARE = 0.1
"""Share of its usual size that a batch has at least, however little should do to win. Larger: more
outputs are drawn than were needed; smaller: more time goes into bets."""
MIN_BATCH = 8
"""Pairs of outputs that a batch has at least. Larger and smaller: the same."""
REFIT_GROWTH = 2.0
"""Growth of the outputs of a pair until its detector is fitted anew. Larger: bets stay with a
detector of few outputs (with 4.0, a rare value in one of 100 numbers is found 1 time in 4);
smaller: more time goes into fits."""
MAX_FITTED_PAIRS = 40_000
"""Pairs of outputs that a detector is fitted on. More take longer and hardly teach more."""

SContra = TypeVar("SContra", bound=PairStatus, contravariant=True)


class PairSampler(Protocol[SContra]):
    """Runs the mechanism on both inputs of a pair, and learns from the outputs."""

    def can_couple(self, status: SContra) -> bool:
        """Return whether both inputs can be run with the same random numbers."""

    def draw(self, status: SContra, size: int) -> list[Ints]:
        """Draw a batch, and return its counts through the detector of the pair.

        It adds them to the number of those drawn, and to the outputs of the pair if there is room.
        """

    def look_at_first_batch(self, status: SContra) -> None:
        """Look at the first batch on a pair: say whether the mechanism refuses its inputs."""

    def fit(self, status: SContra) -> tuple[Detector, BetRecord]:
        """Return a detector of the outputs on a pair, and their counts through it."""


class BettingLoop(Generic[S]):
    """An audit under way: a queue of pairs, a ledger, and a sampler."""

    def __init__(self, queue: PairQueue[S], ledger: Ledger, sampler: PairSampler[S]) -> None:
        self.queue, self.ledger, self.sampler = queue, ledger, sampler

    def play(self, pairs: float, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Bet until the claim is refuted, so many pairs of outputs are drawn, or it should stop."""
        while not self.ledger.refuted and self.queue.drawn < pairs:
            status = self.queue.pick()
            if status is None:
                return
            self.play_batch(status, int(pairs - self.queue.drawn))
            if should_stop():
                return

    def play_batch(self, status: S, left: int) -> None:
        """Fix the bets on a batch, draw it, pay out, and learn from it."""
        size = min(left, batch_size(status, self.queue.drawn, self.ledger))
        prior = float(max(self.queue.claimed, status.number + 1))
        portfolio = self.ledger.stake(status.record, prior) if status.binnings else None
        batch = self.draw(status, size)
        if portfolio is not None:
            before = self.ledger.log_e_value
            self.ledger.settle(portfolio, batch)
            status.earned += self.ledger.log_e_value - before
            status.record = status.record.with_batch(batch)
        if status.outputs.pairs >= REFIT_GROWTH * status.learned:
            self.refit(status)
        if not status.binnings:
            return
        growth = max(self.ledger.growth(status.record))
        status.edge_bound = edge_upper_bound(growth, status.record.pairs)
        if status.is_known_to_win:
            status.edge_bound = max(status.edge_bound, status.known_edge)

    def draw(self, status: S, size: int) -> list[Ints]:
        """Draw a batch on which nothing more can be bet, and return its counts."""
        first = not status.drawn
        if first:
            status.coupled = self.sampler.can_couple(status)
        batch = self.sampler.draw(status, size)
        if first:
            self.sampler.look_at_first_batch(status)
        return batch

    def refit(self, status: S) -> None:
        """Fit the detector anew; draw independently from then on where that would win more.

        Of fewer outputs than the smallest batch nothing is learned.
        """
        if status.outputs.pairs < MIN_BATCH:
            return
        status.detector, status.record = self.sampler.fit(status)
        if status.coupled and self.ledger.prefers_apart(status.record):
            status.coupled, status.record = False, status.record.as_independent()


def batch_size(status: PairStatus, drawn: int, ledger: Ledger) -> int:
    """Return the size of the next batch on a pair, of `drawn` pairs of outputs in all."""
    if not status.drawn:
        return FIRST_BATCH
    size = max(FIRST_BATCH, int(max(BATCH_GROWTH * status.drawn, BATCH_SHARE * drawn)))
    if status.earned <= 0:
        return size
    missing = (ledger.enough - ledger.log_e_value) * status.drawn / status.earned
    least = max(MIN_BATCH, int(LEAST_BATCH_SHARE * size))
    return max(least, min(size, int(NEXT_BATCH_FRACTION * missing)))
