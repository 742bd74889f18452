"""Neighbours that a function of the user's yields or accepts."""

from __future__ import annotations

import numpy as np
import pytest
from neighbours import pairs, refusal

from pytest_dp import queries


def one_more(d):
    number = 0
    while True:
        number += 1
        yield [*d, number]


def close(d1, d2):
    return abs(sum(d1) - sum(d2)) == 1


def test_a_function_yields_neighbours():
    found = pairs(inputs=[[1], [2]], neighbors=one_more)
    assert len(found) == 512
    assert found[0].d2 == [1, 1]
    assert found[0].difference == "neighbours by one_more"
    found = pairs(pairs=[([1], [1, 3]), ([1, 3], [1])], neighbors=one_more)
    assert len(found) == 2
    message = refusal(pairs=[([1], [2])], neighbors=one_more)
    assert "one_more yields 512 neighbours of D and 512 of D', not these" in message
    assert [p.d2 for p in pairs(inputs=[3], neighbors=lambda d: [d + 1, d - 1])] == [4, 2]


def test_a_predicate_accepts_neighbours():
    found = pairs(inputs=[[1], [2], [7]], neighbors=close)
    assert ([1], [2]) in [(pair.d1, pair.d2) for pair in found]
    assert len(found) > 3
    assert all(close(pair.d1, pair.d2) for pair in found)
    assert [(p.d1, p.d2) for p in pairs(inputs=[1, 5, 2], neighbors=lambda a, b: b == a + 1)] == [
        (1, 2)
    ]
    assert "says no" in refusal(pairs=[([1], [7])], neighbors=close)
    assert pairs(pairs=[([1], [2])], neighbors=close)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda d: [d], "yields D itself, for D = [1]"),
        (lambda d: [[2], list(d)], "yields D itself, for D = [1]"),
        (lambda d: d, "yields 1, of type int, as a neighbour of D = [1]"),
        (lambda d: 3, "returned 3, of type int, for D = [1]. Return a list of the inputs"),
        (lambda d: 1 / 0, "raised ZeroDivisionError: division by zero, for D = [1]"),
        (lambda d: (1 / x for x in (0,)), "raised ZeroDivisionError"),
        (lambda d: [], "accepts or yields none"),
        (lambda d1, d2: False, "accepts or yields none"),
        (lambda d1, d2: np.ones(3), "Return True or False"),
        (lambda d1, d2: d1.age, "raised AttributeError"),
        (lambda a, b, c: True, "needs 3 arguments"),
    ],
)
def test_functions_that_do_not_work(function, message):
    assert message in refusal(inputs=[[1], [4]], neighbors=function)


def test_functions_are_for_examples():
    assert "does not fit inputs=queries" in refusal(inputs=queries(3), neighbors=one_more)
