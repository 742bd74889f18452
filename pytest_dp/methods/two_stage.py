"""Audits of fixed size: choose a pair and an event on some samples, test it once on fresh ones.

StatDP, DP-Sniper and DP-Finder differ in how they choose. No output of the search is counted in the
test. If time runs out, the search ends with the outputs drawn so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

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
from pytest_dp.statistics.count_tests import fisher_p_value
from pytest_dp.statistics.event_test import EventTest
from pytest_dp.statistics.ledger import BetRecord
from pytest_dp.statistics.power import PlannedBets, can_detect_half_noise, largest_loss

MIN_SHOWN = 1e-3
"""Loss in nats that an event shows, at least. Larger: limits are too good; smaller: infinite."""
CHANCE_ALPHA = 0.01
"""Error probability of the bounds on an event's probabilities that plan the test, and of the test
whether the event tells D from D'. Larger: too few outputs are drawn; smaller: more than needed."""
PLANNED_SHARE = 0.5
"""Share of the time for planned runs. Larger: busy machines cut off; smaller: time unused."""
MIN_TESTED = 1_000
"""Outputs on either input that are tested, at least. More take longer; fewer may be too few."""
MIN_RUNS = 20
"""Runs on either input of a pair, at least. Fewer: chance halves; more: fewer pairs are tried."""
MAX_SCORE_CUTS = 200
"""Cuts of a learned score, at most. Fewer: the best one is missed; more: a lucky one is taken."""
MAX_KEPT = 400_000
"""Outputs on each input of a pair that are kept, at most. More take memory, and teach little."""
MAX_BATCH = 50_000
"""Outputs on each input in a batch, at most. With larger batches the last one may not be kept."""
FIRST_LOOK = 12
"""Outputs on each input for the first halving, at least. Fewer: chance halves; more: less left."""
MIN_FITTED = 8
"""Outputs on each input that a score is fitted to, at least. Fewer teach nothing."""

T = TypeVar("T")


class PairSearch:
    """A search through pairs of inputs, with the outputs drawn on each pair.

    If `coupled`, both inputs of a pair share random numbers while the mechanism allows it.
    `purpose` begins the keys of the samples.
    """

    def __init__(
        self, session: Session, pairs: Sequence[Pair], purpose: Purpose, *, coupled: bool
    ) -> None:
        self.session, self.purpose, self.coupled = session, purpose, coupled
        source = PairSource(pairs)
        self.pairs = ClaimPairs(source, session.guarantee, source.given)
        self.is_decided = False
        """Whether the event to test was clear before the samples of the search were used up."""

    @property
    def pool(self) -> Pool:
        """The inputs of all pairs, with a few of the outputs on each."""
        return self.pairs.pool

    @property
    def drawn_pairs(self) -> list[PairState]:
        """The pairs that have outputs."""
        return [state for state in self.pairs.seen if state.outputs.pairs]

    @property
    def are_alike(self) -> bool:
        """True if D and D' gave equal outputs with equal random numbers, on every pair."""
        drawn = self.drawn_pairs
        return bool(drawn) and all(state.outputs.has_equal_pairs() for state in drawn)

    def begin(self, count: int, size: int, deadline: Deadline) -> list[PairState]:
        """Draw `size` outputs on both inputs of the first `count` pairs, where a pair has none yet.

        Return the pairs that the mechanism accepts. Raises OutOfTime; MechanismError if no run
        returned.
        """
        while len(self.pairs.seen) < count and (state := self.pairs.pick_new_pair()) is not None:
            if self.coupled:  # once the inputs of a pair cannot share numbers, no later pair does
                input1, input2 = (self.pool.inputs[at] for at in (state.input1, state.input2))
                self.coupled = self.session.sampler.can_couple(input1, input2, deadline)
            state.coupled = self.coupled
            self.draw(state, size, deadline)
            judge_first_outputs(self.session, self.pairs, state)
        return self.pairs.accepted_pairs

    def draw(self, state: PairState, total: int, deadline: Deadline) -> None:
        """Draw outputs until both inputs of a pair have `total`; count them if it has a score."""
        while state.drawn < total:
            size = min(total - state.drawn, MAX_BATCH)
            args = self.session, self.pool, state, size, self.purpose, MAX_KEPT, deadline
            batch = draw_batch(*args)
            if state.binnings:
                state.record = state.record.with_batch(batch)


