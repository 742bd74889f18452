"""DP-Sniper: learn to tell two inputs apart, and count on held-out samples how well that works.

The search ends with one pair, and one event that is likelier on D or on D'. The event is readable
if its expected bound is nearly as good, else a learned attack: outputs with a score above a
threshold (a cut). It is counted once, on held-out samples (`held_out`). Pairs are chosen by
successive halving, by the expected bound of the best cut of a learned score. With a fixed `c` the
search is Algorithm 2 of the paper: equal numbers of samples for all pairs, in both directions.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021. Bounds are those of
`pytest_dp.statistics.event_test`; with a fixed `c` those of the paper, two Clopper-Pearson bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.auditors.witness import (
    Witness,
    add_examples,
    cautious_shares,
    find_readable_in_time,
    sort_likelier_first,
)
from pytest_dp.basics.arrays import Floats, Ints, Outputs
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.betting.detector import ByScore
from pytest_dp.betting.models import Posterior
from pytest_dp.betting.scores import Attack, Tally, scores
from pytest_dp.methods.two_stage import (
    MIN_FITTED,
    PairSearch,
    learn_model,
    learn_score,
    samples_left_to_test,
    search_by_halving,
    search_then_test,
)
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import Guarantee
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generators import Purpose
from pytest_dp.running.sampler import SampleRequest
from pytest_dp.statistics.event_test import EventTest, PublishedTest

MIN_EXPECTED = 50
"""Outputs that place a threshold, at least. Fewer: chance; more: rare events are given up."""
SEARCH_SHARE = 0.25
"""Share of samples, and half of the share of time, for the search. Larger: wider bounds."""

PUBLISHED_SEARCH_SHARE = 0.35
"""Of all samples, about what is spent before the last step: given by the paper."""
AS_GOOD = 0.97
"""Share of a bound that is as good. Larger: less readable events; smaller: weaker ones."""
BEST_OF_MANY = 2.0
"""Standard errors off each probability, as the best of many cuts is lucky. More: wide events."""
NEARLY_SURE = 0.9
"""Probability on both inputs from which an event gives way to its complement. Hardly matters."""
MIN_IN_EVENT = 3
"""Outputs that an event has to exceed. More: rare events are lost; fewer: chance is taken."""


def audit(session: Session) -> AuditFinding:
    """Run the mechanism to audit a claim with DP-Sniper; return and raise as `search_then_test`."""
    c = session.method.c
    if c is None:
        coupled = session.method.coupled
        result = search_then_test(session, _find_attack, EventTest, coupled=coupled)
        return AuditFinding(result)
    find = partial(_find_published_attack, c)
    return AuditFinding(search_then_test(session, find, PublishedTest))


def _find_attack(pairs: PairSearch) -> Witness | None:
    """Run the mechanism on pairs, and return the event with the largest expected bound.

    A readable event is preferred if its bound is nearly as large. None if no outputs could be
    drawn, or no samples are left for the test.
    """
    session = pairs.session
    deadline = session.budget.deadline.with_reserve(2 * SEARCH_SHARE)
    judge = partial(_best_cuts, pairs, deadline)
    found = search_by_halving(pairs, SEARCH_SHARE * session.budget.max_samples, deadline, judge)
    planned = samples_left_to_test(session)
    if not found or planned < 2:
        return None
    state, cut = found[0]
    readable = find_readable_in_time(session, state, session.guarantee)
    if readable is not None:
        chances = np.array([readable.p1]), np.array([readable.p2])
        expected = expected_bounds(session.guarantee, planned, session.budget.alpha, *chances)[0]
        if expected >= AS_GOOD * cut.expected:
            return readable
    attack = Attack(cast("ByScore", state.binnings[0]).model, cut.sign, cut.threshold)
    witness = Witness(state, attack, cut.sign, cut.p1, cut.p2)
    return add_examples(witness, state.outputs.examples())


def _best_cuts(
    pairs: PairSearch, deadline: Deadline, states: Sequence[PairState]
) -> list[tuple[PairState, Cut]]:
    """Fit a score to the outputs on each pair, and return the best cuts, the best pair first.

    Pairs with fewer than `MIN_FITTED` outputs, or without a cut, are left out.
    """
    session, found = pairs.session, []
    planned = samples_left_to_test(session)
    expect = partial(expected_bounds, session.guarantee, planned, session.budget.alpha)
    for state in states:
        if state.outputs.pairs >= MIN_FITTED:
            learn_score(session.settings, state, deadline)
            joint = state.record.joint[0].astype(int)
            cuts = cast("ByScore", state.binnings[0]).cuts
            if (cut := best_cut(joint.sum(1), joint.sum(0), cuts, expect)) is not None:
                found.append((state, cut))
    return sorted(found, key=lambda one: (-one[1].expected, one[0].number))


@dataclass(frozen=True, slots=True)
class _Scores:
    """A function from outputs to their scores by a model, which can be sent to a worker process."""

    model: Posterior

    def __call__(self, outputs: Outputs) -> Floats:
        return scores(self.model, tabulate(outputs))


def _find_published_attack(c: float, pairs: PairSearch) -> Witness | None:
    """Run the mechanism on all pairs, and return the best attack with probability `c`, or None.

    Algorithm 2 of the paper. Adds a note if too few samples are left to place a threshold. None if
    the mechanism rejects all inputs.
    """
    session = pairs.session
    runs = max(2, int(PUBLISHED_SEARCH_SHARE * session.budget.max_samples / len(session.pairs) / 6))
    if c * runs < MIN_EXPECTED:
        session.sampler.note(
            f"c={c:g} of {runs:,} samples leaves too few to place a threshold: raise max_samples "
            "or c, or leave c out",
            hinders=True,
        )
    best: tuple[float, Witness] | None = None
    for state in pairs.begin(pairs.pairs.claimed, runs, session.budget.deadline):
        for power, witness in _attacks_of_pair(pairs, state, runs, c):
            if best is None or power > best[0]:
                best = power, add_examples(witness, state.outputs.examples())
    return None if best is None else best[1]


def _attacks_of_pair(
    pairs: PairSearch, state: PairState, runs: int, c: float
) -> Iterator[tuple[float, Witness]]:
    """Run the mechanism on a pair; yield the loss in nats and the attack for each direction."""
    session, inputs = pairs.session, pairs.pool.inputs
    sampler, deadline = session.sampler, session.budget.deadline
    sides = tuple(enumerate((state.input1, state.input2)))

    def draws(purpose: Purpose, *rest: int) -> list[SampleRequest]:
        return [
            SampleRequest(inputs[i], runs, (purpose, state.number, side, *rest))
            for side, i in sides
        ]

    model = learn_model(session.settings, state)
    drawn = sampler.measure(draws(Purpose.CHOICE), _Scores(model), deadline)
    for sign, rarer_side in ((1, 1), (-1, 0)):  # D' makes an attack for D the rarer
        attack = threshold_attack(model, sign, np.concatenate(drawn[rarer_side]), c)
        counted = sampler.measure(draws(Purpose.POWER, rarer_side), Tally(attack), deadline)
        sums = [np.sum(part, axis=0) for part in counted]
        chances = (float((s[1] + attack.tie * s[2]) / s[0]) for s in sums)
        # As in the paper, probabilities below c count as c.
        likelier, rarer = (max(p, c) for p in sort_likelier_first(sign, *chances))
        power = float(
            EventTest(session.guarantee).parameter_shown(np.array(likelier), np.array(rarer))
        )
        yield power, Witness(state, attack, sign, likelier, rarer)


def threshold_attack(model: Posterior, sign: int, odds: Floats, c: float) -> Attack:
    """Return the attack with probability `c` on the input that makes it rarer.

    Algorithm 1 of the paper. `odds` are scores of held-out outputs on that input, at least one.
    """
    ordered = np.sort(sign * odds)[::-1]
    n = len(ordered)
    threshold = float(ordered[min(math.floor(c * n), n - 1)])
    above, at = int(np.sum(ordered > threshold)), int(np.sum(ordered == threshold))
    return Attack(model, sign, threshold, (c * n - above) / at)


def expected_bounds(
    guarantee: Guarantee, runs: float, alpha: float, p1: Floats, p2: Floats
) -> Floats:
    """Return the lower bounds, in the claim's parameter, that a test of events should give.

    The events have probabilities `p1` and `p2` on the two inputs; the test has `runs` samples on
    both inputs together, at level `alpha`. Minus infinity if no bound is to be expected.
    """
    p1, p2 = np.clip(p1, 1e-12, 1 - 1e-12), np.clip(p2, 1e-12, 1 - 1e-12)
    found = EventTest(guarantee).predict(p1, runs / 2, p2, runs / 2, alpha)
    return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold of a score, and the expected bound of the outputs that score above it."""

    sign: int
    """1 if the event is likelier on D, -1 if on D'."""
    threshold: float
    """As in `Attack`."""
    p1: float
    """A cautious estimate of the event's probability on the likelier input."""
    p2: float
    """A cautious estimate of the event's probability on the other input."""
    expected: float
    """The expected lower bound, in the claim's parameter."""


