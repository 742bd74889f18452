"""Pairs from strategies: corner cases first, neighbours only, the same for each seed."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from neighbours import source

from pytest_dp import ClaimError, add_remove_one, audit, replace_special
from pytest_dp.data import key
from pytest_dp.data.relations import RELATIONS
from pytest_dp.pairs import drawing
from pytest_dp.pairs.drawing import choices_work, draw_values
from pytest_dp.pairs.generated import MIN_FIRST, Generated
from pytest_dp.pairs.pair_strategies import neighbours

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """What is chosen from a pool is the same matter for a smaller one, and takes less time."""
    monkeypatch.setattr("pytest_dp.pairs.generated.POOL", 60)


PATIENTS = st.lists(st.tuples(st.integers(0, 120), st.sampled_from("abcd")))


def generated(datasets=PATIENTS, relation="add_remove_one", seed=1):
    pairs = neighbours(datasets, RELATIONS[relation](), "inputs=...")
    return Generated(pairs, seed, "inputs=...")


def refusal(root=None, **keywords):
    with pytest.raises(ClaimError) as caught:
        source(root, **keywords)
    return str(caught.value)


@pytest.mark.parametrize(
    "datasets",
    [
        PATIENTS,
        st.lists(st.floats(-1, 1)).map(np.array),
        st.lists(st.integers(0, 9), min_size=1).map(lambda ages: pd.DataFrame({"age": ages})),
    ],
)
def test_all_pairs_are_neighbours(datasets):
    made, relation = generated(datasets, "replace_one"), RELATIONS["replace_one"]()
    assert len(made.pairs) == MIN_FIRST
    further = list(islice(made.propose(), 20))
    assert len({pair.content for pair in (*made.pairs, *further)}) == MIN_FIRST + 20
    for pair in (*made.pairs, *further):
        assert relation.fault(pair.d1, pair.d2) == ""
        assert pair.difference


def test_corner_cases_come_first():
    pairs = generated(st.lists(st.floats(-10, 99) | st.sampled_from([math.nan, math.inf]))).pairs
    apart = set()
    for pair in pairs:
        one, other = (Counter(map(key, side)) for side in (pair.d1, pair.d2))
        apart |= {*(one - other), *(other - one)}
    assert {key(x) for x in (math.nan, math.inf, -10.0, 99.0)} <= apart
    sides = [side for pair in pairs for side in (pair.d1, pair.d2)]
    assert [] in sides
    assert any(len(side) == 1 for side in sides)
    assert any(len(side) > 1 and len(set(map(key, side))) == 1 for side in sides)
    assert len(pairs[0].d1) + len(pairs[0].d2) == 1


@st.composite
def summing(draw):
    rest = draw(st.lists(st.integers(0, 9), min_size=2, max_size=5))
    return [*rest, 99 - sum(rest)]


def in_columns(n):
    ages = st.lists(st.integers(0, 9), min_size=n, max_size=n)
    flags = st.lists(st.booleans(), min_size=n, max_size=n)
    return st.fixed_dictionaries({"age": ages, "flag": flags})


AGES = st.lists(st.integers(0, 9))
IDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique_by=lambda record: record[0])


def one_apart(d1, d2):
    return len(d1) == len(d2) and sum(abs(a - b) for a, b in zip(d1, d2, strict=True)) == 1


@pytest.mark.parametrize(
    ("datasets", "claim", "holds"),
    [
        (IDS, {"neighbors": "replace_one"}, lambda rows: len({at for at, _ in rows}) == len(rows)),
        (st.integers(0, 9).flatmap(in_columns), {}, lambda d: len(d["age"]) == len(d["flag"])),
        (IDS.map(sorted), {"neighbors": add_remove_one(unit=1)}, lambda rows: rows == sorted(rows)),
        (AGES.map(sorted), {"neighbors": one_apart}, lambda ages: ages == sorted(ages)),
        (st.lists(st.floats(0, 3), max_size=3), {"neighbors": "one_query"}, lambda x: max(x) <= 3),
    ],
)
def test_what_a_strategy_asks_of_its_datasets_holds_in_each_pair(datasets, claim, holds):
    claim = {"neighbors": "add_remove_one", **claim}
    made = source(inputs=datasets, **claim)
    further = [*islice(made.generated.propose(), 20)]
    small = made.generated.shrink(made.given[-1], lambda pair: True, 0.1)
    assert len({pair.content for pair in (*made.given, *further)}) == MIN_FIRST + 20
    for pair in filter(None, (*made.given, *further, small)):
        assert holds(pair.d1)
        assert holds(pair.d2)


def test_no_neighbour_in_the_strategy(monkeypatch):
    monkeypatch.setattr("pytest_dp.pairs.generated.MAX_DRAWS", 100)
    message = refusal(inputs=summing(), neighbors="replace_one")
    assert "none gave a pair under neighbors='replace_one'" in message
    assert "the promise covers only inputs" in message
    message = refusal(inputs=AGES, neighbors=lambda d1, d2: False)
    assert "none gave a pair under neighbors=<lambda>" in message


def test_what_the_claim_makes_itself_need_not_be_in_the_strategy():
    made = source(inputs=AGES, neighbors=replace_special(-1))
    assert {len(pair.d1) for pair in made.given} == {len(pair.d2) for pair in made.given}
    assert all(-1 in pair.d2 for pair in made.given)
    made = source(inputs=AGES, neighbors=lambda ages: [[*ages, 99]])
    assert all(pair.d2 == [*pair.d1, 99] for pair in made.given)


def test_pairs_are_shrunk():
    made, asked = generated(), []

    def old_b(pair):
        asked.append((key(pair.d1), key(pair.d2)))
        return any(age > 60 and c == "b" for age, c in pair.d1)

    pair = next(pair for pair in made.propose() if old_b(pair) and 3 < len(pair.d1) < 9)
    asked.clear()
    small = made.shrink(pair, old_b, 60.0)
    assert small.d1 == [(61, "b")]
    assert len(small.d2) in (0, 2)
    assert len(asked) == len(set(asked))
    assert made.shrink(small, old_b) == small
    backwards = made.shrink(pair.reverse(), lambda pair: old_b(pair.reverse()))
    assert backwards.d2 == [(61, "b")]
    elsewhere = generated(seed=9).pairs[-1]
    assert made.shrink(elsewhere, old_b) is elsewhere


ADD = {"neighbors": "add_remove_one"}
PAIR = {"pairs": [([1], [])]}
FLOATS = st.floats(0.1, 1.0)


@pytest.mark.parametrize(
    ("claim", "parts"),
    [
        (ADD | {"inputs": st.integers(0, 5)}, ["of type int, which is not a dataset", "'any_two'"]),
        (ADD | {"inputs": st.lists(st.nothing())}, ["none gave a pair", "st.lists(st.integ"]),
        (ADD | {"inputs": AGES.filter(lambda _: False)}, ["in 1,000 draws", ".filter"]),
        (ADD | {"inputs": st.lists(st.integers(9, 3))}, ["Hypothesis says", "9", "3"]),
        (ADD | {"inputs": st.sets(AGES)}, ["raised TypeError", "unhashable type: 'list'"]),
        (
            ADD | {"inputs": st.just(2_000_000).map(lambda n: [0] * n)},
            ["a dataset of 2,000,000 records", "[0, 0, 0", "At most 1,000,000", "max_size"],
        ),
        (ADD | {"inputs": [[1], AGES]}, ["a strategy stands at index 1", "st.one_of"]),
        (
            {"inputs": PATIENTS},
            ["must say which of its datasets are", "neighbors='add_remove_one'"],
        ),
        ({"pairs": st.integers(3, 3)}, ["drew 3, of type int", "not a pair (D, D')", "st.tuples"]),
        (
            ADD | {"pairs": st.just(([1], [2]))},
            ["what was drawn is not a pair", "D = [1] and D' = [2]", "exactly one record"],
        ),
        (
            PAIR | {"eps": "epsilon", "params": {"epsilon": FLOATS}},
            ["floats(", "Write a list", "params={'epsilon': [0.1, 1.0]}"],
        ),
        (PAIR | {"params": {"k": [1, FLOATS]}}, ["params['k'] is a list with a strategy in it"]),
    ],
)
def test_claims_about_strategies_that_do_not_work(claim, parts):
    message = refusal(**claim)
    assert all(part in message for part in parts), message
    assert len(message) < 700


def test_parameters_are_drawn_with_the_inputs():
    made = source(inputs=PATIENTS, neighbors="add_remove_one", params={"k": st.integers(1, 9)})
    assert {pair.params["k"] for pair in made.given} >= {1, 9}
    for pair in made.given:
        assert [one.params for one in pair.inputs] == [pair.params] * 2
    drawer = made.generated
    pair = next(pair for pair in made.given if pair.params["k"] > 4)
    small = drawer.shrink(pair, lambda pair: pair.params["k"] > 4, 60.0)
    assert small.params == {"k": 5}
    assert len(small.d1) + len(small.d2) == 1


def values(strategy, number=1, count=100, constants=()):
    drawn = islice(draw_values(strategy, number, constants), count)
    return [one.value for one in drawn if one is not None]


def test_the_same_is_drawn_for_each_seed():
    strategy = st.lists(st.tuples(st.floats(), st.text(max_size=3)))
    assert repr(values(strategy)) == repr(values(strategy))
    assert repr(values(strategy)) != repr(values(strategy, 2))


def test_corners_are_drawn_of_any_strategy():
    found = values(st.lists(st.integers(-7, 10**9)))
    assert [] in found
    assert {-7, 0, 10**9} <= {n for numbers in found for n in numbers}
    assert any(len(numbers) > 3 and len(set(numbers)) == 1 for numbers in found)
    floats = [x for numbers in values(st.lists(st.floats())) for x in numbers]
    assert any(map(math.isnan, floats))
    assert {math.inf, -math.inf, 0.0} <= set(floats)


def test_what_a_strategy_does_not_allow_is_not_drawn():
    floats = st.floats(-1.5, 2.5) | st.sampled_from([7.0, 8.0])
    for numbers in values(st.lists(floats, max_size=4), constants=[99.0, 2.25, -3]):
        assert len(numbers) <= 4
        assert all(-1.5 <= x <= 2.5 or x in (7.0, 8.0) for x in numbers)
    unique = values(st.lists(st.integers(0, 9), unique=True))
    assert all(len(set(numbers)) == len(numbers) for numbers in unique)
    assert all(n % 2 == 0 for n in values(st.integers().filter(lambda n: n % 2 == 0)))


def test_what_is_rejected_is_none():
    assert values(st.integers().filter(lambda n: False)) == []
    assert values(st.nothing()) == []


def test_an_audit_says_that_another_version_of_hypothesis_loses_mutation(monkeypatch):
    def of_another_version(*args):
        raise AttributeError("ConjectureData has no such attribute")

    def notes():
        pairs = st.integers(0, 9).map(lambda number: (number, number + 1))
        result = audit(lambda x, rng: x + rng.laplace(), eps=1.0, pairs=pairs, max_samples=200)
        return [str(note) for note in result.notes if "Hypothesis" in str(note)]

    assert notes() == []
    monkeypatch.setattr(drawing, "remake_values", of_another_version)
    choices_work.cache_clear()
    try:
        (note,) = notes()
    finally:
        monkeypatch.undo()
        choices_work.cache_clear()
    assert note.startswith(f"with Hypothesis {hypothesis.__version__}, what strategies yield is ")
