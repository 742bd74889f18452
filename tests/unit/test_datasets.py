"""Datasets of any type: records from them, and them from records."""

from __future__ import annotations

import datetime as dt
import enum
import math
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from zoo import Colour

from pytest_dp import ClaimError
from pytest_dp.claiming.claim import expand
from pytest_dp.data import describe, kind_of, rebuild, records_of
from pytest_dp.data.equality import digest, equality_key, key
from pytest_dp.pairs import make_pair_source

NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
MADRID = "Europe/Madrid"
EXAMPLES = [
    (1, 2),
    np.array([0.1, math.nan], dtype=np.float32),
    np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
    np.array([(1, 0.5), (2, 1.5)], dtype=[("age", "i2"), ("income", "f8")]),
    "abca",
    {"age": np.array([3, 4], dtype=np.int8), "name": ("ann", "bob")},
    pd.Series([1, None], dtype="Int64", name="age"),
    pd.DataFrame(
        {
            "n": pd.array([1, None], dtype="Int8"),
            "sex": pd.Categorical(["f", "m"], categories=["m", "f", "x"], ordered=True),
            "at": pd.date_range("2020", periods=2, tz=MADRID),
            "for": pd.to_timedelta([1, None], unit="s"),
            "name": ["ann", None],
            "ok": [True, False],
        },
        index=[7, 7],
    ),
]
EXAMPLES += [
    pl.DataFrame(
        {
            "n": pl.Series([1, None], dtype=pl.UInt8),
            "sex": pl.Series(["f", "m"], dtype=pl.Enum(["m", "f", "x"])),
            "city": pl.Series(["a", None], dtype=pl.Categorical),
            "at": pl.Series([NOON, None], dtype=pl.Datetime("us", MADRID)),
            "name": ["ann", "bob"],
            "visits": [[1, 2], []],
        }
    ),
    pl.Series("age", [1, None], dtype=pl.Int8),
    pa.table(
        {
            "n": pa.array([1, None], type=pa.uint8()),
            "sex": pa.array(["f", "m"]).dictionary_encode(),
            "at": pa.array([NOON, None], type=pa.timestamp("us", MADRID)),
            "name": pa.array(["ann", None], type=pa.large_string()),
            "visits": [[1, 2], None],
        }
    ),
]


def types_of(data):
    if isinstance(data, dict):
        return {name: types_of(column) for name, column in data.items()}
    if isinstance(data, pd.DataFrame):
        return type(data), data.dtypes.to_dict()
    return type(data), *(getattr(data, name, None) for name in ("schema", "dtype", "name"))


@pytest.mark.parametrize("example", EXAMPLES, ids=describe)
def test_a_dataset_is_rebuilt_of_its_records(example):
    records = records_of(example)
    for count in range(len(records) + 1):
        made = rebuild(example, records[:count])
        assert made is not example
        assert list(map(key, records_of(made))) == list(map(key, records[:count]))
        assert types_of(made) == types_of(example)
        assert kind_of(made) == kind_of(example)


@pytest.mark.parametrize(
    ("example", "record"),
    [
        (np.array([1], dtype=np.uint8), 256),
        (np.array([[1, 2]]), [1, 2, 3]),
        (pd.Series(["f"], dtype="category"), "m"),
        (pd.DataFrame({"a": [1], "b": [2]}), (1, 0.5)),
        (pd.DataFrame({"a": pd.to_datetime(["2020"])}), ("no date",)),
        ("abc", 1),
        ({"a": [1], "b": [2]}, (1,)),
        (pl.DataFrame({"a": pl.Series([1], dtype=pl.Int8)}), (300,)),
        (pa.table([[1]], schema=pa.schema([pa.field("a", pa.int8(), nullable=False)])), (None,)),
    ],
)
def test_records_that_do_not_fit_are_refused(example, record):
    with pytest.raises(ClaimError) as caught:
        rebuild(example, [record])
    message = str(caught.value)
    assert f"{describe(record)} does not fit into a dataset like {describe(example)}" in message
    assert "Write records that it can hold" in message