def best_cut(
    profile1: Ints, profile2: Ints, at: Floats, expect: Callable[[Floats, Floats], Floats]
) -> Cut | None:
    """Return the cut of a score, and the direction, with the largest expected bound; may be None.

    The profiles, of shape (k + 1,), count the outputs on D and on D' that score between the k cuts
    `at`. `expect` gives the bounds of events by two probabilities. None if all outputs above the
    cuts are too rare. If no bound is expected, as for a large delta, the cut is taken whose
    probabilities differ most.

    By the Neyman-Pearson lemma no event of equal probability tells two inputs apart better than a
    cut of the exact posterior.
    """
    n1, n2 = int(profile1.sum()), int(profile2.sum())
    above1, above2 = (part[::-1].cumsum()[::-1][1:] for part in (profile1, profile2))
    found = []
    for sign, c1, m1, c2, m2 in (
        (1, above1, n1, above2, n2),
        (-1, n2 - above2, n2, n1 - above1, n1),
    ):
        p1, p2 = cautious_shares(c1, m1, c2, m2, BEST_OF_MANY)
        # Of events in nearly all outputs, the complement tells more in the other direction.
        usable = (c1 > MIN_IN_EVENT) & (p1 > 0) & ~((p1 > NEARLY_SURE) & (p2 > 1 - NEARLY_SURE))
        if usable.any():
            expected = expect(p1[usable], p2[usable])
            k = int(np.lexsort((p1[usable] - p2[usable], expected))[-1])
            one, two, cut = (float(part[usable][k]) for part in (p1, p2, at))
            found.append(Cut(sign, sign * cut, one, two, float(expected[k])))
    return max(found, key=lambda cut: (cut.expected, cut.p1 - cut.p2), default=None)
