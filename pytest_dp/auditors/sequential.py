"""Betting: search and test on the same samples, until the claim is refuted or effort runs out.

A `betting_audit` bets batch by batch; wealth that reaches 1 / alpha refutes the claim
(`pytest_dp.statistics.ledger`). The event of a violation is then counted on held-out samples, to be
shown (`violation_shown`).

Where the mechanism's random numbers can be set, both outputs of a pair are drawn with the same
ones: only the noise that their inputs do not share is then left to tell apart.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018 (correlated draws).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.budget import COUPLED_SHARE, agree_with_verdict
from pytest_dp.auditors.held_out import CUT_OFF, add_error_rates, describe_counts
from pytest_dp.auditors.pair_state import (
    BLIND,
    advice_on_empty,
    describe_unreadable,
    note_constant_outputs,
    note_left_out,
)
from pytest_dp.auditors.pairs_in_play import OTHER_OUTPUTS, load_known_losses
from pytest_dp.auditors.session import AuditFinding, AuditResult, Session
from pytest_dp.auditors.stopping import DetectionPower, note_of_far_below
from pytest_dp.auditors.violation_shown import (
    count_among_past,
    counterexample_in_time,
    find_attack_in_time,
    show_violation,
)
from pytest_dp.auditors.witness import ALIKE
from pytest_dp.basics.errors import MechanismError
from pytest_dp.basics.reprs import SHORT_LENGTH, plural
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.counterexample import in_one_sentence
from pytest_dp.data import describe
from pytest_dp.pairs.unreached import line_in_words, lines_in_words
from pytest_dp.results.outcome import Estimate, Pictures
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.coupling import TRIAL_RUNS, CannotCouple
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.generators import Purpose
from pytest_dp.statistics.power import (
    DELTAS,
    are_distinguishable,
    can_detect_half_noise,
    rarest_leak,
)

NO_DIFFERENCE = (
    "with the same random numbers, both inputs of every pair gave the same outputs: do the inputs "
    "differ in anything that the mechanism looks at?"
)
TOO_FEW = (
    "too few samples to distinguish the two inputs of any pair, for any loss of the mechanism: "
    "raise max_samples or max_seconds"
)
WAYS_TO_BE_QUICKER = (
    "vectorized=, if one call can give many outputs; inputs of fewer records; composes=, if parts "
    "of it have claims of their own; a larger max_seconds, for runs at night"
)


def audit(session: Session) -> AuditFinding:
    """Audit the claim of a session by betting against it, and return the finding.

    The result is ``violated`` exactly if the p-value, which holds at any time, is at most alpha. It
    is ``inconclusive`` if the outputs never vary, if there were not enough samples for every pair,
    if too few to catch anything, or if a known loss above the claim is not shown by bets.

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
    known = load_known_losses(session)
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
    """Play an audit on the claim, then one outside of the declared inputs; return the finding.

    Raises MechanismError if the mechanism hangs, and CannotCouple if shared random numbers fail.
    """
    try:
        bets.play(bets.session.budget.bets_deadline())
    except OutOfTime as out:
        bets.session.budget.refuse_hung(out)
        bets.late = True
    bets.rest_on_known_losses()
    bets.play_outside(bets.session.budget.bets_deadline())
    return add_violation_outside(bets, conclude(bets))


def conclude(bets: BettingAudit) -> AuditFinding:
    """Return the finding of bets that were played: the verdict, and the strongest attack.

    For a refuted claim, shrinks the pair and counts the attack on held-out samples. Inconclusive if
    no pair has a detector and no pass rests on known losses.
    """
    session, known = bets.session, bets.known
    facts, states = _facts_of_bets(bets), bets.learned_pairs()
    if not states and not known.runs:
        _note_if_late(bets)
        return AuditFinding(session.result("inconclusive", **facts))
    if not bets.is_refuted:
        return AuditFinding(_result_of_kept_claim(bets, states, facts))
    shown, pair = show_violation(bets, states)
    # after the counts, as it may take some of the samples that are left
    loss, not_exact = known.estimate(bets.sampled_pairs, violated=True)
    if loss is not None and shown["lower"] > loss.value + loss.error:
        loss, not_exact = None, OTHER_OUTPUTS
    _note_if_late(bets)
    _note_cheaper_claim(bets)
    facts |= shown | {"estimate": loss, "not_exact": not_exact}
    return AuditFinding(session.result("violated", p_value=_p_value(bets), **facts), pair)


def add_violation_outside(bets: BettingAudit, finding: AuditFinding) -> AuditFinding:
    """Return the finding with a violation outside of the declared inputs as `beyond`, if any.

    Only if the claim itself is not violated. Counts the violation on held-out samples; if the
    mechanism raises or hangs meanwhile, adds a note instead.
    """
    result, session, outside = finding.result, bets.session, bets.outside
    if result.violated or outside is None or not outside.is_refuted:
        return finding
    known = [s for s in outside.sampled_pairs if s.binnings and session.is_report_only(s.pair)]
    said = len(session.sampler.notes)
    try:
        shown, pair = show_violation(outside, known)
    except MechanismError as error:
        session.sampler.note(f"{error} That happened outside the declared inputs")
        return replace(finding, result=replace(result, notes=tuple(session.sampler.notes)))
    facts = shown | {"e_value": outside.e_value, "bet_samples": 2 * outside.draw_count}
    beyond = session.result("violated", p_value=_p_value(outside), **facts)
    beyond = replace(beyond, notes=beyond.notes[said:], hindrances=(), earlier_runs=0)
    return AuditFinding(result, beyond=AuditFinding(beyond, pair))


