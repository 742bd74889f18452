"""Relations as values: the neighbours of a dataset, against what makes two inputs neighbours."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neighbours import pairs, refusal

from pytest_dp import ClaimError
from pytest_dp.data import describe, key, records_of
from pytest_dp.data.equality import equality_key
from pytest_dp.data.relations import AddRemoveOne, AllQueries, OneQuery, ReplaceOne, ReplaceSpecial

small = st.lists(st.integers(0, 3), max_size=4)
makers = st.sampled_from(
    [list, tuple, set, np.array, lambda n: pd.DataFrame({"a": pd.array(n, dtype="Int64")})]
)


def rows(records, make):
    return [(one,) for one in records] if "lambda" in make.__name__ else records


RECORD_RELATIONS = st.sampled_from(
    [relation(group=group) for relation in (AddRemoveOne, ReplaceOne) for group in (1, 2)]
)


def distance(d1, d2, relation):
    """How many records have to be removed and added, or replaced; by counting them."""
    lost, new = (Counter(d1) - Counter(d2)).total(), (Counter(d2) - Counter(d1)).total()
    if isinstance(relation, AddRemoveOne):
        return lost + new
    return lost if lost == new else math.inf


@given(small, small, makers, RECORD_RELATIONS)
def test_neighbours_are_all_there_are(own, known, make, relation):
    """Against brute force, where the order of records does not matter."""
    dataset = make(own)
    own = sorted(dataset) if make is set else own
    found = list(relation.pairs(dataset, rows(known, make)))
    assert len({pair.content for pair in found}) == len(found)
    for pair in found:
        told = relation.pair(pair.d1, pair.d2).difference
        assert sorted(told.split()) == sorted(pair.difference.split())  # in any order
        assert type(pair.d2) is type(dataset)
        assert key(pair.d1) == key(dataset)
    all_there_are = (
        list(records)
        for size in range(len(own) + 3)
        for records in combinations_with_replacement(sorted({*own, *known}), size)
        if make is not set or len(set(records)) == size
    )
    expected = {
        bag(rows(records, make))
        for records in all_there_are
        if distance(own, records, relation) == relation.group
        and set(Counter(records) - Counter(own)) <= set(known)
    }
    assert {bag(records_of(pair.d2)) for pair in found} == expected


def bag(records):
    return tuple(sorted(map(equality_key, records)))


def test_new_records_are_made_to_fit_or_refused():
    frame = pd.DataFrame({"a": np.array([1, 2], dtype=np.int8), "b": ["x", "y"]})
    found = list(AddRemoveOne().pairs(frame, [(100, "new")]))
    assert len(found) == 3
    for pair in found:
        assert (pair.d2.dtypes == frame.dtypes).all(), describe(pair.d2)
        assert list(pair.d2.index) == list(range(len(pair.d2)))
    with pytest.raises(ClaimError, match="does not fit"):
        list(AddRemoveOne().pairs(frame, [(1000, "new")]))


@given(small, small, RECORD_RELATIONS)
def test_neighbours_differ_in_no_more_records_than_their_group(d1, d2, relation):
    is_near = 0 < distance(d1, d2, relation) <= relation.group
    assert bool(relation.pair(d1, d2)) == bool(relation.pair(d2, d1)) == is_near


def test_what_keeps_inputs_from_being_neighbours():
    for relation, d1, d2, why in [
        (AddRemoveOne(), [1, 0], [2], "2 records only in D and 1 record only in D'"),
        (AddRemoveOne(), [1, 0], [0, 1], "they hold the same records"),
        (AddRemoveOne(), 3, 4, "D is of type int, which is not a dataset"),
        (AddRemoveOne(), [1], "", "one is a list, the other a str"),
        (
            AddRemoveOne(),
            {"a": [1], "b": [2, 3]},
            {},
            "which is not a dataset: its columns have 1 to 2",
        ),
        (AddRemoveOne(), np.array([[1]]), np.array([]), "records of shape (1,), the other"),
        (AddRemoveOne(), pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1, 2]}), "columns ['a']"),
        (AddRemoveOne(), pd.Series([1], name="a"), pd.Series([], name="b"), "Series named 'a'"),
        (ReplaceOne(), [1, 0], [1], "1 record only in D and 0 records only in D'"),
        (OneQuery(), [1, 1], [1, 3], "the answer at index 1 differs by 2"),
        (OneQuery(), [1], [2, 1], "their lengths are 1 and 2"),
        (OneQuery(), [1, 1.0], (1, 0.5), "one is a list, the other a tuple"),
        (OneQuery(), {1}, {2}, "D is of type set, which is not a vector"),
        (AllQueries(), [1, math.nan], [2, math.nan], "D holds nan, which is not a number"),
        (AllQueries(), [1, 5], [2, 7.5], "the answer at index 1 differs by 2.5"),
        (AddRemoveOne(unit=0), [(7, 1), (7, 2)], [(7, 1)], "record[0]=7 has 2 rows in D and 1"),
        (AddRemoveOne(unit=0), [(7, 1), (8, 2)], [], "2 units differ: record[0]=7, record[0]=8"),
        (AddRemoveOne(unit=0, rows=1), [(7, 1), (7, 1)], [], "in D, record[0]=7 has 2"),
        (ReplaceOne(unit=0), [(7, 1)], [], "1 unit only in D and 0 units only in D'"),
        (ReplaceSpecial(), [1, 2], [1], "D has 2 records and D' 1 record"),
        (ReplaceSpecial(), [1, 2], [None, None], "2 records only in D and 0 records only in D'"),
        (AddRemoveOne(group=2), [1, 2, 3], [], "3 records only in D and 0 records only in D'"),
    ]:
        assert why in relation.fault(d1, d2)


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


def test_functions_that_do_not_work():
    for function, message in [
        (lambda d: [d], "yields D itself, for D = [1]"),
        (lambda d: d, "yields 1, of type int, as a neighbour of D = [1]"),
        (lambda d: 3, "returned 3, of type int, for D = [1]. Return a list of the inputs"),
        (lambda d: 1 / 0, "raised ZeroDivisionError: division by zero, for D = [1]"),
        (lambda d: (1 / x for x in (0,)), "raised ZeroDivisionError"),
        (lambda d: [], "accepts or yields none"),
        (lambda d1, d2: False, "accepts or yields none"),
        (lambda d1, d2: np.ones(3), "Return True or False"),
        (lambda a, b, c: True, "needs 3 arguments"),
    ]:
        assert message in refusal(inputs=[[1], [4]], neighbors=function)
