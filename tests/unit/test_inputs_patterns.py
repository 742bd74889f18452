"""Pairs that follow from no data: patterns of query answers, and values."""

from __future__ import annotations

import pytest
from neighbours import pairs, plain, refusal

from pytest_dp import queries, values


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


@pytest.mark.parametrize("length", [0, 2.0, True])
def test_query_lengths_are_whole_numbers(length):
    message = refusal(inputs=queries(5, length))
    assert f"Invalid length {length!r} in queries(5, {length!r})" in message
    assert "queries(5, 10)" in message


# Values


@pytest.mark.parametrize("options", [[], [1], [1, 1], [[1], [1]]])
def test_values_need_two(options):
    message = refusal(inputs=values(options))
    assert f"{values(options)!r} holds" in message
    assert "values([0, 1])" in message
