"""The attack that refuted a claim, on the smallest pair that is found, counted on fresh samples.

Nothing here decides the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pytest_dp.auditors import held_out
from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.budget import DIVERGENCE_SHARE
from pytest_dp.auditors.pair_state import count_joint_bins, request_outputs
from pytest_dp.auditors.witness import Witness, add_examples, find_attack, sort_likelier_first
from pytest_dp.basics.errors import MechanismError
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.betting.detector import Reader
from pytest_dp.data.relations import OfRecords
from pytest_dp.outputs.raised import Raised
from pytest_dp.pairs import Pair
from pytest_dp.privacy import Guarantee, Renyi
from pytest_dp.protocols import Search
from pytest_dp.registry import load
from pytest_dp.results.outcome import Pictures
from pytest_dp.results.result import Counterexample, Distance
from pytest_dp.running.coupling import CannotCouple
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import Purpose
from pytest_dp.statistics.event_test import NO_COUNTS, Bound, Counts
from pytest_dp.statistics.ledger import standard_errors_against
from pytest_dp.statistics.soft_bets import best_bet

STEP_TIME = 0.5
"""Share of the report's time for smaller pairs, then for a closer look. Larger: less is counted."""
SHRINKING_SHARE = 0.25
"""Share of the samples left for smaller pairs. Larger: bounds are wider."""
MIN_SHRINKING = 2_000
"""Runs to look for smaller pairs, at least. More: a red build waits; fewer: pairs are larger."""

LEAST_EDGE = 0.5
"""Share of the broken pair's edge that a smaller pair may have. Smaller: trials take longer."""
MAX_TRIALS = 64
"""Smaller pairs that are bet on. More: a red build waits; fewer: the shown pair is larger."""
NOT_SMALLER = (
    "the search for a smaller pair was cut off: this machine is slow, or busy; run it again to see "
    "a smaller one"
)

CLOSER_LOOK = 4_000
"""Pairs of outputs on a broken pair after a closer look, at most. Fewer show less."""
TIMES_CLOSER = 40
"""The same as a multiple of those that found it. More: slow mechanisms are cut off."""
T = TypeVar("T")


def shrink_pair(bets: BettingAudit, winner: PairState) -> tuple[BettingAudit, PairState]:
    """Bet on ever smaller pairs; return the audit of the smallest that breaks the claim, and it.

    `bets` refuted the claim, and `winner` is the state of the pair with the best bets. Both are
    returned if no smaller pair is found, or if pairs or patterns of queries are given.
    """
    promise = bets.session.claim.promise
    drawer = bets.session.source.generated
    if drawer is not None:  # what its strategy cannot yield is no part of the promise
        search = _SmallerPairs(bets, winner)
        drawer.shrink(winner.pair, search.bet_on, search.seconds)
        return search.won
    is_proposed = bets.queue.is_proposed(winner)
    if promise.pairs is not None or promise.relation is None:
        return bets, winner
    if not is_proposed and not isinstance(promise.relation, OfRecords):
        return bets, winner  # the patterns of a paper, which readers know
    search = _SmallerPairs(bets, winner)
    # Records that no example holds are beyond the claim: what is red inside of it stays inside.
    mixes = bool(winner.pair.beyond) or bets.session.settings.beyond == "fail"
    with suppress(ImportError):  # without a search, the pair stays as large as it is
        smaller: Search = load("search", "inputs")
        smaller.shrink_records(winner.pair, promise.relation, search.bet_in_time, mixes=mixes)
    return search.won