def search_then_test(
    session: Session,
    find: Callable[[PairSearch], Witness | None],
    proof: type[EventTest],
    *,
    coupled: bool = False,
    pairs: Sequence[Pair] = (),
    share: float = 1.0,
) -> AuditResult:
    """Run the mechanism to find an event, count the event on fresh runs, and return the result.

    `find` returns the event to test, or None. If `coupled`, both inputs share random numbers in the
    search, if they can. `pairs` are searched in place of those of the claim. The test spends
    `share` (0 to 1) of alpha.

    The result is ``violated`` exactly if the test refutes the claim. It is ``inconclusive`` if time
    ran out, if there was no event to test, or if the claim was not refuted while outputs never
    varied, no event told D from D', no loss would be detected, or pairs were left out. Raises
    MechanismError if every run of the mechanism raises, if it hangs, or if violating counts are not
    independent.
    """
    sampler = session.sampler
    try:
        sampler.warm_up(Input(session.pairs[0].inputs[0]), session.budget.deadline)
        limit_to_time(session)
        search, witness, are_alike = _run_search(session, find, pairs or session.pairs, coupled)
        tested = None if witness is None else _count_held_out(search, witness, proof)
    except OutOfTime as out:
        session.budget.refuse_hung(out)
        sampler.note(
            "stopped before the test, as too little of "
            f"max_seconds={session.settings.max_seconds:g} was left for it: raise max_seconds",
            hinders=True,
        )
        return session.result("inconclusive")
    drawn, given = search.drawn_pairs, search.pairs.claimed
    if len(drawn) < given > 1:
        note_left_out(sampler, len(drawn), len(session.pairs))
    by_features = session.settings.features is not None
    is_constant = note_constant_outputs(sampler, search.pool, by_features=by_features)
    if witness is None or tested is None:
        return session.result("inconclusive", pairs=(len(drawn), given))
    tested = replace(tested, share=share * tested.share)
    result = replace(_judge_counts(search, witness, tested, proof), pairs=(len(drawn), given))
    if result.violated:
        return result
    if is_constant or len(drawn) < given:
        return replace(result, verdict="inconclusive")
    scored = [state.record for state in drawn if state.binnings]
    if scored and session.guarantee.delta:  # the event that was tested shows only a part
        loss = max(largest_loss(record, session.guarantee) for record in scored)
        result = replace(result, may_lose=loss, resolution=max(result.resolution, loss))
    if result.verdict == "no violation" and _is_blind(search, tested, are_alike):
        why = advice_on_empty(search.pool) or BLIND
        notes, hindrances = (why, *result.notes), (why, *result.hindrances)
        result = replace(result, notes=notes, hindrances=hindrances, resolution=math.inf)
        return replace(result, verdict="inconclusive", blind=True)
    return result if are_alike else _without_far_limit(session, result)


def _run_search(
    session: Session,
    find: Callable[[PairSearch], Witness | None],
    pairs: Sequence[Pair],
    coupled: bool,
) -> tuple[PairSearch, Witness | None, bool]:
    """Run a search; return the search, its event or None, and whether D and D' gave equal outputs.

    A coupled search without event, with equal outputs on D and D', is repeated with independent
    random numbers; so is one whose inputs cannot share random numbers after all (with a note).
    """
    are_alike = False
    if coupled:
        search = PairSearch(session, pairs, Purpose.SEARCH, coupled=True)
        try:
            witness = find(search)
        except CannotCouple as reason:
            session.sampler.note(f"started again without shared random numbers, as {reason}")
        else:
            are_alike = search.are_alike
            if witness is not None or not are_alike:
                return search, witness, are_alike
    search = PairSearch(session, pairs, Purpose.RESTART, coupled=False)
    return search, find(search), are_alike


def _without_far_limit(session: Session, result: AuditResult) -> AuditResult:
    """Return the result; without detection limit, with a note, if all attacks stay far below."""
    guarantee = session.guarantee
    if result.verdict != "no violation" or result.loss is None or guarantee.delta:
        return result
    most = max(result.loss[1], 0.0)
    if guarantee.noise_below(most) >= FAR_BELOW:
        return result
    session.sampler.note(note_of_far_below(guarantee, most), hinders=True)
    notes, hindrances = tuple(session.sampler.notes), tuple(session.sampler.hindrances)
    return replace(result, resolution=math.inf, far_below=most, notes=notes, hindrances=hindrances)


def limit_to_time(session: Session) -> None:
    """Reduce the sample limit if the mechanism is too slow for the time limit, and add a note.

    The new limit is a power of two, so that small differences in speed do not change the audit.
    """
    runs = session.sampler.runs + session.budget.runs_in_time(PLANNED_SHARE, quickest=True)
    if runs < session.budget.max_samples:
        session.budget.limit_samples(2 ** math.floor(math.log2(max(runs, 2))))
        session.sampler.note(
            f"a run takes {session.budget.run_text}: planned for "
            f"{session.budget.max_samples:,} samples to stay within "
            f"max_seconds={session.settings.max_seconds:g}"
        )


def samples_left_to_test(session: Session) -> int:
    """Return how many samples the sample limit and the time leave for the test."""
    return int(min(session.budget.to_test, session.budget.runs_in_time(PLANNED_SHARE)))


