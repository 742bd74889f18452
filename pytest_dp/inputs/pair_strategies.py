"""Strategies of pairs: neighbours of drawn datasets, drawn pairs, given ones with drawn parameters.

What a strategy cannot yield is no part of the promise, and that goes for D and D' alike. Whether it
can yield D' is judged by what was drawn: D' is no shorter and no longer than any dataset, repeats
records only if some dataset does, and is made of records that were drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from pytest_dp.datasets import describe, is_real, kind_of, records_of
from pytest_dp.datasets.making import ALLOWED, length
from pytest_dp.datasets.records import key
from pytest_dp.datasets.relations import AnyTwo, OfFunction, Pair, Predicate, Relation
from pytest_dp.errors import ClaimError
from pytest_dp.inputs.drawing import Drawn, draws
from pytest_dp.inputs.given import stated_pair
from pytest_dp.reprs import on_one_line

SURVEY = 100
"""Datasets that are drawn to see what they are like."""
MAX_RECORDS, MAX_DRAWN = 1_000_000, 100_000
"""Records in one dataset, and in all that are drawn at first (after a few), at most."""
FIRST_FEW = 8
MAX_OFFERED = 256
"""Records of another dataset, at most, that may come into one."""
MAX_NEIGHBOURS = 24
"""Neighbours of one dataset, made of the records of another one, that a pair is chosen from."""
MAX_REJECTED = 1_000
"""Draws in a row that a strategy may reject, or that are known, before there is nothing new."""
REJECTED = (
    f"the strategy rejected {MAX_REJECTED:,} draws in a row. Write one with fewer .filter(...) and "
    "assume(...), such as st.lists(st.integers(0, 5)), and with few rows for each unit where the "
    "claim has rows_per_unit=."
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A strategy of pairs.

    Attributes
    ----------
    strategy : SearchStrategy of Pair
    nothing : str
        What to say if it yields none.
    listed : tuple of Pair
        Those that it chooses from, if they are given.
    """

    strategy: SearchStrategy[Pair]
    nothing: str = REJECTED
    listed: tuple[Pair, ...] = ()

    def with_params(self, params: Mapping[str, SearchStrategy[Any]]) -> Pairs:
        """The same pairs, each with values of these parameters."""
        if not params:
            return self

        def joined(pair: Pair, *values: Any) -> Pair:
            return replace(pair, params=dict(zip(params, values, strict=True)))

        return replace(self, strategy=st.builds(joined, self.strategy, *params.values()))


@dataclass(frozen=True, slots=True)
class Seen:
    """What the datasets of a strategy are like, by those that were drawn.

    Attributes
    ----------
    shortest, longest : int
        Their lengths.
    repeats : bool
        Whether any of them holds equal records.
    least, most : float
        Of all records that are numbers.
    """

    shortest: int
    longest: int
    repeats: bool
    least: float
    most: float

    def holds(self, dataset: Any) -> bool:
        """Whether a dataset is as they are."""
        n = length(dataset)
        if not self.shortest <= n <= self.longest or (_repeats(dataset) and not self.repeats):
            return False
        return all(self.least <= number <= self.most for number in _numbers(dataset))

    def __str__(self) -> str:
        sizes = {self.shortest: None, self.longest: None}
        some = f"{' to '.join(f'{n:,}' for n in sizes)} record{'s' if self.longest != 1 else ''}"
        return f"{some}{'' if self.repeats else ', all different'}"


def _numbers(dataset: Any) -> list[Any]:
    return [record for record in records_of(dataset) if is_real(record)]


