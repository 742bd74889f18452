"""Audits of fixed size: search on some samples, test once on held-out ones.

How many outputs are drawn on which pair depends on counts and outputs alone. Nothing is bet, and
what was drawn in a search is never tested. Where time runs out, a search ends with what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from pytest_dp.auditors import held_out
from pytest_dp.auditors.budget import agree_with_verdict
from pytest_dp.auditors.held_out import HeldOutCounts, make_pictures
from pytest_dp.auditors.pair_state import (
    BLIND,
    Pool,
    advice_on_empty,
    check_user_functions,
    describe_unreadable,
    draw_batch,
    make_model_fitter,
    note_constant_outputs,
    note_left_out,
    outputs_to_learn,
)
from pytest_dp.auditors.pairs_in_play import ClaimPairs, judge_first_outputs
from pytest_dp.auditors.session import AuditResult, Session
from pytest_dp.auditors.stopping import FAR_BELOW, note_of_far_below
from pytest_dp.auditors.witness import Witness
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.betting.detector import Detector, fit_score
from pytest_dp.betting.models import Posterior
from pytest_dp.claiming.settings import Settings
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.coupling import CannotCouple
from pytest_dp.running.deadline import Deadline, OutOfTime, within
from pytest_dp.running.generators import Purpose
from pytest_dp.statistics import clopper_pearson
from pytest_dp.statistics.count_tests import two_samples
from pytest_dp.statistics.event_test import EventTest
from pytest_dp.statistics.ledger import BetRecord
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
MIN_RUNS = 20
"""Runs on either input of a pair in a search, at least. With fewer, halves are given up by chance;
with more, fewer pairs are tried."""
MAX_SCORE_CUTS = 200
"""Cuts of a learned score, at most. A test of fixed size counts outputs beyond one cut: with fewer,
the best one is met less closely; with more, the one that was lucky is taken."""
MAX_KEPT = 400_000
"""Pairs of outputs that are kept of a pair of inputs, at most. More take memory, and teach little.
"""
MAX_BATCH = 50_000
"""Pairs of outputs in a batch, at most. With larger ones the last batch may not be kept at all."""
FIRST_LOOK = 12
"""Pairs of outputs by which pairs of inputs are compared first, at least. With fewer, halves are
given up by chance; with more, less is left for those that are suspicious."""
MIN_FITTED = 8
"""Pairs of outputs that a score is learned from, at least. Of fewer there is nothing to learn."""


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
        tested = None if witness is None else _count(search, witness, proof)
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
    is_constant = note_constant_outputs(session.sampler, search.pool, by_features=by_features)
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
        why = advice_on_empty(search.pool) or BLIND
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


def _count(search: PairSearch, witness: Witness, proof: type[EventTest]) -> HeldOutCounts | None:
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
    search: PairSearch, witness: Witness, tested: HeldOutCounts, proof: type[EventTest]
) -> AuditResult:
    """Return what the counts of a witness prove, and what they would have shown."""
    session, c = search.session, search.session.method.c
    guarantee, claimed = session.guarantee, session.guarantee.claimed
    best = held_out.bound_by_counts(guarantee, session.budget.alpha, tested, proof)
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
        p_value=agree_with_verdict(min(p_value, 1.0), session.budget.alpha, violated=violated),
        resolution=caught,
        counterexample=example,
        strongest=held_out.describe_attack(best, witness),
        loss=loss,
        pictures=make_pictures(best, tested, violated=violated),
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


def _is_blind(search: PairSearch, tested: HeldOutCounts, agree: bool) -> bool:
    """Return whether what was tested tells no inputs apart, though they differ."""
    counts, session = tested.counts, search.session
    bets = PlannedBets(session.guarantee, min(counts.runs), session.budget.alpha)
    if two_samples(counts.hits, counts.runs) < CHANCE_ALPHA or not would_show(bets):
        return False
    return not (agree or search.are_alike) or bool(describe_unreadable(search.pool))


class PairSearch:
    """Pairs of inputs under search, and what was drawn on them.

    `purpose` is the first part of the keys of its samples. `coupled` is whether both inputs may be
    run with the same random numbers.
    """

    def __init__(
        self, session: Session, pairs: Sequence[Pair], purpose: int, *, coupled: bool
    ) -> None:
        self.session, self.purpose, self.coupled = session, purpose, coupled
        source = PairSource(pairs)
        self.pairs = ClaimPairs(source, session.guarantee, source.given)
        self.is_decided = False
        """Whether no more samples were needed to choose what is to be tested."""

    @property
    def pool(self) -> Pool:
        """The inputs, and a few of the outputs on each."""
        return self.pairs.pool

    @property
    def seen(self) -> list[PairState]:
        """The pairs that outputs were drawn on."""
        return [state for state in self.pairs.seen if state.outputs.pairs]

    @property
    def are_alike(self) -> bool:
        """Return whether both inputs of all pairs gave equal outputs with equal random numbers."""
        return bool(self.seen) and all(state.outputs.alike() for state in self.seen)

    def begin(self, most: int, size: int, deadline: Deadline) -> list[PairState]:
        """Draw outputs on the first `most` pairs, and return those that are not rejected.

        Of those on which nothing was drawn before, `size` pairs of outputs each.
        """
        while len(self.pairs.seen) < most and (state := self.pairs.pick_new_pair()) is not None:
            state.coupled = self._couple(state, deadline)
            self.draw(state, size, deadline)
            judge_first_outputs(self.session, self.pairs, state)
        return self.pairs.accepted_pairs

    def draw(self, state: PairState, total: int, deadline: Deadline) -> None:
        """Draw outputs on a pair, up to `total` pairs of outputs in all."""
        while state.drawn < total:
            size = min(total - state.drawn, MAX_BATCH)
            args = self.session, self.pool, state, size, self.purpose, MAX_KEPT, deadline
            batch = draw_batch(*args)
            if state.binnings:
                state.record = state.record.with_batch(batch)

    def _couple(self, state: PairState, deadline: Deadline) -> bool:
        """Return whether both inputs can share their random numbers.

        Where those of one pair cannot, no others do from then on.
        """
        if self.coupled:
            input1, input2 = (self.pool.inputs[at] for at in (state.input1, state.input2))
            self.coupled = self.session.sampler.can_couple(input1, input2, deadline)
        return self.coupled


class Judged(Protocol):
    """A finding of a method on a pair."""

    @property
    def state(self) -> PairState:
        """The pair."""


J = TypeVar("J", bound=Judged)


def search_by_halving(
    search: PairSearch,
    budget: float,
    deadline: Deadline,
    judge: Callable[[Sequence[PairState]], list[J]],
    first: float = math.inf,
) -> list[J]:
    """Return what was found on the best pairs: those that are left after successive halving.

    All pairs get as many outputs, then the better half as many again in all, and so on, within a
    `budget` of runs. `judge` returns what was found on pairs, the most suspicious first; what is
    not among it is given up first. It may decide the search. Before that, all pairs are judged by
    `first` pairs of outputs on each, then by four times as many, and so on.

    Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", ICML 2013.
    """
    number = min(search.pairs.claimed, max(1, int(budget / (4 * MIN_RUNS))))
    rounds = number.bit_length()
    least = min(FIRST_LOOK, budget / 2 / number)
    full = max(1, int(max(least, budget / 2 / rounds / number)))
    a_round = (budget / 2 - full * number) / max(rounds - 1, 1)
    total, found = int(min(first, full)), list[J]()
    known: Sequence[PairState] = ()
    while True:
        try:
            known = known or search.begin(number, total, deadline)
            for state in known:
                search.draw(state, total, deadline)
        except OutOfTime as out:
            if out.stack or not search.seen:
                raise
            return judge(
                [state for state in known or search.pairs.accepted_pairs if state.outputs.pairs]
            )
        found = judge(known)
        if search.is_decided or (total >= full and len(known) == 1):
            return found
        if total < full:
            total = min(4 * total, full)
        else:
            promising = [one.state for one in found]
            rest = [state for state in known if state not in promising]
            known = [*promising, *rest][: len(known) // 2]
            total += int(a_round / len(known))


def learn_score(settings: Settings, state: PairState, deadline: Deadline) -> None:
    """Learn a score of the outputs on a pair, and count them through it."""
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = make_model_fitter(settings, about)
    fitting = partial(fit_score, table, on_d, about, fit_model, MAX_SCORE_CUTS)
    by_score, counts, means = within(deadline.remaining(), fitting)
    state.detector = Detector((by_score,), state.outputs.pairs)
    state.record = BetRecord([counts], means)
    check_user_functions(settings, state, by_score.model, about)


def learn_model(settings: Settings, state: PairState) -> Posterior:
    """Return a model of which input an output of a pair came from, learned from all of them."""
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = make_model_fitter(settings, about)
    model = fit_model(table, on_d) if fit_model else fit_score(table, on_d, about)[0].model
    check_user_functions(settings, state, model, about)
    return model
