"""Betting: search and test on the same samples, until the claim is refuted or effort runs out.

A `betting_audit` bets batch by batch; wealth that reaches 1 / alpha refutes the claim
(`pytest_dp.statistics.ledger`). What was found is then counted once more on held-out samples, to be
shown (`concluding`).

Where the mechanism's random numbers can be set, both outputs of a pair are drawn with the same
ones: only the noise that their inputs do not share is then left to tell apart.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018 (correlated draws).
"""

from __future__ import annotations

from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.concluding import conclude, with_what_is_beyond
from pytest_dp.auditors.context import RESERVE, Context
from pytest_dp.auditors.known import Known, known_of
from pytest_dp.auditors.result import AuditResult
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.per_run import CannotCouple
from pytest_dp.running.row_aligned import TRIAL_RUNS
from pytest_dp.running.streams import Purpose

COUPLED_SHARE = 0.95
"""Share of alpha for bets on coupled draws; what is left is for a start without them."""


def audit(context: Context) -> AuditResult:
    """Audit one claim by betting against it.

    The result is ``violated`` exactly if the p-value, which holds at any time, is at most alpha. It
    is ``inconclusive`` if the outputs never vary, if there were not enough samples for every pair,
    or if there were too few to catch anything.

    Raises ClaimError if the user's classifier or features cannot be used on the mechanism's
    outputs, and MechanismError if every run of the mechanism raises, or if it hangs.
    """
    try:
        context.sampler.warm_up(Input(context.pairs[0].inputs[0]), context.deadline)
    except OutOfTime as out:
        context.refuse_hung(out)
    context.screened = screened = context.source.screener.screen()
    if screened.note and not (screened.screened and screened.is_enough):
        done = f"only {screened.screened:,} pairs were" if screened.screened else "pairs were not"
        context.sampler.note(f"{done} screened by runs without noise, as {screened.note}")
    known = known_of(context)
    context.sampler.looked += 2 * TRIAL_RUNS  # which were traced
    start = BettingAudit.on_claim
    if not context.method.coupled:
        return _play_and_conclude(start(context, Purpose.BET, 1.0, known, coupled=False), known)
    try:
        bets = start(context, Purpose.BET, COUPLED_SHARE, known, coupled=True)
        return _play_and_conclude(bets, known)
    except CannotCouple as reason:  # so all that was won is worth nothing
        context.sampler.note(f"started again without shared random numbers, as {reason}")
        bets = start(context, Purpose.RESTART, 1 - COUPLED_SHARE, known, coupled=False)
        bets.bearing_out.against = str(reason)
        return _play_and_conclude(bets, known)


def _play_and_conclude(bets: BettingAudit, known: Known) -> AuditResult:
    try:
        bets.play(bets.context.deadline.sooner(1 - RESERVE))
    except OutOfTime as out:
        bets.context.refuse_hung(out)
        bets.late = True
    bets.rest_on_what_is_known()
    bets.play_beyond(bets.context.deadline.sooner(1 - RESERVE))
    return with_what_is_beyond(bets, conclude(bets, known))
