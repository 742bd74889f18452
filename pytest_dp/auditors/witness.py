"""What a search hands over to the test: an attack, an event that can be read, or both."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.arrays import Bools
from pytest_dp.attacks import Posterior
from pytest_dp.attacks.expected_bounds import Choice, likelier_first
from pytest_dp.attacks.scores import Attack
from pytest_dp.auditors.paired_outputs import first_pairs
from pytest_dp.auditors.pool import Contender
from pytest_dp.counterexample import simplest
from pytest_dp.inputs import Pair
from pytest_dp.limits import NEARLY, STEPS
from pytest_dp.outputs.event_search import Rank, RankedEvent, search
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table

RankOf = Callable[[int], Rank]


@dataclass(frozen=True, slots=True)
class Witness:
    """What goes into the test."""

    rival: Contender
    attack: Attack | None
    """None where as much is to be expected of the readable event."""
    event: Event | None
    """A readable event, if there is one."""
    sign: int
    """1 if D makes the attack (or the event) likelier, -1 if D' does."""
    p1: float
    """A cautious estimate of its probability on the likelier input."""
    p2: float
    """The same on the other."""
    coupled: bool = False
    """Whether to count in outputs with the same random numbers on both inputs."""
    examples: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    """Some outputs inside the attack, and some outside."""
    middle: Attack | None = None
    """An event of about half of the outputs, by which runs that are not independent show best."""

    @property
    def sides(self) -> tuple[int, int]:
        """The likelier input and the other, by their positions in the pool."""
        return likelier_first(self.sign, self.rival.input1, self.rival.input2)

    @property
    def pair(self) -> Pair:
        """The pair, the likelier input first."""
        return self.rival.pair if self.sign > 0 else self.rival.pair.reversed()


def witness_of(
    rival: Contender,
    model: Posterior,
    attack: Choice | None,
    event: Event | None,
    reading: Choice | None,
) -> Witness | None:
    """The attack, the readable event, or both in one direction: whatever may prove enough."""
    if event is not None and reading is not None and reading.expected > -math.inf:
        if attack is None or reading.expected >= NEARLY * attack.expected:
            return Witness(
                rival, None, event, reading.sign, reading.p1, reading.p2, reading.coupled
            )
        if reading.sign != attack.sign or reading.expected <= 0:
            event = None
    else:
        event = None
    if attack is None or attack.expected == -math.inf:
        return None
    chosen = Attack(model, attack.sign, attack.threshold)
    return Witness(rival, chosen, event, attack.sign, attack.p1, attack.p2, attack.coupled)


def readable(
    rival: Contender,
    table: Table,
    on_d: Bools,
    about: list[Feature],
    rank_of: RankOf,
    kept_rank: float,
) -> Event | None:
    """The most promising event that a person can read.

    The table has as many outputs on either input, and the event speaks about the features in
    `about`. `rank_of` says how promising counts among so many outputs are; an event which is
    simpler must keep the share `kept_rank` of that.
    """
    table, on_d = first_pairs(table, on_d, 10 * STEPS)
    about = [feature for feature in about if feature.kind != "bit"]
    rank = rank_of(len(on_d) // 2)
    events = search(table, on_d, rank, rival.references, limit=1, about=about)
    if not events:
        return None
    best = simplest(events[0], table, on_d, rank, kept_rank=kept_rank)
    for _ in range(4 - 1):  # a further condition must be worth reading it
        inside = best.event.mask(table)
        part, sides = table.rows(inside), on_d[inside]
        spoken_of = [getattr(c, "feature", None) for c in best.event.conditions]
        others = [f for f in about if f not in spoken_of]
        more = search(part, sides, rank, rival.references, limit=1, about=others)
        if not more or best.rank <= 0 or more[0].rank < 1.1 * best.rank:
            break
        event = Event((*best.event.conditions, *more[0].event.conditions))
        best = replace(more[0], event=event)
    return _shortened(best, table, on_d, rank)


def _shortened(best: RankedEvent, table: Table, on_d: Bools, rank: Rank) -> Event:
    """Without conditions that have become needless by later ones."""
    event = best.event
    for condition in best.event.conditions[:-1]:
        fewer = Event(tuple(left for left in event.conditions if left is not condition))
        inside = fewer.mask(table)
        c1, c2 = np.array([np.sum(inside & on_d)]), np.array([np.sum(inside & ~on_d)])
        if float(rank(c1, c2)[0]) >= NEARLY * best.rank > 0:
            event = fewer
    return event


def with_examples(witness: Witness, table: Table) -> Witness:
    """The witness with three outputs inside its attack and three outside, if it has one."""
    if witness.attack is None:
        return witness
    is_inside = witness.attack.hits(table)[0]
    inside, outside = (
        tuple(copy.copy(table.raw[int(row)]) for row in np.flatnonzero(rows)[:3])
        for rows in (is_inside, ~is_inside)
    )
    return replace(witness, examples=(inside, outside))
