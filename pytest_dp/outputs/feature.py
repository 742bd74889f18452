"""A feature: one quantity of an output, as a person would write it, and its values in a table.

`KINDS` has an entry for each kind of feature: how it is computed, by the argument of the feature
and a table of outputs, and properties that its features share. Features are about the leaves of
outputs, or about their *form*: a list or a tuple, an int or a float, float32 or float64, which key
comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.containers import ASPECT_TEXTS, Aspect
from pytest_dp.outputs.leaves import ABSENT, NUMBER, UNKNOWN, Category, all_numbers
from pytest_dp.outputs.table import Table

COST = {"form": 0.3, "interval": 0.5, "set": 0.5, "conjunction": 1.0}
"""What a form of an event costs, in units of rank. Larger: simpler events are shown, which prove
less."""

Column = tuple[Floats, Ints]
"""Numbers, and codes as in `Table`, shape (n,) each."""


MAX_KEYS = 16
"""Keys of which the presence is a feature. More learn noise by heart; fewer miss the one that
leaks."""
MAX_FORMS = 64
"""Types and lengths that are features. More learn noise by heart; fewer miss the one that leaks."""

Form = tuple[Aspect, ...]


@dataclass(frozen=True, slots=True)
class FeatureKind:
    """A kind of features: how their values are computed, and the properties that they share."""

    column: Callable[[Any, Table], Column]
    """Computes the values, given the argument of a feature and a table."""
    operands: Callable[[Any, Table], list[Floats] | None] = lambda *_: []
    """Returns arrays of the numbers from which the values are computed, whose rounding errors they
    share; None if the values are exact."""
    whole: bool = False
    """Whether all values are whole numbers."""
    test: bool = False
    """Whether all values are 0 and 1, for false and true."""
    categories: bool = False
    """Whether a value may also be a category."""
    discrete: bool = False
    """Whether different values are so few that events about single ones come first."""
    of_places: bool = False
    """Whether outputs have one feature for each place, or pair of places: maybe very many."""
    of_all: bool = False
    """Whether a feature is computed from all leaves, so that a table caches its values."""
    ease: Literal["plain", "hard", "no"] = "plain"
    """Whether events may be about a feature: always, only if few other features are left, or never
    (models still learn from it)."""
    cost: float = 0.0
    """Taken off the rank of an event about a feature that is hard to read."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output: a number, a category, or absent."""

    text: str
    """The quantity as a person would write it: ``"output[2]"``, ``"len(output)"``."""
    kind: str
    """A key of `KINDS`."""
    argument: Any = None
    """What the kind asks for: the place of a leaf, the category that is counted, ..."""
    exact: bool = False
    """Whether numbers that are equal but for rounding count as different (see `rounding`)."""

    @property
    def of_kind(self) -> FeatureKind:
        """The entry of `KINDS` for the kind."""
        return KINDS[self.kind]

    def columns(self, table: Table) -> Column:
        """Return the value in every output as numbers and codes, shape (n,) each.

        A table caches the values if the kind is `of_all`.
        """
        known = table.results.get(self) if table.results else None
        if known is None:
            known = self.of_kind.column(self.argument, table)
            if self.of_kind.of_all:
                table.results[self] = known
        return known

    def operands(self, table: Table) -> list[Floats] | None:
        """Return the arrays whose rounding errors the values have; None if the values are exact."""
        return None if self.exact else self.of_kind.operands(self.argument, table)


def numeric(number: Callable[[Any, Table], Floats]) -> Callable[[Any, Table], Column]:
    """Make a `FeatureKind.column` from a function that returns numbers; NaN becomes absent."""

    def column(argument: Any, table: Table) -> Column:
        numbers = number(argument, table)
        absent = np.isnan(numbers)
        if not absent.any():
            return numbers, all_numbers(len(numbers))
        return numbers, np.where(absent, ABSENT, NUMBER)

    return column


def _whole_kind(number: Callable[[Any, Table], Floats], **traits: Any) -> FeatureKind:
    """Return a kind of features that are whole numbers; absent where `number` returns NaN."""
    return FeatureKind(numeric(number), operands=lambda *_: None, whole=True, **traits)


def true_or_false(
    number: Callable[[Any, Table], Floats], cost: float = COST["form"], **traits: Any
) -> FeatureKind:
    """Return a kind of features that are 1 for true and 0 for false; NaN becomes absent."""
    return _whole_kind(number, test=True, cost=cost, **traits)


def _summary_kind(kind: str, **traits: Any) -> FeatureKind:
    """Return the kind of features that `summary` computes; absent without a number."""
    number = partial(summary, kind)
    return FeatureKind(numeric(lambda _, table: number(table)), of_all=True, **traits)


