"""The end of a sequential audit: the verdict, and the strongest attack as it is shown.

The verdict follows from the bets alone. The attack that refuted a claim is counted once more, on
held-out samples.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pytest_dp.auditors import held_out, presentation
from pytest_dp.auditors.audit_notes import (
    note_if_late,
    note_origin,
    note_searched,
    note_unreached,
)
from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.budget import DIVERGENCE_SHARE, agreeing
from pytest_dp.auditors.loss_oracle import OTHER_OUTPUTS
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pool import (
    blind,
    cannot_be_read,
    nearly_empty,
    never_varies,
    note_left_out,
)
from pytest_dp.auditors.presentation import attack_of, pictures_of
from pytest_dp.auditors.session import AuditFinding
from pytest_dp.auditors.smaller_pair import shrink_pair
from pytest_dp.auditors.stopping import (
    Caught,
    note_of_far_below,
)
from pytest_dp.auditors.strongest import (
    add_examples,
    count_attack,
    count_divergence,
    find_attack,
    seen_before,
)
from pytest_dp.auditors.witness import ALIKE, Witness
from pytest_dp.basics.errors import MechanismError
from pytest_dp.basics.reprs import SHORT_LENGTH
from pytest_dp.counterexample import in_one_sentence
from pytest_dp.data import describe
from pytest_dp.results.pictures import Pictures
from pytest_dp.results.result import Counterexample, Distance, Verdict
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.statistics.event_test import NO_COUNTS, Bound
from pytest_dp.statistics.power import DELTAS, differs, would_show

CLOSER_LOOK = 4_000
"""Pairs of outputs by which a broken pair is looked at once more, at most. More take longer; fewer
show less."""
TIMES_CLOSER = 40
"""The same as a multiple of those by which it was found. More: slow mechanisms are cut off; fewer
show less."""
CLOSER_TIME = 0.5
"""Share of the time to tell after which that is cut off. Larger: less is counted; smaller: what is
counted shows less."""

T = TypeVar("T")

NO_DIFFERENCE = (
    "with the same random numbers, both inputs of every pair gave the same outputs: do the inputs "
    "differ in anything that the mechanism looks at?"
)
TOO_FEW = (
    "too few samples to distinguish the two inputs of any pair, for any loss of the mechanism: "
    "raise max_samples or max_seconds"
)


def conclude(bets: BettingAudit) -> AuditFinding:
    """Return the verdict of the bets, and the strongest attack: counted anew if it refuted."""
    session = bets.session
    facts = _bets(bets)
    known = bets.learned_pairs()
    if not known and not bets.known.runs:
        note_if_late(bets)
        return AuditFinding(session.result("inconclusive", **facts))
    violated = bets.refuted
    claimed = bets.queue.claimed
    caught = bets.caught
    if violated:
        shown = _refuted_fields(bets, known)
    else:
        note_searched(bets)
        facts["unreached"] = note_unreached(bets)
        is_known = bets.known.runs
        shown = {"lower": bets.ledger.lower} if is_known else _standing_fields(bets, known)
    # last, as it may take some of the samples that are left
    facts["estimate"], facts["not_exact"] = bets.known.estimate(bets.seen, violated=violated)
    known_loss = facts["estimate"]
    is_passed = bets.known.runs and not violated
    if (
        known_loss is not None
        and not is_passed
        and shown["lower"] > known_loss.value + known_loss.error
    ):
        facts["estimate"], facts["not_exact"] = None, OTHER_OUTPUTS
    note_if_late(bets)
    seen, pair = shown.pop("seen", ""), shown.pop("pair", None)
    if (advice := bets.known.cheaper_claim()) and not bets.known.runs:
        session.sampler.note(advice)
    if not violated and not bets.known.runs:
        facts |= _of_delta(bets, caught)
        if (loss := facts["estimate"]) is not None and loss.pairs == claimed:
            facts["may_lose"] = None  # as it is known
        elif caught.is_far_below(session.guarantee) and not _are_alike(bets, known):
            facts["far_below"] = caught.now
    verdict: Verdict = (
        "violated" if violated else _not_refuted(bets, known, caught.by_bets, facts, seen)
    )
    result = session.result(
        verdict,
        p_value=agreeing(min(bets.p_value, 1.0), session.budget.alpha, violated=violated),
        resolution=known_loss.value
        if is_passed and known_loss is not None
        else _resolution(caught.at, facts),
        stopped_early=bets.satisfied,
        **facts,
        **shown,
    )
    return AuditFinding(result, pair)


def _resolution(caught: float, facts: dict[str, Any]) -> float:
    """Return what would have been caught: nothing where that is not to be relied on."""
    return math.inf if facts.get("blind") or "far_below" in facts else caught


def with_what_is_beyond(bets: BettingAudit, finding: AuditFinding) -> AuditFinding:
    """Return what was found of a claim that stands, with what breaks it beyond what it gives."""
    result = finding.result
    if result.violated or not bets.is_broken_beyond:
        return finding
    session, bets = bets.session, bets.beyond()
    known = [state for state in bets.seen if state.binnings and session.is_report_only(state.pair)]
    said = len(session.sampler.notes)
    try:
        shown = _refuted_fields(bets, known)
    except MechanismError as error:
        session.sampler.note(f"{error} That happened outside the declared inputs")
        return replace(finding, result=replace(result, notes=tuple(session.sampler.notes)))
    pair = shown.pop("pair")
    beyond = session.result(
        "violated",
        p_value=agreeing(min(bets.p_value, 1.0), session.budget.alpha, violated=True),
        e_value=bets.e_value,
        bet_samples=2 * bets.drawn,
        **shown,
    )
    beyond = replace(beyond, notes=beyond.notes[said:], hindrances=(), earlier_runs=0)
    return AuditFinding(result, beyond=AuditFinding(beyond, pair))


def _refuted_fields(bets: BettingAudit, known: list[PairState]) -> dict[str, Any]:
    """Return fields of the result of a claim that is refuted on one of these pairs."""
    bets.session.budget.start_reporting()
    broken = max(known, key=lambda state: state.earned)
    shown_of, winner = shrink_pair(bets, broken)
    note_origin(bets, broken, winner)
    shown = _counted_fields(shown_of, winner, bets)
    bets.late |= shown_of.late
    shown["pair"] = winner.pair
    shown["outside"] = winner.pair.beyond
    shown["to_add"] = bets.session.source.bounds.to_add(winner.pair)
    return shown


def _bets(bets: BettingAudit) -> dict[str, Any]:
    """Return fields of the result that tell of the bets; what was left out is noted."""
    session, claimed = bets.session, bets.queue.claimed
    seen, beyond = min(len(bets.seen), claimed), bets.beyond()
    proposed = len(bets.seen) - seen + (len(beyond.seen) if beyond is not bets else 0)
    if seen < claimed > 1 and not bets.refuted:
        note_left_out(session.sampler, seen, len(session.pairs))
    return {
        "e_value": bets.e_value,
        "bet_samples": bets.earlier.samples + (0 if bets.refuted_before else 2 * bets.drawn),
        "evidence": None if session.earlier is None else bets.evidence,
        "pairs": (seen, claimed),
        "proposed": proposed,
    }


def _not_refuted(
    bets: BettingAudit, known: list[PairState], caught: float, facts: dict[str, Any], seen: str
) -> Verdict:
    """Return the verdict on a claim that stands, with notes on what it is worth.

    `seen` is the sentence on where a claim is suspect.

    It is inconclusive if no violation would have been caught, if nothing tells inputs apart, which
    is told in `facts`, and if outputs never vary: then nothing else is worth telling, and no
    estimate is left there.
    """
    session = bets.session
    by_features = session.settings.features is not None
    if never_varies(session.sampler, bets.pool, by_features=by_features):  # it notes why
        facts["estimate"] = None
        return "inconclusive"
    if bets.known.runs:
        return "no violation"
    if suspects := bets.known.suspects():
        facts["estimate"], suspicion = bets.known.suspicion()
        pair = suspects[0].pair
        d1, d2 = (describe(data, SHORT_LENGTH) for data in pair.inputs)
        seen = seen or f"That is the loss on D = {d1} and D' = {d2}"
        advice = bets.known.cheaper_claim()
        said = ". ".join(part for part in (suspicion, seen, advice) if part)
        session.sampler.note(said, hinders=True, first=True)
        return "inconclusive"
    facts["blind"] = _is_blind(bets, known, caught, estimated=facts["estimate"] is not None)
    if facts["blind"] or math.isinf(caught):
        return "inconclusive"
    if "far_below" in facts:
        said = note_of_far_below(session.guarantee, facts["far_below"], nearly_empty(bets.pool))
        session.sampler.note(said, hinders=True)
        return "no violation"
    loss, checks = facts["estimate"], bets.known
    is_computed = loss is not None and loss.pairs == bets.queue.claimed
    if is_computed or (checks.against and checks.is_within):
        why = checks.against or "real runs did not agree with it on all pairs that were tried"
        session.sampler.note(f"the grade rests on samples, not on the computed loss: {why}")
    margin, now = session.settings.margin, facts.get("may_lose") or session.guarantee.claimed
    if bets.satisfied and session.guarantee.noise_below(now) <= margin:
        session.sampler.note(
            f"stopped at the margin: noise {margin:g} times too small would have been caught"
        )
    return "no violation"


def _of_delta(bets: BettingAudit, caught: Caught) -> dict[str, Any]:
    """Return fields of the result of a claim that stands: what it may lose now, and rare leaks."""
    session = bets.session
    fields = {"may_lose": caught.now, "rarest": caught.rarest, "misses_delta": False}
    if caught.sees(session.guarantee):
        return fields
    runs = session.settings.max_samples
    fields["misses_delta"] = bets.could_see_delta(runs / max(2 * bets.drawn, 1))
    said = f"leaks {DELTAS} times as likely as delta={session.guarantee.delta:g} may go unseen: "
    more = "more runs would show them" if fields["misses_delta"] else "no affordable number of"
    session.sampler.note(said + more + ("" if fields["misses_delta"] else " runs could show them"))
    return fields


def _counted_fields(bets: BettingAudit, broken: PairState, played: BettingAudit) -> dict[str, Any]:
    """Return fields of the result of a refuted claim: the strongest attack, on held-out samples.

    `bets` is that of the pair to show, and `played` is the bets that decided the verdict.
    """
    session = bets.session
    alpha, bet = session.budget.alpha, broken.outputs.pairs
    fields: dict[str, Any] = {"lower": played.ledger.lower}
    distance = _in_time(bets, partial(_divergence, bets, broken))
    if distance is not None:
        fields["lower"] = max(fields["lower"], distance.lower)
    witness = _in_time(bets, partial(find_attack, session, [broken], session.guarantee))
    if witness is None:
        return fields
    shown, tested = None, count_attack(session, bets.pool, witness)
    witness = add_examples(session, witness)
    if tested is not None:
        held_out.check_independent(session.sampler.name, witness, tested)
        if distance is not None:
            tested = replace(tested, share=tested.share * (1 - DIVERGENCE_SHARE))
        shown = held_out.bound_of(session.guarantee, alpha, tested)
        fields["strongest"] = presentation.describe_attack(shown, witness)
        fields["loss"] = shown.loss
        fields["lower"] = max(fields["lower"], shown.lower)
    with contextlib.suppress(OutOfTime):
        example = _counterexample(bets, witness, shown, bet)
        fields["counterexample"] = replace(example, divergence=distance)
    pictures = pictures_of(shown, tested, violated="counterexample" in fields)
    fields["pictures"] = _with_curve(pictures, witness)
    return fields


def _standing_fields(bets: BettingAudit, known: list[PairState]) -> dict[str, Any]:
    """Return fields of the result of a claim that stands: the strongest attack, as bets saw it."""
    session, suspects = bets.session, bets.known.suspects()
    known = [state for state in known if state in suspects] or known
    fields: dict[str, Any] = {"lower": bets.ledger.lower}
    witness = _in_time(bets, partial(find_attack, session, known, ALIKE))
    if witness is None:
        return fields
    witness = add_examples(session, witness)
    counts = seen_before(witness, witness.event, witness.state.outputs.pairs)
    fields["strongest"] = presentation.describe_seen_attack(counts, witness)
    if witness.state in suspects:
        with contextlib.suppress(OutOfTime):
            example = _counterexample(bets, witness, None, witness.state.outputs.pairs)
            fields["seen"] = in_one_sentence(example)
    fields["pictures"] = _with_curve(Pictures(), witness)
    return fields


def _with_curve(pictures: Pictures, witness: Witness) -> Pictures:
    """Return the pictures with the error rates of every threshold of the learned score."""
    joint = witness.state.record.joint
    return replace(pictures, attack=attack_of(joint[0], witness.sign)) if joint else pictures


def _is_blind(
    bets: BettingAudit, known: list[PairState], caught: float, *, estimated: bool
) -> bool:
    """Return whether no feature distinguishes the inputs of any pair, though one should.

    Return False if both inputs always gave the same outputs with the same random numbers, or if the
    loss is `estimated` otherwise. Note why no difference was found.
    """
    sampler = bets.session.sampler
    if any(differs(state.record) for state in known):
        return False
    if _are_alike(bets, known):
        sampler.note(NO_DIFFERENCE, hinders=True)
    elif not would_show(bets.planned()):
        if math.isfinite(caught):
            sampler.note(TOO_FEW, hinders=True)
    elif not estimated:
        sampler.note(blind(bets.pool), hinders=True)
        return True
    return False


def _are_alike(bets: BettingAudit, known: list[PairState]) -> bool:
    """Return whether both inputs always gave the same outputs, with the same random numbers."""
    return not cannot_be_read(bets.pool) and all(state.outputs.alike() for state in known)


def _counterexample(
    bets: BettingAudit, witness: Witness, shown: Bound | None, bet: int
) -> Counterexample:
    """Return the counterexample that is shown; `bet` pairs of outputs were bet on."""
    seen = partial(seen_before, witness, pairs=bet)
    session = bets.session
    bound = shown or Bound(NO_COUNTS, session.guarantee, session.budget.alpha)
    screened = session.screened
    show = partial(presentation.counterexample, bets.pool, witness, bound, screened, seen)
    return bets.session.budget.conclude(show)


def _in_time(bets: BettingAudit, compute: Callable[[], T]) -> T | None:
    """Return the outcome of a computation that is only shown; None if there is no time for it."""
    try:
        return compute()
    except OutOfTime as out:
        if not bets.refuted:  # what is refuted stays so, shown or not
            bets.session.budget.refuse_hung(out)
        bets.late = True
        return None


def _divergence(bets: BettingAudit, winner: PairState) -> Distance | None:
    """Return how far apart the outputs on the pair that was bet on best are as a whole."""
    deadline = bets.session.budget.reporting_deadline(CLOSER_TIME)
    with contextlib.suppress(OutOfTime):
        bets.look_closer(winner, min(CLOSER_LOOK, TIMES_CLOSER * winner.drawn), deadline)
    alpha = DIVERGENCE_SHARE * bets.session.budget.alpha
    return count_divergence(bets.session, bets.pool, winner, alpha, deadline)
