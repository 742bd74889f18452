"""Strategies of pairs: neighbours of drawn datasets, drawn pairs, given ones with drawn parameters.

What a strategy cannot yield is no part of the promise, and that goes for D and D' alike. Whether it
can yield D' is never guessed: D' is drawn too, from edited choices. Only what the claim makes
itself may be something else: neighbours that a function yields, and null records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from pytest_dp.datasets import describe, kind_of, records_of
from pytest_dp.datasets.conversion import ALLOWED, length
from pytest_dp.datasets.equality import key
from pytest_dp.datasets.relations import (
    AddRemoveOne,
    AnyTwo,
    Neighbours,
    OfRecords,
    Pair,
    Predicate,
    Relation,
    ReplaceOne,
    ReplaceSpecial,
)
from pytest_dp.declaration import Queries
from pytest_dp.errors import ClaimError
from pytest_dp.inputs.deriving import stated_pair
from pytest_dp.inputs.drawing import Drawn, choices_work, draws, remade, traced
from pytest_dp.inputs.edits import Edits
from pytest_dp.limits import DOZENS, HUNDREDS, MILLION, POOL, SEVERAL, THOUSAND
from pytest_dp.reprs import on_one_line

Draw = Callable[[SearchStrategy[Any]], Any]

REJECTED = (
    f"the strategy rejected {THOUSAND:,} draws in a row. Write one with fewer .filter(...) and "
    "assume(...), such as st.lists(st.integers(0, 5)), and with few rows for each unit where the "
    "claim says rows=."
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A strategy of pairs."""

    strategy: SearchStrategy[Pair]
    nothing: str = REJECTED
    """What to say if it yields none."""
    listed: tuple[Pair, ...] = ()
    """Those that it chooses from, if they are given."""

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """The same pairs, each with values of these parameters."""
        if not params:
            return self

        def joined(pair: Pair, *values: Any) -> Pair:
            return replace(pair, params=dict(zip(params, values, strict=True)))

        return replace(self, strategy=st.builds(joined, self.strategy, *params.values()))


def listed(pairs: Sequence[Pair]) -> Pairs:
    """Each of these pairs."""
    return Pairs(st.sampled_from(pairs), listed=tuple(pairs))


def stated(pairs: SearchStrategy[Any], relation: Relation | None) -> Pairs:
    """Pairs (D, D') that a strategy yields, checked against the relation if there is one.

    Those of equal D and D' are left out.
    """

    def checked(drawn: Any) -> Pair | None:
        if not isinstance(drawn, list | tuple) or len(drawn) != 2:
            raise ClaimError(
                f"drew {describe(drawn)}, of type {type(drawn).__name__}, which is no pair (D, D')."
                " Allowed: strategies of pairs, such as st.tuples(data, data) or "
                "pytest_dp.strategies.neighbors(data, 'add_remove_one')."
            )
        d1, d2 = drawn
        return None if key(d1) == key(d2) else stated_pair("what was drawn", d1, d2, relation)

    strategy = pairs.map(checked).filter(lambda pair: pair is not None)
    return Pairs(cast("SearchStrategy[Pair]", strategy))


def neighbours(
    datasets: SearchStrategy[Any], relation: Relation | None, seed: int, said: str
) -> Pairs:
    """Pairs of neighbours from a strategy of datasets, or of values under ``"any_two"``.

    Raises ClaimError if it yields no datasets, or only empty ones, or raises.
    """
    if relation is None:
        raise ClaimError(
            f"{said} is a strategy, so the claim must say which of its datasets are neighbours, "
            "such as neighbors='add_remove_one'; of single values, neighbors='any_two'."
        )
    if isinstance(relation, AnyTwo | Neighbours):  # whose inputs may be anything
        none = (
            f"in {THOUSAND:,} draws in a row, none had a neighbour under {relation}. Write "
            "neighbors= so that it holds for many of the inputs, or a strategy of pairs, pairs=."
        )
        return Pairs(neighbouring(datasets, relation), none)
    drawn = "of the inputs that were drawn"
    if not isinstance(relation, Predicate):
        # Of a plain function, Hypothesis would read the source for each draw, for bounds in it.
        datasets = datasets.filter(partial(_fits, relation))
        drawn = f"of the datasets that were drawn, with {_sizes(datasets, seed, said)},"
        if isinstance(relation, ReplaceSpecial):  # the claim says itself what takes their place
            return Pairs(neighbouring(datasets, relation, new_records=False))
    nothing = (
        f"{drawn} none has a neighbour under {relation} that the strategy was seen to yield too, "
        "and what it cannot yield is no part of the promise. Let their sizes and records vary, or "
        "say yourself what the neighbours are: pairs= with a strategy of pairs (D, D'), or "
        "neighbors= with a function of D that yields each D'."
    )
    if not choices_work():
        nothing += " This version of Hypothesis does not show how values are made: another may."
    return Pairs(neighbours_inside(datasets, relation), nothing)


@st.composite
def neighbouring(
    draw: Draw,
    datasets: SearchStrategy[Any],
    relation: Relation,
    *,
    new_records: bool = True,
) -> Pair:
    """A dataset and one of its neighbours, whatever that is; new records are of another dataset."""
    dataset, other = draw(datasets), draw(datasets)
    is_value = isinstance(relation, AnyTwo) or not kind_of(other)
    records = [other] if is_value else records_of(other)[:HUNDREDS]
    pairs = relation.pairs(dataset, records if new_records else [])
    if isinstance(relation, Predicate) and key(dataset) != key(other):
        pairs = chain(relation.accepted(iter([Pair(dataset, other)])), pairs)
    leading = list(islice(pairs, draw(st.integers(1, DOZENS))))
    return leading[-1] if leading else cast("Pair", draw(st.nothing()))


