"""The cells of a dataset, column by column, as arrays: what compares a table with one record."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.data.fields import fields_of
from pytest_dp.data.types import type_of

Cells = dict[Hashable, npt.NDArray[Any]]
"""By the name of a column, or its place; None stands for that of records without named values."""


def cells_of(dataset: Any) -> Cells | None:
    """Return the columns of a dataset: of floats where all are numbers, of objects otherwise.

    None of what is no dataset, is empty or a text, or has records with other values each.
    """
    kind = type_of(dataset)
    if kind is None or kind.unique or isinstance(dataset, str) or not kind.length(dataset):
        return None
    if hasattr(dataset, "to_numpy") and (names := kind.columns(dataset)) is not None:
        return {name: _array(dataset[name].to_numpy()) for name in names}
    if isinstance(dataset, np.ndarray) and dataset.dtype.names is None and dataset.ndim <= 2:
        columns = map(_array, dataset.reshape(len(dataset), -1).T)
        return {None: next(columns)} if dataset.ndim == 1 else dict(enumerate(columns))
    if isinstance(dataset, dict):
        return {name: _array(column) for name, column in dataset.items()}
    records = list(map(_fields, kind.records(dataset), repeat(kind.columns(dataset))))
    if any(record.keys() != records[0].keys() for record in records):
        return None
    return {name: _array([record[name] for record in records]) for name in records[0]}


def record_cells(dataset: Any, at: int) -> dict[Hashable, Any]:
    """Return the values of one record of a dataset that has `cells_of`."""
    cells = cells_of(dataset)
    assert cells is not None
    return {name: column[at] for name, column in cells.items()}


def _fields(record: Any, names: Sequence[Any] | None) -> dict[Hashable, Any]:
    fields = fields_of(record)
    if names is None or len(names) != len(fields):
        return fields
    return dict(zip(names, fields.values(), strict=True))


def _array(column: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(column)
    except ValueError:  # lists that are not as long
        array = np.empty(())
    if array.dtype.kind in "biuf" and array.ndim == 1:
        return array.astype(np.float64)
    objects = np.empty(len(column), object)
    for at, value in enumerate(column):  # each a value, though it may be a list
        objects[at] = value
    return objects