def column_of_argument(what: Any, table: Table) -> Floats:
    """Return ``what.values(table)``, shape (n,), for an argument that computes the values."""
    values: Floats = what.values(table)
    return values


def summary(kind: str, table: Table) -> Floats:
    """Return the sum, mean, min or max of the numbers in each output; NaN without a number."""
    is_number = table.codes == NUMBER
    if is_number.all():
        owner, numbers, counts = table.owner, table.numbers, table.sizes
    else:
        owner, numbers = table.owner[is_number], table.numbers[is_number]
        counts = np.bincount(owner, minlength=len(table))
    summaries = np.full(len(table), np.nan)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return summaries
    if kind in ("sum", "mean"):
        sums = np.bincount(owner, weights=numbers, minlength=len(table))[rows]
        summaries[rows] = sums if kind == "sum" else sums / counts[rows]
        return summaries
    starts = (np.cumsum(counts) - counts)[rows]
    reduce = np.minimum if kind == "min" else np.maximum
    summaries[rows] = reduce.reduceat(numbers, starts)
    return summaries


def lengths(_: Any, table: Table) -> Floats:
    """Return the length of each output, shape (n,); NaN for outputs without a length."""
    lengths = [np.nan if s.length is None else s.length for s in table.structures]
    of_outputs: Floats = np.array(lengths, dtype=np.float64)[table.structure]
    return of_outputs


def count_category(category: Any, table: Table) -> Floats:
    """Return how many leaves of each output are of a category, shape (n,); 0 if it never came."""
    owners = table.owner[table.codes == table.levels.get(category, ABSENT)]
    return np.bincount(owners, minlength=len(table)).astype(np.float64)


def difference(places: tuple[str, str], table: Table) -> tuple[Floats, Ints]:
    """Return the number at the first place minus that at the second, and codes, shape (n,).

    Absent where either leaf is no number.
    """
    (numbers, codes), (others, other_codes) = map(table.leaf, places)
    both = (codes == NUMBER) & (other_codes == NUMBER)
    with np.errstate(invalid="ignore", over="ignore"):
        return numbers - others, np.where(both, NUMBER, ABSENT)


def bit(which: tuple[str, int], table: Table) -> Floats:
    """Return one bit of the double at a place, 0 the lowest and 63 the sign; NaN for NaN."""
    place, position = which
    numbers = table.leaf(place)[0]
    words = np.ascontiguousarray(numbers).view(np.uint64)
    bits = (words >> np.uint64(position)) & np.uint64(1)
    return np.where(np.isnan(numbers), np.nan, bits)


def lowest_bit(place: str, table: Table) -> Floats:
    """Return the largest k such that 2**k divides the number at a place; NaN for 0, inf, NaN.

    Small doubles have finer digits than large ones, and a sum keeps only digits that fit its larger
    term. So 1.0 plus noise is a multiple of 2**-53 or so, 0.0 plus noise has all digits of the
    noise, and an output with a digit below 2**-53 cannot come from 1.0.

    Source: Mironov, "On Significance of the Least Significant Bits For Differential Privacy", CCS
    2012.
    """
    numbers = table.leaf(place)[0]
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    digits = (fraction * 2.0**53).astype(np.int64)
    with np.errstate(divide="ignore"):
        lowest = np.log2((digits & -digits).astype(np.float64))  # exact: of a power of two
    return np.where(digits == 0, np.nan, lowest + exponent - 53)


def is_of_type(kind: str, table: Table) -> Floats:
    """Return 1 for outputs that are containers of a type, and 0 for others."""
    holds = np.array([structure.kind == kind for structure in table.structures], float)
    return holds[table.structure]


def has_number_type(which: tuple[str, str], table: Table) -> Floats:
    """Return 1 where the number at a place is of a type, 0 where not, NaN without a number."""
    place, kind = which
    types, codes = table.number_types(place), table.leaf(place)[1]
    wanted = np.array([name == kind for name in table.types.names], float)
    return np.where(codes == NUMBER, wanted[types], np.nan)


def has_aspect(aspect: Aspect, table: Table) -> Floats:
    """Return 1 for outputs whose form has an aspect, and 0 for others, shape (n,)."""
    return _value_by_form(table, lambda form: aspect in form)


def has_key(which: tuple[str, str], table: Table) -> Floats:
    """Return 1 for outputs whose mapping at a place has a key, and 0 for others."""
    place, key = which
    return _value_by_form(table, lambda form: key in _keys_at(form, place))


def _forms(table: Table) -> list[Form]:
    """Return the different forms of outputs; an unknown form becomes an empty one."""
    return [form or () for form in table.forms.names]  # type: ignore[misc]


def _value_by_form(table: Table, value: Callable[[Form], float]) -> Floats:
    """Return ``value(form)`` for the form of each output, shape (n,)."""
    return np.array(list(map(value, _forms(table))), float)[table.forms.which]