@st.composite
def neighbours_inside(draw: Draw, datasets: SearchStrategy[Any], relation: Relation) -> Pair:
    """Two neighbours that the strategy yields: two of its values, or one that was edited."""
    # The longer one is edited: more can be left out of it, or changed.
    longer, shorter = sorted(
        (traced(draw, datasets) for _ in range(2)), key=lambda drawn: -len(drawn.choices)
    )
    pair = None
    # Edits make up the better pairs: one that is smaller is again one edit away.
    if not longer.choices or isinstance(relation, Predicate):
        pair = pair_yielded(relation, longer.value, shorter.value)
    if pair is None and longer.choices:
        pair = _edited(draw, datasets, relation, longer, shorter)
    return cast("Pair", draw(st.nothing())) if pair is None else pair


def _edited(
    draw: Draw, datasets: SearchStrategy[Any], relation: Relation, drawn: Drawn, donor: Drawn
) -> Pair | None:
    """The drawn value with a neighbour, by parts of the donor perhaps; None if no edit gave any."""
    value, parts = (
        item if item.whole else remade(datasets, item.choices) for item in (drawn, donor)
    )
    if value is None or parts is None:
        return None

    def pick(below: int) -> int:
        return int(draw(st.integers(0, below - 1)))

    single, steps, units = relation, 1, isinstance(relation, Predicate)
    if isinstance(relation, OfRecords):
        single, steps = replace(relation, group=1), relation.group
        units = relation.unit is not None
    names, done, seen = edits_for(relation), 0, {key(value.choices)}
    for _ in range(steps * SEVERAL):
        edits = Edits(value, parts, pick, units=units)
        for choices in getattr(edits, names[pick(len(names))])():
            if key(tuple(choices)) in seen:
                continue
            seen.add(key(tuple(choices)))
            made = remade(datasets, choices)
            if made is not None and pair_yielded(single, value.value, made.value):
                value, done = made, done + 1
                break
        if done == steps:
            return pair_yielded(relation, drawn.value, value.value)
    return None


def edits_for(relation: Relation) -> tuple[str, ...]:
    """Which edits may give a neighbour; those that mostly do more often."""
    if relation.of is Queries:
        return ("move",)
    if isinstance(relation, AddRemoveOne):
        return ("drop", "add", "drop", "add", "change")
    if isinstance(relation, ReplaceOne):
        return ("swap", "change")
    return ("drop", "add", "swap", "change", "move")


def pair_yielded(relation: Relation, d1: Any, d2: Any) -> Pair | None:
    """Two neighbours; entries of dicts that only change places are the same."""
    if isinstance(d1, dict) and isinstance(d2, dict):
        names = [name for name in d1 if name in d2]
        if names != [name for name in d2 if name in d1]:
            return None
    return relation.pair(d1, d2) if key(d1) != key(d2) else None


def _sizes(datasets: SearchStrategy[Any], seed: int, said: str) -> str:
    """How long the datasets of a strategy are, in words."""
    lengths: list[int] = []
    records, last = 0, None
    for last in values_drawn(datasets, seed, said, THOUSAND):
        lengths.append(length(last))
        records += lengths[-1]
        if len(lengths) >= (POOL // 2 if records <= MILLION // 10 else SEVERAL):
            break
    if not lengths:
        raise ClaimError(f"{said}: {REJECTED}")
    if not any(lengths):
        raise ClaimError(
            f"{said}: all of {len(lengths)} datasets that were drawn are empty, such as "
            f"{describe(last)}. Write a strategy with records, such as st.lists(st.integers(0, 5))."
        )
    sizes = dict.fromkeys((min(lengths), max(lengths)))
    many = "s" if max(lengths) != 1 else ""
    return f"{' to '.join(f'{n:,}' for n in sizes)} record{many}"


def _fits(relation: Relation, dataset: Any) -> bool:
    if not kind_of(dataset):
        raise ClaimError(
            f"drew {describe(dataset)}, of type {type(dataset).__name__}, which is no "
            f"dataset. Allowed: strategies of {ALLOWED}. If it draws single records, write "
            "st.lists(...) around it; if any two of its values are neighbours, write "
            "neighbors='any_two'."
        )
    if length(dataset) > MILLION:
        raise ClaimError(
            f"drew a dataset of {length(dataset):,} records, {describe(dataset)}. At most "
            f"{MILLION:,} are allowed: bound its size, such as by max_size=1_000."
        )
    return not relation.check(dataset)


def drawing(drawn: Iterator[Drawn | None], said: str) -> Drawn | None:
    """The next value; raises ClaimError if the strategy raises."""
    try:
        return next(drawn)
    except ClaimError as error:
        raise ClaimError(f"{said}: {error}") from error
    except HypothesisException as error:
        raise ClaimError(f"{said}: Hypothesis says: {error}") from error
    except Exception as error:
        raise ClaimError(
            f"{said}: the strategy raised {type(error).__name__}: {on_one_line(str(error), 200)}. "
            "Correct it, or the functions that it calls."
        ) from error


def values_drawn(strategy: SearchStrategy[Any], seed: int, said: str, most: int) -> Iterator[Any]:
    """What a number of draws give, where the strategy does not reject."""
    drawn = draws(strategy, seed)
    tried = (drawing(drawn, said) for _ in range(most))
    return (one.value for one in tried if one is not None)
