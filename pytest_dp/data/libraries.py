"""Datasets of numpy, pandas, polars and PyArrow.

The first axis of an array is that of its records; records of structured arrays are tuples. The
index of pandas is no data: datasets that are made have a new one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pytest_dp.data.types import OfLibrary, Writer


class NumpyArray(OfLibrary):
    """An array, of at least one dimension."""

    library, class_name = "numpy", "ndarray"
    name, brackets, vector = "array", ("array([", "])"), True

    def fits(self, value: Any) -> bool:
        return bool(value.ndim)

    def detail(self, value: Any) -> Any:
        return value.shape[1:]

    def form(self, value: Any) -> Any:
        return str(value.dtype.descr), value.shape[1:]

    def content(self, value: Any) -> str:
        """Return "number" for numbers, and another text for each type that would be converted."""
        family = "number" if value.dtype.kind in "iufc" else value.dtype.kind
        return str(value.dtype) if family == "V" else str(family)

    def columns(self, value: Any) -> list[Any] | None:
        return list(value.dtype.names) if value.dtype.names and value.ndim == 1 else None

    def records(self, value: Any) -> list[Any]:
        return list(value.tolist())

    def join_rows(self, datasets: Sequence[Any]) -> Any:
        return datasets[0] if len(datasets) == 1 else self.module.concatenate(datasets)

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        # NumPy takes an empty list of indices for one of floats.
        return rows[list(positions)] if positions else rows[:0].copy()

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        """Return an array of the example's dtype and record shape; texts may be of any width."""
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

    def missing_record(self, example: Any) -> Any:
        """Return a record of NaN, NaT or None by the dtype; raise TypeError if a dtype has none."""
        numpy = self.module
        missing = numpy.empty(example.shape[1:], dtype=example.dtype)
        _blank(missing, numpy)
        return missing.tolist()

    def source(self, value: Any, writer: Writer) -> str:
        numpy, dtype = writer.of("numpy"), value.dtype.descr if value.dtype.names else value.dtype
        written = repr(dtype if value.dtype.names else str(dtype))
        if 0 in value.shape:
            return f"{numpy}.empty({value.shape}, dtype={written})"
        as_text = {"M": str, "m": "int64"}.get(value.dtype.kind)
        cells = (value if as_text is None else value.astype(as_text)).tolist()
        known = value.dtype.kind in "bifc" and self.module.array(cells).dtype == value.dtype
        return f"{numpy}.array({writer.text(cells)}{'' if known else f', dtype={written}'})"


def _blank(array: Any, numpy: Any) -> None:
    """Fill an array with missing values; raise TypeError if its dtype has none."""
    if array.dtype.names:
        for name in array.dtype.names:
            _blank(array[name], numpy)
    elif array.dtype.kind in "fcMmO":
        value = {"M": "NaT", "m": "NaT", "O": None}.get(array.dtype.kind, numpy.nan)
        array[...] = value
    else:
        raise TypeError(f"the dtype {array.dtype} has none")


class _Table(OfLibrary):
    """The base of tables: rows of named columns."""

    def columns(self, value: Any) -> list[Any]:
        return list(value.columns)


class _Series(OfLibrary):
    """The base of series: values of one type, with a name for all."""

    class_name, vector = "Series", True

    def detail(self, value: Any) -> Any:
        return value.name

    def records(self, value: Any) -> list[Any]:
        return list(value.to_list())


class _Pandas(OfLibrary):
    library, position = "pandas", ".iloc[{}]"

    def form(self, value: Any) -> Any:
        index = value.index
        labels = repr(index) if isinstance(index, self.module.RangeIndex) else list(index)
        dtypes = value.dtypes if value.ndim > 1 else [value.dtype]
        return self.detail(value), list(map(repr, dtypes)), repr(index.dtype), labels

    def dropped_part_advice(self, value: Any) -> str:
        if isinstance(value.index, self.module.RangeIndex):
            return ""
        return "Neighbours have the index 0, 1, ... If the index holds data, write .reset_index()."

    def join_rows(self, datasets: Sequence[Any]) -> Any:
        if len(datasets) == 1:
            return datasets[0]
        return self.module.concat(datasets, ignore_index=True)

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows.iloc[list(positions)].reset_index(drop=True)

    def _index(self, value: Any, writer: Writer) -> str:
        """Return the index as an argument in source; empty for 0, 1, ..., and if it has levels."""
        index = value.index
        if isinstance(index, self.module.RangeIndex):
            usual = index.equals(self.module.RangeIndex(len(index)))
            return "" if usual else f", index=range({index.start}, {index.stop}, {index.step})"
        return "" if index.nlevels > 1 else f", index={writer.text(index.tolist())}"

    def _missing(self, dtype: Any) -> Any:
        """Return a missing value of a dtype; raise TypeError if it has none."""
        with suppress(TypeError, ValueError):
            cell = self.module.Series([None], dtype=dtype)
            if cell.isna().all() and cell.dtype == dtype:
                return cell.tolist()[0]
        raise TypeError(f"the dtype {dtype} has none")


