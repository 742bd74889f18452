"""All relations between neighbours, by their names in a claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.datasets.equality import key
from pytest_dp.datasets.function_relations import Neighbours, OfFunction, Predicate, of_function
from pytest_dp.datasets.neighbours import Pair, Relation, WithParams, shown
from pytest_dp.datasets.query_relations import AllQueries, OneQuery
from pytest_dp.datasets.record_relations import AddRemoveOne, OfRecords, ReplaceOne, ReplaceSpecial
from pytest_dp.declaration import NullRecord
from pytest_dp.errors import ClaimError

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
]


class AnyTwo(Relation):
    """Any two values, as in local differential privacy."""

    __slots__ = ()
    name = "any_two"
    example = "(0, 1)"

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
    for relation in (AddRemoveOne, ReplaceOne, ReplaceSpecial, OneQuery, AllQueries, AnyTwo)
}


def stated(neighbors: Any, unit: Any = None, rows_per_unit: int | None = None) -> Relation | None:
    """The relation that a claim states; None if it states none.

    Parameters
    ----------
    neighbors : str, NullRecord, callable or None
    unit : str, int, callable or None
    rows_per_unit : int or None

    Raises
    ------
    ClaimError
        If they do not go together.
    """
    if rows_per_unit is not None and unit is None:
        raise ClaimError(
            f"rows_per_unit={rows_per_unit} needs unit=: what owns these rows. Write for example "
            f"unit='user_id' with it."
        )
    owned: dict[str, Any] = {} if unit is None else {"unit": unit, "rows_per_unit": rows_per_unit}
    if isinstance(neighbors, NullRecord):
        return ReplaceSpecial(null=neighbors, **owned)
    relation = RELATIONS.get(neighbors) if isinstance(neighbors, str) else None
    if relation is not None and issubclass(relation, OfRecords):
        return relation(**owned)
    if unit is not None:
        choices = ", ".join(
            repr(name) for name, kind in RELATIONS.items() if issubclass(kind, OfRecords)
        )
        beside = "no neighbors=" if neighbors is None else f"neighbors={shown(neighbors)}"
        raise ClaimError(
            f"unit={shown(unit)} with {beside}: units own records, so it goes with one of "
            f"{choices}. Vectors of answers and single values have no records."
        )
    if neighbors is None:
        return None
    return of_function(neighbors) if relation is None else relation()
