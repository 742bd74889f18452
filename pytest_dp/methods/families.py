"""Families of neighbours: pairs (D, D') that depend on a vector of numbers, which can be moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.claim import Promise
from pytest_dp.data import is_real, kind_of, records_of
from pytest_dp.data.conversion import rebuild
from pytest_dp.data.fields import fields_of, with_known
from pytest_dp.data.relations import AddRemoveOne, OneQuery, Pair, Relation, ReplaceOne
from pytest_dp.declaration import Queries
from pytest_dp.oracles.deferred import as_draw_array, is_draw
from pytest_dp.proposers.interesting_values import LARGEST_NUMBER

MAX_SLOTS = 24
"""Numbers of an input that move, at most. More take longer; fewer leave others unchanged."""

Slot = tuple[int, Hashable]
"""A number of a dataset: the position of its record, and the name of its field."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A function from a vector to D, or to D'."""

    numbers: Callable[[Floats], Floats]
    """From vectors, shape (n, vector), to the numbers in the dataset, shape (n, numbers)."""
    whole: Bools
    """Which of the numbers in the dataset are whole."""
    build: Callable[[Sequence[Any]], Any]
    """From numbers, or arrays that stand for numbers, to the dataset that holds them."""

    def build_data(self, vector: Floats) -> Any:
        """Return the dataset of a vector, with ints for integral numbers of a whole field."""
        (numbers,) = self.numbers(vector[None, :])
        return self.build(
            [
                round(number) if is_whole and number.is_integer() else number
                for number, is_whole in zip(numbers.tolist(), self.whole.tolist(), strict=True)
            ]
        )


@dataclass(frozen=True, slots=True, eq=False)
class PairFamily:
    """A family of pairs: D and D' as functions of a vector of numbers within bounds."""

    low: Floats
    high: Floats
    steps: Bools
    """Which numbers of the vector move D' away from D, in units of the relation."""
    whole: Bools
    """Which numbers of the vector are rounded in the end."""
    sides: tuple[Side, Side]
    relation: Relation

    def draw_vector(self, rng: np.random.Generator, centre: float, spread: float) -> Floats:
        """Draw a vector within the bounds, each number within `spread` of `centre` if they overlap.

        Numbers that move D' away from D have the bounds alone.
        """
        low, high = np.maximum(self.low, centre - spread), np.minimum(self.high, centre + spread)
        apart = (low >= high) | self.steps
        return rng.uniform(np.where(apart, self.low, low), np.where(apart, self.high, high))

    def pair(self, vector: Floats) -> Pair | None:
        """Return the pair of a vector, whole numbers rounded; None if D and D' are then equal."""
        rounded = np.where(self.whole, np.rint(vector), vector)
        return self.relation.pair(*(side.build_data(rounded) for side in self.sides))


def families_of(promise: Promise, whose: str) -> Callable[[np.random.Generator], PairFamily]:
    """Return a function that draws a random family of neighbours of a promise.

    Raises ClaimError if the inputs hold no numbers to move, with `whose`, the setting that moves
    them.
    """
    inputs, relation = promise.inputs, promise.relation
    if isinstance(inputs, Queries) and relation is not None:
        lengths = [int(length) for length in inputs.lengths]
        return lambda rng: family_of_queries(
            lengths[int(rng.integers(len(lengths)))], relation, rng
        )
    listed = isinstance(inputs, list | tuple)
    examples = [example for example in inputs if kind_of(example)] if listed else []
    records = isinstance(relation, AddRemoveOne | ReplaceOne) and relation.unit is None
    if relation is not None and records and _find_ranges(examples):
        return lambda rng: family_of_records(examples, relation, rng)
    given = "pairs" if inputs is None else "inputs"
    raise ClaimError(
        f"{whose} moves the numbers of inputs, and {given}={on_one_line(getattr(promise, given))} "
        f"{'leaves none to move' if inputs is None else 'have none that differ'}. Allowed: "
        "inputs=queries(...), or example datasets with neighbors='add_remove_one' or 'replace_one' "
        "with numbers in their records, such as inputs=[[0.0, 0.5, 1.0]]. Write "
        "method='sequential', or another search, for others."
    )


