"""What is shown of a search: an event that a person can read, or else a learned attack."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pytest_dp.auditors.pair_state import PairState, quantities_of
from pytest_dp.basics.arrays import Bools
from pytest_dp.betting.binning import ByScore
from pytest_dp.betting.expected_bounds import (
    Choice,
    PlannedTest,
    choice_of,
    likelier_first,
    rough_bounds,
)
from pytest_dp.betting.scores import Attack
from pytest_dp.betting.telling import digits_for, told_by, typical_outputs
from pytest_dp.claiming.settings import Settings
from pytest_dp.counterexample import KEPT_RANK, simplest
from pytest_dp.outputs.event_search import Rank, RankedEvent, search
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.outputs.table import Table
from pytest_dp.pairs import Pair
from pytest_dp.statistics.event_bets import event_growth, rank_for

MAX_OUTPUTS = 200_000
"""Outputs by which events are searched. More take longer; fewer choose less well."""
READABLE_WORTH = 0.65
"""Share of the standard errors of a learned attack that a readable event has. Larger: events are
less readable; smaller: they prove less."""
AS_GOOD = 0.97
"""Share of a bound, or of a rank, that counts as just as good. Larger: events are less readable;
smaller: they prove less."""

RankOf = Callable[[int], Rank]


@dataclass(frozen=True, slots=True)
class Witness:
    """What goes into the test."""

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
    largest: float = 0.0
    """The most that any event showed of the claim's parameter in the search, if that was asked."""
    middle: Attack | None = None
    """An event of about half of the outputs, by which runs that are not independent show best."""

    @property
    def sides(self) -> tuple[int, int]:
        """The likelier input and the other, by their positions in the pool."""
        return likelier_first(self.sign, self.state.input1, self.state.input2)

    @property
    def pair(self) -> Pair:
        """The pair, the likelier input first."""
        return self.state.pair if self.sign > 0 else self.state.pair.reversed()


