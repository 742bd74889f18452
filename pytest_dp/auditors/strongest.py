"""The strongest attack that an audit has learned, and divergences, counted on held-out samples."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from pytest_dp.auditors import held_out
from pytest_dp.auditors.held_out import MIN_SHOWN_RUNS, SHOWN_OUTPUTS
from pytest_dp.auditors.pair_state import PairState, joints_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.session import Session
from pytest_dp.auditors.witness import (
    READABLE_WORTH,
    Read,
    Witness,
    learned_witness,
    read,
    readable_witness,
    with_examples,
    witness_of,
)
from pytest_dp.betting.binning import ByScore, Reader
from pytest_dp.betting.expected_bounds import (
    Choice,
    PlannedTest,
    best_cut,
    cautious,
    first_share,
    likelier_first,
)
from pytest_dp.betting.scores import Attack
from pytest_dp.privacy import Guarantee, HockeyStick, Renyi
from pytest_dp.results.result import Distance
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.streams import Purpose
from pytest_dp.statistics.counts import Counts
from pytest_dp.statistics.divergence_bets import best_bet
from pytest_dp.statistics.event_bets import event_growth
from pytest_dp.statistics.event_test import EventTest

LOOKING_TIME = 0.5
"""Share of the time in which the strongest attack is looked for. Larger: less is left to count it;
smaller: a weaker one is counted."""
SHOWN_EXCESS = 0.4
"""Share of the excess over a claim that a bound should reach. Larger: more outputs are drawn;
smaller: bounds show less."""
MIN_PLANNED = 100
"""Runs that an attack is planned for, at least. More: slow mechanisms show nothing; fewer: chance
decides."""
MIN_COUNTED = 4_000
"""Pairs of outputs in which a divergence is counted, at least. More take longer; fewer: bounds are
wider."""
MAX_COUNTED = 50_000
"""Pairs of outputs in which a divergence is counted, at most. More take longer; fewer: bounds are
wider."""

ALIKE = (HockeyStick(0.0, 0.0),)
"""The constraint of inputs that are not told apart at all."""


@dataclass(frozen=True, slots=True)
class Strongest:
    """An attack, the pair that it was learned on, and what it counted on held-out samples.

    `tested` is None where no effort was left for them, after the claim was refuted.
    """

    state: PairState
    witness: Witness
    tested: held_out.Tested | None


def strongest(
    session: Session, pool: Pool, states: list[PairState], refuted: bool, max_runs: int
) -> Strongest | None:
    """Count the strongest attack on held-out samples; None if there is none.

    If the claim was refuted, there are as many held-out samples as a clear picture needs, and the
    attack is returned even without any; otherwise there are `max_runs`, where so many are left.
    """
    if refuted:
        max_runs = min(max_runs, max(session.budget.shown_runs, MIN_SHOWN_RUNS))
    left = int(min(max_runs, session.budget.to_test))
    if left < 2 and not refuted:
        return None
    planned = max(left, MIN_PLANNED)
    plan = session.plan(planned)
    choices = [best_threshold(state, plan) for state in states]
    best = max(range(len(states)), key=lambda i: choices[i].expected)
    state, choice = states[best], choices[best]
    readable = read_in_time(session, state, plan)
    if refuted:
        witness = _witness_of_refutation(session.guarantee, state, choice, readable)
    else:
        witness = witness_of(state, choice, readable)
    if witness is None:
        return None
    total = _samples_needed(witness, plan, left) if refuted else left
    try:
        tested = held_out.count(session, pool, witness, total, refuted=refuted, drawn=refuted)
    except OutOfTime:
        if not refuted:
            raise
        tested = None
    if tested is None and not refuted:
        return None
    with contextlib.suppress(OutOfTime):
        examples = session.budget.conclude(state.outputs.examples)
        witness = session.budget.conclude(partial(with_examples, witness, examples))
    return Strongest(state, witness, tested)


def read_in_time(session: Session, state: PairState, plan: PlannedTest) -> Read | None:
    """Return a readable event; None if there is none, or if it takes too long to find."""
    table, on_d = session.budget.compute(state.outputs.table, session.budget.deadline)
    looking = partial(read, session.settings, state, table, on_d, plan)
    try:
        return session.budget.compute(looking, session.budget.deadline, LOOKING_TIME)
    except OutOfTime:
        session.sampler.note("there was no time to look for an event that is easier to read")
        return None


def _witness_of_refutation(
    guarantee: Guarantee, state: PairState, choice: Choice, readable: Read | None
) -> Witness | None:
    """Return what shows best that the claim is broken: an event that a person can read, if it does.

    Else the learned attack of the largest bound, or the clearest one.
    """
    claimed, clearest = guarantee.claimed, _clearest(state, guarantee.hockey_sticks)
    # growth goes with the square of how many standard errors an edge is
    enough = READABLE_WORTH**2 * clearest.growth if clearest else 0.0
    if readable is not None and (
        clearest is None
        or 0 < readable.growth >= enough
        or (readable.growth > 0 and readable.unseen.expected >= choice.expected)
    ):
        witness = readable_witness(state, readable)
    elif clearest is None:
        return None
    else:
        attack = choice if choice.expected > claimed else clearest.choice
        witness = learned_witness(state, attack)
    return replace(witness, middle=_median_event(state))


def best_threshold(state: PairState, plan: PlannedTest) -> Choice:
    """Return the threshold of the pair's score with the largest bound to expect of a test."""
    binning, joint = cast("ByScore", state.binnings[0]), state.record.joint[0]
    counts1, counts2 = joint.sum(1), joint.sum(0)
    clearest = _clearest(state, ALIKE)
    if clearest is None:
        return Choice(1, math.inf, 0.5, 0.5, -math.inf)
    best = best_cut(counts1.astype(int), counts2.astype(int), binning.cuts, plan)
    return clearest.choice if best is None or best.expected == -math.inf else best


