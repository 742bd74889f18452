"""Strategies of pairs: neighbours of drawn datasets, drawn pairs, given ones with drawn parameters.

What a strategy cannot yield is no part of the promise, and that goes for D and D' alike. Whether it
can yield D' is never guessed: D' is drawn too, from edited choices. Only what the claim makes
itself may be something else: neighbours that a function yields, and null records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.data import describe, kind_of, records_of
from pytest_dp.data.conversion import ALLOWED, length
from pytest_dp.data.equality import key
from pytest_dp.data.relations import (
    AnyTwo,
    Neighbours,
    Pair,
    Predicate,
    Relation,
    ReplaceSpecial,
)
from pytest_dp.pairs.deriving import stated_pair
from pytest_dp.pairs.drawing import MAX_DRAWS, MAX_POOL_RECORDS, DrawnValue, choices_work, draws
from pytest_dp.pairs.pair_makers import REJECTED, EditedPairs, ListedPairs, Pairs, parameter_values

MAX_RECORDS = 256
"""Records of another dataset that are put into a neighbour. More take longer; fewer may miss the
one that leaks."""
MAX_NEIGHBOURS = 24
"""Neighbours of a dataset that one is chosen from. More take longer; fewer are much alike."""
MAX_LENGTHS = 100
"""Datasets by which lengths are chosen. More take longer; fewer: rare lengths are missed."""
MIN_LENGTHS = 8
"""Datasets by which lengths are chosen, however large they are. Fewer: all lengths are alike."""
MAX_LENGTH = 1_000_000
"""Records of a dataset that a strategy may draw. More take memory and time."""

Draw = Callable[[SearchStrategy[Any]], Any]


def list_pairs(pairs: Sequence[Pair]) -> Pairs:
    """Return each of these pairs."""
    return ListedPairs(parameter_values({}), listed=tuple(pairs))


def draw_stated_pairs(pairs: SearchStrategy[Any], relation: Relation | None) -> Pairs:
    """Return pairs (D, D') that a strategy yields, checked against the relation if there is one.

    Those of equal D and D' are left out.
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

    strategy = pairs.map(checked).filter(lambda pair: pair is not None)
    return Pairs(cast("SearchStrategy[Pair]", strategy))


def neighbours(
    datasets: SearchStrategy[Any], relation: Relation | None, seed: int, said: str
) -> Pairs:
    """Return pairs of neighbours from a strategy of datasets, or of values under ``"any_two"``.

    Raises ClaimError if it yields no datasets, or only empty ones, or raises.
    """
    if relation is None:
        raise ClaimError(
            f"{said} is a strategy, so the claim must say which of its datasets are neighbours, "
            "such as neighbors='add_remove_one'; of single values, neighbors='any_two'."
        )
    if isinstance(relation, AnyTwo | Neighbours):  # whose inputs may be anything
        none = (
            f"in {MAX_DRAWS:,} draws in a row, none had a neighbour under {relation}. Write "
            "neighbors= so that it holds for many of the inputs, or a strategy of pairs, pairs=."
        )
        return Pairs(neighbouring(datasets, relation), lambda: none)
    if isinstance(relation, Predicate):
        return EditedPairs(
            datasets,
            lambda: f"of the inputs that were drawn {_no_neighbour(relation)}",
            relation=relation,
        )
    # Of a plain function, Hypothesis would read the source for each draw, for bounds in it.
    datasets = datasets.filter(partial(_fits, relation))

    def explain_none() -> str:
        sizes = _sizes(datasets, seed, said)
        return f"of the datasets that were drawn, with {sizes}, {_no_neighbour(relation)}"

    if isinstance(relation, ReplaceSpecial):  # the claim says itself what takes their place
        return Pairs(neighbouring(datasets, relation, new_records=False), explain_none)
    return EditedPairs(datasets, explain_none, relation=relation)


def _no_neighbour(relation: Relation) -> str:
    """Return that no neighbour was drawn, and what to write instead."""
    version = " This version of Hypothesis does not show how values are made: another may."
    return (
        f"none has a neighbour under {relation} that the strategy yielded too, and the "
        "promise covers only inputs that it can yield. Let their sizes and records vary, or say "
        "yourself what the neighbours are: pairs= with a strategy of pairs (D, D'), or neighbors= "
        f"with a function of D that yields each D'.{'' if choices_work() else version}"
    )


@st.composite
def neighbouring(
    draw: Draw,
    datasets: SearchStrategy[Any],
    relation: Relation,
    *,
    new_records: bool = True,
) -> Pair:
    """Draw a dataset and one of its neighbours; new records come from another dataset."""
    dataset, other = draw(datasets), draw(datasets)
    is_value = isinstance(relation, AnyTwo) or not kind_of(other)
    records = [other] if is_value else records_of(other)[:MAX_RECORDS]
    pairs = relation.pairs(dataset, records if new_records else [])
    if isinstance(relation, Predicate) and key(dataset) != key(other):
        pairs = chain(relation.accepted(iter([Pair(dataset, other)])), pairs)
    leading = list(islice(pairs, draw(st.integers(1, MAX_NEIGHBOURS))))
    return leading[-1] if leading else cast("Pair", draw(st.nothing()))


def _sizes(datasets: SearchStrategy[Any], seed: int, said: str) -> str:
    """Return how long the datasets of a strategy are, in words; ClaimError if all are empty."""
    lengths: list[int] = []
    records, last = 0, None
    for last in values_drawn(datasets, seed, said, MAX_DRAWS):
        lengths.append(length(last))
        records += lengths[-1]
        if len(lengths) >= (MAX_LENGTHS if records <= MAX_POOL_RECORDS else MIN_LENGTHS):
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


def drawing(drawn: Iterator[DrawnValue | None], said: str) -> DrawnValue | None:
    """Return the next value; raises ClaimError if the strategy raises."""
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
    """Return what a number of draws give, where the strategy does not reject."""
    drawn = draws(strategy, seed)
    tried = (drawing(drawn, said) for _ in range(most))
    return (one.value for one in tried if one is not None)
