"""Arrays of numpy: their first axis is that of the records; those of structured ones are tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_dp.datasets.types import OfLibrary


class Array(OfLibrary):
    """An array."""

    library, class_name = "numpy", "ndarray"
    name, brackets, vector = "array", ("array([", "])"), True

    def fits(self, value: Any) -> bool:
        return bool(value.ndim)

    def detail(self, value: Any) -> Any:
        return value.shape[1:]

    def form(self, value: Any) -> Any:
        return str(value.dtype.descr), value.shape[1:]

    def content(self, value: Any) -> str:
        """The type of the numbers: joining others would convert them."""
        family = "number" if value.dtype.kind in "iufc" else value.dtype.kind
        return str(value.dtype) if family == "V" else str(family)

    def columns(self, value: Any) -> list[Any] | None:
        return list(value.dtype.names) if value.dtype.names and value.ndim == 1 else None

    def records(self, value: Any) -> list[Any]:
        return list(value.tolist())

    def joined(self, datasets: Sequence[Any]) -> Any:
        return self.module.concatenate(datasets)

    def taken(self, rows: Any, positions: Sequence[int]) -> Any:
        # NumPy takes an empty list of indices for one of floats.
        return rows[list(positions)] if positions else rows[:0].copy()

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        numpy = self.module
        shape = (len(records), *example.shape[1:])
        if example.dtype.kind == "O":
            made = numpy.empty(shape, dtype=object)
            for at, record in enumerate(records):
                made[at] = record
            return made
        if example.dtype.kind in "US" and len(records):  # as wide as the longest text
            return numpy.array(list(records), dtype=example.dtype.kind).reshape(shape)
        return numpy.array(list(records), dtype=example.dtype).reshape(shape)

    def missing(self, example: Any) -> Any:
        numpy = self.module
        missing = numpy.empty(example.shape[1:], dtype=example.dtype)
        _blank(missing, numpy)
        return missing.tolist()

    def words(self, detail: Any) -> str:
        return f"an array with records of shape {detail}"


def _blank(array: Any, numpy: Any) -> None:
    """Fill an array with missing values."""
    if array.dtype.names:
        for name in array.dtype.names:
            _blank(array[name], numpy)
    elif array.dtype.kind in "fcMmO":
        value = {"M": "NaT", "m": "NaT", "O": None}.get(array.dtype.kind, numpy.nan)
        array[...] = value
    else:
        raise TypeError(f"the dtype {array.dtype} has none")
