"""The pairs that a claim states, and every neighbouring pair that example datasets give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import describe, key, kind_of, records_of
from pytest_dp.data.conversion import (
    describe_non_dataset,
    length,
    refuse_several_tables,
    taken_rows,
)
from pytest_dp.data.neighbours import MAX_PAIRS
from pytest_dp.data.ordering import accept_until, distinct, in_turn
from pytest_dp.data.record_pool import Positions, RecordPool
from pytest_dp.data.record_relations import AddRemoveOne, ReplaceOne
from pytest_dp.data.relations import OfFunction, OfRecords, Pair, Predicate, Relation
from pytest_dp.data.units import Step, exchange_positions
from pytest_dp.pairs.examples import EVERYTHING, Bounds, Examples
from pytest_dp.pairs.large import (
    neighbours_of,
    pair_at,
    pairs_without_one,
    pools_of,
    representative_rows,
    whole_of,
)

LARGE_EXAMPLE = 64
"""Records from which an example is large, so that pairs are of parts of it as well. Larger and
smaller: other pairs come first."""
PAIRS_OF_LARGE = 12
"""Pairs of large examples that come first, of parts of them and of all in turn. More share the
samples, and are slow; fewer may miss the one that leaks."""
MAX_FAILURES = 64
"""Pairs in a row that may be outside of the claim. More take longer; fewer: the next one inside is
not found."""
FIRST_PAIRS = 64
"""Pairs that come first, where there are many. More share the samples; fewer may miss the one that
leaks."""
MAX_LEFT_OUT = 24
"""How many records of an example are left out in turn, those of extreme values first. More make
more pairs, by their square, each of a copy of the example."""
MAX_COPIED = 100_000
"""How many records these copies have together, about. With more, an audit of a large example
starts late."""
MAX_WHOLE_ROWS = 2_000_000
"""Rows of all pairs of whole large examples that are tried in any case. With more, they take more
memory; with fewer, an audit begins with fewer pairs."""
FURTHER_WHOLES = 4
"""How many times as many pairs of whole large examples a search may propose. More take more memory,
which holds each input twice."""


@dataclass(frozen=True, slots=True)
class Derived:
    """Pairs that follow from examples."""

    given: list[Pair]
    """Those that are tried in any case, at least one."""
    rest: Iterator[Pair] = field(default_factory=lambda: iter(()))
    """The other ones, made when they are asked for; pairs beyond the claim come last."""
    note: str = ""
    """What is given, if that is not all."""
    bounds: Bounds = EVERYTHING
    """What is inside the claim."""
    examples: Sequence[Any] | None = None
    """Of large examples the rows that stand for all: what searches are to begin with."""
    wholes: Iterator[Pair] = field(default_factory=lambda: iter(()))
    """Each large example beside itself without one of these rows, or all of one unit."""


def stated_pair(where: str, d1: Any, d2: Any, relation: Relation | None) -> Pair:
    """Return a pair that the claim states, checked; errors say where."""
    pair = Pair(d1, d2) if relation is None else relation.between(d1, d2)
    if isinstance(pair, Pair) and isinstance(relation, OfRecords):  # and so other records
        return pair
    both = f"D = {describe(d1)} and D' = {describe(d2)}"
    if key(d1) == key(d2):
        raise ClaimError(
            f"{where} is not a pair of neighbours: {both} are identical, so no mechanism could "
            "distinguish them. Write two inputs that differ, such as "
            f"{(relation or AddRemoveOne()).example}."
        )
    if isinstance(pair, str):
        assert relation is not None  # or nothing would be asked
        raise ClaimError(
            f"{where} is not a pair of neighbours under {relation}: {both}; {pair}. Required: "
            f"{relation.required}, such as {relation.example}. Correct the pair, or leave "
            "neighbors= out to audit it as it stands."
        )
    return pair


def derive_pairs(examples: Sequence[Any], relation: OfRecords) -> Derived:
    """Return pairs of one of the examples with each of its neighbours made of records seen in any.

    The smallest and largest records come first. Of large examples: those of a part of few records
    that matter, then of the whole. Pairs that are beyond the examples come after all others. Where
    they are all that the relation makes, as where a record of a single example is replaced, these
    neighbours count as examples too, unless they repeat what looks like an id, or mix examples:
    then a record is replaced by leaving out one or another.

    Of examples of thousands of rows, some rows stand for all. Where a dataset may be of any length,
    pairs are made of these; elsewhere the other rows stay as they are.
    """
    if not examples:
        raise _no_examples(examples)
    kept = [representative_rows(example, relation) for example in examples]
    if not any(kept):
        return _derive_from(examples, relation)
    few = [
        example if rows is None else taken_rows(example, rows)
        for example, rows in zip(examples, kept, strict=True)
    ]
    read = sum(len(rows) for rows in kept if rows)
    note = (
        f"of large inputs, {read:,} rows are looked at (extremes of each column, one of each "
        "category, random ones)"
    )
    if isinstance(relation, AddRemoveOne):
        pairs = _derive_from(few, relation)
        note = f"{note}; pairs are made of these"
        wholes = pairs_without_one(pools_of(examples, kept), relation)
        pairs = replace(pairs, examples=few, wholes=wholes)
    else:
        pairs = _derive_from(few, relation, pools_of(examples, kept))
        most = max(MAX_WHOLE_ROWS // max(map(length, examples)), 1)
        rest = chain(pairs.given[most:], pairs.rest)
        pairs = replace(
            pairs,
            given=list(map(whole_of, pairs.given[:most])),
            rest=map(whole_of, islice(rest, FURTHER_WHOLES * most)),
            examples=[],
        )
    return replace(pairs, note="; ".join(filter(None, (note, pairs.note))))


def _derive_from(
    examples: Sequence[Any],
    relation: OfRecords,
    sources: Sequence[tuple[RecordPool, Positions]] | None = None,
) -> Derived:
    """Return the pairs derived from small examples, or from the rows read of large `sources`."""
    _check(examples, relation)
    # Small examples first, and one pair of each in turn: the first pairs are short and diverse.
    pools = pools_of(examples) if sources is None else sources
    sources = sorted(pools, key=lambda source: len(source[1]))
    if not any(map(length, examples)):
        raise _no_pair(examples, relation)
    bounds, outside = Examples(examples, relation), list[Pair]()
    pairs = Derived([])
    if len(examples) > 1 or relation.name != "replace_one":  # which would repeat a record
        pairs = _sift_pairs(sources, relation, lambda made: _inside(made, bounds.beyond, outside))
        pairs = replace(pairs, rest=chain(pairs.rest, outside))
    if not pairs.given:
        pairs = _sift_pairs(sources, relation, lambda made: _inside(made, bounds.unlike, outside))
        bounds = Examples(examples, relation, [pair.d2 for pair in pairs.given])
    if not pairs.given and isinstance(relation, ReplaceOne) and relation.group == 1:
        by_leaving_out = _by_leaving_out(examples, relation, pools)
        if by_leaving_out.given:
            return by_leaving_out
    if not pairs.given and outside:
        raise ClaimError(
            f"inputs={describe(examples)} give no pair under {relation} but with "
            f"{outside[0].beyond}, which may be more than the mechanism takes. Write a further "
            "example with other records, or the pairs themselves, as pairs=."
        )
    return replace(_not_empty(pairs, examples, relation), bounds=bounds)


def _by_leaving_out(
    examples: Sequence[Any], relation: ReplaceOne, sources: Sequence[tuple[RecordPool, Positions]]
) -> Derived:
    """Return pairs of what is left of an example without one record, and without another one.

    Each of these two has a record that the other one has not, and no record repeats. They count as
    examples. With units, all rows of one are left out.
    """
    subsets, pairs = list[Any](), list[Pair]()
    for pool, rows in sources:
        count = min(MAX_LEFT_OUT, max(MAX_COPIED // max(pool.length(rows), 1), 2))
        without = []
        for member in islice(relation.members(pool, rows), count):
            left = exchange_positions(rows, tuple(sorted(member.at)))
            without.append((member, left, pool.dataset(pool.kept(left))))
        for (gone, left1, d1), (new, left2, d2) in combinations(without, 2):
            if gone.key != new.key:
                step = Step(new.name, len(new.at), gone.name, len(gone.at))
                pairs.append(pair_at(pool, relation, (left1, d1), (left2, d2), [step]))
        subsets += [data for _, _, data in without]
    what = "record" if relation.unit is None else "unit"
    note = (
        f"pairs are made of the inputs without one {what} and without another, as no further "
        f"{what} is known; these count as inputs"
    )
    bounds = Examples([*examples, *subsets], relation)
    return replace(leading(distinct(pairs, lambda pair: pair.content)), note=note, bounds=bounds)


def _sift_pairs(
    sources: Sequence[tuple[RecordPool, Positions]],
    relation: OfRecords,
    sieve: Callable[[Iterator[Pair]], Iterator[Pair]],
) -> Derived:
    """Return the pairs that a sieve accepts; of large examples, also those of a small part."""
    offered = {pool: [rows for its, rows in sources if its is pool] for pool, _ in sources}
    large = [(pool, rows) for pool, rows in sources if len(rows) > LARGE_EXAMPLE]
    parts = [(pool, relation.part(pool, rows)) for pool, rows in large if not pool.gaps]
    small = [source for source in sources if source not in large]
    pairs = sieve(_new_pairs([*small, *parts, *large], offered, relation, set()))
    return leading(pairs, PAIRS_OF_LARGE if parts else FIRST_PAIRS)


def _inside(
    pairs: Iterator[Pair], beyond: Callable[[Pair], str], outside: list[Pair]
) -> Iterator[Pair]:
    """Return the pairs inside the claim, until too many in a row are put in `outside`."""

    def accept(pair: Pair) -> Pair | None:
        what = beyond(pair)
        if what:
            outside.append(replace(pair, beyond=what))
        return None if what else pair

    return accept_until(pairs, accept, MAX_FAILURES)


def leading(pairs: Iterator[Pair], first: int = FIRST_PAIRS) -> Derived:
    """Return the first pairs, and the rest."""
    given = list(islice(pairs, first))
    following = list(islice(pairs, 1))
    note = (
        f"of the pairs that follow from the inputs, {first} come first; the others are "
        "tried while there is time"
    )
    return Derived(given, chain(following, pairs), note * bool(following))


def _new_pairs(
    sources: Sequence[tuple[RecordPool, Positions]],
    offered: Mapping[RecordPool, Sequence[Positions]],
    relation: OfRecords,
    seen: set[frozenset[bytes]],
) -> Iterator[Pair]:
    """Yield the pairs of datasets, one of each in turn, that were not seen before."""
    for pool, rows, d1, content, moved, steps in in_turn(
        neighbours_of(pool, rows, offered[pool], relation) for pool, rows in sources
    ):
        both = frozenset((content, pool.content(moved)))
        if both not in seen:
            if len(seen) == MAX_PAIRS:
                return
            seen.add(both)
            yield pair_at(pool, relation, (rows, d1), (moved, None), steps)


def by_function(examples: Sequence[Any], relation: OfFunction) -> Derived:
    """Return pairs by a function of the user's, of examples that may be anything.

    Those of two examples by a predicate, then each example with each of its neighbours, in turn.
    What a predicate accepts says which datasets are neighbours, not which ones there are: pairs
    beyond the examples come last, unless there are no others.
    """
    if not examples:
        raise _no_examples(examples)
    known = [
        record for data in examples for record in (records_of(data) if kind_of(data) else [data])
    ]
    ways = [relation.pairs(data, known) for data in sorted(examples, key=_size)]
    if isinstance(relation, Predicate):
        both = (Pair(a, b) for a, b in combinations(examples, 2) if key(a) != key(b))
        ways.insert(0, relation.accepted(both))
    pairs = islice(distinct(in_turn(ways), lambda pair: pair.content), MAX_PAIRS)
    tables = [data for data in examples if kind_of(data)]
    all_tables = len(tables) == len(examples) and any(map(length, tables))
    if not isinstance(relation, Predicate) or not all_tables:
        return _not_empty(leading(pairs), examples, relation)
    bounds, outside = Examples(examples, AddRemoveOne()), list[Pair]()
    inside = leading(_inside(pairs, bounds.beyond, outside))
    if not inside.given:
        stated = (replace(pair, beyond="") for pair in outside)
        return _not_empty(leading(stated), examples, relation)
    return replace(inside, rest=chain(inside.rest, outside), bounds=bounds)


def _size(example: Any) -> int:
    return length(example) if kind_of(example) else 0


def _not_empty(pairs: Derived, examples: Sequence[Any], relation: Relation) -> Derived:
    """Return the same pairs, if there are any."""
    if pairs.given:
        return pairs
    raise _no_pair(examples, relation)


def _no_pair(examples: Sequence[Any], relation: Relation) -> ClaimError:
    start = f"inputs={describe(examples)} give no pair under {relation}: "
    if isinstance(relation, OfFunction):
        return ClaimError(
            f"{start}{relation.called} accepts or yields none. Write examples that have "
            "neighbours, or the pairs themselves, such as pairs=[([1, 0], [1])]."
        )
    needs = relation.needs if isinstance(relation, OfRecords) else "a record"
    return ClaimError(
        f"{start}at least {needs} must occur in them. Write for example inputs=[[1, 0], [1]]."
    )


def _no_examples(examples: Sequence[Any]) -> ClaimError:
    return ClaimError(
        f"inputs={examples!r} holds no dataset. Write at least one, such as inputs=[[1, 0]]."
    )


def _check(examples: Sequence[Any], relation: OfRecords) -> None:
    if not examples:
        raise _no_examples(examples)
    for at, example in enumerate(examples):
        refuse_several_tables(f"inputs[{at}]", example, relation.unit)
        if not kind_of(example):
            raise ClaimError(
                f"inputs[{at}]={describe(example)}, {describe_non_dataset(example)}. If all of "
                f"inputs= is one dataset, write a list of it: inputs={describe([examples])}."
            )
        unfit = relation.check(example)
        if unfit:
            raise ClaimError(
                f"inputs[{at}] is {describe(example)}: {unfit}. Leave some of them out, or promise "
                "more."
            )
