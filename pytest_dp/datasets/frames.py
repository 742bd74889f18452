"""Data frames and series of pandas. Their index is no data: what is made has a new one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pytest_dp.datasets.describing import describe
from pytest_dp.datasets.types import OfLibrary


class _Pandas(OfLibrary):
    library = "pandas"

    def form(self, value: Any) -> Any:
        index = value.index
        labels = repr(index) if isinstance(index, self.module.RangeIndex) else list(index)
        dtypes = value.dtypes if value.ndim > 1 else [value.dtype]
        return self.detail(value), list(map(repr, dtypes)), repr(index.dtype), labels

    def joined(self, datasets: Sequence[Any]) -> Any:
        return self.module.concat(datasets, ignore_index=True)

    def taken(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows.iloc[list(positions)].reset_index(drop=True)

    def _missing(self, dtype: Any) -> Any:
        with suppress(TypeError, ValueError):
            cell = self.module.Series([None], dtype=dtype)
            if cell.isna().all() and cell.dtype == dtype:
                return cell.tolist()[0]
        raise TypeError(f"the dtype {dtype} has none")


class DataFrame(_Pandas):
    """A data frame."""

    class_name = "DataFrame"
    name, brackets = "DataFrame", ("DataFrame(", ")")

    def columns(self, value: Any) -> list[Any]:
        return list(value.columns)

    def records(self, value: Any) -> list[Any]:
        columns = [value.iloc[:, at].tolist() for at in range(len(value.columns))]
        return list(zip(*columns, strict=True)) if columns else [()] * len(value)

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        pandas = self.module
        columns = [
            pandas.Series([record[at] for record in records], dtype=dtype)
            for at, dtype in enumerate(example.dtypes)
        ]
        if not columns:
            return pandas.DataFrame(index=range(len(records)))
        made = pandas.concat(columns, axis=1)
        made.columns = example.columns
        return made

    def missing(self, example: Any) -> Any:
        return tuple(self._missing(dtype) for dtype in example.dtypes)

    def words(self, detail: Any) -> str:
        return f"a data frame with the columns {describe(list(detail))}"


class Series(_Pandas):
    """A series."""

    class_name = "Series"
    name, brackets, vector = "Series", ("Series([", "])"), True

    def detail(self, value: Any) -> Any:
        return value.name

    def records(self, value: Any) -> list[Any]:
        return list(value.tolist())

    def rebuilt(self, example: Any, records: Sequence[Any]) -> Any:
        return self.module.Series(list(records), dtype=example.dtype, name=example.name)

    def missing(self, example: Any) -> Any:
        return self._missing(example.dtype)

    def words(self, detail: Any) -> str:
        return "a Series" if detail is None else f"a Series named {detail!r}"
