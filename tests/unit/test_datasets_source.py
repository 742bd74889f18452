"""Values as source: what is evaluated is the same value again, or there is no source."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import importlib
import uuid
from collections import deque
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pytest_dp.data import key
from pytest_dp.data.python_source import SHORT_NAMES, as_source, source_of

NAN = float("nan")
DAY = dt.date(2026, 11, 25)
NOON = dt.datetime(2026, 11, 25, 12, 0, 0, 1)


class Kind(enum.Enum):
    OLD = "old"


class Point(NamedTuple):
    x: int
    y: float


@dataclasses.dataclass
class Person:
    name: str
    born: dt.date
    tags: list[str] = dataclasses.field(default_factory=list)


def evaluated(value: Any, *, lines: bool = False) -> Any:
    """What a reader gets who imports what the source names."""
    code = source_of(value, lines=lines)
    assert code is not None
    names = {SHORT_NAMES.get(m, m.split(".")[0]): importlib.import_module(m) for m in code.modules}
    return eval(code.text, names)


FRAME = pd.DataFrame({"user": [1, 2], "name": ["ann", "bob"], "share": [0.5, np.inf]})
OF_ALL_TYPES = {
    "ints": np.array([1, 2]),
    "single": np.array([[1.5, np.inf, -0.0, NAN]], dtype=np.float32),
    "texts": np.array(["a", "bc"], dtype="<U5"),
    "bytes": np.array([b"a", b"\xff"]),
    "structured": np.array([(1, "a"), (2, "b")], dtype=[("age", "i4"), ("name", "U3")]),
    "frame": FRAME,
    "no rows": pd.DataFrame(
        {"user": np.array([], dtype=np.int8), "name": pd.Series([], dtype=str)}
    ),
    "times": pd.DataFrame({"t": pd.to_datetime(["2026-01-01 10:00:00.000001", None])}),
    "cells of any type": pd.DataFrame({"a": [DAY, None, [1], pd.Timestamp(NOON), pd.NA]}),
    "series": pd.Series([1, 2], name="age", dtype="int8"),
    "polars": pl.DataFrame({"a": [1, None], "b": ["x", "True"], "c": [0.5, NAN], "d": [DAY, None]}),
    "polars types": pl.DataFrame(
        {"a": [1], "b": [[1, 2]], "c": [NOON], "d": [{"x": 1}], "e": ["u"], "f": [Decimal("1.50")]},
        schema={
            "a": pl.UInt8,
            "b": pl.List(pl.Int16),
            "c": pl.Datetime("ms", "UTC"),
            "d": pl.Struct({"x": pl.Int8}),
            "e": pl.Enum(["u", "None", "It's"]),
            "f": pl.Decimal(10, 2),
        },
    ),
    "columns": {"age": [1, 2], "income": np.array([0.5, 1.5])},
    "records": [{"when": NOON, "who": None}, {"when": NOON.replace(tzinfo=ZoneInfo("Asia/Tokyo"))}],
    "people": [Person("ann", DAY, ["a"]), Person("bob", DAY)],
    "points": (Point(1, 2.0), Kind.OLD, Kind),
    "standard library": [
        *(Decimal("1.10"), Fraction(1, 3), uuid.UUID(int=7), range(3), bytearray(b"a"), DAY),
        *(dt.time(1, 2), dt.timedelta(days=1), dt.UTC),
    ],
    "times of pandas": [
        pd.Timestamp(NOON, tz="UTC"),
        pd.NaT,
        pd.Timedelta("1s"),
        pd.Period("2026-01"),
    ],
}


@pytest.mark.parametrize("name", OF_ALL_TYPES)
def test_the_same_value_again(name: str) -> None:
    value = OF_ALL_TYPES[name]
    for again in (evaluated(value), evaluated(value, lines=True)):
        assert key(again) == key(value)
        assert type(again) is type(value)
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(again, value, check_column_type=False)


class Unknown:
    pass


class Longer(list):  # type: ignore[type-arg]
    pass


class Zone(dt.tzinfo):
    def __repr__(self) -> str:
        return "exit()"


def itself() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize(
    "value",
    [
        Unknown(),
        Longer([1]),
        np.array([[1], [2], None], dtype=object)[:2],
        np.ma.masked_array([1, 2], [True, False]),
        itself(),
        deque([Zone()]),
        FRAME.set_index(pd.MultiIndex.from_tuples([(1, "a"), (2, "b")])),
        pd.DataFrame({"k": pd.Categorical(["a", None], ["b", "a"], ordered=True)}),
        dataclasses.make_dataclass("Local", ["x"])(1),
        np.zeros(200_000),
        Zone(),
        dt.time(1, tzinfo=Zone()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_written_is_left_out(value: Any) -> None:
    assert as_source(value) is None


def test_a_table_of_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema(
        [pa.field("a", pa.int8(), False), ("t", pa.timestamp("us")), ("s", "string")]
    )
    table = pa.table({"a": [1, 2], "t": [NOON, None], "s": ["x", None]}, schema=schema)
    assert evaluated(table).equals(table)
