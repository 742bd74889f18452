"""The pairs that a sequential audit may bet on, and what has been learned of each from the past.

What was drawn for a pair teaches three things: a model of which input an output came from,
events that a person can read, and a record of what bets on them would have earned. The record
comes from halves that are each seen through what was learned from the other, so that it does not
flatter. All of this is past; the next batch is drawn after the bets on it are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Bools, Ints
from pytest_dp.betting.betting_loop import PairStatus
from pytest_dp.betting.detector import Binning, Reader, joint_counts
from pytest_dp.betting.models import Posterior, check_by_itself, fit_model, quantities
from pytest_dp.claiming.settings import Settings
from pytest_dp.outputs.feature import Feature, leaf
from pytest_dp.outputs.features import affordable, user_features
from pytest_dp.outputs.place_choice import choose
from pytest_dp.outputs.table import Table, concatenate
from pytest_dp.outputs.targeted import Targeted, target_of
from pytest_dp.privacy import Guarantee
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import SampleRequest
from pytest_dp.statistics.ledger import BetRecord, suspicion

OUTPUTS_PER_FEATURE = 250
"""Outputs for each feature that a model may learn from. With fewer it learns noise by heart; with
more it misses features."""
MAX_PLACES = 256
"""Places of an output that are features. More learn noise by heart; fewer miss what tells inputs
apart."""


@dataclass(slots=True, eq=False)
class PairState(PairStatus):
    """A pair of inputs to bet on: what was drawn on it, and what that has taught."""

    input1: int = 0
    """The position of D in the pool."""
    input2: int = 0
    """That of D'."""
    added: list[Feature] | None = None
    """Features that a method adds; None until it has looked for them."""
    target: Targeted | None = None
    """What tells, in outputs that are tables of the same columns as the inputs, whether the record
    was there that only one of them has."""
    proposed: Binning | None = None
    """What is bet on whatever was learned, as something else than samples suggests it."""

    def draws(self, pool: Pool, size: int, purpose: int, *rest: int) -> list[SampleRequest]:
        """Return the draws of `size` new pairs of outputs, keyed by `purpose` and `rest`."""
        key = purpose, self.number, *rest
        return [
            SampleRequest(pool.inputs[i], size, key if self.coupled else (*key, side), self.coupled)
            for side, i in enumerate((self.input1, self.input2))
        ]


def seed_in(settings: Settings) -> int:
    """Return the seed of an audit, which its settings hold once it began."""
    assert settings.seed is not None
    return settings.seed


def quantities_of(
    settings: Settings, state: PairState, table: Table, on_d: Bools, paired: int
) -> list[Feature]:
    """Return what a classifier is shown of outputs on a pair; see `attacks.quantities`."""
    about = quantities(settings, table, on_d, paired)
    if table.is_extract:
        return about
    wanted = state.target
    return about + user_features(wanted, table, wanted.labels) if wanted is not None else about


def make_room(settings: Settings, state: PairState) -> None:
    """Keep only the quantities that are learned from: of the outputs so far, and of new ones."""
    table, on_d = state.outputs.table()
    about = quantities_of(settings, state, table, on_d, state.outputs.coupled)
    if not state.outputs.coupled and any(feature.kind == "leaf" for feature in about):
        places = choose(table, on_d, 0, MAX_PLACES).chosen
        about += [replace(leaf(place), exact=about[0].exact) for place in places]
    state.outputs.keep_only(list(dict.fromkeys(about)))


def joints_of(parts: Iterable[list[Any]], binnings: Sequence[Binning]) -> list[Ints]:
    """Return the joint counts of bins on D and on D', one table for each binning."""
    bins1, bins2 = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
    return [
        joint_counts(a, b, binning.width)
        for a, b, binning in zip(bins1, bins2, binnings, strict=True)
    ]


def edge(record: BetRecord, guarantee: Guarantee) -> float:
    """Return the edge that a pair has shown, in standard deviations of a payoff."""
    return suspicion(record, guarantee) / math.sqrt(max(record.pairs, 1))


def draw_batch(
    session: Session,
    pool: Pool,
    state: PairState,
    size: int,
    purpose: int,
    max_kept: int,
    deadline: Deadline,
) -> list[Ints]:
    """Draw `size` outputs on both inputs of a pair; return their counts through its binnings.

    They are kept as long as the pair has at most `max_kept` of them, and there is room.
    """
    outputs = state.outputs
    if outputs.extract is None and not outputs.has_room(size):
        session.budget.compute(partial(make_room, session.settings, state), deadline)
    keep = outputs.pairs + size <= max_kept and outputs.has_room(size)
    draws = state.draws(pool, size, purpose, state.batches)
    state.batches += 1
    reader = Reader(state.binnings, keep, outputs.extract)
    parts = session.sampler.measure(draws, reader, deadline)
    state.drawn += size
    if keep:
        batch1, batch2 = (
            concatenate([table for _, table in part if table is not None]) for part in parts
        )
        outputs.add(batch1, batch2, coupled=state.coupled)
        pool.see(state.input1, batch1)
        pool.see(state.input2, batch2)
    return joints_of(parts, state.binnings)


def look_for_target(settings: Settings, state: PairState) -> None:
    """Find which record outputs may show, unless the user's function says what to look at."""
    if settings.features is None:
        inputs = state.pair.inputs
        state.target = target_of(*inputs, state.outputs.examples().raw, seed_in(settings))


def outputs_to_learn(settings: Settings, state: PairState) -> tuple[Table, Bools, list[Feature]]:
    """Return the outputs on a pair, which of them are on D, and features that a model may use."""
    table, on_d = state.outputs.table()
    about = quantities_of(settings, state, table, on_d, state.outputs.coupled)
    return table, on_d, affordable(about, table, on_d, OUTPUTS_PER_FEATURE)


def model_fitter(
    settings: Settings, about: list[Feature]
) -> Callable[[Table, Bools], Posterior] | None:
    """Return what fits the model that the method names, or the user's own; None if additive."""
    if settings.method.classifier in (None, "additive"):
        return None
    classifier, seed = settings.method.classifier, seed_in(settings)
    return lambda table, on_d: fit_model(classifier, table, on_d, about, seed)


def check_users_parts(
    settings: Settings, state: PairState, model: Posterior, about: list[Feature]
) -> None:
    """Raise ClaimError if the user's classifier or features make an event of several outputs."""
    if settings.method.classifier is not None or settings.features is not None:
        check_by_itself(model, about, state.outputs.examples())
