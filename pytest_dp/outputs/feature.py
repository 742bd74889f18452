"""A feature: one quantity of an output, as a person would write it, and its values in a table.

What all features of a kind have in common stands in `KINDS`, in one entry for each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs import quantities
from pytest_dp.outputs.flatten import EXTRACT
from pytest_dp.outputs.leaves import (
    ABSENT,
    NUMBER,
    UNKNOWN,
    Category,
    all_numbers,
    are_all_numbers,
    one_name,
)
from pytest_dp.outputs.table import HASHES, Table, hashes

COST = {"form": 0.3, "interval": 0.5, "set": 0.5, "conjunction": 1.0}
"""What a form of an event costs, in units of its rank. Larger: simpler events are shown, which
prove less."""

Column = tuple[Floats, Ints]
"""Numbers, and codes as in `Table`, shape (n,) each."""


@dataclass(frozen=True, slots=True)
class FeatureKind:
    """The properties that features of one kind share."""

    column: Callable[[Any, Table], Column]
    """By the argument of the feature."""
    parts: Callable[[Any, Table], list[Floats] | None] = lambda *_: []
    """Numbers that it is computed from and as inexact as; None if it is exact in any case."""
    whole: bool = False
    test: bool = False
    """Whether it is 0 or 1, for false or true."""
    categories: bool = False
    """Whether it may also be a category."""
    discrete: bool = False
    """Whether it takes few values: single ones are what a person would speak of."""
    of_places: bool = False
    """Whether outputs have one for each place, or pair of places: there may be very many."""
    of_all: bool = False
    """Whether it is computed from all leaves of an output: its columns are remembered."""
    ease: Literal["plain", "hard", "no"] = "plain"
    """Whether a person would speak of it, only of few others, or never: models learn from it."""
    cost: float = 0.0
    """By how much an event about it is harder to read, in units of rank."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output."""

    text: str
    """How a person would write it: ``"output[2]"``, ``"len(output)"``."""
    kind: str
    """A key of `KINDS`."""
    argument: Any = None
    """The place of a leaf, the category that is counted, what is read out of a category, ..."""
    exact: bool = False
    """Whether numbers that are equal but for rounding count as different (see `rounding`)."""

    @property
    def of_kind(self) -> FeatureKind:
        """The entry of `KINDS` for its kind."""
        return KINDS[self.kind]

    def columns(self, table: Table) -> Column:
        """Return its value for every output: numbers and codes."""
        known = table.results.get(self) if table.results else None
        if known is None:
            known = self.of_kind.column(self.argument, table)
            if self.of_kind.of_all:
                table.results[self] = known
        return known

    def parts(self, table: Table) -> list[Floats] | None:
        """Return numbers that it is computed from; None if it is exact."""
        return None if self.exact else self.of_kind.parts(self.argument, table)


def numeric(number: Callable[[Any, Table], Floats]) -> Callable[[Any, Table], Column]:
    """Return the column of a number that an output lacks where it is NaN."""

    def column(argument: Any, table: Table) -> Column:
        numbers = number(argument, table)
        absent = np.isnan(numbers)
        if not absent.any():
            return numbers, all_numbers(len(numbers))
        return numbers, np.where(absent, ABSENT, NUMBER)

    return column


def _whole(number: Callable[[Any, Table], Floats], **traits: Any) -> FeatureKind:
    return FeatureKind(numeric(number), parts=lambda *_: None, whole=True, **traits)


def true_or_false(
    number: Callable[[Any, Table], Floats], cost: float = COST["form"], **traits: Any
) -> FeatureKind:
    """Return the kind of features that are 1 where something holds, and 0 where not."""
    return _whole(number, test=True, cost=cost, **traits)


def _summary(kind: str, **traits: Any) -> FeatureKind:
    number = partial(quantities.summary, kind)
    return FeatureKind(numeric(lambda _, table: number(table)), of_all=True, **traits)


