"""The pairs that a sequential audit may bet on, and what has been learned of each from the past.

What was drawn for a pair teaches three things: a model of which input an output came from,
events that a person can read, and a record of what bets on them would have earned. The record
comes from halves that are each seen through what was learned from the other, so that it does not
flatter. All of this is past; the next batch is drawn after the bets on it are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.attacks import Posterior, check_by_itself, fit, quantities
from pytest_dp.attacks.binning import (
    Binning,
    ByEvent,
    ByScore,
    cuts_of,
    joint_counts,
)
from pytest_dp.attacks.scores import scores
from pytest_dp.auditing.detector import Detector, count_pairs, mean_scores, with_values
from pytest_dp.auditing.pair_queue import PairStatus
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import Pool
from pytest_dp.limits import HUNDREDS, OUTPUTS_PER_QUANTITY
from pytest_dp.outputs.event_search import search
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import UNREADABLE, Feature, leaf
from pytest_dp.outputs.features import affordable, user_features
from pytest_dp.outputs.indexed import given_index
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.outputs.screening import choose
from pytest_dp.outputs.table import Table
from pytest_dp.outputs.targeted import Targeted
from pytest_dp.privacy import Guarantee
from pytest_dp.sampling.sampler import Draw
from pytest_dp.statistics.event_ranking import rank_for
from pytest_dp.statistics.ledger import Record, suspicion

MAX_EVENTS = 2
"""Readable events that each half of the samples proposes, beside rare ones. Each takes a share of
every stake; with one alone, a mechanism of which many things leak is caught up to 1.4 times later,
and others no later. Measured."""
HOPE_ERRORS = 1.5
"""Standard errors by which a pair of inputs may be better than it looks: larger values try more
pairs, smaller ones stay with the best so far (as in a bandit). Measured."""


@dataclass(slots=True, eq=False)
class PairState(PairStatus):
    """A pair of inputs to bet on: what was drawn on it, and what that has taught."""

    input1: int = 0
    """The position of D in the pool."""
    input2: int = 0
    """That of D'."""
    references: list[Any] = field(default_factory=list)
    """What the mechanism answers without noise, where that is known."""
    target: Targeted | None = None
    """What tells, in outputs that are tables of the same columns as the inputs, whether the record
    was there that only one of them has."""
    proposed: Binning | None = None
    """What is bet on whatever was learned, as something else than samples suggests it."""

    def draws(self, pool: Pool, size: int, purpose: int, *rest: int) -> list[Draw]:
        """The draws of `size` new pairs of outputs; `purpose` and `rest` are parts of their key."""
        key = purpose, self.number, *rest
        return [
            Draw(pool.inputs[i], size, key if self.coupled else (*key, side), self.coupled)
            for side, i in enumerate((self.input1, self.input2))
        ]

    def draw_apart(self) -> None:
        """Draw independently from now on, and turn the record into that of independent draws."""
        self.coupled, self.record = False, self.record.as_independent()


def learn(context: Context, state: PairState) -> None:
    """Make new binnings from all outputs so far, and a record of what bets would have won."""
    outputs = state.outputs
    table, on_d = outputs.table()
    max_pairs = context.pace.learned_from
    middle = outputs.pairs // 2
    lower = np.arange(len(on_d)) % outputs.pairs < middle
    paired = min(outputs.coupled, middle), max(outputs.coupled - middle, 0)
    joint: list[Floats] = []
    binnings: list[Binning] = []
    odds = np.zeros(len(on_d))
    for known, held_out, pairs in ((lower, ~lower, paired[0]), (~lower, lower, paired[1])):
        part, sides = table.rows(known), on_d[known]
        model, about = _model(context, state, part, sides, max_pairs, pairs)
        unseen = table.rows(held_out)
        odds[held_out] = scores(model, unseen)
        for event in _events(context, part, sides, about):
            by_event = ByEvent(event)
            if by_event not in binnings:
                binnings.append(by_event)
                joint.append(count_pairs(by_event.bins(unseen), on_d[held_out], 2))
    if state.proposed is not None:
        binnings.append(state.proposed)
        joint.append(count_pairs(state.proposed.bins(table), on_d, state.proposed.width))
    model = learned_model(context, state)
    final = scores(model, table)
    for half in (lower, ~lower):
        odds[half] = with_values(odds[half], final[half])
    by_score = ByScore(model, cuts_of(odds, context.pace.bins))
    bins = np.searchsorted(by_score.cuts, odds).astype(np.uint8)
    joint.insert(0, count_pairs(bins, on_d, by_score.width))
    record = Record(joint, mean_scores(odds, bins, by_score.cuts))
    # All at once: what comes before may be interrupted.
    state.detector, state.record = Detector((by_score, *binnings), outputs.pairs), record


