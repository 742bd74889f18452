"""Every neighbouring pair that example datasets give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import describe, key, kind_of, records_of
from pytest_dp.data.conversion import (
    length,
    select_rows,
)
from pytest_dp.data.neighbours import MAX_PAIRS
from pytest_dp.data.ordering import accept_until, distinct, in_turn
from pytest_dp.data.record_pool import Positions, RecordPool
from pytest_dp.data.record_relations import AddRemoveOne, ReplaceOne
from pytest_dp.data.relations import OfFunction, OfRecords, Pair, Predicate, Relation
from pytest_dp.data.units import Step, exchange_positions
from pytest_dp.pairs.examples import EVERYTHING, Bounds, Examples
from pytest_dp.pairs.large import (
    LARGE_ROWS,
    choose_rows,
    pair_at,
    pairs_without_one,
    pools_of,
    whole_of,
)
from pytest_dp.pairs.resolving import refuse_unfit_examples

LARGE_EXAMPLE = 64
"""Records from which pairs are made of parts of an example too. Fewer: whole ones come late."""
PAIRS_OF_LARGE = 12
"""Pairs of large examples that come first. More are slow; fewer may miss the one that leaks."""
MAX_FAILURES = 64
"""Pairs in a row that may be outside of the claim. With fewer, later ones inside are missed."""
FIRST_PAIRS = 64
"""Pairs that come first. More share the samples; fewer may miss the one that leaks."""
MAX_LEFT_OUT = 24
"""Records of an example that are left out in turn. More make more pairs, by their square."""
MAX_COPIED = 100_000
"""Records of all these copies. With more, an audit of a large example starts late."""
MAX_WHOLE_ROWS = 2_000_000
"""Rows of all pairs of whole large examples that come first. More take more memory."""
FURTHER_WHOLES = 4
"""How many times as many such pairs a search may propose. More take more memory."""


@dataclass(frozen=True, slots=True)
class Derived:
    """The pairs that a claim's inputs give: given ones, and an iterator of further ones."""

    given: list[Pair]
    """Pairs that are tried in any case, at least one."""
    rest: Iterator[Pair] = field(default_factory=lambda: iter(()))
    """Further pairs, made when they are asked for; pairs outside of the claim come last."""
    note: str = ""
    """For people: which pairs are tried, if not all are."""
    bounds: Bounds = EVERYTHING
    """Says which inputs are inside the claim."""
    examples: Sequence[Any] | None = None
    """Of large examples the rows that searches begin with, [] if pairs are whole; else None."""
    wholes: Iterator[Pair] = field(default_factory=lambda: iter(()))
    """Each large example paired with itself without one of these rows, or one unit."""


