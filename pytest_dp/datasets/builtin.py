"""Datasets of Python's own types: lists, tuples and sets of records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pytest_dp.datasets.records import set_order
from pytest_dp.datasets.types import DataType


class Collection(DataType):
    """Records that one class is called with; the rows are a list of them."""

    make: type

    def classes(self) -> tuple[type, ...]:
        return (self.make,)

    def records(self, value: Any) -> list[Any]:
        return list(value)

    def joined(self, datasets: Sequence[Any]) -> list[Any]:
        return list(chain.from_iterable(map(self.records, datasets)))

    def taken(self, rows: Any, positions: Sequence[int]) -> Any:
        return self.make(rows[at] for at in positions)

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:  # noqa: ARG002
        return self.make(records)

    def missing(self, example: Any) -> Any:  # noqa: ARG002
        return None


class List(Collection):
    """A list."""

    name, brackets, vector, make = "list", ("[", "]"), True, list


class Tuple(Collection):
    """A tuple, unless it is a named one."""

    name, brackets, vector, make = "tuple", ("(", ")"), True, tuple

    def fits(self, value: Any) -> bool:
        return not hasattr(value, "_fields")  # a named tuple is one record


class _Set(Collection):
    unique = True

    def records(self, value: Any) -> list[Any]:
        # The order in which a set iterates differs between processes.
        return sorted(value, key=set_order)


class Set(_Set):
    """A set."""

    name, brackets, make = "set", ("{", "}"), set


class FrozenSet(_Set):
    """A set that cannot be changed."""

    name, brackets, make = "frozenset", ("frozenset({", "})"), frozenset
