"""The event that a person can read best, and whether it will do in place of the learned attack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Floats
from pytest_dp.attacks import quantities
from pytest_dp.attacks.expected_bounds import Choice, choice_of, likelier_first, rough_bounds
from pytest_dp.auditors.arms import Arm
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.statdp_search import rank_for
from pytest_dp.auditors.witness import RankOf, readable
from pytest_dp.counterexample import simplest
from pytest_dp.limits import CLEARLY, FEW, KEPT_RANK, NEARLY
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.event_search import Rank, RankedEvent
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table
from pytest_dp.privacy import HockeyStick


@dataclass(frozen=True, slots=True)
class Read:
    """A readable event."""

    event: Event
    unseen: Choice
    """What is to be expected of it, by outputs among which it was not looked for."""
    expected: float
    """The same by all outputs, which is how the bound of the learned attack is known."""
    excess: float
    """How clearly it breaks the claim, in standard errors."""
    is_small: bool
    """Whether the outputs are a few numbers or labels."""

    def is_as_good_as(self, learned: float) -> bool:
        """Whether the learned attack, with that bound, is not worth the trouble of a score."""
        if not self.is_small or self.unseen.expected <= 0:
            return False
        return learned <= CLEARLY * max(self.expected, self.unseen.expected)


def taken_apart(reading: Read | None) -> tuple[Event | None, Choice | None, float]:
    """An event, what is to be expected of it, and how clearly it breaks the claim; if there is."""
    return (
        (None, None, -math.inf)
        if reading is None
        else (reading.event, reading.unseen, reading.excess)
    )


def read(
    context: Context, arm: Arm, table: Table, on_d: Bools, planned: int, learned: float
) -> Read | None:
    """The event that half of the outputs of a pair propose; None if they do not.

    The table has as many outputs on either input. The event will be counted on `planned` held-out
    samples. `learned` is the bound to expect of the learned attack: if outputs are small, and the
    event that breaks the claim most clearly falls short of it, another one is looked for that may
    prove more.
    """
    about = quantities(context.settings, table, arm.references, on_d, arm.outputs.coupled)
    clearly = rank_for(context.guarantee, rarest=0.0)
    clearest = _searched_event(context, arm, (table, on_d), about, clearly, KEPT_RANK, planned)
    falls_short = clearest is None or not clearest.is_as_good_as(learned)
    if learned > 0 and falls_short and _is_small(table):
        by_bound = _by_bound(context, planned)
        strongest = _searched_event(context, arm, (table, on_d), about, by_bound, NEARLY, planned)
        if strongest is not None and (clearest is None or strongest.expected > clearest.expected):
            return strongest
    return clearest


def _searched_event(
    context: Context,
    arm: Arm,
    outputs: tuple[Table, Bools],
    about: list[Feature],
    rank_of: RankOf,
    kept_rank: float,
    planned: int,
) -> Read | None:
    table, on_d = outputs
    runs = len(on_d) // 2
    known = np.arange(len(on_d)) % runs < runs // 2
    part, sides = table.rows(known), on_d[known]
    event = readable(arm, part, sides, about, rank_of, kept_rank)
    if event is None:
        return None
    event = _rounded(event, part, sides, _by_bound(context, planned)(runs // 2))
    inside = event.mask(table)
    c1, c2 = (int((inside & ~known & side).sum()) for side in (on_d, ~on_d))
    unseen = choice_of(c1, runs - runs // 2, c2, runs - runs // 2, context.plan(planned))
    all1, all2 = (int((inside & side).sum()) for side in (on_d, ~on_d))
    expected = choice_of(all1, runs, all2, runs, context.plan(planned)).expected
    high, low = likelier_first(unseen.sign, c1, c2)
    sticks = context.guarantee.hockey_sticks
    excess = excess_of(np.array([high]), np.array([low]), runs - runs // 2, sticks)
    return Read(event, unseen, expected, float(excess[0]) * math.sqrt(2), _is_small(table))


def _rounded(event: Event, table: Table, on_d: Bools, rank: Rank) -> Event:
    """The event with fewer digits, where it is worth as much like that.

    What shows most clearly in the runs at hand need not be what the held-out ones, of which there
    are more, prove most with: at a loss that levels off, that is the rounder and rarer event.
    """
    inside = event.mask(table)
    counts = [np.array([np.sum(inside & side)]) for side in (on_d, ~on_d)]
    worth = float(rank(*counts)[0])
    counted = RankedEvent(event, int(counts[0][0]), int(counts[1][0]), worth)
    return simplest(counted, table, on_d, rank, kept_rank=1.0).event


def _by_bound(context: Context, planned: int) -> RankOf:
    """Events by the bound to expect of them, in hundredths."""
    plan = context.plan(planned)
    return lambda searched: lambda c1, c2: 100 * rough_bounds(c1, c2, searched, plan)


def _is_small(table: Table) -> bool:
    """Whether outputs are a few numbers or labels, about which a person can read everything."""
    numbers = np.bincount(table.owner, table.codes == NUMBER, minlength=len(table))
    return bool(numbers.max(initial=0) <= FEW and table.sizes.max(initial=0) <= 2 * FEW)


def excess_of(c1: Floats, c2: Floats, runs: float, sticks: Sequence[HockeyStick]) -> Floats:
    """Standard errors by which counts exceed what any of these constraints allows."""
    v1, v2 = (c * np.maximum(1 - c / runs, 0) for c in (c1, c2))

    def excess(stick: HockeyStick) -> Floats:
        price = math.exp(stick.eps)
        over: Floats = c1 - price * c2 - stick.delta * runs
        return over / np.sqrt(v1 + price**2 * v2 + 1)

    largest: Floats = np.max([excess(stick) for stick in sticks], axis=0)
    return largest
