"""Datasets of any type: records from them, and them from records."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dp import ClaimError
from pytest_dp.datasets import describe, key, kind_of, rebuilt, records_of

MADRID = "Europe/Madrid"
EXAMPLES = [
    [1, "a", None],
    (1, 2),
    {3, 1},
    frozenset("ab"),
    np.array([1, 2], dtype=np.uint8),
    np.array([0.1, math.nan], dtype=np.float32),
    np.array([[1, 2], [3, 4]]),
    np.array(["a", "abc"]),
    np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
    np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    np.array([(1, 0.5), (2, 1.5)], dtype=[("age", "i2"), ("income", "f8")]),
    np.array([[1], {"a": 2}, None], dtype=object),
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
IDS = [describe(example) for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_a_dataset_is_rebuilt_of_its_records(example):
    made = rebuilt(example, records_of(example))
    assert made is not example
    assert type(made) is type(example)
    assert list(map(key, records_of(made))) == list(map(key, records_of(example)))
    same_types(made, example)
    few = rebuilt(example, records_of(example)[:1])
    assert len(few) == 1
    same_types(few, example)
    none = rebuilt(example, [])
    assert len(none) == 0
    assert kind_of(none) == kind_of(example)
    same_types(none, example)


def same_types(one, other):
    if isinstance(other, pd.DataFrame):
        assert (one.dtypes == other.dtypes).all()
        assert list(one.index) == list(range(len(one)))
    elif isinstance(other, pd.Series):
        assert one.dtype == other.dtype
        assert one.name == other.name
    elif isinstance(other, np.ndarray) and other.dtype.kind not in "US":
        assert one.dtype == other.dtype
        assert one.shape[1:] == other.shape[1:]


@pytest.mark.parametrize(
    ("example", "record"),
    [
        (np.array([1]), 0.5),
        (np.array([1], dtype=np.uint8), 256),
        (np.array([1], dtype=np.uint8), -1),
        (np.array([[1, 2]]), [1, 2, 3]),
        (np.array([1.0]), "a"),
        (np.array([True]), 2),
        (pd.Series([1]), None),
        (pd.Series(["f"], dtype="category"), "m"),
        (pd.DataFrame({"a": [1], "b": [2]}), (1, 0.5)),
        (pd.DataFrame({"a": [1], "b": [2]}), (1,)),
        (pd.DataFrame({"a": pd.to_datetime(["2020"])}), ("no date",)),
    ],
)
def test_records_that_do_not_fit_are_refused(example, record):
    with pytest.raises(ClaimError) as caught:
        rebuilt(example, [record])
    message = str(caught.value)
    assert f"{describe(record)} does not fit into a dataset like {describe(example)}" in message
    assert "Write records that it can hold" in message


def test_digits_may_be_lost_but_no_more():
    assert rebuilt(np.zeros(1, dtype=np.float16), [0.1])[0] == np.float16(0.1)
    assert rebuilt(pd.Series([0.5], dtype="float32"), [0.1])[0] == np.float32(0.1)
    assert rebuilt(np.array(["a"]), ["longer"]).tolist() == ["longer"]
    day = dt.date(2020, 1, 1)
    assert rebuilt(np.array([], dtype="M8[D]"), [day]).tolist() == [day]


@pytest.mark.parametrize("value", [3, None, {}, np.array(3), object])
def test_what_is_no_dataset(value):
    assert kind_of(value) == ()
    for make in (records_of, lambda value: rebuilt(value, [])):
        with pytest.raises(ClaimError, match="is no dataset"):
            make(value)


@given(st.lists(st.integers(0, 255)), st.sampled_from([list, tuple, set, np.uint8, "pandas"]))
def test_rebuilt_holds_exactly_the_records(records, how):
    example = {np.uint8: np.zeros(0, np.uint8), "pandas": pd.Series([], dtype="uint8")}.get(how)
    example = how() if example is None else example
    made = records_of(rebuilt(example, records))
    assert made == (sorted(set(records)) if how is set else records)
