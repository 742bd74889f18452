"""Betting: search and test on the same samples, until the claim is refuted or effort runs out.

A `betting_audit` bets batch by batch; wealth that reaches 1 / alpha refutes the claim
(`pytest_dp.statistics.ledger`). The event of a violation is then counted on held-out samples, to be
shown (`concluding`).

Where the mechanism's random numbers can be set, both outputs of a pair are drawn with the same
ones: only the noise that their inputs do not share is then left to tell apart.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018 (correlated draws).
"""

from __future__ import annotations

from dataclasses import replace

from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.budget import COUPLED_SHARE
from pytest_dp.auditors.concluding import conclude, with_what_is_beyond
from pytest_dp.auditors.loss_oracle import losses_of
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.per_run import CannotCouple
from pytest_dp.running.row_aligned import TRIAL_RUNS
from pytest_dp.running.streams import Purpose


def audit(session: Session) -> AuditFinding:
    """Audit one claim by betting against it.

    The result is ``violated`` exactly if the p-value, which holds at any time, is at most alpha. It
    is ``inconclusive`` if the outputs never vary, if there were not enough samples for every pair,
    or if there were too few to catch anything.

    Raises ClaimError if the user's classifier or features cannot be used on the mechanism's
    outputs, and MechanismError if every run of the mechanism raises, or if it hangs.
    """
    try:
        session.sampler.warm_up(Input(session.pairs[0].inputs[0]), session.budget.deadline)
    except OutOfTime as out:
        session.budget.refuse_hung(out)
    screened = session.source.screener.screen()
    session = replace(session, screened=screened)
    if screened.note and not (screened.screened and screened.is_enough):
        done = f"only {screened.screened:,} pairs were" if screened.screened else "no pair was"
        session.sampler.note(f"{done} run without noise, as {screened.note}")
    known = losses_of(session)
    session.sampler.looked += 2 * TRIAL_RUNS  # which were traced
    start = BettingAudit.on_claim
    if not session.method.coupled:
        return _play_and_conclude(start(session, Purpose.BET, 1.0, known, coupled=False))
    try:
        bets = start(session, Purpose.BET, COUPLED_SHARE, known, coupled=True)
        return _play_and_conclude(bets)
    except CannotCouple as reason:  # so all that was won is worth nothing
        session.sampler.note(f"started again without shared random numbers, as {reason}")
        bets = start(session, Purpose.RESTART, 1 - COUPLED_SHARE, known, coupled=False)
        bets.known.against = str(reason)
        return _play_and_conclude(bets)


def _play_and_conclude(bets: BettingAudit) -> AuditFinding:
    try:
        bets.play(bets.session.budget.bets_deadline())
    except OutOfTime as out:
        bets.session.budget.refuse_hung(out)
        bets.late = True
    bets.rest_on_what_is_known()
    bets.play_beyond(bets.session.budget.bets_deadline())
    return with_what_is_beyond(bets, conclude(bets))
