"""Data frames and series of polars, and tables of PyArrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_dp.datasets.describing import describe
from pytest_dp.datasets.types import OfLibrary


class _Polars(OfLibrary):
    library = "polars"

    def joined(self, datasets: Sequence[Any]) -> Any:
        return self.module.concat(datasets)

    def taken(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows[list(positions)] if positions else rows.clear()


class PolarsFrame(_Polars):
    """A data frame of polars."""

    class_name = "DataFrame"
    name, brackets = "pl.DataFrame", ("pl.DataFrame(", ")")

    def form(self, value: Any) -> Any:
        return self.detail(value), self.content(value)

    def content(self, value: Any) -> str:
        return str(value.schema)

    def columns(self, value: Any) -> list[Any]:
        return list(value.columns)

    def records(self, value: Any) -> list[Any]:
        return list(value.rows())

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        columns = [
            self.module.Series(name, [record[at] for record in records], dtype=dtype, strict=True)
            for at, (name, dtype) in enumerate(example.schema.items())
        ]
        return self.module.DataFrame(columns)

    def missing(self, example: Any) -> Any:
        return (None,) * example.width

    def words(self, detail: Any) -> str:
        return f"a polars data frame with the columns {describe(list(detail))}"


class PolarsSeries(_Polars):
    """A series of polars."""

    class_name = "Series"
    name, brackets, vector = "pl.Series", ("pl.Series([", "])"), True

    def detail(self, value: Any) -> Any:
        return value.name

    def form(self, value: Any) -> Any:
        return self.detail(value), self.content(value)

    def content(self, value: Any) -> str:
        return str(value.dtype)

    def records(self, value: Any) -> list[Any]:
        return list(value.to_list())

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        return self.module.Series(example.name, list(records), dtype=example.dtype, strict=True)

    def missing(self, example: Any) -> Any:  # noqa: ARG002
        return None

    def words(self, detail: Any) -> str:
        return f"a polars Series named {detail!r}" if detail else "a polars Series"


class ArrowTable(OfLibrary):
    """A table of PyArrow."""

    library, class_name = "pyarrow", "Table"
    name, brackets = "pa.Table", ("pa.table(", ")")

    def form(self, value: Any) -> Any:
        return self.detail(value), self.content(value)

    def content(self, value: Any) -> str:
        return str(value.schema.remove_metadata())

    def columns(self, value: Any) -> list[Any]:
        return list(value.column_names)

    def records(self, value: Any) -> list[Any]:
        return list(zip(*(column.to_pylist() for column in value.columns), strict=True))

    def joined(self, datasets: Sequence[Any]) -> Any:
        return self.module.concat_tables(datasets)

    def taken(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows.take(self.module.array(positions, type=self.module.int64()))

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        columns = []
        for at, field in enumerate(example.schema):
            cells = [record[at] for record in records]
            if None in cells and not field.nullable:
                raise ValueError(field)
            columns.append(self.module.array(cells, type=field.type))
        return self.module.Table.from_arrays(columns, schema=example.schema)

    def missing(self, example: Any) -> Any:
        full = [field.name for field in example.schema if not field.nullable]
        if full:
            raise TypeError(f"the column {full[0]!r} has none")
        return (None,) * example.num_columns

    def words(self, detail: Any) -> str:
        return f"a PyArrow table with the columns {describe(list(detail))}"
