"""Data as the text that programs and services read, and values of the text that they answer."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pytest_dp.data.equality import is_missing
from pytest_dp.data.types import type_of

OWN = "; give send= a function that makes text of the data"


def encode_data(send: str | Callable[[Any], str | bytes], data: Any) -> bytes:
    """Encode data as they are sent. Raises TypeError or ValueError where they have no such form."""
    if callable(send):
        made = send(data)
        return made if isinstance(made, bytes) else made.encode()
    if send == "csv":
        return _csv(data).encode()
    try:
        return json.dumps(json_value(data), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:  # infinities, and keys that are no text
        raise type(error)(f"JSON has no form for these data: {error}{OWN}") from None


def json_value(value: Any) -> Any:
    """Return a value that JSON has.

    Rows of tables as objects, missing values null, dates as ISO 8601.
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {key: json_value(part) for key, part in value.items()}
    kind = type_of(value)
    if kind is not None:
        columns, records = kind.columns(value), map(json_value, kind.records(value))
        return [dict(zip(columns, row, strict=True)) for row in records] if columns else [*records]
    if isinstance(value, tuple):  # a named one
        return list(map(json_value, value))
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(asdict(value))
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, float):
        return float(value)
    for method in ("isoformat", "item"):  # of dates, of scalars of numpy
        if hasattr(value, method):
            return json_value(getattr(value, method)())
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is neither a number nor text")


def _csv(data: Any) -> str:
    kind = type_of(data)
    if kind is None:
        raise TypeError(f"CSV is of datasets, not of {type(data).__name__}{OWN}")
    columns, rows = kind.columns(data), list(map(json_value, kind.records(data)))
    if columns is None and rows and all(isinstance(row, dict) for row in rows):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name) for name in columns] for row in rows]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if columns is not None:
        writer.writerow(columns)
    writer.writerows(row if isinstance(row, list) else [row] for row in rows)
    return file.getvalue()


def decode_answer(answer: bytes, charset: str = "utf-8") -> str:
    """Decode an answer to text; bytes that are not text stay visible."""
    return answer.decode(charset, "backslashreplace")


def value_of(text: str) -> Any:
    """Return the value of a text: JSON, a number, or else the text without the end of its line."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError):
        if "_" not in text:  # which is a digit to Python alone
            return float(text)
    return text.rstrip("\r\n")
