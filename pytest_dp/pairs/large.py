"""Pairs of datasets at positions in pools of records; of large examples, few rows stand for all.

A pair is chosen by the rows that are read. The pair of the whole has all other rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from random import Random
from typing import Any

from pytest_dp.data import kind_of
from pytest_dp.data.conversion import join_key, length
from pytest_dp.data.fields import columns_of_records
from pytest_dp.data.ordering import in_turn, representative_cells
from pytest_dp.data.record_pool import Positions, RecordPool, ThinPool
from pytest_dp.data.record_relations import AddRemoveOne, OfRecords
from pytest_dp.data.relations import Pair
from pytest_dp.data.types import Kind, type_of
from pytest_dp.data.units import Step, group_by_unit, owners

LARGE_ROWS = 2_000
"""Rows of an example from which some stand for all. With more, the first pair comes later."""
KEPT_ROWS = 1_000
"""Rows that are kept of a large example. With fewer, what few rows have is seen in none."""
MAX_REPRESENTATIVE = KEPT_ROWS // 2
"""Rows that are kept for their values; the others are random."""
MAX_LOOKED = 100_000
"""Rows whose values are read. With fewer, extremes of larger datasets are missed."""
MAX_COLUMNS = 32
"""Columns whose values are read. With more, wide datasets take longer."""
SEED = 0
"""Seed of the random rows, so that each process keeps the same."""


@dataclass(frozen=True, slots=True)
class PartialPair(Pair):
    """A pair of the rows that are read of large datasets, which can make the pair of all rows."""

    whole: Callable[[], Pair] = field(kw_only=True)


def pools_of(
    examples: Sequence[Any], kept: Sequence[list[int] | None] = ()
) -> list[tuple[RecordPool, Positions]]:
    """Return, for each example, its pool of records and its positions in the pool.

    Examples of one type share a pool; an empty example gets the type of a similar one. `kept` has
    the positions of the rows that are read of each large example, None for others.
    """
    kinds = [(*kind_of(example), join_key(example)) for example in examples]
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


def pair_at(
    pool: RecordPool,
    relation: OfRecords,
    before: tuple[Positions, Any],
    after: tuple[Positions, Any],
    steps: Sequence[Step],
) -> Pair:
    """Return the pair of the datasets before and after some `steps`, each given by its positions.

    The dataset comes with its positions; a D' of None is made. In a pool of large examples, return
    a `PartialPair` of the rows that are read.
    """
    (rows, d1), (moved, d2) = before, after
    d2 = pool.dataset(pool.drop_gaps(moved)) if d2 is None else d2
    pair = relation.pair_of(d1, d2, steps)
    if not pool.gaps:
        return pair
    made = partial(_whole_pair, pool, relation, rows, moved, steps)
    return PartialPair(d1, d2, pair.difference, pair.opposite, whole=made)


def _whole_pair(
    pool: RecordPool, relation: OfRecords, rows: Positions, moved: Positions, steps: Sequence[Step]
) -> Pair:
    """Return the pair of datasets at positions before and after `steps`, with all their rows."""
    d1, d2 = pool.dataset(rows), pool.dataset(moved)
    digests = (d1, pool.content(rows)), (d2, pool.content(moved))
    return replace(relation.pair_of(d1, d2, steps), digests=digests)


def whole_of(pair: Pair) -> Pair:
    """Return the pair of all rows that a `PartialPair` stands for; another pair unchanged."""
    return replace(pair.whole(), beyond=pair.beyond) if isinstance(pair, PartialPair) else pair


def pairs_without_one(
    sources: Sequence[tuple[RecordPool, Positions]], relation: AddRemoveOne
) -> Iterator[Pair]:
    """Yield each large example paired with itself without one of its read rows, or units."""

    def pairs_of(pool: RecordPool, rows: Positions) -> Iterator[Pair]:
        for moved, steps in relation.neighbour_positions(pool, rows, []):
            yield _whole_pair(pool, relation, rows, moved, steps)

    return in_turn(pairs_of(pool, rows) for pool, rows in sources if pool.gaps)


def choose_rows(dataset: Any, unit: Any = None) -> list[int]:
    """Return the rising positions of about `KEPT_ROWS` rows that stand for all rows of a dataset.

    Up to half hold the extremes of a column or one of its few values; the others are random, with a
    fixed seed. `MAX_LOOKED` random rows and `MAX_COLUMNS` columns are read. With a `unit`, rows of
    whole units are chosen: the largest, the smallest, and owners of such rows. Raises ClaimError if
    a row has no owner.
    """
    data = type_of(dataset)
    assert data is not None
    order = Random(SEED).sample(range(length(dataset)), min(length(dataset), MAX_LOOKED))
    looked = sorted(order)
    records = data.records(data.take_rows(data.join_rows([dataset]), looked))
    columns = islice(columns_of_records(records), MAX_COLUMNS)
    found = in_turn([looked[at] for at in representative_cells(column)] for column in columns)
    representative = islice(dict.fromkeys(found), MAX_REPRESENTATIVE)
    wanted = dict.fromkeys(chain(representative, order[:KEPT_ROWS]))
    if unit is None:
        return sorted(islice(wanted, KEPT_ROWS))
    return sorted(_whole_units(_owners(dataset, unit), wanted))


def _whole_units(units: Any, wanted: Iterable[int]) -> Iterator[int]:
    """Yield all rows of the largest unit, the smallest one, and units of `wanted` rows that fit.

    `units` has the owner of each row. The first two units are not cut; others come in while there
    are at most `KEPT_ROWS` rows.
    """
    groups = sorted(group_by_unit(units).values(), key=len)
    group_of = {row: number for number, rows in enumerate(groups) for row in rows}
    left = KEPT_ROWS
    for number in dict.fromkeys([len(groups) - 1, 0, *map(group_of.__getitem__, wanted)]):
        rows = groups[number]
        if len(rows) <= left or number in (len(groups) - 1, 0):
            left -= len(rows)
            yield from rows


def _owners(dataset: Any, unit: Any) -> list[Any]:
    """Return the owner of each row: the value in the column `unit`, or that of a function.

    Raises ClaimError if a row has none.
    """
    data = type_of(dataset)
    assert data is not None
    if not callable(unit) and unit in (data.columns(dataset) or ()):
        return list(dataset[unit])
    return owners(dataset, data.records(dataset), unit)