def column_of_argument(what: Any, table: Table) -> Floats:
    """Return the numbers of an argument that works them out by itself."""
    values: Floats = what.values(table)
    return values


def _at(places: Any, table: Table) -> list[Floats]:
    return [table.leaf(place)[0] for place in places]


def _all(_: Any, table: Table) -> list[Floats]:
    return [table.numbers]


_of_place = FeatureKind(lambda place, table: table.leaf(place), categories=True, of_places=True)
_position = {"parts": lambda *_: None, "whole": True}
KINDS: dict[str, FeatureKind] = {
    "leaf": _of_place,
    "last": FeatureKind(lambda _, table: table.last(), categories=True),
    "difference": FeatureKind(quantities.difference, _at, of_places=True),
    **{kind: _summary(kind, parts=_all) for kind in ("sum", "mean")},
    **{kind: _summary(kind) for kind in ("min", "max")},
    **{kind: _summary(kind, **_position) for kind in ("argmin", "argmax")},
    "len": _whole(quantities.lengths, of_all=True),
    "count": _whole(quantities.count_category, of_all=True),
    "bit": _whole(quantities.bit, ease="no"),
    "lowest bit": _whole(quantities.lowest_bit),
    "key": true_or_false(quantities.has_key, cost=0.0),
    "type of the output": true_or_false(quantities.is_of_type),
    "type of a number": true_or_false(quantities.has_number_type),
    "aspect": true_or_false(quantities.has_aspect),
}
"""All kinds of features; the modules of readers enter theirs when they are imported."""
PLACE_KINDS = frozenset(name for name, kind in KINDS.items() if kind.of_places)


def leaf(place: str) -> Feature:
    """Return the leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")


@dataclass(frozen=True, slots=True)
class Extract:
    """A projection of outputs that are too long to be kept: the features to keep of each.

    Calling it gives the extract of a table: a table without leaves. It knows the columns of its
    features, whatever these are, and a hash of every output; all else of the outputs is gone.
    """

    about: tuple[Feature, ...]

    def __call__(self, table: Table) -> Table:
        n = len(table)
        known = {feature: feature.columns(table) for feature in self.about}
        bits = hashes(table).view(np.float64)  # as numbers, which are never recoded
        columns: dict[Hashable, Column] = {HASHES: (bits, all_numbers(n))}
        for feature, (numbers, codes) in known.items():  # copies: views would keep all of it
            plain = are_all_numbers(codes) or (not table.levels and bool((codes == NUMBER).all()))
            columns[feature] = numbers.copy(), all_numbers(n) if plain else codes.copy()
        extract = Table(
            [EXTRACT],
            np.zeros(n, np.int64),
            np.zeros(n + 1, np.int64),
            np.zeros(0),
            all_numbers(0),
            dict(table.levels),
            one_name(UNKNOWN, 0),
            one_name(() if table.is_typed else None, n),
            (),
        )
        extract.results.update(columns)
        return extract


SPECIAL: tuple[Category, ...] = (
    ("absent", None),
    ("nan", None),
    ("inf", None),
    ("-inf", None),
)
"""What a quantity may be instead of a finite number, beside a category."""


def numbers_and_categories(feature: Feature, table: Table) -> tuple[Floats, Ints, list[Category]]:
    """Return numbers, codes for outputs without a finite one, and the categories of codes.

    `NUMBER` where it is a finite one, else a position among the categories of the table, and
    `SPECIAL` after these.
    """
    numbers, codes = feature.columns(table)
    absent = len(table.levels)
    finite_or = [np.isfinite(numbers), np.isnan(numbers), numbers > 0]
    of_numbers = np.select(finite_or, [NUMBER, absent + 1, absent + 2], absent + 3)
    kinds = np.where(codes == NUMBER, of_numbers, np.where(codes == ABSENT, absent, codes))
    return numbers, kinds, [*table.levels, *SPECIAL]


def about_extract(table: Table) -> list[Feature]:
    """Return the quantities of an extract."""
    return [feature for feature in table.results if isinstance(feature, Feature)]
