"""The strategies for users: what they draw, and that their examples are true."""

from __future__ import annotations

import doctest

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dp import ClaimError, add_remove_one, strategies
from pytest_dp.data.relations import RELATIONS, AddRemoveOne
from pytest_dp.strategies import categories, histograms, neighbors, numbers, records, tables

few = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_the_examples_are_true():
    failed, attempted = doctest.testmod(strategies)
    assert not failed
    assert attempted > 15


@few
@given(st.data())
def test_tables_of_each_kind_have_one_type(data):
    columns = {"n": numbers(0, 9), "x": numbers(0.0, 1.0), "c": categories("ab")}
    frame = data.draw(tables(columns, kind="pandas", max_size=4))
    assert isinstance(frame, pd.DataFrame)
    assert [str(kind) for kind in frame.dtypes[:2]] == ["int64", "float64"]
    assert frame.dtypes.iloc[2] == pd.Series(["a"]).dtype
    assert list(frame.index) == list(range(len(frame)))
    table = data.draw(tables(columns, kind="polars", min_size=1))
    assert table.schema == {"n": pl.Int64, "x": pl.Float64, "c": pl.String}
    assert len(table) >= 1
    plain = data.draw(tables(columns, kind="dict", max_size=2))
    assert list(plain) == ["n", "x", "c"]
    assert len({len(cells) for cells in plain.values()}) == 1
    assert isinstance(data.draw(tables(columns)), pd.DataFrame)


@pytest.mark.slow
@few
@given(st.data(), st.sampled_from(["add_remove_one", "replace_one"]))
def test_neighbors(data, relation):
    people = tables({"age": numbers(0, 5)}, kind=data.draw(st.sampled_from(["pandas", "dict"])))
    d1, d2 = data.draw(neighbors(people, relation))
    assert RELATIONS[relation]().fault(d1, d2) == ""
    d1, d2 = data.draw(neighbors(people, add_remove_one(group=2)))
    assert AddRemoveOne(group=2).fault(d1, d2) == ""
    d1, d2 = data.draw(neighbors(histograms(3), "one_query"))
    assert sum(abs(a - b) for a, b in zip(d1, d2, strict=True)) == 1
    d1, d2 = data.draw(neighbors(numbers(0, 3), "any_two"))
    assert d1 != d2


def test_what_is_refused():
    for make, part in [
        (lambda: records(), "with names, for dicts"),
        (lambda: records(numbers(0, 1), age=numbers(0, 1)), "with names, for dicts"),
        (lambda: tables({}), "Write at least one"),
        (lambda: tables({"n": numbers(0, 1)}, kind="arrow"), "'pandas', 'polars', 'dict'"),
        (lambda: neighbors(st.lists(numbers(0, 1)), "swap"), "'replace_one'"),
    ]:
        with pytest.raises(ClaimError, match="Invalid") as caught:
            make()
        assert part in str(caught.value)
