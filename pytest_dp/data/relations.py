"""All relations between neighbours, by their names in a claim; those of vectors and of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data.conversion import kind_of, rebuilt, records_of
from pytest_dp.data.describing import describe
from pytest_dp.data.equality import key
from pytest_dp.data.function_relations import Neighbours, OfFunction, Predicate, of_function
from pytest_dp.data.neighbours import Pair, Relation, WithParams, different_kinds
from pytest_dp.data.ordering import distinct, is_real
from pytest_dp.data.record_relations import AddRemoveOne, OfRecords, ReplaceOne, ReplaceSpecial
from pytest_dp.data.types import type_of
from pytest_dp.declaration import Queries, Values

ROUNDING = 1e-9
"""Error of an answer that moves by 1. Larger: pairs further apart count as neighbours; smaller:
rounding refuses right ones."""

__all__ = [
    "RELATIONS",
    "AddRemoveOne",
    "AllQueries",
    "AnyTwo",
    "Neighbours",
    "OfFunction",
    "OfQueries",
    "OfRecords",
    "OneQuery",
    "Pair",
    "Predicate",
    "Relation",
    "ReplaceOne",
    "ReplaceSpecial",
    "WithParams",
    "of_function",
]


class OfQueries(Relation):
    """Vectors of the answers of counting queries, each of which moves by at most 1."""

    __slots__ = ()
    of = Queries

    def between(self, d1: Any, d2: Any) -> Pair | str:
        for name, value in (("D", d1), ("D'", d2)):
            data = type_of(value)
            if data is None or not data.vector:
                return f"{name} is of type {type(value).__name__}, which is not a vector"
            wrong = [answer for answer in records_of(value) if not is_real(answer)]
            if wrong:
                return f"{name} holds {describe(wrong[0])}, which is not a number"
        if kind_of(d1) != kind_of(d2):
            return different_kinds(d1, d2)
        if len(d1) != len(d2):
            return f"their lengths are {len(d1)} and {len(d2)}"
        moved = _moves(d1, d2)
        if not any(moved):
            return "no answer differs"
        at = max(range(len(moved)), key=moved.__getitem__)
        if moved[at] > 1 + ROUNDING:
            return f"the answer at index {at} differs by {moved[at]:g}"
        return Pair(d1, d2, "every answer may move by 1")

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:  # noqa: ARG002
        answers = records_of(dataset)
        d1 = rebuilt(dataset, answers)

        def moved() -> Iterator[Any]:
            for steps in self._steps(len(answers)):
                with suppress(ClaimError):  # such as -1 in an array of unsigned integers
                    yield rebuilt(dataset, [a + b for a, b in zip(answers, steps, strict=True)])

        pairs = (self.pair(d1, d2) for d2 in distinct(moved(), known=[key(d1)]))
        return filter(None, pairs)  # not always: inf + 1 is inf

    def _steps(self, n: int) -> Iterator[list[int]]:
        """Yield for each neighbour the differences of its answers."""
        for at in range(n):
            for step in (1, -1):
                yield [step * (index == at) for index in range(n)]


class OneQuery(OfQueries):
    """One answer moves."""

    __slots__ = ()
    name = "one_query"
    example = "([1, 1], [2, 1])"

    @property
    def required(self) -> str:
        return (
            "D and D' are vectors of numbers, of one length, and exactly one answer differs, by at "
            "most 1"
        )

    def between(self, d1: Any, d2: Any) -> Pair | str:
        found = super().between(d1, d2)
        moved = [] if isinstance(found, str) else list(filter(None, _moves(d1, d2)))
        if len(moved) > 1:
            return f"{len(moved)} answers differ"
        return Pair(d1, d2, f"one answer moved by {moved[0]:g}") if moved else found


class AllQueries(OfQueries):
    """Any of the answers move."""

    __slots__ = ()
    name = "all_queries"
    example = "([1, 1], [2, 2])"

    @property
    def required(self) -> str:
        return (
            "D and D' are vectors of numbers, of one length, and each answer differs by at most 1"
        )

    def _steps(self, n: int) -> Iterator[list[int]]:
        half = n // 2
        for step in (1, -1):
            yield [step] * n
            yield [step] * half + [-step] * (n - half)
        for steps in super()._steps(n):
            yield steps
            at = next(index for index, step in enumerate(steps) if step)
            yield [steps[at] if index == at else -steps[at] for index in range(n)]


def _moves(d1: Any, d2: Any) -> list[float]:
    """Return by how much each answer differs."""
    answers = zip(records_of(d1), records_of(d2), strict=False)
    # The smaller from the larger: unsigned integers would wrap around, and inf - inf is NaN.
    return [max(a, b) - min(a, b) if a != b else 0.0 for a, b in answers]


class AnyTwo(Relation):
    """Any two values, as in local differential privacy."""

    __slots__ = ()
    name = "any_two"
    example = "(0, 1)"
    of = Values

    @property
    def required(self) -> str:
        return "D and D' are two different values"

    def between(self, d1: Any, d2: Any) -> Pair | str:
        return "they are equal" if key(d1) == key(d2) else Pair(d1, d2, "any two values")

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Return the value with each of the other values in `records`."""
        others = distinct(records, known=[key(dataset)])
        return (Pair(dataset, value, "any two values") for value in others)


RELATIONS: dict[str, type[Relation]] = {
    relation.name: relation
    for relation in (AddRemoveOne, ReplaceOne, ReplaceSpecial, AllQueries, OneQuery, AnyTwo)
}
"""By the names in a claim. The first of those for a kind of inputs is its default."""