def learned_model(context: Context, state: PairState) -> Posterior:
    """A model of which input an output came from, learned from all that there is time for.

    Refuses the user's classifier or features if they make an event of several outputs.
    """
    table, on_d = state.outputs.table()
    most = 2 * context.pace.learned_from
    model, about = _model(context, state, table, on_d, most, state.outputs.coupled)
    if context.method.classifier is not None or context.settings.features is not None:
        check_by_itself(model, about, state.outputs.examples())
    return model


def quantities_of(
    context: Context, state: PairState, table: Table, on_d: Bools, paired: int
) -> list[Feature]:
    """What a classifier is shown of outputs on a pair; see `attacks.quantities`."""
    about = quantities(context.settings, table, state.references, on_d, paired)
    if table.is_extract:
        return about
    about = about + [
        Feature(str(one), "given an index", one) for one in given_index(table, on_d, paired)
    ]
    wanted = state.target
    return about + user_features(wanted, table, wanted.labels) if wanted is not None else about


def make_room(context: Context, state: PairState) -> None:
    """Keep only the quantities that are learned from: of the outputs so far, and of new ones."""
    table, on_d = state.outputs.table()
    about = quantities_of(context, state, table, on_d, state.outputs.coupled)
    if not state.outputs.coupled and any(feature.kind == "leaf" for feature in about):
        places = choose(table, on_d, 0, HUNDREDS).chosen
        about += [replace(leaf(place), exact=about[0].exact) for place in places]
    state.outputs.keep_only(list(dict.fromkeys(about)))


def _model(
    context: Context, state: PairState, table: Table, on_d: Bools, max_pairs: int, paired: int
) -> tuple[Posterior, list[Feature]]:
    table, on_d = first_pairs(table, on_d, max_pairs)
    about = quantities_of(context, state, table, on_d, paired)
    about = affordable(about, table, on_d, OUTPUTS_PER_QUANTITY)
    return fit(context.method.classifier, table, on_d, about, context.seed), about


def _events(context: Context, table: Table, on_d: Bools, about: list[Feature]) -> list[Event]:
    table, on_d = first_pairs(table, on_d, context.pace.learned_from)
    about = [feature for feature in about if feature.kind not in UNREADABLE]
    rank = rank_for(context.guarantee, rarest=0.0)(len(on_d) // 2)
    ranked = search(table, on_d, rank, about, MAX_EVENTS, rare=True)
    return [candidate.event for candidate in ranked]


def joints_of(parts: Iterable[list[Any]], binnings: Sequence[Binning]) -> list[Ints]:
    """Counts of pairs of bins, one for each binning, of what was drawn and read on D and on D'."""
    bins1, bins2 = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
    return [
        joint_counts(a, b, binning.width)
        for a, b, binning in zip(bins1, bins2, binnings, strict=True)
    ]


def edge(record: Record, guarantee: Guarantee) -> float:
    """The edge that a pair has shown, in standard deviations of a payoff."""
    return suspicion(record, guarantee) / math.sqrt(max(record.pairs, 1))


def hope(record: Record, guarantee: Guarantee, learned: float = math.inf) -> float:
    """The edge that a pair might have, in standard deviations of a payoff.

    A model that is learned from few outputs may miss an edge that is a standard error of theirs.
    """
    unsure = HOPE_ERRORS / math.sqrt(max(record.pairs, 1))
    return edge(record, guarantee) + unsure + 1 / math.sqrt(learned)
