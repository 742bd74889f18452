"""Drawn datasets of a strategy, each beside several neighbours that the strategy yields too.

A neighbour is made of edited choices, as in `pytest_dp.inputs.pair_strategies`. It costs one draw,
where a pair that is drawn as a whole costs four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis.strategies import SearchStrategy

from pytest_dp.datasets.equality import key
from pytest_dp.datasets.relations import OfRecords, Pair, Predicate, Relation
from pytest_dp.inputs.drawing import Drawn, draws, remade
from pytest_dp.inputs.edits import Edits
from pytest_dp.inputs.pair_strategies import edits_for, pair_yielded

NEIGHBOURS_OF_EACH = 8
"""Neighbours of one drawn dataset. More make pairs cheaper, and datasets fewer."""
MAX_IN_VAIN = 40
"""Datasets in a row without a neighbour, after which there may be none."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A pair of neighbours that a strategy yields."""

    pair: Pair
    choices: tuple[Any, ...]
    """With these, the strategy of pairs makes the same."""


@dataclass(slots=True)
class _Picks:
    """Makes the choices of an edit, and keeps them."""

    random: Random
    made: list[int] = field(default_factory=list)

    def __call__(self, below: int) -> int:
        self.made.append(self.random.randrange(below))
        return self.made[-1]


def can_edit(relation: Relation | None) -> bool:
    """Return whether neighbours under this relation are made by one edit of choices."""
    return (
        isinstance(relation, OfRecords)
        and not isinstance(relation, Predicate)
        and (relation.group == 1 and relation.name in ("add_remove_one", "replace_one"))
    )


def neighbourhoods(
    datasets: SearchStrategy[Any], relation: Relation, seed: int, constants: Sequence[Any] = ()
) -> Iterator[Neighbour]:
    """Yield pairs of neighbours, until many datasets in a row have none."""
    random, in_vain = Random(seed), 0
    drawn = (one for one in draws(datasets, seed, constants) if one is not None)
    for first, second in zip(drawn, drawn, strict=False):
        in_vain += 1
        if in_vain > MAX_IN_VAIN or not (first.choices or second.choices):
            return
        longer, shorter = sorted((first, second), key=lambda one: -len(one.choices))
        if not longer.choices or not longer.whole or not shorter.whole:
            continue
        made = [*_beside(datasets, relation, (first, second), random)]
        in_vain = 0 if made else in_vain
        yield from made


def beside(
    datasets: SearchStrategy[Any],
    relation: Relation,
    made: Drawn,
    donors: Sequence[Drawn],
    random: Random,
) -> Iterator[Neighbour]:
    """Yield pairs of one drawn value and neighbours of it; donors give records that it lacks."""
    whole = made if made.whole else remade(datasets, made.choices)
    if whole is None or not whole.whole:
        return
    shorter = [one for one in donors if one.whole and len(one.choices) <= len(made.choices)]
    donor = random.choice(shorter or [whole])
    yield from _beside(datasets, relation, (whole, donor), random)


def _beside(
    datasets: SearchStrategy[Any], relation: Relation, drawn: tuple[Drawn, Drawn], random: Random
) -> Iterator[Neighbour]:
    """Yield pairs of the longer of two values and neighbours of it."""
    longer, shorter = sorted(drawn, key=lambda one: -len(one.choices))
    seen = {key(longer.choices)}
    for _ in range(NEIGHBOURS_OF_EACH):
        picks = _Picks(random)
        pair = _edited(datasets, relation, (longer, shorter), picks, seen)
        if pair is not None:
            first, second = drawn
            yield Neighbour(pair, (*first.choices, *second.choices, *picks.made))


def _edited(
    datasets: SearchStrategy[Any],
    relation: Relation,
    drawn: tuple[Drawn, Drawn],
    picks: _Picks,
    seen: set[Any],
) -> Pair | None:
    """Return the first of the drawn values beside one that an edit makes of it, if it is new."""
    value, donor = drawn
    names = edits_for(relation)
    units = isinstance(relation, OfRecords) and relation.unit is not None
    edits = Edits(value, donor, picks, units=units)
    for choices in getattr(edits, names[picks(len(names))])():
        if (content := key(tuple(choices))) in seen:
            continue
        seen.add(content)
        made = remade(datasets, choices)
        if made is not None and (pair := pair_yielded(relation, value.value, made.value)):
            return pair
    return None