@pytest.mark.parametrize("value", [3, {}, np.array(3)], ids=repr)
def test_what_is_no_dataset(value):
    assert kind_of(value) == ()
    for make in (records_of, lambda value: rebuild(value, [])):
        with pytest.raises(ClaimError, match="is not a dataset"):
            make(value)


@dataclass(eq=False)
class Tagged:
    value: float
    tag: str = ""

    def __eq__(self, other: object) -> bool:
        return self.value == other.value

    def __hash__(self) -> int:
        return 7


class Small(enum.IntEnum):
    ONE = 1


class Named(NamedTuple):
    a: str


def frame(*columns, index=None):
    return pd.DataFrame(dict(columns), index=index)


CLOSE = (
    (0.0, -0.0),
    (1, True, 1.0, np.int8(1), np.int64(1), np.float32(1), np.float64(1), Small.ONE, 1 + 0j),
    (0, False, 0.0, -0.0, None, "", b"", (), [], {}, set(), frozenset(), np.zeros(0)),
    ("a", b"a", bytearray(b"a"), ["a"], ("a",), {"a"}, Named("a"), np.str_("a")),
    ([1, 2], (1, 2), {1, 2}, frozenset([1, 2]), deque([1, 2]), [1, 2.0], [True, 2], [2, 1]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1, b=2), Counter(a=1, b=2)),
    tuple(np.ones(2, kind) for kind in ("i1", "<i4", ">i4", "u4", "f4", "f8", "?", "O")),
    (np.zeros(2), -np.zeros(2), np.zeros((2, 1)), np.zeros((1, 2)), np.zeros(2).tolist()),
    (pd.Series([1, 2]), pd.Series([1, 2], index=[1, 0]), pd.Series([1, 2], name="a"),
     pd.Series([1, 2], dtype="int8"), pd.Series([1.0, 2.0]), pd.Series([1, 2], dtype=object),
     pd.Series([1, 2], dtype="category")),
    (frame(("a", [1]), ("b", [2])), frame(("b", [2]), ("a", [1])), frame(("a", [1]), ("b", [2.0])),
     frame(("a", [1]), ("b", [2]), index=["x"]), frame(("a", [1]), ("c", [2]))),
    (date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC),
     datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2020, 1, 1, fold=1),
     pd.Timestamp(2020, 1, 1), np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "s")),
    (Tagged(1), Tagged(1, "x"), Tagged(1.0), Tagged(True)),
    (Colour.RED, Colour.BLUE, Colour.RED.value, Colour),
    (0, 1, 2**61 - 2, 2**61 - 1, 2**61, -(2**61) + 1),  # the modulus of hashes of numbers
    (pd.NA, pd.NaT, math.nan, None),
)  # fmt: skip


@pytest.mark.parametrize("group", CLOSE, ids=lambda group: repr(group[0])[:20])
def test_what_differs_in_type_or_content_is_not_one(group):
    for wrap in (lambda v: v, lambda v: [v], lambda v: ("x", {"k": v})):
        assert len({key(wrap(value)) for value in group}) == len(group)
        assert len({digest(wrap(value)) for value in group}) == len(group)


def test_equal_records_are_one_to_relations():
    assert equality_key([1, True, 0.0]) == equality_key([1.0, 1, -0.0])
    pairs = [(np.array([1, 2]), np.array([1.0]))]
    (claim,) = expand({"eps": 1.0, "pairs": pairs, "neighbors": "add_remove_one"})
    assert len(make_pair_source(claim, 1, "pairs=...").given) == 1


def test_equal_values_of_other_content_are_neighbours():
    for pair in [(0.0, -0.0), (1, True)]:
        for neighbors in ["replace_one", "any_two", None]:
            stated = ([[pair[0], 5], [pair[1], 5]]) if neighbors == "replace_one" else pair
            (claim,) = expand({"eps": 1.0, "pairs": [stated], "neighbors": neighbors})
            assert len(make_pair_source(claim, 1, "pairs=...").given) == 1
