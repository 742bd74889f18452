"""Pairs that follow from no data: patterns of query answers, and values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neighbours import fault, pairs, plain, refusal

from pytest_dp import queries, values
from pytest_dp.pairs import MAX_PAIRS


def test_queries_are_the_patterns_of_statdp_table_1():
    assert plain(pairs(inputs=queries(5))) == [
        ([1, 1, 1, 1, 1], [2, 1, 1, 1, 1]),
        ([1, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
        ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0]),
        ([1, 1, 1, 1, 1], [0, 2, 2, 2, 2]),
        ([1, 1, 1, 1, 1], [0, 0, 0, 2, 2]),
        ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        ([1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
    ]


def test_queries_without_lengths_are_those_published():
    assert [len(pair.d1) for pair in pairs(inputs=queries())] == [5] * 8 + [10] * 8


def test_one_query_keeps_the_patterns_that_differ_once():
    found = pairs(inputs=queries(3), neighbors="one_query")
    assert plain(found) == [([1, 1, 1], [2, 1, 1]), ([1, 1, 1], [0, 1, 1])]
    assert {pair.difference for pair in found} == {"one answer moved by 1"}


@given(st.integers(1, 30), st.sampled_from(["one_query", "all_queries"]))
def test_queries_are_neighbours_of_fresh_int_lists(n, relation):
    found = pairs(inputs=queries(n), neighbors=relation)
    assert found
    for pair in found:
        assert fault(pair.d1, pair.d2, relation) == ""
        assert {type(answer) for answer in pair.d1 + pair.d2} == {int}
    vectors = [id(vector) for pair in found for vector in (pair.d1, pair.d2)]
    assert len(vectors) == len(set(vectors))


@pytest.mark.parametrize("length", [0, -1, 2.0, True, "5", None])
def test_query_lengths_are_whole_numbers(length):
    message = refusal(inputs=queries(5, length))
    assert f"Invalid length {length!r} in queries(5, {length!r})" in message
    assert "queries(5, 10)" in message


# Values


def test_values_give_every_two_extremes_first():
    found = pairs(inputs=values([1, 0, 2]))
    assert plain(found) == [(0, 2), (1, 0), (1, 2)]
    assert {pair.difference for pair in found} == {"any two values"}
    assert plain(pairs(inputs=values("abc"))) == [("a", "b"), ("a", "c"), ("b", "c")]


def test_equal_values_count_once():
    assert plain(pairs(inputs=values([0, 1, 0, 1]))) == [(0, 1)]
    nan = float("nan")
    assert len(pairs(inputs=values([nan, math.nan, [nan], [nan], {"a": nan}]))) == 3


@pytest.mark.parametrize("options", [[], [1], [1, 1], [[1], [1]]])
def test_values_need_two(options):
    message = refusal(inputs=values(options))
    assert f"{values(options)!r} holds" in message
    assert "values([0, 1])" in message


def test_many_values_are_capped_and_each_occurs():
    found = pairs(inputs=values(range(400)))
    assert len(found) == MAX_PAIRS
    assert {found[0].d1, found[0].d2} == {0, 399}
    assert {one for pair in found for one in (pair.d1, pair.d2)} == set(range(400))


# Example datasets
