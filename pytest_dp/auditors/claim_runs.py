"""Runs of a claim's mechanism that are bet on, and what is learned of their outputs."""

from __future__ import annotations

from functools import partial
from typing import cast

from pytest_dp.auditors.loss_oracle import KnownLosses
from pytest_dp.auditors.pair_state import (
    PairState,
    check_users_parts,
    draw_batch,
    model_fitter,
    outputs_to_learn,
)
from pytest_dp.auditors.pairs_in_play import ClaimPairs, look_at_first_outputs
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.betting_loop import MAX_FITTED_PAIRS
from pytest_dp.betting.detector import ByScore, Detector, fit_detector
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.ledger import BetRecord

FIRST_PAIRS_TIME = 0.05
"""Share of the time in which the loss on a pair is looked for before bets on it. Larger: bets have
less; smaller: slow mechanisms bet first."""
TIMES_NEEDED = 4.0
"""How many times as many outputs as should do may be drawn by what is known of a pair. More: what
is known wrongly takes longer; less: bad luck ends bets that would have won."""


class ClaimRuns:
    """Runs of the mechanism on the pairs of an audit, and what is learned of the outputs.

    `key` is the first part of the keys of its samples. Its bets may spend a `share` of alpha.
    """

    def __init__(
        self,
        session: Session,
        key: int,
        share: float,
        pairs: ClaimPairs,
        known: KnownLosses,
        *,
        coupled: bool,
    ) -> None:
        self.coupled, self.deadline = coupled, session.budget.deadline
        self._session, self._key, self._share = session, key, share
        self._pairs, self._known = pairs, known
        self._rank = rank_for(session.guarantee, rarest=0.0)

    def pairs_left(self, most: float) -> int:
        """Return how many pairs of outputs are left until there were so many runs."""
        return max(int(most - self._session.budget.used) // 2, 0)

    def can_couple(self, status: PairState) -> bool:
        """Return whether both inputs can be run with the same random numbers.

        Where those of a pair of the claim cannot, no others are from then on. They need not be
        where what is known of the pair decides.
        """
        budget = self._session.budget
        deadline = budget.deadline_in(FIRST_PAIRS_TIME * budget.max_seconds)
        self._known.add(status.number, status.pair, deadline)
        if not self.coupled or self._known.decides(status):
            return False
        input1, input2 = (self._pairs.pool.inputs[at] for at in (status.input1, status.input2))
        coupled = self._session.sampler.can_couple(input1, input2, self.deadline)
        if not self._pairs.is_proposed(status):
            self.coupled = coupled
        return coupled

    def draw(self, status: PairState, size: int) -> list[Ints]:
        """Draw a batch, and return its counts through the detector of the pair.

        Raises OutOfTime if the deadline has passed: runs of the batch may be too quick to see it.
        """
        if not self._session.budget.has_time(self.deadline):
            raise OutOfTime
        of_pair = self._session, self._pairs.pool, status
        return draw_batch(*of_pair, size, self._key, MAX_FITTED_PAIRS, self.deadline)

    def look_at_first_batch(self, status: PairState) -> None:
        """Look at the first batch on a pair: say whether the mechanism refuses its inputs."""
        self._propose_known_event(status)
        look_at_first_outputs(self._session, self._pairs, status)

    def _propose_known_event(self, status: PairState) -> None:
        """Bet on what breaks the claim by what is known of a pair, as long as it may win."""
        session = self._session
        left = self.pairs_left(session.budget.most_bet())
        level = self._share * session.budget.alpha
        found = self._known.proposal(status.number, level, left)
        if found is not None:
            status.proposed, status.known_edge = found.binning, found.edge
            status.known_until = TIMES_NEEDED * found.needed

    def fit(self, status: PairState) -> tuple[Detector, BetRecord]:
        """Return a detector of the outputs on a pair, and their counts through it.

        Raises OutOfTime if the deadline passes while it is learned.
        """
        return self._session.budget.compute(partial(self._fit, status), self.deadline)

    def _fit(self, status: PairState) -> tuple[Detector, BetRecord]:
        session = self._session
        table, on_d, about = outputs_to_learn(session.settings, status)
        known = [] if status.proposed is None else [status.proposed]
        model_of = model_fitter(session.settings, about)
        fitted = fit_detector(table, on_d, about, self._rank, model_of, known)
        by_score = cast("ByScore", fitted[0].binnings[0])
        check_users_parts(session.settings, status, by_score.model, about)
        return fitted