def _count_held_out(
    search: PairSearch, witness: Witness, proof: type[EventTest]
) -> HeldOutCounts | None:
    """Run the mechanism to count a witness on held-out samples, or return None if none are left.

    After a decided search, only as many samples are drawn as its counts say are needed.
    """
    session, runs = search.session, witness.state.outputs.pairs
    total = samples_left_to_test(session)
    if search.is_decided:
        p1 = clopper_pearson.lower(round(witness.p1 * runs), runs, CHANCE_ALPHA)
        p2 = clopper_pearson.upper(round(witness.p2 * runs), runs, CHANCE_ALPHA)
        enough = proof(session.guarantee).runs_needed(p1, p2, session.budget.alpha, total // 2)
        total = total if enough is None else min(total, 2 * max(2 * enough, MIN_TESTED))
    return held_out.count_witness(session, search.pool, witness, total)


def _judge_counts(
    search: PairSearch, witness: Witness, tested: HeldOutCounts, proof: type[EventTest]
) -> AuditResult:
    """Return the verdict by the counts of a witness, with the detection limit; may add a note.

    Raises MechanismError if violating counts are not independent.
    """
    session, c = search.session, search.session.method.c
    guarantee, claimed = session.guarantee, session.guarantee.claimed
    best = held_out.bound_by_counts(guarantee, session.budget.alpha, tested, proof)
    p_value = best.p_value * session.budget.alpha / best.alpha
    lower, loss = max(best.lower, 0.0), best.loss
    violated = lower > claimed or p_value <= session.budget.alpha
    caught = proof(guarantee).resolution(best.counts, best.alpha, c)
    if witness.largest:  # other events showed more in the search than this one does here
        four = best.counts.four
        chances = (np.array(min((hits + 0.5) / n, 1.0)) for hits, n in (four[:2], four[2:]))
        shown = max(float(EventTest(guarantee).parameter_shown(*chances)), MIN_SHOWN)
        caught *= max(1.0, witness.largest / shown)
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


def _is_blind(search: PairSearch, tested: HeldOutCounts, are_alike: bool) -> bool:
    """Return whether the tested event does not tell D from D' though enough runs were counted.

    False if D and D' gave equal outputs that can be read: then there is nothing to tell.
    """
    counts, session = tested.counts, search.session
    bets = PlannedBets(session.guarantee, min(counts.runs), session.budget.alpha)
    if fisher_p_value(counts.hits, counts.runs) < CHANCE_ALPHA or not can_detect_half_noise(bets):
        return False
    return not are_alike or bool(describe_unreadable(search.pool))


def search_by_halving(
    search: PairSearch,
    budget: float,
    deadline: Deadline,
    judge: Callable[[Sequence[PairState]], list[tuple[PairState, T]]],
    first: float = math.inf,
) -> list[tuple[PairState, T]]:
    """Draw outputs by successive halving of the pairs, and return findings on the best pairs.

    All pairs get equal numbers of outputs. Then the better half of the pairs gets more outputs, and
    so on, within a `budget` of runs. `judge` returns pairs with a finding on each, the most
    suspicious first; pairs that it leaves out are given up first. It may set `search.is_decided`,
    which ends the search, as does the deadline. All pairs are first judged by `first` outputs on
    each input, then by four times as many. Raises OutOfTime if no pair has outputs, or a run hangs.

    Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", ICML 2013.
    """
    number = min(search.pairs.claimed, max(1, int(budget / (4 * MIN_RUNS))))
    rounds = number.bit_length()
    least = min(FIRST_LOOK, budget / 2 / number)
    full = max(1, int(max(least, budget / 2 / rounds / number)))
    a_round = (budget / 2 - full * number) / max(rounds - 1, 1)
    total = int(min(first, full))
    known: Sequence[PairState] = ()
    while True:
        try:
            known = known or search.begin(number, total, deadline)
            for state in known:
                search.draw(state, total, deadline)
        except OutOfTime as out:
            if out.stack or not search.drawn_pairs:
                raise
            begun = known or search.pairs.accepted_pairs
            return judge([state for state in begun if state.outputs.pairs])
        found = judge(known)
        if search.is_decided or (total >= full and len(known) == 1):
            return found
        if total < full:
            total = min(4 * total, full)
        else:
            promising = [state for state, _ in found]
            others = [state for state in known if state not in promising]
            known = [*promising, *others][: len(known) // 2]
            total += int(a_round / len(known))


def learn_score(settings: Settings, state: PairState, deadline: Deadline) -> None:
    """Fit a score to a pair's outputs, and set its detector and counts; raise as `learn_model`."""
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = make_model_fitter(settings, about)
    fitting = partial(fit_score, table, on_d, about, fit_model, MAX_SCORE_CUTS)
    by_score, counts, means = within(deadline.remaining(), fitting)
    state.detector = Detector((by_score,), state.outputs.pairs)
    state.record = BetRecord([counts], means)
    check_user_functions(settings, state, by_score.model, about)


def learn_model(settings: Settings, state: PairState) -> Posterior:
    """Fit and return a model of which input an output on a pair came from.

    Raises ClaimError if the user's classifier or features do not look at each output by itself.
    """
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = make_model_fitter(settings, about)
    model = fit_model(table, on_d) if fit_model else fit_score(table, on_d, about)[0].model
    check_user_functions(settings, state, model, about)
    return model