def _p_value(bets: BettingAudit) -> float:
    """Return the p-value of the claim, at most alpha exactly if the claim is refuted."""
    alpha = bets.session.budget.alpha
    return agree_with_verdict(min(bets.p_value, 1.0), alpha, violated=bets.is_refuted)


def _facts_of_bets(bets: BettingAudit) -> dict[str, Any]:
    """Return fields of the result on bets and pairs; add a note if some pairs were not tried."""
    session, claimed = bets.session, bets.queue.claimed
    seen = min(len(bets.sampled_pairs), claimed)
    outside = [] if bets.outside is None else bets.outside.sampled_pairs
    if seen < claimed > 1 and not bets.is_refuted:
        note_left_out(session.sampler, seen, len(session.pairs))
    return {
        "e_value": bets.e_value,
        "bet_samples": bets.earlier.samples + (0 if bets.refuted_before else 2 * bets.draw_count),
        "evidence": None if session.earlier is None else bets.evidence,
        "pairs": (seen, claimed),
        "proposed": len(bets.sampled_pairs) - seen + len(outside),
        "stopped_early": bets.satisfied,
    }


def _result_of_kept_claim(
    bets: BettingAudit, states: list[PairState], facts: dict[str, Any]
) -> AuditResult:
    """Return the result of a claim that was not refuted, and note the worth of a pass.

    The verdict is "no violation" or "inconclusive". `facts` are the fields so far; more are added.
    """
    session, known = bets.session, bets.known
    _note_searched(bets)
    facts |= {"p_value": _p_value(bets), "unreached": _note_unreached(bets)}
    facts["lower"], seen = bets.ledger.lower, ""
    if not known.runs:
        seen = _add_strongest(bets, states, facts)
    loss, facts["not_exact"] = known.estimate(bets.sampled_pairs, violated=False)
    if loss is not None and not known.runs and facts["lower"] > loss.value + loss.error:
        loss, facts["not_exact"] = None, OTHER_OUTPUTS
    _note_if_late(bets)
    by_features = session.settings.features is not None
    if note_constant_outputs(session.sampler, bets.pool, by_features=by_features):  # it notes why
        return session.result("inconclusive", **facts)
    if known.runs:
        resolution = math.inf if loss is None else loss.value
        return session.result("no violation", estimate=loss, resolution=resolution, **facts)
    _note_cheaper_claim(bets)
    caught = bets.detection_power
    facts |= {"estimate": loss, "resolution": caught.at, **_delta_fields(bets, caught)}
    if loss is not None and loss.pairs == bets.queue.claimed:
        facts["may_lose"] = None  # as it is known
    elif caught.is_far_below(session.guarantee) and not _are_alike(bets, states):
        facts |= {"far_below": caught.now, "resolution": math.inf}
    verdict = _verdict_by_samples(bets, states, caught, facts, seen)
    return session.result(verdict, **facts)


def _verdict_by_samples(
    bets: BettingAudit,
    states: list[PairState],
    caught: DetectionPower,
    facts: dict[str, Any],
    seen: str,
) -> Verdict:
    """Return the verdict on a claim that no known loss decides, and note the worth of a pass.

    Inconclusive if a known loss is above the claim, if no violation would have been caught, or if
    no event distinguishes any inputs. `seen` is a sentence on where a known loss is above the
    claim. Adds fields to `facts`.
    """
    session, known = bets.session, bets.known
    if suspects := known.pairs_above_claim():
        facts["estimate"], suspicion = known.describe_suspicion()
        d1, d2 = (describe(data, SHORT_LENGTH) for data in suspects[0].pair.inputs)
        seen = seen or f"That is the loss on D = {d1} and D' = {d2}"
        said = ". ".join(part for part in (suspicion, seen, known.cheaper_claim()) if part)
        session.sampler.note(said, hinders=True, first=True)
        return "inconclusive"
    loss: Estimate | None = facts["estimate"]
    if _is_blind(bets, states, caught.by_bets, estimated=loss is not None):
        facts |= {"blind": True, "resolution": math.inf}
        return "inconclusive"
    if math.isinf(caught.by_bets):
        return "inconclusive"
    if "far_below" in facts:
        said = note_of_far_below(session.guarantee, caught.now, advice_on_empty(bets.pool))
        session.sampler.note(said, hinders=True)
        return "no violation"
    if facts["may_lose"] is None or (known.against and known.is_within):
        why = known.against or "real runs did not agree with it on all pairs that were tried"
        session.sampler.note(f"the grade rests on samples, not on the computed loss: {why}")
    margin, now = session.settings.margin, facts["may_lose"] or session.guarantee.claimed
    if bets.satisfied and session.guarantee.noise_below(now) <= margin:
        session.sampler.note(
            f"stopped at the margin: noise {margin:g} times too small would have been caught"
        )
    return "no violation"


