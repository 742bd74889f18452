"""Search for inputs: where a claim may be broken, and on how small ones it still is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dp.claiming.checks import is_strategy
from pytest_dp.claiming.claim import Promise
from pytest_dp.claiming.settings import Settings
from pytest_dp.data import kind_of
from pytest_dp.data.relations import OfRecords, Relation
from pytest_dp.declaration import Queries, Values
from pytest_dp.pairs.sources import PairSource, Proposer, checked, marked, sieved
from pytest_dp.proposers.by_movement import ByMovement
from pytest_dp.proposers.by_symbols import BySymbols
from pytest_dp.proposers.constants import constants_of
from pytest_dp.proposers.exploring import Explorer, Sieve, values_in_turn
from pytest_dp.proposers.novelty import Screen
from pytest_dp.proposers.observing import Clock
from pytest_dp.proposers.shrinking import counts, shrunk
from pytest_dp.proposers.space import Space
from pytest_dp.registry import load
from pytest_dp.running.calling import Call

SEARCH_TIME = 0.1
"""Share of the time for looking for inputs. Larger: bets have less; smaller: fewer inputs are
tried."""

__all__ = ["compared_values", "shrunk", "widened"]

SOLVED = ("symbolic", "gradient")
"""Searches that say of each pair how it was found, inside of the claim too."""


def compared_values(call: Call, promise: Promise, settings: Settings) -> list[Any]:
    """Return values that the mechanism's code compares with, to make inputs of."""
    if not settings.search:
        return []
    found = [constant.value for constant in constants_of(call.mechanism, call.params)]
    if is_strategy(promise.inputs):
        from pytest_dp.proposers.matching import matching_texts  # loads Hypothesis

        found += matching_texts(call.mechanism, call.params, settings.seed or 0)
    return found


def widened(source: PairSource, promise: Promise, call: Call, settings: Settings) -> PairSource:
    """Return a source of the same pairs, followed by those that a search proposes.

    The inputs of the promise are looked up. Copies of the mechanism are run a few times.
    """
    relation, bounds = promise.relation, source.bounds
    if source.examples is not None:
        promise = replace(promise, inputs=list(source.examples))
    inside = counts if isinstance(promise.inputs, Queries) else None
    neighbours = partial(checked, relation=relation, inside=inside)
    names = [option for option in settings.search if isinstance(option, str)]
    users = [sieved(own, neighbours) for own in settings.search if not isinstance(own, str)]
    clock = Clock(SEARCH_TIME * settings.max_seconds)
    seed = settings.seed or 0
    by_movement = ByMovement(source, promise, call, clock, settings)
    if not names or any(pair.is_large for pair in source.given):
        proposers = [*users, *source.proposers]
        return PairSource(source.given, proposers, source.generated, bounds, screener=by_movement)
    allows, is_sample = inside or (lambda *_: True), bounds.is_sample
    screen = Screen(call, source.given, bounds.holds, clock, seed, allows, is_sample=is_sample)
    by_movement.steps = lambda: screen.steps
    found: dict[str, Proposer] = {}
    notes: list[Callable[[], list[str]]] = []
    if source.generated is not None or relation is None:
        pass  # of strategies, movement proposes pairs around new ways at comparisons
    elif isinstance(promise.inputs, Values):
        found["patterns"] = values_in_turn(promise.inputs.options, relation, screen)
    elif space := _space(promise, relation, source):
        explorer = Explorer(space, relation, screen)
        found, notes = explorer.proposers, [explorer.notes]
    own_clock = Clock(SEARCH_TIME * settings.max_seconds / 2)
    by_symbols = BySymbols(call, source.given, relation, source.generated, own_clock)
    if "symbolic" in names and not isinstance(promise.inputs, Values):
        found = {"symbolic": by_symbols.proposing, **found}
    notes.insert(0, by_symbols.notes)
    if "gradient" in names:
        found["gradient"] = by_gradients = load("search", "gradient")(promise, call, clock, seed)
        notes.append(by_gradients.notes)
    wanted = settings.beyond != "off"
    timed = [
        *(
            sieved(found[name], neighbours, told, clock.timed)
            for name in found
            if name in names
            for told in [partial(marked, bounds=bounds, wanted=wanted, told=name in SOLVED)]
        ),
        *(sieved(proposer, Sieve(screen), clock.timed) for proposer in source.proposers),
    ]
    return PairSource(
        source.given,
        [*users, sieved(by_movement, neighbours), *timed],
        source.generated,
        bounds,
        lambda: [note for of in notes for note in of()],
        screener=by_movement,
    )


def _space(promise: Promise, relation: Relation, source: PairSource) -> Space | None:
    """The inputs to search; None where the claim does not say what they are."""
    inputs = promise.inputs
    if any(pair.params for pair in source.given):
        return None
    if isinstance(inputs, Queries):
        inputs = [data for pair in source.given for data in (pair.d1, pair.d2)]
    elif not (isinstance(inputs, list | tuple) and isinstance(relation, OfRecords)):
        return None
    is_one_kind = len({kind_of(example)[:1] for example in inputs}) == 1
    return Space(inputs, relation) if is_one_kind else None