class DataFrame(_Pandas, _Table):
    """A data frame."""

    class_name = "DataFrame"
    name, brackets = "DataFrame", ("DataFrame(", ")")

    def records(self, value: Any) -> list[Any]:
        columns = [value.iloc[:, at].tolist() for at in range(len(value.columns))]
        return list(zip(*columns, strict=True)) if columns else [()] * len(value)

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        """Return a data frame with the example's columns and dtypes, and the index 0, 1, ..."""
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

    def missing_record(self, example: Any) -> Any:
        """Return a tuple of missing values; raise TypeError if the dtype of a column has none."""
        return tuple(self._missing(dtype) for dtype in example.dtypes)

    def source(self, value: Any, writer: Writer) -> str:
        cells = {name: value[name].tolist() for name in value.columns}
        guessed = self.module.DataFrame(cells).dtypes
        other = {name: str(dtype) for name, dtype in value.dtypes.items() if guessed[name] != dtype}
        text = f"{writer.of('pandas')}.DataFrame({writer.text(cells)}{self._index(value, writer)})"
        return f"{text}.astype({writer.text(other)})" if other else text


class Series(_Series, _Pandas):
    """A series."""

    name, brackets = "Series", ("Series([", "])")

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        return self.module.Series(list(records), dtype=example.dtype, name=example.name)

    def missing_record(self, example: Any) -> Any:
        return self._missing(example.dtype)

    def source(self, value: Any, writer: Writer) -> str:
        cells = writer.text(value.tolist())
        more = f"{self._index(value, writer)}, dtype={str(value.dtype)!r}, name="
        return f"{writer.of('pandas')}.Series({cells}{more}{writer.text(value.name)})"


class _Polars(OfLibrary):
    library = "polars"

    def join_rows(self, datasets: Sequence[Any]) -> Any:
        return self.module.concat(datasets)

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows[list(positions)] if positions else rows.clear()

    def _kind(self, kind: Any, writer: Writer) -> str:
        """Return a data type as source: its repr with the name of the library added."""
        polars, quoted = writer.of("polars"), r"""('[^']*'|"[^"]*"|True|False|None)"""
        return re.sub(rf"{quoted}|\b([A-Z])", lambda m: m[1] or f"{polars}.{m[2]}", repr(kind))


class PolarsFrame(_Polars, _Table):
    """A data frame of polars."""

    class_name = "DataFrame"
    name, brackets = "pl.DataFrame", ("pl.DataFrame(", ")")

    def content(self, value: Any) -> str:
        return str(value.schema)

    def records(self, value: Any) -> list[Any]:
        return list(value.rows())

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        columns = [
            self.module.Series(name, [record[at] for record in records], dtype=dtype, strict=True)
            for at, (name, dtype) in enumerate(example.schema.items())
        ]
        return self.module.DataFrame(columns)

    def missing_record(self, example: Any) -> Any:
        return (None,) * example.width

    def source(self, value: Any, writer: Writer) -> str:
        kinds = (f"{name!r}: {self._kind(kind, writer)}" for name, kind in value.schema.items())
        cells = writer.text(value.to_dict(as_series=False))
        return f"{writer.of('polars')}.DataFrame({cells}, schema={{{', '.join(kinds)}}})"


class PolarsSeries(_Series, _Polars):
    """A series of polars."""

    name, brackets = "pl.Series", ("pl.Series([", "])")

    def content(self, value: Any) -> str:
        return str(value.dtype)

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        return self.module.Series(example.name, list(records), dtype=example.dtype, strict=True)

    def missing_record(self, example: Any) -> Any:  # noqa: ARG002
        return None

    def source(self, value: Any, writer: Writer) -> str:
        cells, kind = writer.text(value.to_list()), self._kind(value.dtype, writer)
        return f"{writer.of('polars')}.Series({value.name!r}, {cells}, dtype={kind})"


class ArrowTable(_Table):
    """A table of PyArrow."""

    library, class_name = "pyarrow", "Table"
    name, brackets = "pa.Table", ("pa.table(", ")")
    position = ".slice({}, 1)"

    def content(self, value: Any) -> str:
        return str(value.schema.remove_metadata())

    def columns(self, value: Any) -> list[Any]:
        return list(value.column_names)

    def records(self, value: Any) -> list[Any]:
        return list(zip(*(column.to_pylist() for column in value.columns), strict=True))

    def join_rows(self, datasets: Sequence[Any]) -> Any:
        return self.module.concat_tables(datasets)

    def take_rows(self, rows: Any, positions: Sequence[int]) -> Any:
        return rows.take(self.module.array(positions, type=self.module.int64()))

    def rebuild(self, example: Any, records: Sequence[Any]) -> Any:
        """Return a table of the example's schema; raise ValueError if a column forbids None."""
        columns = []
        for at, field in enumerate(example.schema):
            cells = [record[at] for record in records]
            if None in cells and not field.nullable:
                raise ValueError(field)
            columns.append(self.module.array(cells, type=field.type))
        return self.module.Table.from_arrays(columns, schema=example.schema)

    def missing_record(self, example: Any) -> Any:
        """Return a tuple of None; raise TypeError if a column cannot hold None."""
        full = [field.name for field in example.schema if not field.nullable]
        if full:
            raise TypeError(f"the column {full[0]!r} has none")
        return (None,) * example.num_columns

    def source(self, value: Any, writer: Writer) -> str:
        arrow = writer.of("pyarrow")
        kinds = ", ".join(
            f"{arrow}.field({field.name!r}, {arrow}.type_for_alias({str(field.type)!r}), "
            f"{field.nullable})"
            for field in value.schema
        )
        return f"{arrow}.table({writer.text(value.to_pydict())}, schema={arrow}.schema([{kinds}]))"
