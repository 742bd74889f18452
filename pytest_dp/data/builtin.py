"""Datasets of Python's own types: lists, tuples, sets, strings, and dicts of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from pytest_dp.data.describing import describe
from pytest_dp.data.fields import columns_of_records
from pytest_dp.data.ordering import set_order
from pytest_dp.data.types import DataType, type_of


class Collection(DataType):
    """A type of dataset that a class makes of an iterable of records; the rows are a list."""

    make: type

    def classes(self) -> tuple[type, ...]:
        return (self.make,)

    def records(self, value: Any) -> list[Any]:
        return list(value)

    def join_rows(self, datasets: Sequence[Any]) -> list[Any]:
        return list(chain.from_iterable(map(self.records, datasets)))

    def by_column(self, value: Any) -> Iterator[Any]:
        return columns_of_records(self.records(value))

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
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
    """A set, whose records are sorted: iteration differs between processes."""

    unique, position = True, ""

    def records(self, value: Any) -> list[Any]:
        # The order in which a set iterates differs between processes.
        return sorted(value, key=set_order)


class Set(_Set):
    """A set."""

    name, brackets, make = "set", ("{", "}"), set


class FrozenSet(_Set):
    """A set that cannot be changed."""

    name, brackets, make = "frozenset", ("frozenset({", "})"), frozenset


class String(Collection):
    """A string."""

    name, brackets, make = "str", ("", ""), str

    def take_rows(self, rows: Any, positions: Sequence[int]) -> str:
        return "".join(rows[at] for at in positions)

    def rebuilt(self, example: Any, records: Sequence[Any]) -> str:  # noqa: ARG002
        return "".join(records)

    def missing(self, example: Any) -> Any:  # noqa: ARG002
        raise TypeError("every character is one")

    def words(self, detail: Any) -> str:  # noqa: ARG002
        return "a string"


class Columns(DataType):
    """A dict of columns of one length; its rows are the type and the rows of each column."""

    name, brackets, small_brackets = "dict", ("dict(", ")"), ("", "")

    def classes(self) -> tuple[type, ...]:
        return (dict,)

    def fits(self, value: Any) -> bool:
        lengths = column_lengths(value)
        return lengths is not None and len(set(lengths)) == 1

    def detail(self, value: Any) -> Any:
        return tuple((name, _type(column).name) for name, column in value.items())

    def content(self, value: Any) -> str:
        return str([_type(column).content(column) for column in value.values()])

    def place(self, at: int, inside: str = "") -> str:
        return f"{inside}[{at}]" if inside else f", row {at}"

    def columns(self, value: Any) -> list[Any]:
        return list(value)

    def cells(self, value: Any) -> list[Any]:
        return list(value.values())

    def by_column(self, value: Any) -> Iterator[Any]:
        return chain.from_iterable(_type(column).by_column(column) for column in value.values())

    def length(self, value: Any) -> int:
        return len(next(iter(value.values())))

    def records(self, value: Any) -> list[Any]:
        columns = (_type(column).records(column) for column in value.values())
        return list(zip(*columns, strict=True))

    def join_rows(self, datasets: Sequence[Any]) -> dict[Any, tuple[DataType, Any]]:
        types = {name: _type(column) for name, column in datasets[0].items()}
        return {
            name: (data, data.join_rows([dataset[name] for dataset in datasets]))
            for name, data in types.items()
        }

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return {name: data.take_rows(column, positions) for name, (data, column) in rows.items()}

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        for record in records:
            if len(record) != len(example):
                raise ValueError(record)
        return {
            name: _type(column).rebuilt(column, [record[at] for record in records])
            for at, (name, column) in enumerate(example.items())
        }

    def missing(self, example: Any) -> Any:
        return tuple(_type(column).missing(column) for column in example.values())

    def words(self, detail: Any) -> str:
        return f"a dict of the columns {describe([name for name, _ in detail])}"


def column_lengths(value: dict[Any, Any]) -> list[int] | None:
    """Return the lengths of the columns of a dict; None if its values are no columns."""
    types = [(type_of(column), column) for column in value.values()]
    lengths = [data.length(column) for data, column in types if data and data.vector]
    return lengths if lengths and len(lengths) == len(value) else None


def _type(column: Any) -> DataType:
    """Return the type of a column, which is a dataset itself."""
    data = type_of(column)
    assert data is not None  # as in `column_lengths`
    return data
