"""Inputs that are searched, and where the ways of two of them part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from pytest_dp.data.fields import fields_of
from pytest_dp.data.relations import RELATIONS
from pytest_dp.proposers.columns import beside
from pytest_dp.proposers.constants import Constant
from pytest_dp.proposers.exploring import boundary
from pytest_dp.proposers.space import Candidate, Space


@dataclass
class Visit:
    age: int
    name: str


class Row(NamedTuple):
    age: int
    name: str


SIX = Constant(6, "a constant in stats.py:14")
ADD, REPLACE, ALL = (RELATIONS[name]() for name in ("add_remove_one", "replace_one", "all_queries"))


@pytest.mark.parametrize(
    ("value", "whole", "expected"),
    [
        (6, True, [6, 5, 7]),
        (6.5, True, [6, 7]),
        (6, False, [6, 6 - 6e-6, 6 + 6e-6, 5, 7]),
        ("qa-", False, ["qa-", "qa-x", "xqa-"]),
        (1e300, False, []),
    ],
)
def test_each_is_tried_at_just_below_and_just_above(value, whole, expected):
    assert beside(value, whole=whole) == pytest.approx(expected)


def test_vectors_hold_a_constant_everywhere_once_and_as_their_sum():
    placed = [found.data for found in Space([[1, 1, 1]], ALL).placed(SIX)]
    for expected in ([6, 6, 6], [5, 5, 5], [7, 7, 7], [6, 0, 0], [2, 2, 2]):
        assert expected in placed


def test_a_way_between_vectors_is_one_of_neighbours():
    way = Space([[1, 1, 1]], ALL).walk([1, 1, 1], [4, 1, -1])
    steps = [way.at(step) for step in range(way.inputs)]
    assert (steps[0], steps[-1]) == ([1, 1, 1], [4, 1, -1])
    assert all(not ALL.fault(a, b) for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize(("relation", "end"), [(ADD, [9, 7, 3]), (REPLACE, [9, 2])])
def test_a_way_between_datasets_is_one_of_neighbours(relation, end):
    way = Space([[1, 2], [7, 9]], relation).walk([1, 2], end)
    steps = [way.at(step) for step in range(way.inputs)]
    assert steps[0] == [1, 2]
    assert sorted(steps[-1]) == sorted(end)
    assert all(not relation.fault(a, b) for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize("gate", range(1, 1_000, 83))
def test_bisection_finds_where_ways_part_by_few_looks(gate):
    looked = []

    def told(data):
        looked.append(data)
        return data[1] >= gate

    way = Space([[1, 1]], ALL).walk([0, 0], [500, 1_000])
    assert boundary(way, told) == ([500, gate - 1], [500, gate])
    assert len(looked) < 16


def test_bisection_ends_where_nothing_can_be_told():
    assert (
        boundary(Space([[1]], ALL).walk([0], [9]), lambda data: None if data[0] == 4 else 0) is None
    )


def test_constants_of_the_code_stand_anywhere_and_ordinary_numbers_within_the_examples():
    tables = Space([[("ann", 3.0), ("bob", 90.0)]], ADD)
    rng = np.random.default_rng(0)
    ordinary = [replace(SIX, ordinary=True), Constant(1e6, ordinary=True)]
    found = [*tables.placed(Constant(91, ordinary=True)), *tables.corners(ordinary)]
    data = [("ann", 3.0)]
    for _ in range(300):
        data = tables.mutated(data, ordinary, rng).data
        found.append(Candidate(data))
    far = {1000.0, -1000.0}
    assert far == {age for one in found for _, age in one.data if not 3 <= age <= 90}
    assert any(age not in (3, 90) for one in found for _, age in one.data)
    assert any(("bob", 91.0) in one.data for one in tables.placed(Constant(91)))


def test_where_records_are_replaced_their_number_may_be_relied_on():
    tables = Space([[3, 90], [4, 5, 6]], REPLACE)
    rng = np.random.default_rng(0)
    found = [*tables.placed(Constant(7)), *tables.corners([SIX])]
    data = [3, 90]
    for _ in range(300):
        data = tables.mutated(data, [SIX], rng).data
        found.append(Candidate(data))
    assert {len(one.data) for one in found} == {2, 3}


def test_entries_of_any_record_take_constants():
    for record in ({"age": 3, "name": "a"}, [3, "a"], Row(3, "a"), Visit(3, "a")):
        (first, *_) = Space([[record]], ADD).placed(SIX)
        assert fields_of(first.data[-1]) == {**fields_of(record), next(iter(fields_of(record))): 6}
        assert type(first.data[-1]) is type(record)


def test_corners_are_empty_one_record_many_alike_and_shared_values():
    corners = [found.data for found in Space([[("ann", 3), ("bob", 90)]], ADD).corners([])]
    assert [] in corners
    assert [("ann", 3)] in corners
    assert [("ann", 3), ("ann", 3)] in corners
    assert [("ann", 3), ("bob", 3)] in corners


def test_a_constant_stands_in_a_record_in_all_as_a_sum_and_as_a_length():
    placed = [found.data for found in Space([[3, 90], [8]], ADD).placed(Constant(50))]
    assert [3, 90, 50] in placed
    assert [50, 50] in placed
    assert [25, 25] in placed
    assert 50 in map(len, placed)


def test_what_is_said_names_the_holder():
    found = next(Space([[3, 90]], ADD).placed(SIX))
    assert found.origin_of([3, 90], found.data) == "D' holds 6, a constant in stats.py:14"
    assert found.origin_of(found.data, [3, 90]) == "D holds 6, a constant in stats.py:14"


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_of_wide_tables_numbers_far_outside_come_first_in_all_columns_at_once(relation):
    table = [{f"c{at}": 2 + at + row for at in range(20)} for row in range(2)]
    first = itertools.islice(Space([table], relation).corners(()), 4)
    records = [list(candidate.data[-1].values()) for candidate in first]
    assert any(min(record) >= 100 for record in records)
    assert any(max(record) <= -100 for record in records)