def readable(
    table: Table,
    on_d: Bools,
    about: list[Feature],
    rank_of: RankOf,
    kept_rank: float,
) -> RankedEvent | None:
    """Return the most promising event that a person can read.

    The table has as many outputs on either input, and the event speaks about the features in
    `about`; of single characters only where nothing else tells nearly as much. `rank_of` says how
    promising counts among so many outputs are; an event which is simpler must keep the share
    `kept_rank` of that.
    """
    table, on_d = first_pairs(table, on_d, MAX_OUTPUTS)
    about = [feature for feature in about if feature.of_kind.ease != "no"]
    plain = [feature for feature in about if feature.of_kind.ease == "plain"]
    rank = rank_of(len(on_d) // 2)
    found = conjunction(table, on_d, plain, rank, kept_rank)
    if len(plain) < len(about):
        closer = conjunction(table, on_d, about, rank, kept_rank)
        if found is None or (closer and READABLE_WORTH * closer.rank > max(found.rank, 0.0)):
            found = closer
    return found


def conjunction(
    table: Table,
    on_d: Bools,
    about: list[Feature],
    rank: Rank,
    kept_rank: float,
) -> RankedEvent | None:
    """The most promising event of up to four conditions."""
    events = search(table, on_d, rank, about, limit=1)
    if not events:
        return None
    best = simplest(events[0], table, on_d, rank, kept_rank=kept_rank)
    for _ in range(4 - 1):  # a further condition must be worth reading it
        inside = best.event.mask(table)
        part, sides = table.rows(inside), on_d[inside]
        spoken_of = [getattr(c, "feature", None) for c in best.event.conditions]
        others = [f for f in about if f not in spoken_of]
        more = search(part, sides, rank, others, limit=1)
        if not more or best.rank <= 0 or more[0].rank < 1.1 * best.rank:
            break
        event = Event((*best.event.conditions, *more[0].event.conditions))
        best = replace(more[0], event=event)
    return best


def paying(event: Event, table: Table, on_d: Bools, rank: Rank, kept_rank: float) -> Event:
    """Without the conditions that do not pay for themselves, on outputs that are new to them."""
    for condition in event.conditions:
        fewer = Event(tuple(left for left in event.conditions if left is not condition))
        if fewer.conditions:
            with_it, without = (RankedEvent.of(some, table, on_d, rank) for some in (event, fewer))
            event = fewer if without.rank >= kept_rank * with_it.rank > 0 else event
    return event


def with_examples(witness: Witness, table: Table) -> Witness:
    """The witness with what its attack looks at, and typical outputs inside and outside of it."""
    attack = witness.event
    if not isinstance(attack, Attack):
        return witness
    rows = [typical_outputs(attack, table, inside) for inside in (True, False)]
    digits = digits_for(attack, attack.scores(table)[rows[0] + rows[1]])
    attack = replace(attack, told_by=told_by(attack, table), digits=digits)
    inside, outside = (tuple(copy.copy(table.raw[row]) for row in side) for side in rows)
    return replace(witness, event=attack, examples=(inside, outside))


@dataclass(frozen=True, slots=True)
class Read:
    """A readable event."""

    event: Event
    unseen: Choice
    """What is to be expected of it, by outputs among which it was not looked for."""
    growth: float
    """What the best bet on it would have earned on all outputs, were they all like those."""


def witness_of(state: PairState, attack: Choice | None, reading: Read | None) -> Witness | None:
    """The readable event where it is worth nearly as much as the learned attack, else that."""
    least = -math.inf if attack is None else AS_GOOD * attack.expected
    if (
        reading is not None
        and reading.unseen.expected >= least
        and reading.unseen.expected > -math.inf
    ):
        return readable_witness(state, reading)
    if attack is None or attack.expected == -math.inf:
        return None
    return learned_witness(state, attack)


def learned_witness(state: PairState, choice: Choice) -> Witness:
    """Return the learned attack with this threshold."""
    model = cast("ByScore", state.binnings[0]).model
    attack = Attack(model, choice.sign, choice.threshold)
    return Witness(state, attack, choice.sign, choice.p1, choice.p2)


def readable_witness(state: PairState, reading: Read) -> Witness:
    """Return the readable event."""
    seen = reading.unseen
    return Witness(state, reading.event, seen.sign, seen.p1, seen.p2)


def read(
    settings: Settings, state: PairState, table: Table, on_d: Bools, plan: PlannedTest
) -> Read | None:
    """Return the event that half of the outputs of a pair propose; None if they do not.

    The table has as many outputs on either input. The event is the one that breaks the claim most
    clearly; it will be counted on held-out samples by the `plan`.
    """
    about = quantities_of(settings, state, table, on_d, state.outputs.coupled)
    rank_of = rank_for(plan.guarantee, rarest=0.0)
    runs = len(on_d) // 2
    known = np.arange(len(on_d)) % runs < runs // 2
    part, sides = table.rows(known), on_d[known]
    found = readable(part, sides, about, rank_of, KEPT_RANK)
    if found is None or found.rank <= 0:  # on half of the outputs nothing gains
        found = readable(part, sides, about, by_bound(plan), KEPT_RANK) or found
    if found is None:
        return None
    half = runs - runs // 2
    event = paying(found.event, table.rows(~known), on_d[~known], rank_of(half), KEPT_RANK)
    inside = event.mask(table) & ~known
    c1, c2 = (int((inside & side).sum()) for side in (on_d, ~on_d))
    unseen = choice_of(c1, half, c2, half, plan)
    likelier, rarer = (np.array([count]) for count in likelier_first(unseen.sign, c1, c2))
    growth = event_growth(likelier, rarer, half, plan.guarantee.hockey_sticks)[0] * runs / half
    return Read(event, unseen, float(growth))


def by_bound(plan: PlannedTest) -> RankOf:
    """Return a rank of events: the bound to expect of each, in hundredths."""
    return lambda searched: lambda c1, c2: 100 * rough_bounds(c1, c2, searched, plan)
