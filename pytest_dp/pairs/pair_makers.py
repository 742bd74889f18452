"""How pairs are made: of strategies of pairs, of given ones, and of neighbours by edited choices.

What a strategy cannot yield is no part of the promise, and that goes for D and D' alike. Whether it
can yield D' is never guessed: it makes D' of edited choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pytest_dp.data.equality import key
from pytest_dp.data.ordering import in_turn
from pytest_dp.data.relations import (
    AddRemoveOne,
    OfRecords,
    Pair,
    Predicate,
    Relation,
    ReplaceOne,
    ReplaceSpecial,
)
from pytest_dp.declaration import Queries
from pytest_dp.pairs.drawing import MAX_DRAWS, Choices, DrawnValue, draws, remade
from pytest_dp.pairs.edits import Edits
from pytest_dp.pairs.simplifying import Parts

BATCH = 24
"""Datasets that are looked at together. More take longer until the first pair is there."""
EDITS = 6
"""Edits of each dataset. More make pairs cheaper, and datasets fewer."""


REJECTED = (
    f"the strategy rejected {MAX_DRAWS:,} draws in a row. Write a strategy with fewer "
    ".filter(...) and assume(...), such as st.lists(st.integers(0, 5)), and with few rows for "
    "each unit where the claim says rows=."
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A strategy of pairs."""

    strategy: SearchStrategy[Any]
    explain_none: Callable[[], str] = lambda: REJECTED
    """Returns what to say if it yields none, or raises ClaimError."""
    listed: tuple[Pair, ...] = ()
    """Those that it chooses from, if they are given."""

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """Return the same pairs, each with values of these parameters."""
        if not params:
            return self

        def joined(pair: Pair, *values: Any) -> Pair:
            return replace(pair, params=dict(zip(params, values, strict=True)))

        return replace(self, strategy=st.builds(joined, self.strategy, *params.values()))

    def draws(self, seed: int, constants: Sequence[Any] = ()) -> Iterator[DrawnValue | None]:
        """Yield pairs, each made of one sequence of choices; None where there is none."""
        for one in draws(self.strategy, seed, constants):
            yield one and DrawnValue(one.value, (one.choices,) if one.choices else ())

    def remade(self, requests: Sequence[Parts]) -> list[DrawnValue | None]:
        """Return the pair that each sequence of choices makes, if any."""
        made = remade(self.strategy, [choices for (choices,) in requests])
        return [one and DrawnValue(one.value, (one.choices,)) for one in made]


@dataclass(frozen=True, slots=True)
class EditedPairs(Pairs):
    """Datasets of a strategy, each with neighbours that it yields too.

    A pair is made of the choices of both, and of those of parameters.
    """

    relation: Relation | None = None
    params: Mapping[str, SearchStrategy[Any]] = field(default_factory=dict)

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """Return the same pairs, each with values of these parameters."""
        return replace(self, params=params)

    def draws(self, seed: int, constants: Sequence[Any] = ()) -> Iterator[DrawnValue | None]:
        """Yield pairs in turn of a few datasets; None where there is none."""
        assert self.relation is not None
        random = Random(seed)
        values = (
            one for one in draws(parameter_values(self.params), seed, constants) if one is not None
        )
        datasets = draws(self.strategy, seed, constants)
        while True:
            batch = list(islice(datasets, BATCH))
            yield from (None for one in batch if one is None)
            kept = list({repr(one.value): one for one in batch if one is not None}.values())
            # The longer one of two is edited: more can be left out of it, or changed.
            both = [
                sorted((one, random.choice(kept)), key=lambda drawn: -len(drawn.choices))
                for one in kept
            ]
            given = [(longer, shorter) for longer, shorter in both]
            found = edited_pairs(self.strategy, self.relation, given, random)
            for pair in in_turn(found):
                yield self._with_params(pair, next(values)) if self.params else pair
            yield from (None for pairs in found if not pairs)

    def _with_params(self, pair: DrawnValue, values: DrawnValue) -> DrawnValue:
        return DrawnValue(replace(pair.value, params=values.value), (*pair.choices, values.choices))

    def remade(self, requests: Sequence[Parts]) -> list[DrawnValue | None]:
        """Return the pair that the choices of both inputs make, if these are neighbours."""
        assert self.relation is not None
        sides = remade(self.strategy, [side for parts in requests for side in parts[:2]])
        chosen = [parts[2] for parts in requests] if self.params else []
        values = remade(parameter_values(self.params), chosen)
        made: list[DrawnValue | None] = []
        for at, (d1, d2) in enumerate(zip(sides[::2], sides[1::2], strict=True)):
            pair = d1 and d2 and pair_yielded(self.relation, d1.value, d2.value)
            one = DrawnValue(pair, requests[at][:2]) if pair else None
            with_values = values[at] if values else None
            if one and self.params:
                one = self._with_params(one, with_values) if with_values else None
            made.append(one)
        return made


