"""Pairs around inputs that take another branch, constants of the code, and odd values."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import find
from hypothesis import strategies as st

from pytest_dp import audit, queries
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import RELATIONS, Pair
from pytest_dp.pairs import resolved, source_of
from pytest_dp.proposers import compared_values
from pytest_dp.proposers.constants import constants_of
from pytest_dp.proposers.datasets_like import datasets_like
from pytest_dp.proposers.odd_values import far_values, missing_values
from pytest_dp.proposers.turns import pairs_around_turns
from pytest_dp.running.calling import prepare

ADD, REPLACE = (RELATIONS[name]() for name in ("add_remove_one", "replace_one"))
ROWS = [("ann", 3), ("bob", 90)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_wanted",
    [
        lambda rows: not rows,
        lambda rows: len(rows) > 100,
        lambda rows: any(age == 131 for _, age in rows),
        lambda rows: any(name == "root" for name, _ in rows),
    ],
    ids=["empty", "long", "constant", "text"],
)
def test_datasets_like_examples_hold_constants_and_numbers_between(is_wanted):
    assert find(datasets_like([ROWS], ADD, [131, "root"]), is_wanted) is not None


def above(ages, rng):
    return float(len(ages)) if sum(ages) > 777 else len(ages) + rng.laplace()


def twice(answers, rng):
    if answers[0] > 40 and answers[2] == 17:
        return answers[0]
    return sum(answers) + rng.laplace()


def as_bytes(answers, rng):
    return sum(np.asarray(answers).astype(np.int8).tolist()) + rng.laplace()


def found_for(mechanism, seed=1, **promise) -> Iterator[Pair]:
    (claim,) = expand({"eps": 1.0, **promise})
    claim = replace(claim, promise=resolved(claim.promise))
    call, settings = prepare(mechanism, claim.arguments), Settings(seed=seed)
    source = source_of(claim, seed, "inputs")
    known = compared_values(call, claim.promise, settings)
    return pairs_around_turns(source, claim.promise, call, seed, lambda: known)


def test_a_total_that_no_example_has_is_reached():
    pairs = list(found_for(above, inputs=[[30, 50, 40]], neighbors="add_remove_one"))
    assert any((sum(pair.d1) > 777) != (sum(pair.d2) > 777) for pair in pairs)
    assert any("test_search_turns.py:" in pair.origin for pair in pairs)


@pytest.mark.parametrize("seed", [1, 13])
def test_an_input_that_takes_a_new_way_has_neighbours(seed):
    """One try of a few edits may give none, as fields of these records change places."""

    def is_open(rows):
        return sum(12 * row["hours"] - row["bonus"] for row in rows) == 1234

    def noisy_count(rows, rng):
        return float(len(rows)) if is_open(rows) else len(rows) + rng.laplace()

    row = {"hours": st.integers(0, 100), "bonus": st.integers(0, 500)}
    inputs = st.lists(st.fixed_dictionaries(row), max_size=6)
    pairs = found_for(noisy_count, seed, inputs=inputs, neighbors="add_remove_one")
    assert any(is_open(pair.d1) != is_open(pair.d2) for pair in pairs)


def test_nested_conditions_on_answers_are_met():
    def is_open(answers):
        return answers[0] > 40 and answers[2] == 17

    pairs = found_for(twice, inputs=queries(4), neighbors="one_query")
    assert any(is_open(pair.d1) != is_open(pair.d2) for pair in pairs)


def test_answers_at_the_ends_of_small_types_are_tried_without_a_comparison():
    pairs = found_for(as_bytes, inputs=queries(3), neighbors="one_query")
    assert any(127 in pair.d1 and 128 in pair.d2 for pair in pairs)


INFINITE = [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("values", "far", "missing"),
    [
        pytest.param([0.0, 1.0], [10.0, -10.0], [math.nan, *INFINITE, None], id="flags"),
        pytest.param([3, 250], [10_000, -10_000], [None], id="whole"),
        pytest.param([math.nan, 2.5], [100.0, -100.0], [math.nan, *INFINITE, None], id="nan"),
        pytest.param(["a", "b"], [], ["", None], id="texts"),
        pytest.param(["20", "5", None], ["1000", "-1000"], ["", None], id="texts-of-numbers"),
        pytest.param([("a",)], [], [], id="others"),
    ],
)
def test_odd_values_of_a_field(values, far, missing):
    assert far_values(values) == far
    assert str(missing_values(values)) == str(missing)


PEOPLE = pd.DataFrame({"name": ["ann", "bob"], "pay": [1200.0, 40.0]})


CLAIM = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [PEOPLE], "n_jobs": 1, "seed": 1}


def not_clipped(rows, rng):
    return sum(second for _, second in rows) + rng.laplace(scale=0.2)


@pytest.mark.slow
def test_the_field_that_matters_is_named():
    rows = [(0.1, 0.2), (0.3, -0.1), (0.0, 0.2)]
    result = audit(not_clipped, **{**CLAIM, "inputs": [rows]})
    assert re.match(r"record\[1\] = -?\d", result.beyond.outside)


LIMIT = 417
EDGES = np.array([0.5, 12.25])
NAMES = {"vip": 3.75}


def helper(x, most=91):
    return x > LIMIT or x in NAMES or x < most


class Model:
    weight = 66

    def __init__(self):
        self.cut = 43

    def __call__(self, data):
        return sum(data) > self.cut - self.weight

    def of(self, data):
        return self(data)


def values_of(mechanism, **params):
    return constants_of(mechanism, params)


def test_constants_are_found_wherever_the_code_has_them():
    inner = 58

    def compares(data):
        return sum(data) / 8.5 if data[0] >= 613 else 0

    def calls(data):
        return np.histogram(data, EDGES), helper(data)

    def encloses(data, more):
        return data == inner or "ab" + more

    assert values_of(compares)[0] == 613  # a comparison is made with it
    assert 8.5 in values_of(compares)
    assert {417, 91, "vip", 3.75, 0.5, 12.25} <= set(values_of(calls))
    assert {58, "ab", "x", 77} <= set(values_of(functools.partial(encloses, more="x"), k=77))
    assert {43, 66} <= set(values_of(Model()))
    assert {43, 66} <= set(values_of(Model().of))
