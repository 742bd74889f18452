"""The event that a search shows: one that a person can read, or else a learned attack."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from pytest_dp.auditors.pair_state import features_for_models
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.betting.detector import ByScore
from pytest_dp.betting.scores import Attack, main_quantities, typical_rows
from pytest_dp.claiming.settings import Settings
from pytest_dp.counterexample import KEPT_RANK, simplest_event
from pytest_dp.outputs.event_search import Rank, RankedEvent, search
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.outputs.table import Table
from pytest_dp.pairs import Pair
from pytest_dp.privacy import ApproximateDP, Guarantee
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.statistics.event_bets import event_growth, rank_for

MAX_OUTPUTS = 200_000
"""Outputs by which events are searched. More take longer; fewer choose less well."""
LOOKING_TIME = 0.5
"""Share of the time to look for the strongest attack. Larger: less is left to count it."""
READABLE_WORTH = 0.65
"""Share of a learned attack's standard errors that readable events need. Smaller: they prove
less."""
MAX_CONDITIONS = 4
"""Conditions of a readable event. More are hard to read; fewer prove less."""
MIN_IMPROVEMENT = 1.1
"""Factor by which a further condition raises the rank. Smaller: conditions are not worth
reading."""

ALIKE = ApproximateDP(0.0)
"""The guarantee that outputs on both inputs have the same law: every difference breaks it."""

RankOf = Callable[[int], Rank]
"""From a number of outputs on either input to the ranking of events by their counts among them."""
T = TypeVar("T")


def sort_likelier_first(sign: int, on_first: T, on_second: T) -> tuple[T, T]:
    """Return the values on D and D', swapped unless an event is likelier on D (`sign` > 0)."""
    return (on_first, on_second) if sign > 0 else (on_second, on_first)


def cautious_shares(
    c1: Ints | Floats, n1: int, c2: Ints | Floats, n2: int, errors: float = 1.0
) -> tuple[Floats, Floats]:
    """Return the shares c1 / n1 and c2 / n2, the first lowered and the second raised.

    Each is moved by `errors` standard errors, so that their ratio is rather too small.
    """
    error1 = np.sqrt(c1 * np.maximum(1 - c1 / n1, 0))
    error2 = np.sqrt(c2 * np.maximum(1 - c2 / n2, 0) + 1)
    p1 = np.minimum((c1 - errors * error1) / n1, 1 - 0.5 / n1)
    p2 = np.minimum((c2 + errors * (1 + error2)) / n2, 1 - 0.5 / n2)
    return p1, p2


@dataclass(frozen=True, slots=True)
class Witness:
    """The event of a pair of inputs that is counted and shown."""

    state: PairState
    event: Event | Attack
    """A readable event, or a learned attack."""
    sign: int
    """1 if D makes it likelier, -1 if D' does."""
    p1: float
    """A cautious estimate of its probability on the likelier input."""
    p2: float
    """The same on the other."""
    examples: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    """Some outputs inside an attack, and some outside."""
    growth: float = 0.0
    """Log wealth that the best bet on it would have earned, on outputs that it is not made of."""
    largest: float = 0.0
    """The most that any event showed of the claim's parameter in the search, if that was asked."""

    @property
    def sides(self) -> tuple[int, int]:
        """The positions of the likelier input and of the other in the pool."""
        return sort_likelier_first(self.sign, self.state.input1, self.state.input2)

    @property
    def pair(self) -> Pair:
        """The pair, the likelier input first."""
        return self.state.pair if self.sign > 0 else self.state.pair.reverse()


