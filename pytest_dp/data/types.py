"""Datasets of any type: a `DataType` says which objects are one, and makes others from records.

Nothing of numpy, pandas and their like is imported: an array can only be met if its library is
loaded.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol

Kind = tuple[Any, ...]
"""Name and detail; two datasets of one kind can exchange records."""


class Writer(Protocol):
    """Writes values as Python source, as `pytest_dp.data.python_source.SourceWriter` does."""

    def text(self, value: Any) -> str:
        """Return any value as an expression."""
        ...

    def of(self, module: str) -> str:
        """Return a module, by the name that it has in expressions."""
        ...


class DataType(ABC):
    """A type of dataset. Its *rows* are an object from which records are taken by position."""

    name: ClassVar[str]
    brackets: ClassVar[tuple[str, str]]
    """Texts around the records in a description."""
    small_brackets: ClassVar[tuple[str, str] | None] = None
    """Texts around all columns of a table that is described in full; None for `brackets`."""
    unique: ClassVar[bool] = False
    """Whether a record occurs at most once, and order says nothing."""
    vector: ClassVar[bool] = False
    """Whether it may hold the answers of queries."""

    position: ClassVar[str] = "[{}]"
    """The Python subscript of one record, with ``{}`` for its position."""

    @abstractmethod
    def classes(self) -> tuple[type, ...]:
        """Return the classes of the type's objects; none while their library is not loaded."""

    def fits(self, value: Any) -> bool:  # noqa: ARG002  what only some types ask
        """Return whether an object of one of the classes is a dataset."""
        return True

    def detail(self, value: Any) -> Any:
        """Return a value that is equal for datasets that can exchange records, such as columns."""
        columns = self.columns(value)
        return None if columns is None else tuple(columns)

    def form(self, value: Any) -> Any:
        """Return the properties of an object besides its class and its records."""
        return self.detail(value)

    def dropped_part_advice(self, value: Any) -> str:  # noqa: ARG002
        """Return advice on a part of an object, such as an index, that neighbours lack; else ""."""
        return ""

    def content(self, value: Any) -> str:  # noqa: ARG002
        """Return a text that is equal for two datasets whose rows join without a conversion."""
        return "filled"

    def columns(self, value: Any) -> list[Any] | None:  # noqa: ARG002
        """Return the names of the columns; None if the records have no named entries."""
        return None

    def cells(self, value: Any) -> list[Any]:
        """Return the columns of a table, for a description."""
        return [list(cells) for cells in zip(*self.records(value), strict=True)]

    def length(self, value: Any) -> int:
        """Return the number of records of a dataset."""
        return len(value)

    def place(self, at: int, inside: str = "") -> str:
        """Return the Python subscript of a record, or of a part inside of it."""
        return f"{self.position.format(at)}{inside}"

    @abstractmethod
    def records(self, value: Any) -> list[Any]:
        """Return the records as plain Python objects, in order."""

    @abstractmethod
    def join_rows(self, datasets: Sequence[Any]) -> Any:
        """Return the rows of all datasets, at least one; for sets in the order of `records`."""

    @abstractmethod
    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        """Return the dataset of the rows at these positions, always a new object."""

    @abstractmethod
    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        """Return a dataset like the example with other records; raise an error if one is unfit."""

    @abstractmethod
    def missing_record(self, example: Any) -> Any:
        """Return a record of missing values; raise an error, with a reason, if there are none."""

    def source(self, value: Any, writer: Writer) -> str:
        """Return an expression of the dataset, to be checked; raise an error if there is none."""
        raise NotImplementedError


class OfLibrary(DataType):
    """A type that a library defines, which is not imported: no object is of it before it is."""

    library: ClassVar[str]
    class_name: ClassVar[str]

    @property
    def module(self) -> Any:
        """The library's module; None while nobody has imported it."""
        return sys.modules.get(self.library)

    def classes(self) -> tuple[type, ...]:
        # A module that is only half imported has no classes yet, and so no objects.
        kind = getattr(self.module, self.class_name, None)
        return () if kind is None else (kind,)

    def form(self, value: Any) -> Any:
        return self.detail(value), self.content(value)


_TYPES: list[DataType] = []


def register(*types: DataType) -> None:
    """Add types of datasets to those that `type_of` knows."""
    _TYPES.extend(types)
    _type_by_class.cache_clear()


@lru_cache(maxsize=1_000)
def _type_by_class(cls: Any) -> DataType | None:
    """Return the type of datasets that are instances of a class; None if there is none."""
    fitting = (data for data in _TYPES if issubclass(cls, data.classes()))
    return next(fitting, None)


def type_of(value: Any) -> DataType | None:
    """Return the `DataType` of a dataset; None if the object is none."""
    kind: Any = type(value)
    data = _type_by_class(kind)
    return data if data is not None and data.fits(value) else None
