"""After a claim is refuted: the smallest pair of inputs on which it can be refuted again.

Nothing here decides the verdict. What is shown in the end is counted on held-out samples, whichever
pair it is of.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.pair_state import PairState, edge
from pytest_dp.basics.errors import MechanismError
from pytest_dp.data.relations import OfRecords, Pair
from pytest_dp.outputs.raised import Raised
from pytest_dp.protocols import Search
from pytest_dp.registry import load
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.per_run import CannotCouple

SHRINKING_TIME = 0.5
"""Share of the time for what is shown in which smaller pairs are looked for. Larger: bounds are
wider; smaller: pairs are larger."""
SHRINKING_SHARE = 0.25
"""Share of the samples that are left in which smaller pairs are looked for. Larger: bounds are
wider; smaller: pairs are larger."""
MIN_SHRINKING = 2_000
"""Runs in which smaller pairs are looked for, at least. More: a red build waits; fewer: pairs are
larger."""

MAX_TRIALS = 64
"""Pairs on which it is tried to refute the claim again. More: a violation is told later; fewer: the
pair that is shown is larger."""
CUT_OFF = (
    "the search for a smaller pair was cut off: this machine is slow, or busy; run it again to see "
    "a smaller one"
)


def shrink_pair(bets: BettingAudit, winner: PairState) -> tuple[BettingAudit, PairState]:
    """Return the bets on the smallest pair found to break the claim, and this pair.

    `bets` refuted the claim, and `winner` is the pair that was bet on best. Return both unchanged
    if no smaller pair breaks the claim.
    """
    promise = bets.session.claim.promise
    drawer = bets.session.source.generated
    if drawer is not None:  # what its strategy cannot yield is no part of the promise
        search = _Search(bets, winner)
        drawer.shrunk(winner.pair, search.breaks, search.seconds)
        return search.won
    is_proposed = bets.queue.is_proposed(winner)
    if promise.pairs is not None or promise.relation is None:
        return bets, winner
    if not is_proposed and not isinstance(promise.relation, OfRecords):
        return bets, winner  # the patterns of a paper, which readers know
    search = _Search(bets, winner)
    # Records that no example holds are beyond the claim: what is red inside of it stays inside.
    mixes = bool(winner.pair.beyond) or bets.session.settings.beyond == "fail"
    with suppress(ImportError):  # without a search, the pair stays as large as it is
        smaller: Search = load("search", "inputs")
        smaller.shrunk(winner.pair, promise.relation, search.breaks_in_time, mixes=mixes)
    return search.won


class _Search:
    """Plays for one pair after the other, as long as there is time."""

    def __init__(self, bets: BettingAudit, winner: PairState) -> None:
        session = bets.session
        self.session, self.won = session, (bets, winner)
        self.raises = _raises(winner)
        self.only_told = session.is_report_only(winner.pair)
        self.least_hope = 0.5 * edge(winner.record, session.guarantee)
        self.seconds = SHRINKING_TIME * session.budget.seconds_to_report
        self.deadline = session.budget.deadline_in(self.seconds)
        left = SHRINKING_SHARE * max(session.budget.left, 0)
        self.max_runs = session.budget.used + min(left, session.budget.shown_runs)
        self.runs = max(MIN_SHRINKING, 4 * 2 * winner.drawn)
        self.trials = 0

    def breaks_in_time(self, pair: Pair) -> bool:
        """Return the result of `breaks`; raise OutOfTime if no time or no samples are left."""
        if self._is_over():
            raise OutOfTime
        return self.breaks(pair)

    def _is_over(self) -> bool:
        """Return whether samples or trials are used up, or time; a note says so of time."""
        runs = self.session.budget.used + self.runs
        if self.trials >= MAX_TRIALS or runs > self.max_runs:
            return True
        if self.session.budget.has_time(self.deadline):
            return False
        self.session.sampler.note(CUT_OFF)
        return True

    def breaks(self, pair: Pair) -> bool:
        """Return whether the claim is refuted on this pair too, and in the same way."""
        pair = replace(pair, beyond=self.session.source.bounds.beyond(pair))
        if self.session.is_report_only(pair) != self.only_told or self._is_over():
            return False
        self.trials += 1
        runs = self.session.budget.used
        bets, state = self.won
        trial = bets.on_pair(pair, coupled=state.coupled)
        try:
            trial.play(self.deadline, runs + self.runs, self.least_hope)
        except (CannotCouple, MechanismError, OutOfTime):
            return False
        (candidate,) = trial.queue.states
        broken = trial.ledger.refuted and _raises(candidate) <= self.raises
        if broken:
            self.won = trial, candidate
        return broken


def _raises(state: PairState) -> bool:
    """Return whether a kept output is an exception, as for an input that is too small."""
    return any(isinstance(output, Raised) for output in state.outputs.examples().raw)