@dataclass(frozen=True, slots=True)
class ListedPairs(Pairs):
    """Pairs that are given, in turn, with drawn values of parameters.

    A pair is made of its number, and of the choices of the parameters.
    """

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """Return the same pairs, each with values of these parameters."""
        return replace(self, strategy=parameter_values(params))

    def draws(self, seed: int, constants: Sequence[Any] = ()) -> Iterator[DrawnValue | None]:
        """Yield the pairs in turn; None where the parameters are rejected."""
        values = draws(self.strategy, seed, constants)
        for at, pair in cycle(enumerate(self.listed)):
            one = next(values)
            parts = ((at,), one.choices) if one and one.choices else ()
            yield one and DrawnValue(replace(pair, params=one.value), parts)

    def remade(self, requests: Sequence[Parts]) -> list[DrawnValue | None]:
        """Return the pair with each number, with the parameters that the choices make."""
        made = remade(self.strategy, [choices for _, choices in requests])
        pairs = [self.listed[at] if 0 <= at < len(self.listed) else None for (at,), _ in requests]
        return [
            DrawnValue(replace(pair, params=one.value), parts) if one and pair else None
            for one, pair, parts in zip(made, pairs, requests, strict=True)
        ]


def parameter_values(params: Mapping[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Return a strategy of values by the names of parameters."""
    return st.tuples(*params.values()).map(lambda values: dict(zip(params, values, strict=True)))


def can_edit(relation: Relation | None) -> bool:
    """Return whether neighbours under this relation are made by edits of choices."""
    if isinstance(relation, OfRecords):
        return not isinstance(relation, ReplaceSpecial)
    return isinstance(relation, Predicate) or (relation is not None and relation.of is Queries)


def edited_pairs(
    datasets: SearchStrategy[Any],
    relation: Relation,
    given: Sequence[tuple[DrawnValue, DrawnValue]],
    random: Random,
) -> list[list[DrawnValue]]:
    """Return pairs of each value and its neighbours, by parts of another value perhaps.

    Neighbours that are a group apart come of as many edits.
    """
    single, steps, units = relation, 1, isinstance(relation, Predicate)
    if isinstance(relation, OfRecords):
        single, steps = replace(relation, group=1), relation.group
        units = relation.unit is not None
    found: list[list[DrawnValue]] = [[] for _ in given]
    for pairs, (one, other) in zip(found, given, strict=True):
        is_tried = isinstance(relation, Predicate) or not one.choices
        if is_tried and (pair := pair_yielded(relation, one.value, other.value)):
            pairs.append(DrawnValue(pair, (one.choices, other.choices) if one.choices else ()))
    ends = [(at, value) for at, (value, _) in enumerate(given) if value.choices]
    for _ in range(steps):
        asked = [
            (at, end, choices)
            for at, end in ends
            for choices in _edits(relation, (end, given[at][1]), random, units=units)
        ]
        made = remade(datasets, [choices for _, _, choices in asked])
        ends = [
            (at, new)
            for (at, end, _), new in zip(asked, made, strict=True)
            if new is not None and pair_yielded(single, end.value, new.value)
        ]
        if steps > 1:
            ends = [(at, end) for at, its in _by_first(ends).items() for end in its[:2]]
    for at, end in ends:
        value = given[at][0]
        if pair := pair_yielded(relation, value.value, end.value):
            found[at].append(DrawnValue(pair, (value.choices, end.choices)))
    return found


def _by_first(ends: Sequence[tuple[int, DrawnValue]]) -> dict[int, list[DrawnValue]]:
    by_first: dict[int, list[DrawnValue]] = {}
    for at, end in ends:
        by_first.setdefault(at, []).append(end)
    return by_first


def _edits(
    relation: Relation, drawn: tuple[DrawnValue, DrawnValue], random: Random, *, units: bool
) -> Iterator[Choices]:
    """Yield choices that may make a neighbour of the first of two values, each once."""
    seen = {repr(drawn[0].choices)}
    names = edits_for(relation)
    for _ in range(EDITS):
        edits = Edits(*drawn, random.randrange, units=units)
        for choices in getattr(edits, random.choice(names))():
            if (content := repr(choices)) not in seen:
                seen.add(content)
                yield choices


def edits_for(relation: Relation) -> tuple[str, ...]:
    """Return which edits may give a neighbour; those that mostly do more often."""
    if relation.of is Queries:
        return ("move",)
    if isinstance(relation, AddRemoveOne):
        return ("drop", "add", "drop", "add", "change")
    if isinstance(relation, ReplaceOne):
        return ("swap", "change")
    return ("drop", "add", "swap", "change", "move")


def pair_yielded(relation: Relation, d1: Any, d2: Any) -> Pair | None:
    """Return two neighbours; entries of dicts that only change places are the same."""
    if isinstance(d1, dict) and isinstance(d2, dict):
        names = [name for name in d1 if name in d2]
        if names != [name for name in d2 if name in d1]:
            return None
    return relation.pair(d1, d2) if key(d1) != key(d2) else None
