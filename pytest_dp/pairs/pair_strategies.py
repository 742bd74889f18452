"""How pairs are drawn: of strategies of pairs, of given ones, and as neighbours by edited choices.

The promise covers only D and D' that the strategy can yield, so D' is drawn too, from edited
choices. Exceptions are what the claim makes itself: neighbours by a function, and null records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby, islice, repeat
from random import Random
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.data import describe, kind_of, records_of
from pytest_dp.data.conversion import ALLOWED, length
from pytest_dp.data.equality import key
from pytest_dp.data.ordering import in_turn
from pytest_dp.data.relations import (
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
from pytest_dp.pairs.drawing import MAX_DRAWS, draw_values, remake_values
from pytest_dp.pairs.edits import Choices, DrawnValue, Edits
from pytest_dp.pairs.resolving import stated_pair

BATCH = 24
"""Datasets that are looked at together. More take longer until the first pair is there."""
EDITS = 6
"""Edits of each dataset. More make pairs cheaper, and datasets fewer."""
MAX_RECORDS = 256
"""Records of another dataset that are put into a neighbour. Fewer may miss a leak."""
MAX_NEIGHBOURS = 24
"""Neighbours of a dataset that one is chosen from. More take longer; fewer are much alike."""
MAX_LENGTH = 1_000_000
"""Records of a dataset that a strategy may draw. More take memory and time."""

Draw = Callable[[SearchStrategy[Any]], Any]
Parts = tuple[Choices, ...]
"""The choices of a pair: of the whole, or of D, of D' and of parameters."""

