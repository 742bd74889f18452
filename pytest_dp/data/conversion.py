"""Records from datasets, and datasets from records; datasets of Python's own types."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from math import isclose
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import plural
from pytest_dp.data.describing import describe, describe_record
from pytest_dp.data.equality import equality_key
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import set_order
from pytest_dp.data.types import DataType, Kind, type_of


def kind_of(value: Any) -> Kind:
    """Return the name of a dataset's type, and a detail; an empty tuple for other objects.

    The detail is the shape of a record in an array, the columns of a table, or the name of a
    series. Datasets of one kind can exchange records.
    """
    data = type_of(value)
    return (data.name, data.detail(value)) if data else ()


def type_in_words(value: Any) -> str:
    """Return a dataset's type in words: ``"a Series named 'age'"``; raise ClaimError for others."""
    data = _type_of_dataset(value)
    columns, detail = data.columns(value), data.detail(value)
    name = f"an {data.name}" if data.name == "array" else f"a {data.name}"
    if columns is not None:
        return f"{name} with the columns {describe(columns)}"
    if data.name == "array":
        return f"{name} with records of shape {detail}"
    return name if detail in (None, "") else f"{name} named {detail!r}"


def dropped_part_advice(value: Any) -> str:
    """Return advice on a dataset's part that neighbours lack, such as an index; else ""."""
    data = type_of(value)
    return data.dropped_part_advice(value) if data else ""


def records_of(dataset: Any) -> list[Any]:
    """Return the records as plain Python objects in order; the records of a set are sorted.

    Rows of tables and of structured arrays are tuples. Raises ClaimError if the object is no
    dataset.
    """
    return _type_of_dataset(dataset).records(dataset)


def rebuild(example: Any, records: Sequence[Any]) -> Any:
    """Return a dataset of the example's type and dtypes that holds these records instead.

    Raises ClaimError if it cannot hold one of them, such as 0.5 in an array of integers, or if the
    example is no dataset. Floats may be rounded to three digits.
    """
    data = _type_of_dataset(example)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is lost is looked at here
            made = data.rebuild(example, records)
        lost = [] if data.unique else _unlike(records, data.records(made))
    except Exception as error:  # whatever the library says
        raise _unfit(example, list(records)) from error
    if lost:
        raise _unfit(example, lost)
    return made


def describe_non_dataset(value: Any) -> str:
    """Return the end of a sentence on an object: ``of type int, is not a dataset. Allowed: …``."""
    lengths = column_lengths(value) if isinstance(value, dict) else None
    if lengths:
        return (
            f"a dict, is not a dataset: its columns have {min(lengths)} to {max(lengths)} entries"
        )
    return f"of type {type(value).__name__}, is not a dataset. Allowed: {ALLOWED}"


def length(dataset: Any) -> int:
    """Return the number of records of a dataset; raise ClaimError if the object is none."""
    return _type_of_dataset(dataset).length(dataset)


def select_rows(dataset: Any, positions: Sequence[int]) -> Any:
    """Return a new dataset of the rows at these positions; raise ClaimError for no dataset."""
    data = _type_of_dataset(dataset)
    return data.take_rows(data.join_rows([dataset]), positions)


def join_key(dataset: Any) -> str:
    """Return a text, equal if rows of datasets of a kind join unconverted; "" without records."""
    data = _type_of_dataset(dataset)
    return data.content(dataset) if data.length(dataset) else ""


def null_of(example: Any, record: Any) -> Any:
    """Return the null record of datasets like the example, in the form of `records_of`.

    `record` is a record, as a dict or a tuple for rows of tables; None stands for missing values.
    Raises ClaimError if such a dataset cannot hold the record or missing values.
    """
    data = _type_of_dataset(example)
    columns = data.columns(example)
    if record is None:
        try:
            return data.missing_record(example)
        except Exception as error:  # whatever the library says
            names = [0] if columns is None else columns
            null: Any = dict.fromkeys(names, 0) if columns is not None else 0
            null = "-" if isinstance(example, str) else null
            raise ClaimError(
                f"neighbors='replace_special' needs a null record, and {describe(example)} cannot "
                f"hold missing values: {error}. Write the record that stands for nobody, such as "
                f"neighbors=replace_special({describe(null)})."
            ) from error
    if columns is not None and isinstance(record, Mapping) and set(record) == set(columns):
        record = tuple(record[name] for name in columns)
    return data.records(rebuild(example, [record]))[0]


def refuse_several_tables(where: str, example: Any, unit: Any) -> None:
    """Raise ClaimError if an example holds tables in place of records.

    Allowed are tables with the same columns in a list, as those of clients, if there is no `unit`
    or if it is a function; records that are dicts count as tables only if they have a column
    `unit`.
    """
    in_rows = bool(kind_of(example))
    columns = {
        f"[{name}]" if isinstance(name, int) else str(name): names
        for name, entry in fields_of(example).items()
        if name is not None
        and (names := _columns_of_table(entry))
        and (not in_rows or not isinstance(entry, Mapping) or unit in names)
    }
    alike = len(set(columns.values())) == 1
    if columns and not (in_rows and alike and (unit is None or callable(unit))):
        owner = unit if isinstance(unit, str) else "user_id"
        raise ClaimError(
            f"{where} holds {plural(len(columns), 'table')} ({', '.join(columns)}), and one of "
            "them as a whole would count as a record. Allowed: one table, or a function as "
            f"neighbors= that yields the tables without the rows of one {owner}, for each of these."
        )