class _SmallerPairs:
    """A search for smaller pairs that break the claim: one audit for each candidate.

    `won` is the audit of the smallest pair so far that breaks the claim, and the state of the pair.
    """

    def __init__(self, bets: BettingAudit, winner: PairState) -> None:
        session = bets.session
        self.session, self.won = session, (bets, winner)
        self.raises = _raises(winner)
        self.is_report_only = session.is_report_only(winner.pair)
        pairs = max(winner.record.pairs, 1)  # an edge is in deviations of a payoff
        edge = standard_errors_against(winner.record, session.guarantee) / math.sqrt(pairs)
        self.least_hope = LEAST_EDGE * edge
        self.seconds = STEP_TIME * session.budget.seconds_to_report
        self.deadline = session.budget.deadline_in(self.seconds)
        left = SHRINKING_SHARE * max(session.budget.runs_left, 0)
        self.max_runs = session.budget.runs_used + min(left, session.budget.shown_runs)
        self.runs = max(MIN_SHRINKING, 4 * 2 * winner.drawn)
        self.trials = 0

    def bet_in_time(self, pair: Pair) -> bool:
        """Return the result of `bet_on`; raise OutOfTime if samples, trials or time are up."""
        if self._is_over():
            raise OutOfTime
        return self.bet_on(pair)

    def _is_over(self) -> bool:
        """Return whether samples, trials or time are used up; add a note if time is."""
        runs = self.session.budget.runs_used + self.runs
        if self.trials >= MAX_TRIALS or runs > self.max_runs:
            return True
        if self.session.budget.has_time(self.deadline):
            return False
        self.session.sampler.note(NOT_SMALLER)
        return True

    def bet_on(self, pair: Pair) -> bool:
        """Bet on a candidate, and return whether the claim is refuted on it too; it is then `won`.

        False if the candidate is inside of the declared inputs and the first pair is not, or the
        reverse, if it raises and the first pair does not, and if time or samples are up.
        """
        pair = replace(pair, beyond=self.session.source.bounds.beyond(pair))
        if self.session.is_report_only(pair) != self.is_report_only or self._is_over():
            return False
        self.trials += 1
        runs = self.session.budget.runs_used
        bets, state = self.won
        trial = bets.on_pair(pair, coupled=state.coupled)
        try:
            trial.play(self.deadline, runs + self.runs, self.least_hope)
        except (CannotCouple, MechanismError, OutOfTime):
            return False
        (candidate,) = trial.queue.states
        broken = trial.ledger.is_refuted and _raises(candidate) <= self.raises
        if broken:
            self.won = trial, candidate
        return broken


def _raises(state: PairState) -> bool:
    """Return whether the mechanism raised in a kept run on a pair."""
    return any(isinstance(output, Raised) for output in state.outputs.examples().raw)


def show_violation(bets: BettingAudit, states: list[PairState]) -> tuple[dict[str, Any], Pair]:
    """Shrink the pair of the best bets, and count its strongest attack on held-out samples.

    Return fields of the result, and the pair that is shown. Adds a note if a search proposed it.
    """
    session = bets.session
    session.budget.start_reporting()
    broken = max(states, key=lambda state: state.earned)
    shown_of, winner = shrink_pair(bets, broken)
    if broken.pair.origin:
        is_same = broken.pair is winner.pair
        which = "this pair" if is_same else "the pair that this one was simplified from"
        session.sampler.note(f"a search proposed {which}: {broken.pair.origin}")
    fields = _counted_fields(shown_of, winner, bets)
    bets.late |= shown_of.late
    fields["outside"] = winner.pair.beyond
    fields["to_add"] = session.source.bounds.to_add(winner.pair)
    return fields, winner.pair


def _counted_fields(bets: BettingAudit, broken: PairState, played: BettingAudit) -> dict[str, Any]:
    """Count the strongest attack on a pair on held-out samples; return fields of the result.

    `bets` is the audit of the pair, `played` the one that decided the verdict. Fields are missing
    if time is up. Raises DependentRuns if the counted runs are not independent.
    """
    session, bet = bets.session, broken.outputs.pairs
    fields: dict[str, Any] = {"lower": played.ledger.lower}
    closer = session.budget.deadline_in(STEP_TIME * session.budget.seconds_to_report)
    _look_closer(bets, broken, closer)
    distance = _in_time(bets, partial(_count_divergence, bets, broken, closer))
    if distance is not None:
        fields["lower"] = max(fields["lower"], distance.lower)
    witness = find_attack_in_time(bets, [broken], session.guarantee)
    if witness is None:
        return fields
    shown, pictures = None, Pictures()
    most = max(session.budget.shown_runs, held_out.MIN_SHOWN_RUNS)
    with suppress(OutOfTime):
        total = min(most, session.budget.to_test)
        tested = held_out.count_witness(session, bets.pool, witness, total, refuted=True)
        if tested is not None:
            held_out.check_independent(session.sampler.name, witness, tested)
            if distance is not None:
                tested = replace(tested, share=tested.share * (1 - DIVERGENCE_SHARE))
            shown = held_out.bound_by_counts(session.guarantee, session.budget.alpha, tested)
            fields["strongest"] = held_out.describe_attack(shown, witness)
            fields["loss"] = shown.loss
            fields["lower"] = max(fields["lower"], shown.lower)
            pictures = held_out.make_pictures(shown, tested, violated=True)
    with suppress(OutOfTime):
        example = counterexample_in_time(bets, witness, shown, bet)
        fields["counterexample"] = replace(example, divergence=distance)
    fields["pictures"] = held_out.add_error_rates(pictures, witness)
    return fields