def _delta_fields(bets: BettingAudit, caught: DetectionPower) -> dict[str, Any]:
    """Return fields on losses not ruled out; add a note if leaks near delta may go unseen."""
    session = bets.session
    fields = {"may_lose": caught.now, "rarest": caught.rarest, "misses_delta": False}
    if caught.sees_delta(session.guarantee):
        return fields
    with_all_samples = bets.plan_bets(session.settings.max_samples / max(2 * bets.draw_count, 1))
    fields["misses_delta"] = rarest_leak(with_all_samples) <= DELTAS * session.guarantee.delta
    more = "more" if fields["misses_delta"] else "no affordable number of"
    session.sampler.note(
        f"leaks {DELTAS} times as likely as delta={session.guarantee.delta:g} may go unseen: "
        f"{more} runs could show them"
    )
    return fields


def _add_strongest(bets: BettingAudit, states: list[PairState], facts: dict[str, Any]) -> str:
    """Add the strongest attack, with its counts among outputs that were bet on, to `facts`.

    Return a sentence on the attack if a known loss on its pair is above the claim; "" if not, or if
    there is no attack or no time.
    """
    suspects = bets.known.pairs_above_claim()
    states = [state for state in states if state in suspects] or states
    witness = find_attack_in_time(bets, states, ALIKE)
    if witness is None:
        return ""
    pairs = witness.state.outputs.pairs
    counts = count_among_past(witness, pairs)
    facts["strongest"] = f"{describe_counts(counts, witness)}, as bet on"
    facts["pictures"] = add_error_rates(Pictures(), witness)
    if witness.state in suspects:
        with suppress(OutOfTime):
            return in_one_sentence(counterexample_in_time(bets, witness, None, pairs))
    return ""


def _is_blind(
    bets: BettingAudit, states: list[PairState], caught: float, *, estimated: bool
) -> bool:
    """Return whether no event distinguishes the inputs of any pair, though a loss would show.

    False if the loss is known (`estimated`), or both inputs always gave equal outputs. Adds a note
    on the reason if nothing distinguishes them.
    """
    sampler = bets.session.sampler
    if any(are_distinguishable(state.record) for state in states):
        return False
    if _are_alike(bets, states):
        sampler.note(NO_DIFFERENCE, hinders=True)
    elif not can_detect_half_noise(bets.plan_bets()):
        if math.isfinite(caught):
            sampler.note(TOO_FEW, hinders=True)
    elif not estimated:
        sampler.note(advice_on_empty(bets.pool) or BLIND, hinders=True)
        return True
    return False


def _are_alike(bets: BettingAudit, states: list[PairState]) -> bool:
    """Return whether equal random numbers always gave equal, readable outputs on both inputs."""
    return not describe_unreadable(bets.pool) and all(
        state.outputs.has_equal_pairs() for state in states
    )


def _note_cheaper_claim(bets: BettingAudit) -> None:
    """Add a note on a claim that needs fewer runs, if there is one."""
    if advice := bets.known.cheaper_claim():
        bets.session.sampler.note(advice)


def _note_if_late(bets: BettingAudit) -> None:
    """Add notes if time ended an audit: which work was left out, and ways to be quicker."""
    session, queue = bets.session, bets.queue
    if not bets.late:
        return
    if session.budget.report_deadline is not None and session.budget.seconds_before_limit > 0:
        session.sampler.note(CUT_OFF)
        return
    unseen = queue.claimed - len([state for state in queue.seen_given if state.binnings])
    left = [f"{unseen:,} of {plural(queue.claimed, 'pair')} not looked at well"] * (unseen > 0)
    left += ["the search for further inputs not finished"] * (not queue.source.is_exhausted)
    session.sampler.note(
        f"cut off after max_seconds={session.settings.max_seconds:g}, with "
        f"{session.sampler.runs:,} of {session.budget.max_samples:,} samples"
        + "".join(f"; {part}" for part in left)
    )
    if not bets.satisfied:
        session.sampler.note(f"what may help an audit that takes long: {WAYS_TO_BE_QUICKER}")


def _note_searched(bets: BettingAudit) -> None:
    """Add notes on the pairs that a search proposed, and on obstacles of the search."""
    proposed = bets.queue.source.proposed_by
    if proposed:
        parts = ", ".join(f"{count:,} by {name}" for name, count in proposed.items())
        total = plural(sum(proposed.values()), "more pair")
        bets.session.sampler.note(f"a search proposed {total}: {parts}")
    for note in bets.queue.source.notes():
        bets.session.sampler.note(note)


def _note_unreached(bets: BettingAudit) -> tuple[str, ...]:
    """Return places in the mechanism's code that no input reached, as text; add a note if any."""
    places = bets.queue.source.screener.find_unreached_lines()
    if places:
        bets.session.sampler.note(lines_in_words(places), hinders=True)
    return tuple(map(line_in_words, places))
