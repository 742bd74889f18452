"""Relations as values: the neighbours of a dataset, against what makes two inputs neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, islice, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neighbours import content

from pytest_dp import ClaimError
from pytest_dp.datasets import describe, key, records_of
from pytest_dp.datasets.equality import equality_key
from pytest_dp.datasets.relations import (
    RELATIONS,
    AddRemoveOne,
    AllQueries,
    AnyTwo,
    OneQuery,
    Pair,
    ReplaceOne,
)

small = st.lists(st.integers(0, 3), max_size=4)
makers = st.sampled_from(
    [list, tuple, set, np.array, lambda n: pd.DataFrame({"a": pd.array(n, dtype="Int64")})]
)


def rows(records, make):
    return [(one,) for one in records] if "lambda" in make.__name__ else records


def test_relations_are_values():
    assert AddRemoveOne() == RELATIONS["add_remove_one"]()
    assert AddRemoveOne() != ReplaceOne()
    assert len({one() for one in RELATIONS.values()}) == 6
    assert str(AnyTwo()) == "neighbors='any_two'"


@given(small, small, makers, st.sampled_from([AddRemoveOne(), ReplaceOne()]))
def test_neighbours_are_all_there_are(own, known, make, relation):
    """Against brute force, where the order of records does not matter."""
    dataset = make(own)
    own = sorted(dataset) if make is set else own
    found = list(relation.pairs(dataset, rows(known, make)))
    assert len(set(map(content, found))) == len(found)
    for pair in found:
        assert relation.fault(pair.d1, pair.d2) == ""
        assert relation.between(pair.d1, pair.d2) == pair
        assert type(pair.d2) is type(dataset)
        assert key(pair.d1) == key(dataset)
    removed = [own[:at] + own[at + 1 :] for at in range(len(own))]
    new = [one for one in set(known) if make is not set or one not in own]
    if isinstance(relation, AddRemoveOne):
        expected = removed + [[*own, one] for one in new]
    else:
        expected = [
            [*rest, one] for at, rest in enumerate(removed) for one in new if one != own[at]
        ]
    assert {bag(rows(one, make)) for one in expected} == {bag(records_of(p.d2)) for p in found}


def bag(records):
    return tuple(sorted(map(equality_key, records)))


@pytest.mark.slow
def test_neighbours_come_one_by_one_extreme_records_first():
    found = AddRemoveOne().pairs(list(range(100_000)), [-5, 3, 7_000_000])
    assert isinstance(next(found), Pair)
    changed = [set(pair.d1) ^ set(pair.d2) for pair in islice(found, 3)]
    assert changed == [{-5}, {99_999}, {7_000_000}]  # the first one is without 0


@given(st.lists(st.integers(-2, 2), max_size=4), st.sampled_from([OneQuery(), AllQueries()]))
def test_neighbours_of_vectors(answers, relation):
    for make in (list, tuple, np.array):
        found = list(relation.pairs(make(answers)))
        assert bool(found) == bool(answers)
        assert len(set(map(content, found))) == len(found)
        assert all(relation.fault(pair.d1, pair.d2) == "" for pair in found)
    if isinstance(relation, OneQuery):
        assert len(found) == 2 * len(answers)


def test_vectors_keep_their_type_and_its_range():
    found = list(OneQuery().pairs(np.array([0, 255], dtype=np.uint8)))
    assert [pair.d2.tolist() for pair in found] == [[1, 255], [0, 254]]
    assert {pair.d2.dtype.name for pair in found} == {"uint8"}
    assert [pair.d2 for pair in OneQuery().pairs([float("inf"), 0])] == [
        [float("inf"), 1],
        [float("inf"), -1],
    ]


def test_neighbours_of_values():
    found = list(AnyTwo().pairs("a", ["b", "a", "b", 3]))
    assert [(pair.d1, pair.d2) for pair in found] == [("a", "b"), ("a", 3)]


@pytest.mark.parametrize("relation", [AddRemoveOne(), ReplaceOne(), OneQuery(), AllQueries()])
def test_neighbours_of_what_is_no_dataset(relation):
    with pytest.raises(ClaimError, match="is no dataset"):
        next(iter(relation.pairs(3, [1])))


def test_new_records_are_made_to_fit_or_refused():
    frame = pd.DataFrame({"a": np.array([1, 2], dtype=np.int8), "b": ["x", "y"]})
    found = list(AddRemoveOne().pairs(frame, [(100, "new")]))
    assert len(found) == 3
    for pair in found:
        assert (pair.d2.dtypes == frame.dtypes).all(), describe(pair.d2)
        assert list(pair.d2.index) == list(range(len(pair.d2)))
    with pytest.raises(ClaimError, match="does not fit"):
        list(AddRemoveOne().pairs(frame, [(1000, "new")]))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("relation", [AddRemoveOne, ReplaceOne])
def test_neighbours_differ_in_no_more_records_than_their_group(relation, group):
    """By counting records, of all small datasets."""
    datasets = [
        list(records) for size in range(4) for records in combinations_with_replacement("abc", size)
    ]
    for d1, d2 in product(datasets, datasets):
        lost, new = (Counter(d1) - Counter(d2)).total(), (Counter(d2) - Counter(d1)).total()
        apart = lost + new if relation is AddRemoveOne else lost
        fits = relation is AddRemoveOne or lost == new
        assert (relation(group=group).fault(d1, d2) == "") == (fits and 0 < apart <= group)