def _count_divergence(bets: BettingAudit, state: PairState, deadline: Deadline) -> Distance | None:
    """Draw held-out samples on a pair; return a lower bound on the divergence of its outputs.

    None if the claim bounds no divergence, or too few samples are left. The bet is fixed by past
    outputs before the samples are drawn. Raises CannotCouple if shared random numbers fail, and
    OutOfTime at the deadline.
    """
    session, record = bets.session, state.record
    guarantee, budget = session.guarantee, session.budget
    if not guarantee.divergences or len(record.joint[0]) < 2:
        return None
    pairs = int(min(budget.to_test, budget.shown_runs) / 4)
    if pairs < 2:
        return None
    alpha = DIVERGENCE_SHARE * budget.alpha
    bet = best_bet(record.joint[0], record.increasing_scores, guarantee, pairs, alpha)
    draws = request_outputs(bets.pool, state, pairs, Purpose.DIVERGENCE)
    score = state.binnings[:1]
    reader = Reader(score, False, state.outputs.extract)
    parts = session.sampler.measure(draws, reader, deadline)
    (joint,) = count_joint_bins(parts, score)
    value = bet.lower(joint, alpha)
    allowed = dict(guarantee.divergences)[bet.order]
    lower = guarantee.shown_by_divergence(bet.order, value)
    return Distance(lower, Renyi(bet.order, value), Renyi(bet.order, allowed))


def _look_closer(bets: BettingAudit, state: PairState, deadline: Deadline) -> None:
    """Draw more outputs on a broken pair, and fit its detector anew, if samples and time allow.

    Sets `bets.late` if time does not.
    """
    budget = bets.session.budget
    size = min(CLOSER_LOOK, TIMES_CLOSER * state.drawn) - state.drawn
    if not 0 < size <= budget.to_test / 4:
        return
    if not budget.has_time(deadline, 2 * size):
        bets.late = True
        return
    with suppress(OutOfTime):
        bets.draw_more(state, size, deadline)


def _in_time(bets: BettingAudit, compute: Callable[[], T]) -> T | None:
    """Run a computation that decides no verdict, and return its value; None if time is up.

    `bets.late` is then set. Raises MechanismError if the mechanism hangs and the claim stands.
    """
    try:
        return compute()
    except OutOfTime as out:
        if not bets.is_refuted:  # what is refuted stays so, shown or not
            bets.session.budget.refuse_hung(out)
        bets.late = True
        return None


def find_attack_in_time(
    bets: BettingAudit, states: list[PairState], guarantee: Guarantee
) -> Witness | None:
    """Return the result of `find_attack`, with examples of outputs if there is time for them.

    None if there is no attack, or no time to look for one, which sets `bets.late`.
    """
    session = bets.session
    witness = _in_time(bets, partial(find_attack, session, states, guarantee))
    if witness is not None:
        with suppress(OutOfTime):
            examples = session.budget.conclude(witness.state.outputs.examples)
            return session.budget.conclude(partial(add_examples, witness, examples))
    return witness


def counterexample_in_time(
    bets: BettingAudit, witness: Witness, shown: Bound | None, bet: int
) -> Counterexample:
    """Return the counterexample of a witness; raise OutOfTime if time is up.

    `shown` is the bound by held-out counts, or None; `bet` is the number of pairs of outputs that
    were bet on.
    """
    session = bets.session
    bound = shown or Bound(NO_COUNTS, session.guarantee, session.budget.alpha)

    def show() -> Counterexample:
        before = count_among_past(witness, bet)
        return held_out.counterexample(bets.pool, witness, bound, session.screened, before)

    return session.budget.conclude(show)


def count_among_past(witness: Witness, pairs: int) -> Counts:
    """Return the counts of an event among the first `pairs` past outputs on either input."""
    state = witness.state
    table, on_d = state.outputs.table()
    event: Any = witness.event
    inside = event.mask(table) & (np.arange(len(on_d)) % state.outputs.pairs < pairs)
    sides = sort_likelier_first(witness.sign, on_d, ~on_d)
    c1, c2 = (int(np.sum(inside & side)) for side in sides)
    return Counts(c1, pairs, c2, pairs)
