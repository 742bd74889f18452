"""Records from datasets, and datasets from records."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import plural
from pytest_dp.data.builtin import column_lengths
from pytest_dp.data.describing import describe, describe_record
from pytest_dp.data.equality import equality_key
from pytest_dp.data.fields import fields_of
from pytest_dp.data.types import DataType, Kind, type_of


def kind_of(value: Any) -> Kind:
    """Return the name of a dataset's type, and a detail; an empty tuple for other objects.

    The detail is the shape of a record in an array, the columns of a data frame, or the name of a
    series. Two datasets of one kind can exchange records.
    """
    data = type_of(value)
    return (data.name, data.detail(value)) if data else ()


def type_in_words(value: Any) -> str:
    """Return the type of a dataset in words, such as ``"a list"``."""
    data = _type_of_dataset(value)
    return data.words(data.detail(value))


def left_out(value: Any) -> str:
    """Return advice on a part of a dataset that is no record, such as an index; else ""."""
    data = type_of(value)
    return data.left_out(value) if data else ""


def records_of(dataset: Any) -> list[Any]:
    """Return the records as plain Python objects in order; the records of a set are sorted.

    Rows of tables and of structured arrays are tuples. Raises ClaimError if the object is no
    dataset.
    """
    return _type_of_dataset(dataset).records(dataset)


def rebuilt(example: Any, records: Sequence[Any]) -> Any:
    """Return a dataset like the example, of its type and dtypes, that holds these records instead.

    Raises ClaimError if it cannot hold one of them, such as 0.5 in an array of integers.
    """
    data = _type_of_dataset(example)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is lost is looked at here
            made = data.rebuilt(example, records)
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
    """Return how many records a dataset has."""
    return _type_of_dataset(dataset).length(dataset)


def taken_rows(dataset: Any, positions: Sequence[int]) -> Any:
    """Return a new dataset of the rows at these positions of a dataset."""
    data = _type_of_dataset(dataset)
    return data.take_rows(data.join_rows([dataset]), positions)


def joined_as(dataset: Any) -> str:
    """Return a text that is equal for datasets of one kind whose rows join without a conversion.

    It is empty for a dataset without records.
    """
    data = _type_of_dataset(dataset)
    return data.content(dataset) if data.length(dataset) else ""


def null_of(example: Any, record: Any) -> Any:
    """Return the null record of such a dataset, in the form of `records_of`.

    The record that is given may be a dict for rows of tables, and is None for one of missing
    values. Raises ClaimError if the dataset cannot hold it.
    """
    data = _type_of_dataset(example)
    columns = data.columns(example)
    if record is None:
        try:
            return data.missing(example)
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
    return data.records(rebuilt(example, [record]))[0]


def refuse_several_tables(where: str, example: Any, unit: Any) -> None:
    """Raise ClaimError if an example holds tables in place of records: no relation knows theirs.

    Tables with the same columns may be the records of a list: those of clients, whose owner only a
    function can tell.
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
    """Return the names of the columns of a table; empty for other objects."""
    data = type_of(value)
    return tuple(data.columns(value) or ()) if data else ()


def _type_of_dataset(value: Any) -> DataType:
    """Return the type of a dataset; raise ClaimError if the object is none."""
    data = type_of(value)
    if data is None:
        raise ClaimError(f"{describe(value)}, {describe_non_dataset(value)}.")
    return data


def _unlike(records: Sequence[Any], made: Sequence[Any]) -> list[Any]:
    """Return the records of which the copies are not the same."""
    return [record for record, copy in zip(records, made, strict=True) if not _same(record, copy)]


def _same(record: Any, copy: Any) -> bool:
    """Return whether a copy differs at most by rounding of floats: float16 has three digits."""
    if isinstance(record, float) and isinstance(copy, float):
        return isclose(record, copy, rel_tol=1e-3) or equality_key(record) == equality_key(copy)
    if isinstance(record, list | tuple) and isinstance(copy, list | tuple):
        return len(record) == len(copy) and all(map(_same, record, copy))
    return equality_key(record) == equality_key(copy)


def _unfit(example: Any, records: list[Any]) -> ClaimError:
    """Return the error for records that a dataset like the example cannot hold."""
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