NO_PAIR = (
    f"in {MAX_DRAWS:,} draws in a row, none gave a pair{{}}. The strategy rejected them, or what "
    "it yielded has no neighbour that it yields too, and the promise covers only inputs that it "
    "can yield. Write a strategy with fewer .filter(...) and assume(...), and of several sizes and "
    "records, such as st.lists(st.integers(0, 5)); or say yourself what the neighbours are: pairs= "
    "with a strategy of pairs (D, D'), or neighbors= with a function of D that yields each D'."
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A strategy of pairs (D, D'); `listed` are the pairs that it chooses from, if it does."""

    strategy: SearchStrategy[Any]
    listed: tuple[Pair, ...] = ()
    relation: Relation | None = None

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """Return pairs that draw values of these parameters as well."""
        if not params:
            return self

        def joined(pair: Pair, *values: Any) -> Pair:
            return replace(pair, params=dict(zip(params, values, strict=True)))

        return replace(self, strategy=st.builds(joined, self.strategy, *params.values()))

    def draw_values(self, seed: int, constants: Sequence[Any] = ()) -> Iterator[DrawnValue | None]:
        """Yield pairs without end, each with its `Parts` as choices; None for rejected draws."""
        for one in draw_values(self.strategy, seed, constants):
            yield one and DrawnValue(one.value, (one.choices,) if one.choices else ())

    def remake_values(self, requests: Sequence[Parts]) -> list[DrawnValue | None]:
        """Return the pair that each request's choices make; None where they are rejected."""
        made = remake_values(self.strategy, [choices for (choices,) in requests])
        return [one and DrawnValue(one.value, (one.choices,)) for one in made]


@dataclass(frozen=True, slots=True)
class EditedPairs(Pairs):
    """Pairs of a strategy's dataset and a neighbour that the strategy makes of edited choices."""

    params: Mapping[str, SearchStrategy[Any]] = field(default_factory=dict)

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """Return pairs that draw values of these parameters as well."""
        return replace(self, params=params)

    @property
    def _values(self) -> SearchStrategy[Any]:
        """The strategy of values by the names of parameters."""
        names = self.params
        return st.tuples(*names.values()).map(lambda values: dict(zip(names, values, strict=True)))

    def draw_values(self, seed: int, constants: Sequence[Any] = ()) -> Iterator[DrawnValue | None]:
        """Yield pairs without end, of a few datasets in turn; None for draws without a pair."""
        assert self.relation is not None
        random = Random(seed)
        values: Iterator[DrawnValue | None] = repeat(DrawnValue({}))
        if self.params:
            values = filter(None, draw_values(self._values, seed, constants))
        datasets = draw_values(self.strategy, seed, constants)
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
            found = edit_into_pairs(self.strategy, self.relation, given, random)
            yield from (_with_params(pair, next(values)) for pair in in_turn(found))
            yield from (None for pairs in found if not pairs)

    def remake_values(self, requests: Sequence[Parts]) -> list[DrawnValue | None]:
        """Return the pair that each request's choices make; None if rejected or not neighbours."""
        assert self.relation is not None
        sides = remake_values(self.strategy, [side for parts in requests for side in parts[:2]])
        values: list[DrawnValue | None] = [DrawnValue({})] * len(requests)
        if self.params:
            values = remake_values(self._values, [of_params for _, _, of_params in requests])
        made: list[DrawnValue | None] = []
        for d1, d2, with_values in zip(sides[::2], sides[1::2], values, strict=True):
            pair = d1 and d2 and pair_neighbours(self.relation, d1.value, d2.value)
            if d1 and d2 and pair and with_values:
                one = DrawnValue(pair, (d1.choices, d2.choices))
                made.append(_with_params(one, with_values))
            else:
                made.append(None)
        return made


def _with_params(pair: DrawnValue, values: DrawnValue | None) -> DrawnValue:
    """Return a drawn pair with drawn values of its parameters."""
    assert values is not None
    parts = (*pair.choices, values.choices) if pair.choices else ()
    return DrawnValue(replace(pair.value, params=values.value), parts)


def can_edit(relation: Relation | None) -> bool:
    """Return whether neighbours under this relation are made by edits of choices.

    True for relations of records (but replacing by null), predicates, and answers of queries.
    """
    if isinstance(relation, OfRecords):
        return not isinstance(relation, ReplaceSpecial)
    return isinstance(relation, Predicate) or (relation is not None and relation.of is Queries)


def edit_into_pairs(
    datasets: SearchStrategy[Any],
    relation: Relation,
    given: Sequence[tuple[DrawnValue, DrawnValue]],
    random: Random,
) -> list[list[DrawnValue]]:
    """Return, for each two `given` values of a strategy, pairs of the first and its neighbours.

    Random edits of the first value's choices, with parts of the second, make neighbours; those that
    the strategy yields are kept. Groups of k records take k rounds of edits. Under a predicate, or
    without choices, the two values may be a pair too. A list may be empty.
    """
    single, steps, units = relation, 1, isinstance(relation, Predicate)
    if isinstance(relation, OfRecords):
        single, steps = replace(relation, group=1), relation.group
        units = relation.unit is not None
    found: list[list[DrawnValue]] = [[] for _ in given]
    for pairs, (one, other) in zip(found, given, strict=True):
        is_tried = isinstance(relation, Predicate) or not one.choices
        if is_tried and (pair := pair_neighbours(relation, one.value, other.value)):
            pairs.append(DrawnValue(pair, (one.choices, other.choices) if one.choices else ()))
    ends = [(at, value) for at, (value, _) in enumerate(given) if value.choices]
    for _ in range(steps):
        asked = [
            (at, end, choices)
            for at, end in ends
            for choices in _random_edits(relation, (end, given[at][1]), random, units=units)
        ]
        made = remake_values(datasets, [choices for _, _, choices in asked])
        ends = [
            (at, new)
            for (at, end, _), new in zip(asked, made, strict=True)
            if new is not None and pair_neighbours(single, end.value, new.value)
        ]
        if steps > 1:  # two for each value, or there would be ever more
            of_each = groupby(ends, key=lambda end: end[0])
            ends = [end for _, its in of_each for end in islice(its, 2)]
    for at, end in ends:
        value = given[at][0]
        if pair := pair_neighbours(relation, value.value, end.value):
            found[at].append(DrawnValue(pair, (value.choices, end.choices)))
    return found


def _random_edits(
    relation: Relation, drawn: tuple[DrawnValue, DrawnValue], random: Random, *, units: bool
) -> Iterator[Choices]:
    """Yield edited choices that may make a neighbour of the first of two values, each once.

    With `units`, records of one unit are edited together.
    """
    seen = {repr(drawn[0].choices)}
    names: tuple[str, ...] = ("drop", "add", "swap", "change", "move")
    if relation.of is Queries:
        names = ("move",)
    elif isinstance(relation, AddRemoveOne):  # those that mostly give one more often
        names = ("drop", "add", "drop", "add", "change")
    elif isinstance(relation, ReplaceOne):
        names = ("swap", "change")
    for _ in range(EDITS):
        edits = Edits(*drawn, random.randrange, units=units)
        for choices in getattr(edits, random.choice(names))():
            if (content := repr(choices)) not in seen:
                seen.add(content)
                yield choices


def pair_neighbours(relation: Relation, d1: Any, d2: Any) -> Pair | None:
    """Return D and D' as a pair; None if they are equal or no neighbours.

    Also None if keys that both dicts have come in another order.
    """
    if isinstance(d1, dict) and isinstance(d2, dict):
        names = [name for name in d1 if name in d2]
        if names != [name for name in d2 if name in d1]:
            return None
    return relation.pair(d1, d2) if key(d1) != key(d2) else None


def draw_stated_pairs(pairs: SearchStrategy[Any], relation: Relation | None) -> Pairs:
    """Return the pairs (D, D') that a strategy yields, without those of equal D and D'.

    Drawing raises ClaimError for a value that is no pair, or no pair of neighbours under
    `relation`.
    """

    def checked(drawn: Any) -> Pair | None:
        if not isinstance(drawn, list | tuple) or len(drawn) != 2:
            raise ClaimError(
                f"drew {describe(drawn)}, of type {type(drawn).__name__}, which is not a pair (D, "
                "D'). Allowed: strategies of pairs, such as st.tuples(data, data) or "
                "pytest_dp.strategies.neighbors(data, 'add_remove_one')."
            )
        d1, d2 = drawn
        return None if key(d1) == key(d2) else stated_pair("what was drawn", d1, d2, relation)

    return Pairs(pairs.map(checked).filter(lambda pair: pair is not None))


def neighbours(datasets: SearchStrategy[Any], relation: Relation | None, written: str) -> Pairs:
    """Return pairs of neighbours from a strategy of datasets, or of values under ``"any_two"``.

    `written` is how errors name the strategy. Raises ClaimError if no relation is stated; drawing
    raises ClaimError for a value that is no dataset, or too long.
    """
    if relation is None:
        raise ClaimError(
            f"{written} is a strategy, so the claim must say which of its datasets are neighbours, "
            "such as neighbors='add_remove_one'; of single values, neighbors='any_two'."
        )
    if isinstance(relation, AnyTwo | Neighbours):  # whose inputs may be anything
        return Pairs(draw_neighbours(datasets, relation), relation=relation)
    if isinstance(relation, Predicate):
        return EditedPairs(datasets, relation=relation)
    # Of a plain function, Hypothesis would read the source for each draw, for bounds in it.
    datasets = datasets.filter(partial(_check_dataset, relation))
    if isinstance(relation, ReplaceSpecial):  # the claim says itself what takes their place
        return Pairs(draw_neighbours(datasets, relation, new_records=False), relation=relation)
    return EditedPairs(datasets, relation=relation)


@st.composite
def draw_neighbours(
    draw: Draw,
    datasets: SearchStrategy[Any],
    relation: Relation,
    *,
    new_records: bool = True,
) -> Pair:
    """Draw a dataset and one of its first `MAX_NEIGHBOURS` neighbours; reject it if it has none.

    New records come from another dataset, unless `new_records` is False.
    """
    dataset, other = draw(datasets), draw(datasets)
    is_value = isinstance(relation, AnyTwo) or not kind_of(other)
    records = [other] if is_value else records_of(other)[:MAX_RECORDS]
    pairs = relation.pairs(dataset, records if new_records else [])
    if isinstance(relation, Predicate) and key(dataset) != key(other):
        pairs = chain(relation.filter_pairs(iter([Pair(dataset, other)])), pairs)
    leading = list(islice(pairs, draw(st.integers(1, MAX_NEIGHBOURS))))
    return leading[-1] if leading else cast("Pair", draw(st.nothing()))


def _check_dataset(relation: Relation, dataset: Any) -> bool:
    """Return whether a drawn dataset fits the relation.

    Raises ClaimError if it is no dataset, or longer than `MAX_LENGTH`.
    """
    if not kind_of(dataset):
        raise ClaimError(
            f"drew {describe(dataset)}, of type {type(dataset).__name__}, which is not a dataset. "
            f"Allowed: strategies of {ALLOWED}. If it draws single records, write st.lists(...) "
            "around it; if any two of its values are neighbours, write neighbors='any_two'."
        )
    if length(dataset) > MAX_LENGTH:
        raise ClaimError(
            f"drew a dataset of {length(dataset):,} records, {describe(dataset)}. At most "
            f"{MAX_LENGTH:,} are allowed: bound its size, such as by max_size=1_000."
        )
    return not relation.check(dataset)


def next_draw(drawn: Iterator[DrawnValue | None], written: str) -> DrawnValue | None:
    """Return the next drawn value, None if rejected; raise ClaimError if the strategy raises.

    `written` is how the error names the strategy.
    """
    try:
        return next(drawn)
    except ClaimError as error:
        raise ClaimError(f"{written}: {error}") from error
    except HypothesisException as error:
        raise ClaimError(f"{written}: Hypothesis says: {error}") from error
    except Exception as error:
        raise ClaimError(
            f"{written}: the strategy raised {type(error).__name__}: "
            f"{on_one_line(str(error), 200)}. "
            "Correct it, or the functions that it calls."
        ) from error
