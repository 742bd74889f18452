"""Pairs around inputs that take new ways at comparisons of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.checks import is_strategy
from pytest_dp.claiming.claim import Promise
from pytest_dp.data import kind_of, records_of
from pytest_dp.data.ordering import distinct
from pytest_dp.data.relations import OfRecords, Pair
from pytest_dp.declaration import Queries
from pytest_dp.pairs.sources import PairSource
from pytest_dp.running.calling import Call

MAX_NEIGHBOURS, MAX_MOVED = 6, 20
"""Neighbours of a dataset, and of answers of queries, that are screened. With fewer, the one that
leaks may be missed; more take the place of other inputs."""
FEWEST_NEIGHBOURS, MAX_TRIES = 3, 8
"""Neighbours that are to come of an input that takes a new way, and rounds of edits for them. With
fewer, an input is found whose neighbours are not."""
ENDS = (127, 255, 32_767, 65_535)
"""The largest whole numbers of small types of numpy: answers one above are cast to others."""
MAX_RECORDS = 24
"""Records of the examples that may come into an input. More make neighbours dearer; fewer miss rare
ones."""


def pairs_around_turns(
    source: PairSource,
    promise: Promise,
    call: Call,
    seed: int,
    constants: Callable[[], Sequence[Any]],
) -> Iterator[Pair]:
    """Yield pairs around inputs that take new ways at comparisons of the code.

    Behind them follow pairs around some drawn inputs, where the claim does not draw any itself.
    There are none for claims about stated pairs, or about values.
    """
    inputs, relation = promise.inputs, promise.relation
    if relation is None or any(pair.params or pair.is_large for pair in source.given):
        return
    from pytest_dp.pairs.edits import DrawnValue
    from pytest_dp.pairs.pair_strategies import can_edit, edited_pairs
    from pytest_dp.proposers.datasets_like import datasets_like
    from pytest_dp.proposers.guided import MAX_DRAWN, Guided, vectors

    known, corners = constants(), list[DrawnValue]()
    ends: tuple[Any, ...] | None = None
    if is_strategy(inputs) and can_edit(relation):
        strategy = inputs
    elif isinstance(inputs, Queries):
        strategy = vectors(inputs.lengths)
        corners = [DrawnValue([end] * n) for n in inputs.lengths for end in ENDS]
    elif _are_datasets(inputs) and isinstance(relation, OfRecords):
        strategy = datasets_like(inputs, relation, known)
        ends = (0, 1, 2)  # most of its choices are places in lists of values
    else:
        return
    guided = Guided(strategy, call, seed, known, ends)
    generated = source.generated
    drawn = [] if generated else [*corners, *guided.donors[:MAX_DRAWN]]
    records: list[Any] = []
    most = MAX_NEIGHBOURS if isinstance(relation, OfRecords) else MAX_MOVED
    if _are_datasets(inputs):
        every = chain.from_iterable(records_of(example) for example in inputs)
        records = list(islice(distinct(every), MAX_RECORDS))
    for made, place in chain(guided.find_openings(), ((one, "") for one in drawn)):
        origin = f"one input takes another way at {Path(place).name}" if place else ""
        chosen: list[Pair] = []
        if generated is None:
            with suppress(ClaimError):  # such as records that nobody owns, under unit=
                chosen += islice(relation.pairs(made.value, records), most)
        for _ in range(0 if records else MAX_TRIES):
            donor = guided.random.choice(guided.donors)
            edited = edited_pairs(strategy, relation, [(made, donor)], guided.random)[0]
            chosen += [generated.keep(one) if generated else one.value for one in edited]
            if len(chosen) >= FEWEST_NEIGHBOURS:
                break
        yield from (replace(pair, origin=origin) for pair in chosen)


def _are_datasets(inputs: Any) -> bool:
    """Return whether these are examples of one kind, at least one of which has a record."""
    if not isinstance(inputs, list | tuple) or not all(map(kind_of, inputs)):
        return False
    return len({kind_of(one)[:1] for one in inputs}) == 1 and any(map(records_of, inputs))
