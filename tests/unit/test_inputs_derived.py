"""Neighbouring pairs that are derived: from query patterns, values and example datasets."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from neighbours import ADD_REMOVE, REPLACE, fault, pairs, refusal, source

from pytest_dp import replace_one
from pytest_dp.data.conversion import length
from pytest_dp.data.neighbours import MAX_PAIRS


def test_extreme_records_come_first():
    found = pairs(inputs=[[3, 1, 9, 2]], neighbors=ADD_REMOVE)
    assert [pair.d2 for pair in found] == [
        *([3, 9, 2], [3, 1, 2], [3, 1, 9], [1, 9, 2]),
        *([3, 1, 9, 2, 1], [3, 1, 9, 2, 9], [3, 1, 9, 2, 2], [3, 1, 9, 2, 3]),
    ]
    assert [bool(pair.beyond) for pair in found] == [False] * 4 + [True] * 4
    assert pairs(inputs=[[3, 1, 9, 2]], neighbors=REPLACE)[0].d2 == [3, 9, 9, 2]


@pytest.mark.slow
def test_many_pairs_are_capped_at_the_extremes():
    found = pairs(inputs=[list(range(3000))], neighbors=REPLACE)
    assert len(found) == MAX_PAIRS
    assert found[0].d2[0] == 2999
    whole = [pair for pair in found if len(pair.d2) == 3000]
    assert whole[0].d2 == [2999, *range(1, 3000)]
    # Repetitions wait until each different record had its turn.
    found = pairs(inputs=[[0] * 1000 + [7]], neighbors=ADD_REMOVE)
    parts = [pair for pair in found if len(pair.d1) < 1_000]
    assert [sorted(set(pair.d2)) for pair in parts[:3]] == [[0, 7], [0], [0, 7]]


@pytest.mark.slow
def test_the_order_does_not_depend_on_the_hash_seed():
    code = (
        "from pytest_dp.claiming.claim import expand\n"
        "from pytest_dp.pairs import describe, make_pair_source\n"
        "inputs = [{'a', 'b', 'c'}, {frozenset('xyz'), frozenset('uv')}, {1, 'a', None}]\n"
        "claim, = expand({'eps': 1.0, 'neighbors': 'add_remove_one', 'inputs': inputs})\n"
        "for pair in make_pair_source(claim, 1, '').given:\n"
        "    print(describe(pair.d1), describe(pair.d2))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(runs) == 1


def test_no_pair_to_derive():
    assert "inputs=[] holds no dataset" in refusal(inputs=[], neighbors=ADD_REMOVE)
    assert "at least a record" in refusal(inputs=[[], []], neighbors=ADD_REMOVE)
    assert "two different records" in refusal(inputs=[[3, 3]], neighbors=REPLACE)


SCORES = {"student": ["a", "b", "c", "d"], "score": [0, 100, 55, 71]}
ONE_EXAMPLE = {"a frame": pd.DataFrame(SCORES), "a set": {3, 1, 4, 5}}


@pytest.mark.parametrize("example", ONE_EXAMPLE.values(), ids=ONE_EXAMPLE)
def test_a_record_that_must_not_repeat_is_replaced_by_leaving_out_another(example):
    notes = []
    found = source(inputs=[example], neighbors=REPLACE, notes=notes)
    assert len(found.given) == 6  # any two of the four subsets
    for pair in found.given:
        assert fault(pair.d1, pair.d2, REPLACE) == ""
        assert {length(pair.d1), length(pair.d2)} == {3}
        assert found.bounds.beyond(pair) == ""
    assert found.bounds.holds(example)
    assert "without one record and without another" in notes[0]


def test_units_are_left_out_as_a_whole():
    rows = frozenset({("a", 1), ("a", 2), ("b", 3), ("c", 4)})
    units = pairs(inputs=[rows], neighbors=replace_one(unit=lambda row: row[0]))
    assert {frozenset((pair.d1, pair.d2)) for pair in units} == {
        frozenset((rows - {("b", 3)}, rows - {("c", 4)})),
        *(frozenset((rows - {("a", 1), ("a", 2)}, rows - {one})) for one in rows if one[0] != "a"),
    }


@pytest.mark.parametrize(
    ("inputs", "named", "instead"),
    [
        ([1, 2, 3], "inputs[0]=1, of type int", "inputs=[[1, 2, 3]]"),
        ([[1], 2], "inputs[1]=2", "inputs=[[[1], 2]]"),
        ([{"a": [1], "b": [1, 2]}], "its columns have 1 to 2 entries", "inputs=[[{'a':"),
        ([np.array(3)], "of type ndarray", "lists, tuples, sets, arrays, strings"),
        (pd.DataFrame({"a": [1]}), "of type DataFrame", "such as [DataFrame({'a': [1]})]"),
        (3, "inputs=3, of type int", "queries(5)"),
    ],
    ids=str,
)
def test_what_is_no_list_of_datasets(inputs, named, instead):
    message = refusal(inputs=inputs, neighbors=ADD_REMOVE)
    assert named in message
    assert instead in message