def _keys_at(form: Form, place: str) -> tuple[str, ...]:
    """Return the keys of a form's mapping at a place, in their order; empty without one."""
    return next((keys for at, what, keys in form if (at, what) == (place, "order")), ())


def form_features(table: Table) -> Iterator[Feature]:
    """Yield features for types, keys and other aspects of forms that vary among the outputs."""
    kinds = {structure.kind for structure in table.structures}
    if len(kinds) > 1:
        for kind in sorted(kinds - {"scalar"}):
            yield Feature(f"type(output) is {kind}", "type of the output", kind)
    if len({*table.types.names} - {UNKNOWN}) > 1:
        for place in table.places:
            types = table.number_types(place)[table.leaf(place)[1] == NUMBER]
            present = np.flatnonzero(np.bincount(types, minlength=1)).tolist()
            for kind in [str(table.types.names[i]) for i in present if len(present) > 1]:
                yield Feature(f"type({place}) is {kind}", "type of a number", (place, kind))
    if len(table.forms.names) > 1:
        yield from _varying_aspects(table)


def _varying_aspects(table: Table) -> Iterator[Feature]:
    """Yield features for aspects and keys that some outputs have and others lack.

    At most `MAX_FORMS` aspects, the commonest first, and `MAX_KEYS` keys.
    """
    weights = np.bincount(table.forms.which, minlength=len(table.forms.names)).tolist()
    counts: Counter[Aspect] = Counter()
    for form, weight in zip(_forms(table), weights, strict=True):
        counts.update(dict.fromkeys(form, weight))
    varied = [aspect for aspect, n in counts.items() if 0 < n < len(table)]
    varied.sort(key=lambda aspect: (-counts[aspect], repr(aspect)))
    for place, what, value in varied[:MAX_FORMS]:
        shown = ", ".join(value) if isinstance(value, tuple) else value
        text = ASPECT_TEXTS[what].format(place, shown)
        yield Feature(text, "aspect", (place, what, value))
    orders = [(place, keys) for place, what, keys in varied if what == "order"]
    pairs = {(place, key) for place, keys in orders for key in keys}
    for place, key in sorted(pairs)[:MAX_KEYS]:
        if not all(key in _keys_at(form, place) for form in _forms(table)):
            yield Feature(f"{key} in {place}", "key", (place, key))


def _numbers_at(places: Any, table: Table) -> list[Floats]:
    return [table.leaf(place)[0] for place in places]


def _all_numbers(_: Any, table: Table) -> list[Floats]:
    return [table.numbers]


_of_place = FeatureKind(lambda place, table: table.leaf(place), categories=True, of_places=True)
KINDS: dict[str, FeatureKind] = {
    "leaf": _of_place,
    "last": FeatureKind(lambda _, table: table.last_leaves(), categories=True),
    "difference": FeatureKind(difference, _numbers_at, of_places=True),
    **{kind: _summary_kind(kind, operands=_all_numbers) for kind in ("sum", "mean")},
    **{kind: _summary_kind(kind) for kind in ("min", "max")},
    "len": _whole_kind(lengths, of_all=True),
    "count": _whole_kind(count_category, of_all=True),
    "bit": _whole_kind(bit, ease="no"),
    "lowest bit": _whole_kind(lowest_bit),
    "key": true_or_false(has_key, cost=0.0),
    "type of the output": true_or_false(is_of_type),
    "type of a number": true_or_false(has_number_type),
    "aspect": true_or_false(has_aspect),
}
"""All kinds of features; the modules of readers enter theirs when they are imported."""
PLACE_KINDS = frozenset(name for name, kind in KINDS.items() if kind.of_places)


def leaf(place: str) -> Feature:
    """Return the feature: the leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")


SPECIAL: tuple[Category, ...] = (
    ("absent", None),
    ("nan", None),
    ("inf", None),
    ("-inf", None),
)
"""Values that are neither finite numbers nor categories of a table."""


def numbers_and_categories(feature: Feature, table: Table) -> tuple[Floats, Ints, list[Category]]:
    """Return the values of a feature as numbers, codes, and the categories of the codes.

    Numbers and codes have shape (n,). A code is `NUMBER` for a finite number, else an index in the
    categories: those of the table, then `SPECIAL`.
    """
    numbers, codes = feature.columns(table)
    absent = len(table.levels)
    finite_or = [np.isfinite(numbers), np.isnan(numbers), numbers > 0]
    of_numbers = np.select(finite_or, [NUMBER, absent + 1, absent + 2], absent + 3)
    kinds = np.where(codes == NUMBER, of_numbers, np.where(codes == ABSENT, absent, codes))
    return numbers, kinds, [*table.levels, *SPECIAL]
