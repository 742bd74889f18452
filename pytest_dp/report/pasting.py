"""Inputs as Python source, so that a pair that broke a claim can be pasted into a test."""

from __future__ import annotations

import math
from typing import Any

_PLAIN = (str, bytes, bool, int, type(None))


def as_source(value: Any) -> str | None:
    """An expression that makes an equal object; None for types that are not known.

    It takes the usual short names: ``np`` for numpy, ``pd`` for pandas, ``pl`` for polars.
    """
    try:
        return _source(value)
    except _UnknownTypeError:
        return None


class _UnknownTypeError(Exception):
    """There is no source for an object of this type."""


def _source(value: Any) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if type(value) in (list, tuple, set, frozenset):
        return _collection(value)
    if type(value) is dict:
        return f"{{{', '.join(f'{_source(k)}: {_source(v)}' for k, v in value.items())}}}"
    library = type(value).__module__.partition(".")[0]
    if library in _OF_LIBRARIES:
        return _OF_LIBRARIES[library](value)
    raise _UnknownTypeError


def _collection(value: Any) -> str:
    inside = ", ".join(map(_source, value))
    if type(value) is list:
        return f"[{inside}]"
    if type(value) is tuple:
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is set:
        return f"{{{inside}}}" if value else "set()"
    return f"frozenset({{{inside}}})" if value else "frozenset()"


def _of_numpy(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind not in "biufUS" or value.ndim > 2:
        raise _UnknownTypeError
    if not value.ndim:
        return f"np.{dtype.type.__name__}({_source(value.item())})"
    usual = value.size and str(dtype) in ("int64", "float64", "bool")
    content = f"np.array({_source(value.tolist())}"
    return f"{content})" if usual else f"{content}, dtype={str(dtype)!r})"


def _of_pandas(value: Any) -> str:
    if type(value).__name__ == "DataFrame":
        columns = {name: value[name] for name in value.columns}
        if len(columns) < len(value.columns):
            raise _UnknownTypeError
        inside = ", ".join(f"{_source(name)}: {_column(c)}" for name, c in columns.items())
        return f"pd.DataFrame({{{inside}}})"
    if type(value).__name__ == "Series":
        name = "" if value.name is None else f", name={_source(value.name)}"
        return f"pd.Series({_source(value.tolist())}, dtype={str(value.dtype)!r}{name})"
    raise _UnknownTypeError


def _column(column: Any) -> str:
    content = _source(column.tolist())
    if len(column) and str(column.dtype) in ("int64", "float64", "bool", "str"):
        return content
    return f"pd.Series({content}, dtype={str(column.dtype)!r})"


def _of_polars(value: Any) -> str:
    if type(value).__name__ != "DataFrame":
        raise _UnknownTypeError
    schema = ", ".join(f"{name!r}: pl.{kind!r}" for name, kind in value.schema.items())
    return f"pl.DataFrame({_source(value.to_dict(as_series=False))}, schema={{{schema}}})"


_OF_LIBRARIES = {"numpy": _of_numpy, "pandas": _of_pandas, "polars": _of_polars}
