"""Audits of fixed size: search on some samples, test once on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pytest_dp.auditors import held_out
from pytest_dp.auditors.audit_result import AuditResult
from pytest_dp.auditors.budget import agreeing
from pytest_dp.auditors.held_out import Tested, pictures_of
from pytest_dp.auditors.pair_state import blind, cannot_be_read, never_varies, note_left_out
from pytest_dp.auditors.session import Session
from pytest_dp.auditors.stopping import FAR_BELOW, note_of_far_below
from pytest_dp.auditors.witness import Witness
from pytest_dp.methods.searching import PairSearch
from pytest_dp.pairs import Pair
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.per_run import CannotCouple
from pytest_dp.running.streams import Purpose
from pytest_dp.statistics import clopper_pearson
from pytest_dp.statistics.assumptions import two_samples
from pytest_dp.statistics.event_test import EventTest
from pytest_dp.statistics.power import PlannedBets, largest_loss, would_show

MIN_SHOWN = 1e-3
"""Loss in nats that an event shows, at least: smaller ones count as this one."""
CHANCE_ALPHA = 0.01
"""Error of the bounds on the event's probabilities, by which samples are planned, and of the test
whether it tells inputs apart. Larger: too few are drawn; smaller: more than needed."""
PLANNED_SHARE = 0.5
"""Share of the time for which runs are planned: on a busy machine they take longer. A larger one
cuts audits off; a smaller one leaves time unused."""
MIN_TESTED = 1_000
"""Outputs on either input that are tested, at least. More take longer; with fewer, the plan may be
too short."""


def search_then_test(
    session: Session,
    find: Callable[[PairSearch], Witness | None],
    proof: type[EventTest],
    *,
    coupled: bool = False,
    pairs: Sequence[Pair] = (),
    share: float = 1.0,
) -> AuditResult:
    """Run an audit in two stages.

    `find` returns what is to be tested, if anything; that is counted once, on held-out samples.
    `coupled` is whether the search may run both inputs with the same random numbers. `pairs` are
    looked at in place of those of the claim. The test may spend a `share` of alpha.

    The result is ``violated`` exactly if the proof refutes the claim. It is ``inconclusive`` if
    time ran out, if nothing could be tested, if nothing tells inputs apart, or if nothing was shown
    while outputs never varied or some pairs were left out. Raises MechanismError if every run of
    the mechanism raises, or if it hangs.
    """
    try:
        session.sampler.warm_up(Input(session.pairs[0].inputs[0]), session.budget.deadline)
        limit_to_time(session)
        search, witness, agree = _run_search(session, find, pairs or session.pairs, coupled)
        tested = None if witness is None else _count_witness(search, witness, proof)
    except OutOfTime as out:
        session.budget.refuse_hung(out)
        session.sampler.note(
            "stopped before the test, as too little of "
            f"max_seconds={session.settings.max_seconds:g} was left for it: raise max_seconds",
            hinders=True,
        )
        return session.result("inconclusive")
    seen = len(search.seen), search.pairs.claimed
    if seen[0] < seen[1] > 1:
        note_left_out(session.sampler, seen[0], len(session.pairs))
    by_features = session.settings.features is not None
    is_constant = never_varies(session.sampler, search.pool, by_features=by_features)
    says_nothing = is_constant or seen[0] < seen[1]
    if witness is None or tested is None:
        return session.result("inconclusive", pairs=seen)
    tested = replace(tested, share=share * tested.share)
    result = replace(_conclude(search, witness, tested, proof), pairs=seen)
    if says_nothing and not result.violated:
        return replace(result, verdict="inconclusive")
    known = [state.record for state in search.seen if state.binnings]
    if known and session.guarantee.delta and not result.violated:  # the event tested is but one
        now = max(largest_loss(record, session.guarantee) for record in known)
        result = replace(result, may_lose=now, resolution=max(result.resolution, now))
    if result.verdict == "no violation" and _is_blind(search, tested, agree):
        why = blind(search.pool)
        notes, hindrances = (why, *result.notes), (why, *result.hindrances)
        unknown = replace(result, notes=notes, hindrances=hindrances, resolution=math.inf)
        return replace(unknown, verdict="inconclusive", blind=True)
    return result if agree or search.are_alike else _without_far_limit(session, result)


def _without_far_limit(session: Session, result: AuditResult) -> AuditResult:
    """Return the result, without a detection limit where no attack comes near the claim.

    Beside a delta, one event shows only a part of the loss.
    """
    guarantee = session.guarantee
    if result.verdict != "no violation" or result.loss is None or guarantee.delta:
        return result
    most = max(result.loss[1], 0.0)
    if guarantee.noise_below(most) >= FAR_BELOW:
        return result
    session.sampler.note(note_of_far_below(guarantee, most), hinders=True)
    said = tuple(session.sampler.notes), tuple(session.sampler.hindrances)
    return replace(result, resolution=math.inf, far_below=most, notes=said[0], hindrances=said[1])


def limit_to_time(session: Session) -> None:
    """Plan for fewer samples if the mechanism is too slow for all of them; a note says so.

    By powers of two, and by the quickest run so far: neither small differences in speed nor the
    first calls, which are slow, should change what is done.
    """
    runs = session.sampler.runs + session.budget.runs_in_time(PLANNED_SHARE, quickest=True)
    if runs < session.budget.max_samples:
        session.budget.limit_samples(2 ** math.floor(math.log2(max(runs, 2))))
        session.sampler.note(
            f"a run takes {session.budget.run_text}: planned for "
            f"{session.budget.max_samples:,} samples to stay within "
            f"max_seconds={session.settings.max_seconds:g}"
        )


def left_to_test(session: Session) -> int:
    """Return how many samples are left for the test, and that there is time for."""
    return int(min(session.budget.to_test, session.budget.runs_in_time(PLANNED_SHARE)))


def _count_witness(search: PairSearch, witness: Witness, proof: type[EventTest]) -> Tested | None:
    """Count a witness on held-out samples: as many as the search says are needed, if it does."""
    session, runs = search.session, witness.state.outputs.pairs
    total = left_to_test(session)
    if search.is_decided:
        p1 = clopper_pearson.lower(round(witness.p1 * runs), runs, CHANCE_ALPHA)
        p2 = clopper_pearson.upper(round(witness.p2 * runs), runs, CHANCE_ALPHA)
        enough = proof(session.guarantee).runs_needed(p1, p2, session.budget.alpha, total // 2)
        total = total if enough is None else min(total, 2 * max(2 * enough, MIN_TESTED))
    return held_out.count_witness(session, search.pool, witness, total)


def _conclude(
    search: PairSearch, witness: Witness, tested: Tested, proof: type[EventTest]
) -> AuditResult:
    """Return what the counts of a witness prove, and what they would have shown."""
    session = search.session
    c = session.method.c
    guarantee, claimed = session.guarantee, session.guarantee.claimed
    best = held_out.bound_of(guarantee, session.budget.alpha, tested, proof)
    p_value = best.p_value * session.budget.alpha / best.alpha
    lower, loss = max(best.lower, 0.0), best.loss
    violated = lower > claimed or p_value <= session.budget.alpha
    caught = proof(guarantee).resolution(best.counts, best.alpha, c)
    if witness.largest:  # where there is little to find, an event may show less than was seen
        four = best.counts.four
        chances = (np.array(min((c + 0.5) / n, 1.0)) for c, n in (four[:2], four[2:]))
        caught *= max(
            1.0, witness.largest / max(float(EventTest(guarantee).shows(*chances)), MIN_SHOWN)
        )
    verdict: Verdict = "violated" if violated else "no violation"
    example = None
    if violated:
        held_out.check_independent(session.sampler.name, witness, tested)
        example = held_out.counterexample(search.pool, witness, best, session.screened)
    elif math.isinf(caught):
        verdict = "inconclusive"
        if c is not None and c * math.exp(guarantee.eps or 0.0) >= 1:
            session.sampler.note(
                f"an event with c={c:g} cannot show a loss above {-math.log(c):.2g}: give a "
                "smaller c, or leave it out",
                hinders=True,
            )
    return session.result(
        verdict,
        lower=lower,
        p_value=agreeing(min(p_value, 1.0), session.budget.alpha, violated=violated),
        resolution=caught,
        counterexample=example,
        strongest=held_out.describe_attack(best, witness),
        loss=loss,
        pictures=pictures_of(best, tested, violated=violated),
    )


def _run_search(
    session: Session,
    find: Callable[[PairSearch], Witness | None],
    pairs: Sequence[Pair],
    coupled: bool,
) -> tuple[PairSearch, Witness | None, bool]:
    """Return a search, what it found, and whether both inputs gave the same outputs.

    Where they did with the same random numbers, nothing can be learned from such outputs.
    """
    agree = False
    if coupled:
        search = PairSearch(session, pairs, Purpose.SEARCH, coupled=True)
        try:
            witness = find(search)
        except CannotCouple as reason:
            session.sampler.note(f"started again without shared random numbers, as {reason}")
        else:
            agree = search.are_alike
            if witness is not None or not agree:
                return search, witness, agree
    search = PairSearch(session, pairs, Purpose.RESTART, coupled=False)
    return search, find(search), agree


def _is_blind(search: PairSearch, tested: Tested, agree: bool) -> bool:
    """Return whether what was tested tells no inputs apart, though they differ."""
    counts, session = tested.counts, search.session
    bets = PlannedBets(session.guarantee, min(counts.runs), session.budget.alpha)
    if two_samples(counts.hits, counts.runs) < CHANCE_ALPHA or not would_show(bets):
        return False
    return not (agree or search.are_alike) or bool(cannot_be_read(search.pool))
