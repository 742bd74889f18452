"""Pairs around inputs that take another branch, constants of the code, and odd values."""

from __future__ import annotations

import functools
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import find
from hypothesis import strategies as st

from pytest_dp import add_remove_one, audit, queries, replace_one
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import AddRemoveOne, Pair
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.proposers import compared_values, widen_source
from pytest_dp.proposers.interesting_values import constants_of, far_values, missing_values
from pytest_dp.proposers.turns import datasets_like, pairs_at_new_branches
from pytest_dp.running.calling import prepare

ADD = AddRemoveOne()
ROWS = [("ann", 3), ("bob", 90)]


@pytest.mark.slow
def test_datasets_like_examples_hold_constants_and_numbers_between():
    for is_wanted in [
        lambda rows: not rows,
        lambda rows: any(age == 131 for _, age in rows),
        lambda rows: any(name == "root" for name, _ in rows),
    ]:
        assert find(datasets_like([ROWS], ADD, [131, "root"]), is_wanted) is not None


def above(ages, rng):
    return float(len(ages)) if sum(ages) > 777 else len(ages) + rng.laplace()


def as_bytes(answers, rng):
    return sum(np.asarray(answers).astype(np.int8).tolist()) + rng.laplace()


def found_for(mechanism, seed=1, **promise) -> Iterator[Pair]:
    (claim,) = expand({"eps": 1.0, **promise})
    claim = replace(claim, promise=resolve_promise(claim.promise))
    call, settings = prepare(mechanism, claim.arguments), Settings(seed=seed)
    source = make_pair_source(claim, seed, "inputs")
    known = compared_values(call, claim.promise, settings)
    return pairs_at_new_branches(source, claim.promise, call, seed, lambda: known)


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


def not_clipped(rows, rng):
    return sum(second for _, second in rows) + rng.laplace(scale=0.2)


@pytest.mark.slow
def test_the_field_that_matters_is_named():
    rows = [(0.1, 0.2), (0.3, -0.1), (0.0, 0.2)]
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [rows], "n_jobs": 1, "seed": 1}
    result = audit(not_clipped, **claim)
    assert re.match(r"record\[1\] = -?\d", result.beyond.outside)


@pytest.mark.slow
def test_a_sum_of_flags_without_its_clip_is_told():
    """Where the examples are 0 and 1, a far value is within the noise; a farther one shows it."""

    def total(flags, rng):
        return sum(flags) + rng.laplace(scale=100.0)

    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[0, 1, 1, 0]], "n_jobs": 1}
    result = audit(total, **claim, seed=0)
    assert not result.violated
    assert result.beyond.violated


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


FRAME = pd.DataFrame(
    {
        "user_id": list("aabccc"),
        "age": np.array([1, 2, 3, 4, 5, 120], dtype=np.int8),
        "city": pd.Categorical(list("xyxxyx"), categories=list("xyz")),
    }
)
CLAIMS = [
    {"neighbors": add_remove_one(unit="user_id", rows=3), "inputs": [FRAME]},
    {"neighbors": replace_one(unit="user_id", rows=3), "inputs": [FRAME]},
    {"neighbors": "replace_special", "inputs": [[3, 1, None, 2]]},
    {"neighbors": "add_remove_one", "inputs": [{3, 1}, {2}]},
    {"neighbors": "add_remove_one", "inputs": [np.array([3, 255], dtype=np.uint8)]},
    {"neighbors": "one_query", "inputs": queries(3)},
]


def scrambled(data: Any, rng: np.random.Generator) -> float:
    """Return an answer that moves farther on some pairs than on others."""
    content = str(data.to_dict("list") if isinstance(data, pd.DataFrame) else data)
    if len(data) == 4:
        content += "4"
    return float(zlib.crc32(content.encode()) % 1_000) + rng.laplace()


def proposed(keywords: dict[str, Any], most: int, seed: int = 5) -> tuple[Any, list[Pair]]:
    (claim,) = expand({"eps": 1.0, **keywords})
    promise = resolve_promise(claim.promise)
    settings = Settings(seed=seed)
    given = make_pair_source(claim, seed, "inputs=...")
    source = widen_source(given, promise, prepare(scrambled, claim.arguments), settings)
    pairs: list[Pair] = []
    while len(pairs) < most and (pair := source.propose_pair()) is not None:
        pairs.append(pair)
    return promise.relation, pairs


@pytest.mark.slow
@pytest.mark.parametrize("keywords", CLAIMS, ids=lambda k: "-".join(map(str, k.values()))[:40])
def test_it_is_what_the_claim_speaks_of(keywords: dict[str, Any]) -> None:
    found = (proposed(keywords, 60, seed) for seed in range(5, 20))
    relation, pairs = next((relation, pairs) for relation, pairs in found if pairs)
    for pair in pairs:
        assert not relation.fault(pair.d1, pair.d2), pair
        if relation.name == "one_query":
            assert min(*pair.d1, *pair.d2) >= 0, "counts are not negative"
            assert "(the patterns have 0 to 2)" in pair.beyond
        for data in (pair.d1, pair.d2):
            if getattr(relation, "rows", None):
                assert max(Counter(data["user_id"]).values(), default=0) <= 3
            if isinstance(data, pd.DataFrame):
                assert list(data.dtypes) == list(FRAME.dtypes)
