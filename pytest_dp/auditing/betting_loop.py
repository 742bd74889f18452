"""The betting loop: pick a pair, fix the bets on its next batch, draw it, pay out, learn, stop.

How many outputs a batch has, and which pair it is drawn on, depends on counts and on past outputs
alone. Where time runs out, the sampler raises, and what was won until then stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_dp.arrays import Bools, Ints
from pytest_dp.auditing.detector import fit_detector
from pytest_dp.auditing.pair_queue import PairQueue, PairStatus, edge_upper_bound
from pytest_dp.auditing.power import Power, power_of
from pytest_dp.outputs.event_search import Rank
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table
from pytest_dp.statistics.ledger import Ledger

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
"""Share of its usual size that a batch has at least, however little should do to win."""
REFIT_GROWTH = 4.0
"""Growth of the outputs of a pair until its detector is fitted anew. Larger: bets stay with a
detector of few outputs; smaller: more time goes into fits."""
MAX_FITTED_PAIRS = 40_000
"""Pairs of outputs that a detector is fitted on. More take longer and hardly teach more."""
MIN_PAIRS_TO_STOP = 8_000
"""Pairs of outputs before a claim may stand: a value that is released once in a thousand runs then
came three times, with a probability of 99 %."""
CHECK_GROWTH = 1.15
"""Growth of all pairs of outputs between two looks at the power. Smaller: looks take time."""


class PairSampler(Protocol):
    """Runs the mechanism on both inputs of a pair."""

    def can_couple(self, status: PairStatus) -> bool:
        """Return whether both inputs can be run with the same random numbers."""

    def draw(self, status: PairStatus, size: int, *, keep: bool) -> list[Ints]:
        """Draw a batch, and return its counts through the detector of the pair.

        Its outputs are added to those of the pair if they are to be kept.
        """

    def is_rejected(self, status: PairStatus) -> bool:
        """Return whether the mechanism refuses an input of the pair, by its first batch."""


class FeatureSource(Protocol):
    """Says which features of outputs on a pair of inputs are looked at."""

    def __call__(self, status: PairStatus, table: Table, on_d: Bools) -> Sequence[Feature]:
        """Return the features of these outputs."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an audit may use, in counts."""

    pairs: int
    """Pairs of outputs."""
    wanted_power: float | None
    """How many times too small noise should have been caught before an audit may stop; None if it
    should use all pairs of outputs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the bets have come to."""

    refuted: bool
    lower: float
    """Lower bound on the claim's parameter."""
    log_e_value: float
    p_value: float
    drawn: int
    """Pairs of outputs."""
    power: Power | None
    """What would have been caught; None if that was not asked for."""


class BettingLoop:
    """An audit under way: a queue of pairs, a ledger, and a sampler."""

    def __init__(
        self,
        queue: PairQueue,
        ledger: Ledger,
        sampler: PairSampler,
        features: FeatureSource,
        rank: Callable[[int], Rank],
    ) -> None:
        self.queue, self.ledger, self.sampler = queue, ledger, sampler
        self._features, self._rank = features, rank
        self._next_check = float(MIN_PAIRS_TO_STOP)
        self._power: Power | None = None

    def play(self, budget: Budget) -> None:
        """Bet until the claim is refuted, enough would have been caught, or the budget is used."""
        while not self.ledger.refuted and self.queue.drawn < budget.pairs:
            status = self.queue.pick()
            if status is None:
                return
            self._play_batch(status, budget.pairs - self.queue.drawn)
            if budget.wanted_power is not None and self._may_stop(budget.wanted_power):
                return

    @property
    def outcome(self) -> Outcome:
        """What the bets have come to by now."""
        ledger = self.ledger
        return Outcome(
            ledger.refuted,
            ledger.lower,
            ledger.log_e_value,
            ledger.p_value,
            self.queue.drawn,
            self._power,
        )

    def _play_batch(self, status: PairStatus, left: int) -> None:
        """Fix the bets on a batch, draw it, pay out, and learn from it."""
        first = not status.drawn
        if first:
            status.coupled = self.sampler.can_couple(status)
        size = min(left, batch_size(status, self.queue.drawn, self.ledger))
        prior = float(max(self.queue.given, status.number + 1))
        portfolio = self.ledger.stake(status.record, prior) if status.detector.binnings else None
        keep = status.outputs.pairs + size <= MAX_FITTED_PAIRS and status.outputs.has_room(size)
        batch = self.sampler.draw(status, size, keep=keep)
        status.drawn += size
        status.batches += 1
        if first:
            status.rejected = self.sampler.is_rejected(status)
        if portfolio is not None:
            before = self.ledger.log_e_value
            self.ledger.settle(portfolio, batch)
            status.earned += self.ledger.log_e_value - before
            status.record = status.record.with_batch(batch)
        if status.outputs.pairs >= REFIT_GROWTH * status.detector.pairs:
            self._refit(status)
        growth = max(self.ledger.growth(status.record))
        status.edge_bound = edge_upper_bound(growth, status.record.pairs, status.detector.pairs)

    def _refit(self, status: PairStatus) -> None:
        """Fit the detector anew; draw independently from then on where that would win more."""
        table, on_d = status.outputs.table()
        features = self._features(status, table, on_d)
        status.detector, status.record = fit_detector(table, on_d, features, self._rank)
        if status.coupled and self.ledger.prefers_apart(status.record):
            status.coupled, status.record = False, status.record.as_independent()

    def _may_stop(self, wanted: float) -> bool:
        """Return whether noise that is `wanted` times too small would have been caught."""
        if self.queue.unseen or self.queue.drawn < self._next_check:
            return False
        self._next_check = CHECK_GROWTH * self.queue.drawn
        records = [status.record for status in self.queue.seen[: self.queue.given]]
        self._power = power_of(records, self.ledger)
        return self._power.noise_caught <= wanted


def batch_size(status: PairStatus, drawn: int, ledger: Ledger) -> int:
    """Return the size of the next batch on a pair, of `drawn` pairs of outputs in all."""
    if not status.drawn:
        return FIRST_BATCH
    size = max(FIRST_BATCH, int(max(BATCH_GROWTH * status.drawn, BATCH_SHARE * drawn)))
    if status.earned <= 0:
        return size
    missing = (ledger.enough - ledger.log_e_value) * status.drawn / status.earned
    least = max(1, int(LEAST_BATCH_SHARE * size))
    return max(least, min(size, int(NEXT_BATCH_FRACTION * missing)))