def _median_event(state: PairState) -> Attack | None:
    """The event of a score above the middle one of the record."""
    binning, joint = cast("ByScore", state.binnings[0]), state.record.joint[0]
    if not len(binning.cuts):
        return None
    below = (joint.sum(0) + joint.sum(1)).cumsum()[:-1] / (2 * joint.sum())
    return Attack(binning.model, 1, float(binning.cuts[np.argmin(np.abs(below - 0.5))]))


@dataclass(frozen=True, slots=True)
class _Clearest:
    """A threshold, its counts on the likelier input and on the other, and what bets on it gain."""

    choice: Choice
    c1: float
    c2: float
    growth: float


def _clearest(state: PairState, sticks: tuple[HockeyStick, ...]) -> _Clearest | None:
    """The threshold on which bets against these constraints gain most, if there is any.

    Where they gain on none, that which tells inputs apart best.
    """
    cuts, joint = cast("ByScore", state.binnings[0]).cuts, state.record.joint[0]
    if not len(cuts):
        return None
    total = round(float(joint.sum()))  # sums of parts may be less by rounding
    above = [joint.sum(axis)[::-1].cumsum()[::-1][1:] for axis in (1, 0)]
    below = [total - side for side in above[::-1]]
    growth = [event_growth(likelier, rarer, total, sticks) for likelier, rarer in (above, below)]
    if sticks != ALIKE and not np.max(growth) > 0:
        return replace(found, growth=0.0) if (found := _clearest(state, ALIKE)) else None
    down = bool(growth[1].max() > growth[0].max())
    k = int(np.argmax(growth[down]))
    c1, c2 = (float(side[k]) for side in (below if down else above))
    p1, p2 = cautious(np.array([c1]), total, np.array([c2]), total)
    sign = -1 if down else 1
    choice = Choice(sign, sign * float(cuts[k]), max(float(p1[0]), 1e-6), float(p2[0]), 0.0)
    return _Clearest(choice, c1, c2, float(growth[down][k]))


def _samples_needed(witness: Witness, plan: PlannedTest, left: int) -> int:
    """Samples that show clearly what the witness is worth, of those that are left."""
    claim, claimed = plan.guarantee, plan.guarantee.claimed
    p1, p2 = np.array([max(witness.p1, 1e-12)]), np.array([witness.p2])
    test = EventTest(claim)
    best, share = float(test.shows(p1, p2)[0]), first_share(p1, p2, claim)

    def needed(wanted: float, total: int) -> int:
        while total < left and best > claimed:
            n1, n2 = total * share, total * (1 - share)
            if test.predicted(p1, n1, p2, n2, plan.alpha)[0] > wanted:
                return 2 * total  # as the best of many attacks looks stronger than it is
            total *= 2
        return left

    clear = needed(claimed + SHOWN_EXCESS * min(best - claimed, 2.0), SHOWN_OUTPUTS)
    return min(clear, left)


def count_divergence(
    session: Session, pool: Pool, state: PairState, alpha: float, deadline: Deadline
) -> Distance | None:
    """A lower bound on a divergence, on held-out samples: what no single event can show.

    None if the claim bounds none, or nothing can be shown. The bet on it is fixed by what is known
    of the pair; the samples that it is settled on are drawn afterwards.
    `alpha` is the probability that the bound is too high. Raises CannotCouple if outputs were to
    share their random numbers, and turn out not to.
    """
    guarantee, record = session.guarantee, state.record
    if not guarantee.divergences or len(record.joint[0]) < 2:
        return None
    pairs = int(np.clip(4 * state.drawn, MIN_COUNTED, MAX_COUNTED))
    pairs = int(min(pairs, session.budget.to_test / 4, session.budget.shown_runs / 4))
    if pairs < 2:
        return None
    bet = best_bet(record.joint[0], record.increasing_scores, guarantee, pairs, alpha)
    draws, score = state.draws(pool, pairs, Purpose.DIVERGENCE), state.binnings[:1]
    reader = Reader(score, False, state.outputs.extract)
    parts = session.sampler.measure(draws, reader, deadline)
    (joint,) = joints_of(parts, score)
    value = bet.lower(joint, alpha)
    bounds = dict(guarantee.divergences)
    return Distance(
        guarantee.shown_by_divergence(bet.order, value),
        Renyi(bet.order, value),
        Renyi(bet.order, bounds[bet.order]),
    )


def seen_before(state: PairState, witness: Witness, event: Any, pairs: int) -> Counts:
    """How often an event came among the first `pairs` outputs on either input."""
    table, on_d = state.outputs.table()
    inside = event.mask(table)
    inside &= np.arange(len(on_d)) % state.outputs.pairs < pairs
    sides = likelier_first(witness.sign, on_d, ~on_d)
    c1, c2 = (int(np.sum(inside & side)) for side in sides)
    return Counts(c1, pairs, c2, pairs)
