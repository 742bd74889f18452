"""The strongest attack that an audit has learned, and what held-out samples show of a violation."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.auditors import held_out
from pytest_dp.auditors.held_out import MIN_SHOWN_RUNS
from pytest_dp.auditors.pair_state import PairState, joints_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.session import Session
from pytest_dp.auditors.witness import (
    Witness,
    choose_witness,
    learned_witness,
    likelier_first,
    read_event,
    with_examples,
)
from pytest_dp.betting.detector import Reader
from pytest_dp.privacy import Guarantee, Renyi
from pytest_dp.results.result import Distance
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.streams import Purpose
from pytest_dp.statistics.event_test import Counts
from pytest_dp.statistics.soft_bets import best_bet

LOOKING_TIME = 0.5
"""Share of the time in which the strongest attack is looked for. Larger: less is left to count it;
smaller: a weaker one is counted."""
MIN_COUNTED = 4_000
"""Pairs of outputs in which a divergence is counted, at least. More take longer; fewer: bounds are
wider."""
MAX_COUNTED = 50_000
"""Pairs of outputs in which a divergence is counted, at most. More take longer; fewer: bounds are
wider."""


def find_attack(session: Session, states: list[PairState], guarantee: Guarantee) -> Witness | None:
    """Return the strongest attack on a guarantee that was learned of some pairs; None if none was.

    It is a readable event where bets on it grow nearly as fast as on the learned score.
    """
    learned = [learned_witness(state, guarantee) for state in states]
    best = max(range(len(states)), key=lambda k: ((found := learned[k]) and found.growth) or 0.0)
    return choose_witness(learned[best], read_in_time(session, states[best], guarantee))


def count_attack(session: Session, pool: Pool, witness: Witness) -> held_out.Tested | None:
    """Return the counts of an attack that refuted the claim, on held-out samples.

    There are as many as a clear picture needs, a number fixed beforehand; None if there is no time
    for them, or if no samples are left.
    """
    most = max(session.budget.shown_runs, MIN_SHOWN_RUNS)
    with contextlib.suppress(OutOfTime):
        total = min(most, session.budget.to_test)
        return held_out.count_witness(session, pool, witness, total, refuted=True)
    return None


def add_examples(session: Session, witness: Witness) -> Witness:
    """Return the attack with outputs inside and outside of it, if there is time for them."""
    with contextlib.suppress(OutOfTime):
        examples = session.budget.conclude(witness.state.outputs.examples)
        return session.budget.conclude(partial(with_examples, witness, examples))
    return witness


def read_in_time(session: Session, state: PairState, guarantee: Guarantee) -> Witness | None:
    """Return a readable event; None if there is none, or if it takes too long to find."""
    table, on_d = session.budget.compute(state.outputs.table, session.budget.deadline)
    looking = partial(read_event, session.settings, state, table, on_d, guarantee)
    try:
        return session.budget.compute(looking, session.budget.deadline, LOOKING_TIME)
    except OutOfTime:
        session.sampler.note("there was no time to look for an event that is easier to read")
        return None


def count_divergence(
    session: Session, pool: Pool, state: PairState, alpha: float, deadline: Deadline
) -> Distance | None:
    """Return a lower bound on a divergence, on held-out samples: what no single event can show.

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


def seen_before(witness: Witness, event: Any, pairs: int) -> Counts:
    """Return how often an event came among the first `pairs` outputs on either input."""
    state = witness.state
    table, on_d = state.outputs.table()
    inside = event.mask(table)
    inside &= np.arange(len(on_d)) % state.outputs.pairs < pairs
    sides = likelier_first(witness.sign, on_d, ~on_d)
    c1, c2 = (int(np.sum(inside & side)) for side in sides)
    return Counts(c1, pairs, c2, pairs)