def family_of_queries(
    n: int,
    relation: Relation,
    rng: np.random.Generator,
    bounds: tuple[float, float] = (0.0, LARGEST_NUMBER),
    *,
    whole: bool = True,
) -> PairFamily:
    """Draw a family of vectors of `n` answers within bounds.

    All answers may move by at most 1, each by its own amount; under `OneQuery`, one random answer.
    """
    at = slice(None)
    if isinstance(relation, OneQuery):
        index = int(rng.integers(n))
        at = slice(index, index + 1)
    moving = len(range(n)[at])

    def moved(vectors: Floats) -> Floats:
        answers = vectors[:, :n].copy()
        answers[:, at] += vectors[:, n:]
        return np.clip(answers, *bounds)

    wholes = np.full(n, whole)
    sides = Side(lambda vectors: vectors[:, :n], wholes, list), Side(moved, wholes, list)
    low, high = (
        np.concatenate([np.full(n, end), np.full(moving, step)])
        for end, step in zip(bounds, (-1.0, 1.0), strict=True)
    )
    steps = np.arange(n + moving) >= n
    return PairFamily(low, high, steps, np.full(n + moving, whole), sides, relation)


def family_of_records(
    examples: Sequence[Any], relation: Relation, rng: np.random.Generator
) -> PairFamily:
    """Draw a family of datasets like a random example, with a record added or replaced.

    Each number stays between the smallest and the largest of its field in the examples. At most
    `MAX_SLOTS` numbers move.
    """
    ranges = _find_ranges(examples)
    held = [example for example in examples if _find_slots(records_of(example), ranges)]
    example = held[int(rng.integers(len(held)))]
    records = records_of(example)
    slots = _find_slots(records, ranges)
    chosen = rng.permutation(len(slots))[: max(MAX_SLOTS - len(ranges), 1)]
    slots = [slots[at] for at in sorted(chosen.tolist())]
    template = records[slots[int(rng.integers(len(slots)))][0]]
    at = len(records)
    if isinstance(relation, ReplaceOne):
        places = sorted({position for position, _ in slots})
        at = int(places[int(rng.integers(len(places)))])
    kept = [slot for slot in slots if slot[0] != at]
    own = [slot for slot in slots if slot[0] == at]
    new = [(at, name) for name in fields_of(template) if name in ranges]
    slots = kept + own + new
    others = [*records[:at], template, *records[at + 1 :]]
    columns = [*range(len(kept)), *range(len(kept + own), len(slots))]
    ours = _make_side(example, records, kept + own, range(len(kept + own)), ranges)
    theirs = _make_side(example, others, kept + new, columns, ranges)
    low, high, whole = (
        np.array(values) for values in zip(*(ranges[s[1]] for s in slots), strict=True)
    )
    return PairFamily(low, high, np.zeros(len(slots), bool), whole, (ours, theirs), relation)


def _make_side(
    example: Any,
    records: Sequence[Any],
    slots: Sequence[Slot],
    columns: Sequence[int],
    ranges: dict[Hashable, tuple[float, float, bool]],
) -> Side:
    """Return D or D': `records` in the example's type, with the vector's `columns` at the slots."""
    columns = list(columns)

    def build(numbers: Sequence[Any]) -> Any:
        made = list(records)
        for (position, name), number in zip(slots, numbers, strict=True):
            made[position] = with_known(made[position], name, number)
        if not any(map(is_draw, numbers)):
            return rebuild(example, made)
        if isinstance(example, np.ndarray):
            return as_draw_array(np.array(made, object))
        return type(example)(made) if type(example) in (list, tuple) else rebuild(example, made)

    whole = np.array([ranges[name][2] for _, name in slots], bool)
    return Side(lambda vectors: vectors[:, columns], whole, build)


def _find_ranges(examples: Sequence[Any]) -> dict[Hashable, tuple[float, float, bool]]:
    """Return the smallest and largest number of each numeric field, and whether all are ints.

    A field counts if it always holds numbers and at least two of them differ.
    """
    columns: dict[Hashable, list[Any]] = {}
    for example in examples:
        for record in records_of(example):
            for name, value in fields_of(record).items():
                columns.setdefault(name, []).append(value)
    return {
        name: (float(min(values)), float(max(values)), all(isinstance(v, int) for v in values))
        for name, values in columns.items()
        if all(is_real(v) and not isinstance(v, bool) for v in values) and min(values) < max(values)
    }


def _find_slots(records: Sequence[Any], ranges: dict[Hashable, Any]) -> list[Slot]:
    """Return position and field name of each number in records whose field has a range."""
    return [
        (position, name)
        for position, record in enumerate(records)
        for name in fields_of(record)
        if name in ranges
    ]