def _columns_of_table(value: Any) -> tuple[Any, ...]:
    """Return the names of the columns of a table; an empty tuple for other objects."""
    data = type_of(value)
    return tuple(data.columns(value) or ()) if data else ()


def _type_of_dataset(value: Any) -> DataType:
    """Return the `DataType` of a dataset; raise ClaimError if the object is no dataset."""
    data = type_of(value)
    if data is None:
        raise ClaimError(f"{describe(value)}, {describe_non_dataset(value)}.")
    return data


def _unlike(records: Sequence[Any], made: Sequence[Any]) -> list[Any]:
    """Return the records that differ from their copies in `made`."""
    return [record for record, copy in zip(records, made, strict=True) if not _same(record, copy)]


def _same(record: Any, copy: Any) -> bool:
    """Return whether a copy differs at most by rounding of floats: float16 has three digits."""
    if isinstance(record, float) and isinstance(copy, float):
        return isclose(record, copy, rel_tol=1e-3) or equality_key(record) == equality_key(copy)
    if isinstance(record, list | tuple) and isinstance(copy, list | tuple):
        return len(record) == len(copy) and all(map(_same, record, copy))
    return equality_key(record) == equality_key(copy)


def _unfit(example: Any, records: list[Any]) -> ClaimError:
    """Return the ClaimError for records that a dataset like the example cannot hold."""
    shown = describe_record(records[0]) if len(records) == 1 else describe(records)
    return ClaimError(
        f"{shown} does not fit into a dataset "
        f"like {describe(example)}, because its type and dtypes are kept. Write records that it "
        "can hold, or an example that can hold them."
    )


ALLOWED = (
    "lists, tuples, sets, arrays, strings, dicts of columns, data frames (pandas, polars) or "
    "PyArrow tables"
)
"""The types of datasets, for error messages."""


class Collection(DataType):
    """A type of dataset that a class makes of an iterable of records; the rows are a list."""

    make: type

    def classes(self) -> tuple[type, ...]:
        return (self.make,)

    def records(self, value: Any) -> list[Any]:
        return list(value)

    def join_rows(self, datasets: Sequence[Any]) -> list[Any]:
        return list(chain.from_iterable(map(self.records, datasets)))

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return self.make(rows[at] for at in positions)

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:  # noqa: ARG002
        return self.make(records)

    def missing_record(self, example: Any) -> Any:  # noqa: ARG002
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

    def rebuild(self, example: Any, records: Sequence[Any]) -> str:  # noqa: ARG002
        return "".join(records)

    def missing_record(self, example: Any) -> Any:  # noqa: ARG002
        raise TypeError("every character is one")


class Columns(DataType):
    """A dict of columns of one length; its rows are the type and the rows of each column."""

    name, brackets, small_brackets = "dict", ("dict(", ")"), ("", "")

    def classes(self) -> tuple[type, ...]:
        return (dict,)

    def fits(self, value: Any) -> bool:
        lengths = column_lengths(value)
        return lengths is not None and len(set(lengths)) == 1

    def detail(self, value: Any) -> Any:
        return tuple((name, _type_of_dataset(column).name) for name, column in value.items())

    def content(self, value: Any) -> str:
        return str([_type_of_dataset(column).content(column) for column in value.values()])

    def place(self, at: int, inside: str = "") -> str:
        return f"{inside}[{at}]" if inside else f", row {at}"

    def columns(self, value: Any) -> list[Any]:
        return list(value)

    def cells(self, value: Any) -> list[Any]:
        return list(value.values())

    def length(self, value: Any) -> int:
        return len(next(iter(value.values())))

    def records(self, value: Any) -> list[Any]:
        columns = (_type_of_dataset(column).records(column) for column in value.values())
        return list(zip(*columns, strict=True))

    def join_rows(self, datasets: Sequence[Any]) -> dict[Any, tuple[DataType, Any]]:
        types = {name: _type_of_dataset(column) for name, column in datasets[0].items()}
        return {
            name: (data, data.join_rows([dataset[name] for dataset in datasets]))
            for name, data in types.items()
        }

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return {name: data.take_rows(column, positions) for name, (data, column) in rows.items()}

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        """Return a dict of columns like the example's; raise an error if a record does not fit."""
        for record in records:
            if len(record) != len(example):
                raise ValueError(record)
        return {
            name: _type_of_dataset(column).rebuild(column, [record[at] for record in records])
            for at, (name, column) in enumerate(example.items())
        }

    def missing_record(self, example: Any) -> Any:
        return tuple(_type_of_dataset(column).missing_record(column) for column in example.values())


def column_lengths(value: dict[Any, Any]) -> list[int] | None:
    """Return the lengths of the columns of a dict; None if it is empty or a value is no column."""
    types = [(type_of(column), column) for column in value.values()]
    lengths = [data.length(column) for data, column in types if data and data.vector]
    return lengths if lengths and len(lengths) == len(value) else None