def find_readable_event(
    table: Table, on_d: Bools, features: list[Feature], rank_of: RankOf
) -> RankedEvent | None:
    """Return the most promising event that a person can read; None if there is no event.

    The table has as many outputs on either input. The event is about the given features; about
    single characters only if its rank is clearly higher. `rank_of` returns the ranking of counts
    among a number of outputs. The event is simplified while it keeps the share `KEPT_RANK` of its
    rank.
    """
    table, on_d = first_pairs(table, on_d, MAX_OUTPUTS)
    features = [feature for feature in features if feature.of_kind.ease != "no"]
    easy = [feature for feature in features if feature.of_kind.ease == "plain"]
    rank = rank_of(len(on_d) // 2)
    found = find_conjunction(table, on_d, easy, rank, KEPT_RANK)
    if len(easy) < len(features):
        harder = find_conjunction(table, on_d, features, rank, KEPT_RANK)
        if found is None or (harder and READABLE_WORTH * harder.rank > max(found.rank, 0.0)):
            found = harder
    return found


def find_conjunction(
    table: Table, on_d: Bools, features: list[Feature], rank: Rank, kept_rank: float
) -> RankedEvent | None:
    """Return the most promising event of up to four conditions; None if there is no event.

    A first condition is simplified while it keeps the share `kept_rank` of its rank; each further
    condition has to raise the rank by a tenth.
    """
    events = search(table, on_d, rank, features, limit=1)
    if not events:
        return None
    best = simplest_event(events[0], table, on_d, rank, kept_rank=kept_rank)
    for _ in range(MAX_CONDITIONS - 1):
        inside = best.event.mask(table)
        used = [getattr(c, "feature", None) for c in best.event.conditions]
        unused = [feature for feature in features if feature not in used]
        more = search(table.rows(inside), on_d[inside], rank, unused, limit=1)
        if not more or best.rank <= 0 or more[0].rank < MIN_IMPROVEMENT * best.rank:
            break
        event = Event((*best.event.conditions, *more[0].event.conditions))
        best = replace(more[0], event=event)
    return best


def drop_needless_conditions(
    event: Event, table: Table, on_d: Bools, rank: Rank, kept_rank: float
) -> Event:
    """Return the event without each condition that its rank does not need on these outputs.

    Without a condition, the event has to keep the share `kept_rank` of its rank. The last condition
    stays.
    """
    for condition in event.conditions:
        fewer = Event(tuple(left for left in event.conditions if left is not condition))
        if fewer.conditions:
            with_it, without = (
                RankedEvent.from_event(some, table, on_d, rank) for some in (event, fewer)
            )
            event = fewer if without.rank >= kept_rank * with_it.rank > 0 else event
    return event


def add_examples(witness: Witness, table: Table) -> Witness:
    """Return the witness with the main quantities of its attack, and typical outputs of the table.

    A witness with a readable event is returned unchanged.
    """
    attack = witness.event
    if not isinstance(attack, Attack):
        return witness
    rows = [typical_rows(attack, table, inside) for inside in (True, False)]
    attack = replace(attack, told_by=main_quantities(attack, table))
    inside, outside = (tuple(copy.copy(table.raw[row]) for row in side) for side in rows)
    return replace(witness, event=attack, examples=(inside, outside))


def propose_readable_event(
    settings: Settings, state: PairState, table: Table, on_d: Bools, guarantee: Guarantee
) -> Witness | None:
    """Return the readable event that half of the outputs of a pair propose; None if there is none.

    The table has as many outputs on either input. The event is the one that breaks the guarantee
    most clearly; if bets on no event gain, the one that distinguishes the inputs most. Its `growth`
    and probabilities are those among the other half of the outputs.
    """
    features = features_for_models(settings, state, table, on_d, state.outputs.coupled)
    runs = len(on_d) // 2
    early = np.arange(len(on_d)) % runs < runs // 2
    part, sides = table.rows(early), on_d[early]
    rank_of = rank_for(guarantee, rarest=0.0)
    found = find_readable_event(part, sides, features, rank_of)
    if found is None or found.rank <= 0:
        found = find_readable_event(part, sides, features, rank_for(ALIKE, rarest=0.0)) or found
    if found is None:
        return None
    half = runs - runs // 2
    late, on_d = table.rows(~early), on_d[~early]
    event = drop_needless_conditions(found.event, late, on_d, rank_of(half), KEPT_RANK)
    inside = event.mask(late)
    counts = [np.array([(inside & side).sum()]) for side in (on_d, ~on_d)]
    sign = 1 if counts[0] >= counts[1] else -1
    c1, c2 = sort_likelier_first(sign, *counts)
    growth = event_growth(c1, c2, half, guarantee.hockey_sticks) * runs / half
    p1, p2 = cautious_shares(c1, half, c2, half)
    return Witness(state, event, sign, float(p1[0]), float(p2[0]), growth=float(growth[0]))


def learned_witness(state: PairState, guarantee: Guarantee) -> Witness | None:
    """Return the attack by the cut of a pair's score on which bets against a guarantee gain most.

    If bets gain on no cut, it is the cut that distinguishes the inputs best. None if the score has
    no cut, as all outputs score the same.
    """
    by_score, joint = cast("ByScore", state.binnings[0]), state.record.joint[0]
    if not len(by_score.cuts):
        return None
    total = round(float(joint.sum()))  # sums of parts may be less by rounding
    above = [joint.sum(axis)[::-1].cumsum()[::-1][1:] for axis in (1, 0)]  # on D, on D'
    sides = {1: above, -1: [total - side for side in above[::-1]]}

    def growth(sign: int, against: Guarantee) -> Floats:
        likelier, rarer = sides[sign]
        return event_growth(likelier, rarer, total, against.hockey_sticks)

    gains = any(growth(sign, guarantee).max() > 0 for sign in sides)
    against = guarantee if gains else ALIKE
    sign = max(sides, key=lambda sign: growth(sign, against).max())
    k = int(np.argmax(growth(sign, against)))
    attack = Attack(by_score.model, sign, sign * float(by_score.cuts[k]))
    c1, c2 = (np.array([side[k]]) for side in sides[sign])
    p1, p2 = cautious_shares(c1, total, c2, total)
    return Witness(
        state,
        attack,
        sign,
        max(float(p1[0]), 1e-6),
        float(p2[0]),
        growth=float(growth(sign, guarantee)[k]),
    )


def find_attack(session: Session, states: list[PairState], guarantee: Guarantee) -> Witness | None:
    """Return the strongest attack on a guarantee, by what was learned of some pairs of inputs.

    A readable event if bets on it grow nearly as fast as on the learned score. None if there is
    neither an event nor a cut of the score. Raises OutOfTime if outputs cannot be tabulated in
    time.
    """
    learned = [learned_witness(state, guarantee) for state in states]
    best = max(range(len(states)), key=lambda k: ((found := learned[k]) and found.growth) or 0.0)
    score, event = learned[best], find_readable_in_time(session, states[best], guarantee)
    if score is None or event is None:
        return event or score
    # growth goes with the square of how many standard errors an edge is
    return event if event.growth >= READABLE_WORTH**2 * score.growth else score


def find_readable_in_time(
    session: Session, state: PairState, guarantee: Guarantee
) -> Witness | None:
    """Return a readable event of a pair; None if there is none, or no time to find it.

    A note says if there was no time. Raises OutOfTime if not even its outputs can be tabulated.
    """
    table, on_d = session.budget.compute(state.outputs.table, session.budget.deadline)
    propose = partial(propose_readable_event, session.settings, state, table, on_d, guarantee)
    try:
        return session.budget.compute(propose, session.budget.deadline, LOOKING_TIME)
    except OutOfTime:
        session.sampler.note("there was no time to look for an event that is easier to read")
        return None