def _repeats(dataset: Any) -> bool:
    return len(set(map(key, records_of(dataset)))) < length(dataset)


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

    Raises
    ------
    ClaimError
        If it yields no datasets, or only empty ones, or raises.
    """
    if relation is None:
        raise ClaimError(
            f"{said} is a strategy, so the claim must say which of its datasets are neighbours, "
            "such as neighbors='add_remove_one'; of single values, neighbors='any_two'."
        )
    if isinstance(relation, AnyTwo | OfFunction):  # whose inputs may be anything
        none = (
            f"in {MAX_REJECTED:,} draws in a row, none had a neighbour under {relation}. Write "
            "neighbors= so that it holds for many of the inputs, or a strategy of pairs, pairs=."
        )
        return Pairs(neighbouring(datasets, relation, lambda _: True), none)

    def fits(dataset: Any) -> bool:
        _check(dataset)
        return not relation.check(dataset)

    fitting = datasets.filter(fits)
    seen = _survey(fitting, seed, said)
    nothing = (
        f"the datasets that were drawn have {seen}, so that none has a neighbour under {relation} "
        "that the strategy may yield too, and what it cannot yield is no part of the promise. Let "
        "their sizes and records vary, or write another neighbors=."
    )
    allowed = lambda data: seen.holds(data) and fits(data)  # noqa: E731
    return Pairs(neighbouring(fitting, relation, allowed), nothing)


@st.composite
def neighbouring(
    draw: Callable[[SearchStrategy[Any]], Any],
    datasets: SearchStrategy[Any],
    relation: Relation,
    allowed: Callable[[Any], bool],
) -> Pair:
    """A dataset and one of its neighbours; new records are those of another dataset."""
    dataset, other = draw(datasets), draw(datasets)
    is_value = isinstance(relation, AnyTwo) or not kind_of(other)
    pairs = relation.pairs(dataset, [other] if is_value else records_of(other)[:MAX_OFFERED])
    if isinstance(relation, Predicate) and key(dataset) != key(other):
        pairs = chain(relation.accepted(iter([Pair(dataset, other)])), pairs)
    some = list(islice(pairs, draw(st.integers(1, MAX_NEIGHBOURS))))
    inside = (pair for pair in reversed(some) if allowed(pair.d2))
    return next(inside, None) or cast("Pair", draw(st.nothing()))


def _survey(datasets: SearchStrategy[Any], seed: int, said: str) -> Seen:
    """What the datasets of a strategy are like."""
    lengths: list[int] = []
    ends: list[float] = []
    repeats, records, last = False, 0, None
    drawn = draws(datasets, seed)
    for _ in range(MAX_REJECTED):
        one = drawing(drawn, said)
        if one is None:
            continue
        last = one.value
        lengths.append(length(last))
        records += lengths[-1]
        own = _numbers(last)
        ends += [min(own), max(own)] if own else []
        repeats = repeats or _repeats(last)
        if len(lengths) >= (SURVEY if records <= MAX_DRAWN else FIRST_FEW):
            break
    if not lengths:
        raise ClaimError(f"{said}: {REJECTED}")
    if not any(lengths):
        raise ClaimError(
            f"{said}: all of {len(lengths)} datasets that were drawn are empty, such as "
            f"{describe(last)}. Write a strategy with records, such as st.lists(st.integers(0, 5))."
        )
    return Seen(min(lengths), max(lengths), repeats, min(ends, default=0), max(ends, default=0))


def _check(dataset: Any) -> None:
    if not kind_of(dataset):
        raise ClaimError(
            f"drew {describe(dataset)}, of type {type(dataset).__name__}, which is no "
            f"dataset. Allowed: strategies of {ALLOWED}. If it draws single records, write "
            "st.lists(...) around it; if any two of its values are neighbours, write "
            "neighbors='any_two'."
        )
    if length(dataset) > MAX_RECORDS:
        raise ClaimError(
            f"drew a dataset of {length(dataset):,} records, {describe(dataset)}. At most "
            f"{MAX_RECORDS:,} are allowed: bound its size, such as by max_size=1_000."
        )


def drawing(drawn: Iterator[Drawn | None], said: str) -> Drawn | None:
    """The next value.

    Raises
    ------
    ClaimError
        If the strategy raises.
    """
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
