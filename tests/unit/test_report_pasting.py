"""Inputs as source: what is pasted makes an equal object again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dp.report.pasting import as_source


def pasted(value: Any) -> Any:
    source = as_source(value)
    assert source is not None
    return eval(source, {"np": np, "pd": pd})


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(st.integers())
        | st.sets(st.text())
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_objects(value: Any) -> None:
    again = pasted(value)
    assert again == value
    assert type(again) is type(value)


def test_nan() -> None:
    assert np.isnan(pasted([float("nan")])[0])


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2]),
        np.array([], dtype=float),
        np.array([[1.5, np.inf]], dtype=np.float32),
        np.array([1, 255], dtype=np.uint8),
        np.array(["a", "bc"]),
        np.array([True]),
        np.float32(1.5),
        np.int64(3),
    ],
    ids=repr,
)
def test_arrays(value: Any) -> None:
    again = pasted(value)
    np.testing.assert_array_equal(again, value)
    assert (type(again), again.dtype, again.shape) == (type(value), value.dtype, value.shape)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"user": [1, 2], "name": ["ann", "bob"], "share": [0.5, np.inf]}),
        pd.DataFrame({"user": np.array([], dtype=np.int8)}),
        pd.DataFrame({"kind": pd.Categorical(["a", "b", "a"])}).astype({"kind": "category"}),
        pd.DataFrame({"age": pd.array([1, 2], dtype="Int64")}),
        pd.DataFrame(index=range(0)),
    ],
    ids=lambda frame: str(dict(frame.dtypes)),
)
def test_frames(frame: pd.DataFrame) -> None:
    again = pasted(frame)
    pd.testing.assert_frame_equal(again, frame, check_index_type=False, check_column_type=False)


def test_series() -> None:
    series = pd.Series([1, 2], name="age", dtype="int8")
    pd.testing.assert_series_equal(pasted(series), series)


class Unknown:
    pass


@pytest.mark.parametrize(
    "value",
    [
        Unknown(),
        [Unknown()],
        np.array([Unknown()]),
        np.zeros((2, 2, 2)),
        pd.DataFrame({"when": pd.to_datetime(["2026-01-01"])}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_written_is_left_out(value: Any) -> None:
    assert as_source(value) is None
