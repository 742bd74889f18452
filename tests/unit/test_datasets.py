"""Datasets of any type: records from them, and them from records."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pytest_dp import ClaimError
from pytest_dp.data import describe, key, kind_of, rebuilt, records_of
from pytest_dp.data.conversion import length

NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
MADRID = "Europe/Madrid"
EXAMPLES = [
    [1, "a", None],
    (1, 2),
    {3, 1},
    np.array([1, 2], dtype=np.uint8),
    np.array([0.1, math.nan], dtype=np.float32),
    np.array([[1, 2], [3, 4]]),
    np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
    np.array([(1, 0.5), (2, 1.5)], dtype=[("age", "i2"), ("income", "f8")]),
    "abca",
    {"age": [30, 40], "name": ["ann", None]},
    {"age": np.array([3, 4], dtype=np.int8), "name": ("ann", "bob")},
    pd.Series([1, None], dtype="Int64", name="age"),
    pd.Series(pd.date_range("2020", periods=2, tz=MADRID)),
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
IDS = [describe(example) for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_a_dataset_is_rebuilt_of_its_records(example):
    made = rebuilt(example, records_of(example))
    assert made is not example
    assert type(made) is type(example)
    assert list(map(key, records_of(made))) == list(map(key, records_of(example)))
    same_types(made, example)
    few = rebuilt(example, records_of(example)[:1])
    assert length(few) == 1
    same_types(few, example)
    none = rebuilt(example, [])
    assert length(none) == 0
    assert kind_of(none) == kind_of(example)
    same_types(none, example)


def same_types(one, other):
    if isinstance(other, pd.DataFrame):
        assert (one.dtypes == other.dtypes).all()
        assert list(one.index) == list(range(len(one)))
    elif isinstance(other, pd.Series):
        assert one.dtype == other.dtype
        assert one.name == other.name
    elif isinstance(other, pl.DataFrame | pa.Table):
        assert one.schema == other.schema
    elif isinstance(other, pl.Series):
        assert (one.name, one.dtype) == (other.name, other.dtype)
    elif isinstance(other, dict):
        assert one.keys() == other.keys()
        for mine, theirs in zip(one.values(), other.values(), strict=True):
            assert type(mine) is type(theirs)
            same_types(mine, theirs)
    elif isinstance(other, np.ndarray) and other.dtype.kind not in "US":
        assert one.dtype == other.dtype
        assert one.shape[1:] == other.shape[1:]


@pytest.mark.parametrize(
    ("example", "record"),
    [
        (np.array([1]), 0.5),
        (np.array([1], dtype=np.uint8), 256),
        (np.array([[1, 2]]), [1, 2, 3]),
        (np.array([True]), 2),
        (pd.Series([1]), None),
        (pd.Series(["f"], dtype="category"), "m"),
        (pd.DataFrame({"a": [1], "b": [2]}), (1, 0.5)),
        (pd.DataFrame({"a": pd.to_datetime(["2020"])}), ("no date",)),
        ("abc", 1),
        ({"a": [1], "b": [2]}, (1,)),
        ({"a": np.array([1])}, (0.5,)),
        (pl.DataFrame({"a": pl.Series([1], dtype=pl.Int8)}), (300,)),
        (pl.DataFrame({"a": pl.Series(["f"], dtype=pl.Enum(["f"]))}), ("m",)),
        (pa.table([[1]], schema=pa.schema([pa.field("a", pa.int8(), nullable=False)])), (None,)),
    ],
)
def test_records_that_do_not_fit_are_refused(example, record):
    with pytest.raises(ClaimError) as caught:
        rebuilt(example, [record])
    message = str(caught.value)
    assert f"{describe(record)} does not fit into a dataset like {describe(example)}" in message
    assert "Write records that it can hold" in message


@pytest.mark.parametrize("value", [3, None, {}, np.array(3), object])
def test_what_is_no_dataset(value):
    assert kind_of(value) == ()
    for make in (records_of, lambda value: rebuilt(value, [])):
        with pytest.raises(ClaimError, match="is not a dataset"):
            make(value)
