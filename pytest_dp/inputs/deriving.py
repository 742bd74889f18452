"""Every neighbouring pair that example datasets give."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from pytest_dp.errors import ClaimError
from pytest_dp.inputs.datasets import describe, ends_first, key, kind_of, records_of
from pytest_dp.inputs.relations import Pair

MAX_PAIRS = 512
"""Most pairs that are derived for one claim."""

MAX_RECORDS = 16_000_000
"""Deriving stops once the pairs hold this many records in all, though not before the 16th."""

_Positions = tuple[int, ...]
_Kind = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Pool:
    """The records of all examples of one kind; a dataset is a tuple of positions in it."""

    kind: _Kind
    rows: Any
    same: list[int]
    """For each position, the first one that holds an equal record."""
    distinct: list[int]
    """The first position of each distinct record, smallest and largest ahead."""

    def dataset(self, positions: _Positions) -> Any:
        """The dataset at these positions, always a new object."""
        match self.kind[0]:
            case "array":
                # An empty list of indices would be one of floats.
                return self.rows[list(positions)] if positions else self.rows[:0].copy()
            case "DataFrame" | "Series":
                return self.rows.iloc[list(positions)].reset_index(drop=True)
        make = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[self.kind[0]]
        return make(self.rows[at] for at in positions)

    @property
    def is_set(self) -> bool:
        return "set" in self.kind[0]

    def content(self, positions: _Positions) -> int:
        """Equal for equal datasets: a hash, since the content itself would fill the memory."""
        found = [self.same[at] for at in positions]
        return hash((id(self), *(sorted(found) if self.is_set else found)))


def derived(examples: Sequence[Any], relation: str) -> list[Pair]:
    """Pairs of one of the examples with each of its neighbours made of records seen in any.

    ``"add_remove_one"``: each record removed, each known record added (at the end).
    ``"replace_one"``: each record replaced by each other known record. Where there are more than
    `MAX_PAIRS`, the smallest and largest records are tried first.
    """
    if not examples:
        raise ClaimError(
            f"inputs={examples!r} holds no dataset. Write at least one, such as inputs=[[1, 0]]."
        )
    _check(examples)
    # Small examples first, and one pair of each in turn: the first pairs are short and diverse.
    sources = sorted(_pooled(examples), key=lambda source: len(source[1]))
    pairs: list[Pair] = []
    seen: set[frozenset[int]] = set()
    records = 0
    neighbours = _in_turn(_neighbours(pool, own, relation) for pool, own in sources)
    for pool, d1, content, moved, difference in neighbours:
        both = frozenset((content, pool.content(moved)))
        if both in seen:
            continue
        if len(pairs) >= MAX_PAIRS or (records > MAX_RECORDS and len(pairs) >= 16):
            break
        seen.add(both)
        records += len(moved)
        pairs.append(Pair(d1, pool.dataset(moved), difference))
    if not pairs:
        needed = "a record" if relation == "add_remove_one" else "two different records"
        raise ClaimError(
            f"inputs={describe(examples)} give no pair under neighbors={relation!r}: at least "
            f"{needed} must occur in them. Write for example inputs=[[1, 0], [1]]."
        )
    return pairs


def _check(examples: Sequence[Any]) -> None:
    for at, example in enumerate(examples):
        if not kind_of(example):
            raise ClaimError(
                f"inputs[{at}] is {describe(example)}, of type {type(example).__name__}, which is "
                "no dataset. Allowed: lists, tuples, sets, arrays or data frames of records. If "
                f"all of inputs= is one dataset, write a list of it: inputs={describe([examples])}."
            )


def _neighbours(
    pool: _Pool, own: _Positions, relation: str
) -> Iterator[tuple[_Pool, Any, int, _Positions, str]]:
    """The pool, a dataset and its content; a neighbour's positions and how it differs."""
    d1, content = pool.dataset(own), pool.content(own)
    rank = {at: order for order, at in enumerate(pool.distinct)}
    # Records that repeat an earlier one come later: what they add matters to few mechanisms.
    times: Counter[int] = Counter()
    rounds: dict[int, list[int]] = {}
    for index, at in enumerate(own):
        times[pool.same[at]] += 1
        rounds.setdefault(times[pool.same[at]], []).append(index)
    for indices in rounds.values():
        indices.sort(key=lambda index: rank[pool.same[own[index]]])
    # A set cannot hold a record twice.
    new = [at for at in pool.distinct if not (pool.is_set and at in times)]
    if relation == "add_remove_one":
        removed = ((own[:at] + own[at + 1 :], "removed") for at in chain(*rounds.values()))
        added = (((*own, at), "added") for at in new)
        for moved, done in _in_turn((removed, added)):
            yield pool, d1, content, moved, f"one record {done}"
        return
    for indices in rounds.values():
        for index, at in _diagonally(indices, new):
            if pool.same[own[index]] != at:
                moved = (*own[:index], at, *own[index + 1 :])
                yield pool, d1, content, moved, "one record replaced"


def _pooled(examples: Sequence[Any]) -> list[tuple[_Pool, _Positions]]:
    """Each example as positions in the pool of its kind."""
    kinds = [_exchange_kind(example) for example in examples]
    for at, example in enumerate(examples):
        if not len(example):
            # The type of an empty array or data frame says little: it takes that of another.
            alike = (kind for kind in kinds if kind[:2] == kinds[at][:2] and kind[2])
            kinds[at] = next(alike, kinds[at])
    members: dict[_Kind, list[Any]] = {}
    starts = []
    for kind, example in zip(kinds, examples, strict=True):
        starts.append(sum(map(len, members.setdefault(kind, []))))
        members[kind].append(example)
    pools = {kind: _pool(kind, datasets) for kind, datasets in members.items()}
    return [
        (pools[kind], tuple(range(start, start + len(example))))
        for kind, start, example in zip(kinds, starts, examples, strict=True)
    ]


def _exchange_kind(example: Any) -> _Kind:
    """The kind, with the type of the numbers of an array: joining others would convert them."""
    name, detail = kind_of(example)
    if not len(example):
        return (name, detail, "")
    if name != "array":
        return (name, detail, "filled")
    family = "number" if example.dtype.kind in "iufc" else example.dtype.kind
    return (name, detail, str(example.dtype) if family == "V" else family)


def _pool(kind: _Kind, datasets: list[Any]) -> _Pool:
    records = [record for dataset in datasets for record in records_of(dataset)]
    first: dict[Hashable, int] = {}
    same = [first.setdefault(key(record), at) for at, record in enumerate(records)]
    seen = list(first.values())
    distinct = [seen[order] for order in ends_first([records[at] for at in seen])]
    rows: Any = records
    filled = [dataset for dataset in datasets if len(dataset)] or datasets[:1]
    if kind[0] == "array":
        rows = sys.modules["numpy"].concatenate(filled)
    elif kind[0] in ("DataFrame", "Series"):
        rows = sys.modules["pandas"].concat(filled, ignore_index=True)
    return _Pool(kind, rows, same, distinct)


def _in_turn(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """The first of each, the second of each, ..."""
    for batch in zip_longest(*iterables):
        yield from (item for item in batch if item is not None)


def _diagonally(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int]]:
    """All combinations, those of early elements ahead."""
    for total in range(len(first) + len(second) - 1):
        for at in range(max(0, total - len(second) + 1), min(total + 1, len(first))):
            yield first[at], second[total - at]