def derive_pairs(examples: Sequence[Any], relation: OfRecords) -> Derived:
    """Return pairs of each example D with neighbours D' made of the examples' records.

    The smallest and largest records come first, and pairs outside of the claim last. If no pair is
    inside, as for one example under "replace_one", neighbours count as examples too, unless D'
    repeats an id or mixes examples; if that gives none, D and D' each leave out one record.

    Of an example of over `LARGE_ROWS` rows, some rows stand for all. If records may be added or
    removed, pairs hold these rows only; else all others stay as they are. Raises ClaimError if the
    examples do not fit the relation, or give no pair inside the claim.
    """
    if not examples:
        raise _no_examples_error(examples)
    kept = [
        choose_rows(data, relation.unit) if kind_of(data) and length(data) > LARGE_ROWS else None
        for data in examples
    ]
    if not any(kept):
        return _derive_from_read(examples, relation)
    few = [
        example if rows is None else select_rows(example, rows)
        for example, rows in zip(examples, kept, strict=True)
    ]
    read = sum(len(rows) for rows in kept if rows)
    note = (
        f"of large inputs, {read:,} rows are looked at (extremes of each column, one of each "
        "category, random ones)"
    )
    if isinstance(relation, AddRemoveOne):
        pairs = _derive_from_read(few, relation)
        note = f"{note}; pairs are made of these"
        wholes = pairs_without_one(pools_of(examples, kept), relation)
        pairs = replace(pairs, examples=few, wholes=wholes)
    else:
        pairs = _derive_from_read(few, relation, pools_of(examples, kept))
        most = max(MAX_WHOLE_ROWS // max(map(length, examples)), 1)
        rest = chain(pairs.given[most:], pairs.rest)
        pairs = replace(
            pairs,
            given=list(map(whole_of, pairs.given[:most])),
            rest=map(whole_of, islice(rest, FURTHER_WHOLES * most)),
            examples=[],
        )
    return replace(pairs, note="; ".join(filter(None, (note, pairs.note))))


def _derive_from_read(
    examples: Sequence[Any],
    relation: OfRecords,
    sources: Sequence[tuple[RecordPool, Positions]] | None = None,
) -> Derived:
    """Return the pairs of small examples, or of the rows that are read of large `sources`.

    `sources` are pools of records, each with the positions of one example. Raises ClaimError if the
    examples do not fit the relation, or give no pair inside the claim.
    """
    refuse_unfit_examples(examples, relation)
    # Small examples first, and one pair of each in turn: the first pairs are short and diverse.
    pools = pools_of(examples) if sources is None else sources
    sources = sorted(pools, key=lambda source: len(source[1]))
    if not any(map(length, examples)):
        raise _no_pair_error(examples, relation)
    bounds, outside = Examples(examples, relation), list[Pair]()
    pairs = Derived([])
    if len(examples) > 1 or relation.name != "replace_one":  # which would repeat a record
        pairs = _sift_pairs(
            sources, relation, lambda made: _sift_inside(made, bounds.beyond, outside)
        )
        pairs = replace(pairs, rest=chain(pairs.rest, outside))
    if not pairs.given:
        pairs = _sift_pairs(
            sources, relation, lambda made: _sift_inside(made, bounds.describe_mixture, outside)
        )
        bounds = Examples(examples, relation, [pair.d2 for pair in pairs.given])
    if not pairs.given and isinstance(relation, ReplaceOne) and relation.group == 1:
        by_leaving_out = _pairs_by_leaving_out(examples, relation, pools)
        if by_leaving_out.given:
            return by_leaving_out
    if not pairs.given and outside:
        raise ClaimError(
            f"inputs={describe(examples)} give no pair under {relation} but with "
            f"{outside[0].beyond}, which may be more than the mechanism takes. Write a further "
            "example with other records, or the pairs themselves, as pairs=."
        )
    return replace(_require_pairs(pairs, examples, relation), bounds=bounds)


def _pairs_by_leaving_out(
    examples: Sequence[Any], relation: ReplaceOne, sources: Sequence[tuple[RecordPool, Positions]]
) -> Derived:
    """Return pairs of an example without one record, and the same example without another one.

    At most `MAX_LEFT_OUT` records of an example are left out in turn; with units, all rows of a
    unit. These datasets count as examples. Empty if no two of these records differ.
    """
    subsets, pairs = list[Any](), list[Pair]()
    for pool, rows in sources:
        count = min(MAX_LEFT_OUT, max(MAX_COPIED // max(pool.length(rows), 1), 2))
        without = []
        for member in islice(relation.members(pool, rows), count):
            left = exchange_positions(rows, tuple(sorted(member.at)))
            without.append((member, left, pool.dataset(pool.drop_gaps(left))))
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
    return replace(
        split_first(distinct(pairs, lambda pair: pair.content)), note=note, bounds=bounds
    )


def _sift_pairs(
    sources: Sequence[tuple[RecordPool, Positions]],
    relation: OfRecords,
    sieve: Callable[[Iterator[Pair]], Iterator[Pair]],
) -> Derived:
    """Return the pairs of all sources that a sieve yields, those of each source in turn.

    An example of more than `LARGE_EXAMPLE` records gives pairs of a small part of it too, unless
    only some of its rows are read; fewer pairs are then given ones.
    """
    offered = {pool: [rows for its, rows in sources if its is pool] for pool, _ in sources}
    large = [(pool, rows) for pool, rows in sources if len(rows) > LARGE_EXAMPLE]
    parts = [
        (pool, relation.representative_positions(pool, rows))
        for pool, rows in large
        if not pool.gaps
    ]
    small = [source for source in sources if source not in large]
    pairs = sieve(_new_pairs([*small, *parts, *large], offered, relation, set()))
    return split_first(pairs, PAIRS_OF_LARGE if parts else FIRST_PAIRS)


def _sift_inside(
    pairs: Iterator[Pair], beyond: Callable[[Pair], str], outside: list[Pair]
) -> Iterator[Pair]:
    """Yield the pairs inside the claim, and append the others to `outside`.

    `beyond` returns in words what of a pair is outside, "" for a pair inside. Ends after
    `MAX_FAILURES` pairs outside in a row.
    """

    def accept(pair: Pair) -> Pair | None:
        what = beyond(pair)
        if what:
            outside.append(replace(pair, beyond=what))
        return None if what else pair

    return accept_until(pairs, accept, MAX_FAILURES)


def split_first(pairs: Iterator[Pair], first: int = FIRST_PAIRS) -> Derived:
    """Return the `first` pairs as given, the others as the rest, and a note if there are others."""
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
    """Yield pairs of each dataset with its neighbours, a pair of each dataset in turn.

    Leaves out pairs whose contents are in `seen`, adds the others to `seen`, and ends once `seen`
    holds `MAX_PAIRS`. New records come from the datasets `offered` for a pool.
    """

    def pairs_of(pool: RecordPool, rows: Positions) -> Iterator[Pair]:
        d1, content = pool.dataset(pool.drop_gaps(rows)), pool.content(rows)
        for moved, steps in relation.neighbour_positions(pool, rows, offered[pool]):
            both = frozenset((content, pool.content(moved)))
            if len(seen) == MAX_PAIRS:
                return
            if both not in seen:
                seen.add(both)
                yield pair_at(pool, relation, (rows, d1), (moved, None), steps)

    return in_turn(pairs_of(pool, rows) for pool, rows in sources)


def pairs_by_function(examples: Sequence[Any], relation: OfFunction) -> Derived:
    """Return the pairs of examples of any type that a user's function accepts or yields.

    Pairs of each example with its neighbours come in turn; under a predicate, each turn begins with
    two examples that it accepts. If all examples are datasets, its pairs with other records come
    last, unless there are no others. Raises ClaimError if there is no pair.
    """
    if not examples:
        raise _no_examples_error(examples)
    known = [
        record for data in examples for record in (records_of(data) if kind_of(data) else [data])
    ]
    ways = [relation.pairs(data, known) for data in sorted(examples, key=_size)]
    if isinstance(relation, Predicate):
        both = (Pair(a, b) for a, b in combinations(examples, 2) if key(a) != key(b))
        ways.insert(0, relation.filter_pairs(both))
    pairs = islice(distinct(in_turn(ways), lambda pair: pair.content), MAX_PAIRS)
    tables = [data for data in examples if kind_of(data)]
    all_tables = len(tables) == len(examples) and any(map(length, tables))
    if not isinstance(relation, Predicate) or not all_tables:
        return _require_pairs(split_first(pairs), examples, relation)
    bounds, outside = Examples(examples, AddRemoveOne()), list[Pair]()
    inside = split_first(_sift_inside(pairs, bounds.beyond, outside))
    if not inside.given:
        stated = (replace(pair, beyond="") for pair in outside)
        return _require_pairs(split_first(stated), examples, relation)
    return replace(inside, rest=chain(inside.rest, outside), bounds=bounds)


def _size(example: Any) -> int:
    return length(example) if kind_of(example) else 0


def _require_pairs(pairs: Derived, examples: Sequence[Any], relation: Relation) -> Derived:
    """Return the pairs unchanged; raise ClaimError if none is given."""
    if pairs.given:
        return pairs
    raise _no_pair_error(examples, relation)


def _no_pair_error(examples: Sequence[Any], relation: Relation) -> ClaimError:
    """Return the error that examples give no pair of neighbours."""
    start = f"inputs={describe(examples)} give no pair under {relation}: "
    if isinstance(relation, OfFunction):
        return ClaimError(
            f"{start}{relation.shown_name} accepts or yields none. Write examples that have "
            "neighbours, or the pairs themselves, such as pairs=[([1, 0], [1])]."
        )
    needs = relation.needs if isinstance(relation, OfRecords) else "a record"
    return ClaimError(
        f"{start}at least {needs} must occur in them. Write for example inputs=[[1, 0], [1]]."
    )


def _no_examples_error(examples: Sequence[Any]) -> ClaimError:
    return ClaimError(
        f"inputs={examples!r} holds no dataset. Write at least one, such as inputs=[[1, 0]]."
    )
