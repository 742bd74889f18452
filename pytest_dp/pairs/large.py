"""Pairs of datasets at positions in pools; of large examples, few rows stand for all.

A pair is looked at by the rows that are read of it. The whole pair has all other rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pytest_dp.data import kind_of
from pytest_dp.data.conversion import joined_as, length
from pytest_dp.data.ordering import in_turn
from pytest_dp.data.record_pool import Positions, RecordPool, ThinPool
from pytest_dp.data.record_relations import AddRemoveOne, OfRecords
from pytest_dp.data.relations import Pair
from pytest_dp.data.thinning import kept_rows
from pytest_dp.data.types import Kind
from pytest_dp.data.units import Step

LARGE_ROWS = 2_000
"""Rows of an example beyond which some of them stand for all. With more, the first pair comes
later."""


@dataclass(frozen=True, slots=True)
class PartialPair(Pair):
    """A pair of the rows that are read of large datasets, and how to make that of the whole."""

    whole: Callable[[], Pair] = field(kw_only=True)


def representative_rows(example: Any, relation: OfRecords) -> list[int] | None:
    """Return the rows of a large example that stand for all; None of others."""
    if not kind_of(example) or length(example) <= LARGE_ROWS:
        return None
    return kept_rows(example, relation.unit)


def pools_of(
    examples: Sequence[Any], kept: Sequence[list[int] | None] = ()
) -> list[tuple[RecordPool, Positions]]:
    """Return each example as positions in its kind's pool; few rows of large ones are `kept`."""
    kinds = [(*kind_of(example), joined_as(example)) for example in examples]
    for at, (name, detail, content) in enumerate(kinds):
        if not content:
            # The type of an empty array or data frame says little: it takes that of another.
            alike = (kind for kind in kinds if kind[:2] == (name, detail) and kind[2])
            kinds[at] = next(alike, kinds[at])
    members: dict[Kind, list[int]] = {}
    for at, kind in enumerate(kinds):
        members.setdefault(kind, []).append(at)
    found: dict[int, tuple[RecordPool, Positions]] = {}
    for its in members.values():
        datasets, rows = [examples[at] for at in its], [kept[at] if kept else None for at in its]
        pool = RecordPool(datasets) if not any(rows) else ThinPool(datasets, rows)
        found |= {at: (pool, positions) for at, positions in zip(its, pool.given, strict=True)}
    return [found[at] for at in range(len(examples))]


def neighbours_of(
    pool: RecordPool, rows: Positions, offered: Sequence[Positions], relation: OfRecords
) -> Iterator[tuple[RecordPool, Positions, Any, bytes, Positions, Sequence[Step]]]:
    """Yield the pool, a dataset and its content; a neighbour's positions and what leads to it.

    The dataset is that of the rows that are read.
    """
    d1, content = pool.dataset(pool.kept(rows)), pool.content(rows)
    for moved, steps in relation.moves(pool, rows, offered):
        yield pool, rows, d1, content, moved, steps


def pair_at(
    pool: RecordPool,
    relation: OfRecords,
    before: tuple[Positions, Any],
    after: tuple[Positions, Any],
    steps: Sequence[Step],
) -> Pair:
    """Return the pair of datasets at these positions, of which those that are None are made.

    Of large ones, it has the rows that are read.
    """
    (rows, d1), (moved, d2) = before, after
    d2 = pool.dataset(pool.kept(moved)) if d2 is None else d2
    pair = relation.pair_of(d1, d2, steps)
    if not pool.gaps:
        return pair
    made = partial(_whole_pair, pool, relation, rows, moved, steps)
    return PartialPair(d1, d2, pair.difference, pair.opposite, whole=made)


def _whole_pair(
    pool: RecordPool, relation: OfRecords, rows: Positions, moved: Positions, steps: Sequence[Step]
) -> Pair:
    """Return a pair of large datasets."""
    d1, d2 = pool.dataset(rows), pool.dataset(moved)
    digests = (d1, pool.content(rows)), (d2, pool.content(moved))
    return replace(relation.pair_of(d1, d2, steps), digests=digests)


def whole_of(pair: Pair) -> Pair:
    """Return the pair of large datasets of which a pair has the rows that are read."""
    return replace(pair.whole(), beyond=pair.beyond) if isinstance(pair, PartialPair) else pair


def pairs_without_one(
    sources: Sequence[tuple[RecordPool, Positions]], relation: AddRemoveOne
) -> Iterator[Pair]:
    """Yield each large example beside itself without one of the rows, or units, that are read."""
    for pool, rows, _, _, moved, steps in in_turn(
        neighbours_of(pool, rows, [], relation) for pool, rows in sources if pool.gaps
    ):
        yield _whole_pair(pool, relation, rows, moved, steps)
