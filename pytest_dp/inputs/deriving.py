"""Every neighbouring pair that example datasets give."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any

from pytest_dp.datasets import describe, key, kind_of, records_of
from pytest_dp.datasets.exchanges import pair_of
from pytest_dp.datasets.making import joined_as, length, no_dataset
from pytest_dp.datasets.pool import Pool, Positions, in_turn
from pytest_dp.datasets.relations import OfFunction, OfRecords, Pair, Predicate
from pytest_dp.datasets.steps import Step
from pytest_dp.datasets.types import Kind
from pytest_dp.errors import ClaimError

MAX_PAIRS = 512
"""Most pairs that are derived for one claim."""

MAX_RECORDS = 16_000_000
"""Deriving stops once the pairs hold this many records in all, though not before the 16th."""


def derived(examples: Sequence[Any], relation: OfRecords) -> list[Pair]:
    """Pairs of one of the examples with each of its neighbours made of records seen in any.

    Where there are more than `MAX_PAIRS`, the smallest and largest records are tried first.
    """
    _check(examples, relation)
    # Small examples first, and one pair of each in turn: the first pairs are short and diverse.
    sources = sorted(_pooled(examples), key=lambda source: len(source[1]))
    pairs: list[Pair] = []
    seen: set[frozenset[int]] = set()
    records = 0
    offered = {pool: [own for other, own in sources if other is pool] for pool, _ in sources}
    for pool, d1, content, moved, steps in in_turn(
        _neighbours(pool, own, offered[pool], relation) for pool, own in sources
    ):
        both = frozenset((content, pool.content(moved)))
        if both in seen:
            continue
        if len(pairs) >= MAX_PAIRS or (records > MAX_RECORDS and len(pairs) >= 16):
            break
        seen.add(both)
        records += len(moved)
        pairs.append(pair_of(d1, pool.dataset(moved), steps))
    if not pairs:
        raise ClaimError(
            f"inputs={describe(examples)} give no pair under {relation}: at least "
            f"{relation.needs} must occur in them. Write for example inputs=[[1, 0], [1]]."
        )
    return pairs


def _neighbours(
    pool: Pool, own: Positions, offered: Sequence[Positions], relation: OfRecords
) -> Iterator[tuple[Pool, Any, int, Positions, Sequence[Step]]]:
    """The pool, a dataset and its content; a neighbour's positions and what leads to it."""
    d1, content = pool.dataset(own), pool.content(own)
    for moved, steps in relation.moves(pool, own, offered):
        yield pool, d1, content, moved, steps


def told(examples: Sequence[Any], relation: OfFunction) -> list[Pair]:
    """Pairs that a function tells, of examples that may be anything.

    Those of two examples by a predicate, then each example with each of its neighbours, in turn.
    """
    if not examples:
        raise _none(examples)
    known = [record for one in examples for record in (records_of(one) if kind_of(one) else [one])]
    ways = [relation.pairs(one, known) for one in sorted(examples, key=_size)]
    if isinstance(relation, Predicate):
        both = (Pair(a, b) for a, b in combinations(examples, 2) if key(a) != key(b))
        ways.insert(0, relation.accepted(both))
    pairs: dict[frozenset[Hashable], Pair] = {}
    for pair in in_turn(ways):
        pairs.setdefault(frozenset((hash(key(pair.d1)), hash(key(pair.d2)))), pair)
        if len(pairs) == MAX_PAIRS:
            break
    if not pairs:
        raise ClaimError(
            f"inputs={describe(examples)} give no pair under {relation}: {relation.called} accepts "
            "or yields none. Write examples that have neighbours, or the pairs themselves, such as "
            "pairs=[([1, 0], [1])]."
        )
    return list(pairs.values())


def _size(example: Any) -> int:
    return length(example) if kind_of(example) else 0


def _none(examples: Sequence[Any]) -> ClaimError:
    return ClaimError(
        f"inputs={examples!r} holds no dataset. Write at least one, such as inputs=[[1, 0]]."
    )


def _check(examples: Sequence[Any], relation: OfRecords) -> None:
    if not examples:
        raise _none(examples)
    for at, example in enumerate(examples):
        if not kind_of(example):
            raise ClaimError(
                f"inputs[{at}] is {describe(example)}, {no_dataset(example)}. If all of inputs= "
                f"is one dataset, write a list of it: inputs={describe([examples])}."
            )
        unfit = relation.check(example)
        if unfit:
            raise ClaimError(
                f"inputs[{at}] is {describe(example)}: {unfit}. Leave some of them out, or promise "
                "more."
            )


def _pooled(examples: Sequence[Any]) -> list[tuple[Pool, Positions]]:
    """Each example as positions in the pool of its kind."""
    kinds = [(*kind_of(example), joined_as(example)) for example in examples]
    for at, (name, detail, content) in enumerate(kinds):
        if not content:
            # The type of an empty array or data frame says little: it takes that of another.
            alike = (kind for kind in kinds if kind[:2] == (name, detail) and kind[2])
            kinds[at] = next(alike, kinds[at])
    members: dict[Kind, list[Any]] = {}
    starts = []
    for kind, example in zip(kinds, examples, strict=True):
        starts.append(sum(map(length, members.setdefault(kind, []))))
        members[kind].append(example)
    pools = {kind: Pool(datasets) for kind, datasets in members.items()}
    return [
        (pools[kind], tuple(range(start, start + length(example))))
        for kind, start, example in zip(kinds, starts, examples, strict=True)
    ]
