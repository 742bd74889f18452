"""All relations between neighbours, by their names in a claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.datasets.equality import key
from pytest_dp.datasets.function_relations import Neighbours, OfFunction, Predicate, of_function
from pytest_dp.datasets.neighbours import Pair, Relation, WithParams
from pytest_dp.datasets.query_relations import AllQueries, OneQuery
from pytest_dp.datasets.record_relations import AddRemoveOne, OfRecords, ReplaceOne, ReplaceSpecial
from pytest_dp.declaration import Values

__all__ = [
    "RELATIONS",
    "AddRemoveOne",
    "AllQueries",
    "AnyTwo",
    "Neighbours",
    "OfFunction",
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


class AnyTwo(Relation):
    """Any two values, as in local differential privacy."""

    __slots__ = ()
    name = "any_two"
    example = "(0, 1)"
    of = Values

    @property
    def required(self) -> str:
        return "D and D' are two different values"

    def fault(self, d1: Any, d2: Any) -> str:
        return "they are equal" if key(d1) == key(d2) else ""

    def difference(self, d1: Any, d2: Any) -> str:  # noqa: ARG002
        return "any two values"

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """The value with each of the other values in `records`."""
        seen = {key(dataset)}
        for value in records:
            if key(value) not in seen:
                seen.add(key(value))
                yield Pair(dataset, value, "any two values")


RELATIONS: dict[str, type[Relation]] = {
    relation.name: relation
    for relation in (AddRemoveOne, ReplaceOne, ReplaceSpecial, AllQueries, OneQuery, AnyTwo)
}
"""By the names in a claim. The first of those for a kind of inputs is its default."""
