"""The search by gradients: neighbours by vectors, what restarts find, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from exact import call_of

from benchmarks import mechanisms
from benchmarks.dpfinder import of_sparse_vector
from pytest_dp import ClaimError, audit, queries
from pytest_dp.claiming.claim import expand
from pytest_dp.methods.dpfinder import ByGradients
from pytest_dp.methods.families import families_of
from pytest_dp.proposers.by_movement import Clock

TABLE = [{"age": 30, "group": "a", "paid": 0.5}, {"age": 50, "group": "b", "paid": 2.0}]


def promise_of(**keywords):
    return expand({"eps": 1.0, **keywords})[0].promise


@pytest.mark.parametrize(
    ("inputs", "relation"),
    [
        (queries(3, 5), "all_queries"),
        ([[0.0, 0.5, 1.0], [0.2]], "add_remove_one"),
        ([np.array([[0.5, 1.0], [2.0, 3.0]])], "add_remove_one"),
        ([TABLE], "add_remove_one"),
    ],
)
def test_vectors_are_neighbours_within_bounds(inputs, relation):
    """Whatever the vector; numbers that were whole in all examples stay whole."""
    promise = promise_of(inputs=inputs, neighbors=relation)
    families = families_of(promise, "this test")
    rng, seen = np.random.default_rng(1), set()
    for _ in range(30):
        family = families(rng)
        vector = family.draw_vector(rng, 0.0, 10.0)
        assert (vector >= family.low).all()
        assert (vector <= family.high).all()
        pair = family.pair(vector)
        if pair is None:  # rounded, nothing differs
            continue
        assert not promise.relation.fault(pair.d1, pair.d2)
        seen.add(repr(pair))
        if isinstance(inputs[0] if isinstance(inputs, list) else 0, list) and "paid" in repr(pair):
            for row in (*pair.d1, *pair.d2):
                assert 30 <= row["age"] <= 50
                assert isinstance(row["age"], int)
                assert 0.5 <= row["paid"] <= 2.0
    assert len(seen) >= 10


WITHOUT_NUMBERS = {"inputs": [["a", 1.0], ["b"]], "neighbors": "replace_one"}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"method": "dpfinder", **WITHOUT_NUMBERS}, "method='dpfinder' moves .* have none that"),
        ({"search": ["gradient"], **WITHOUT_NUMBERS}, "search='gradient' moves .* have none that"),
        ({"method": "dpfinder", "pairs": [([0.0], [1.0])]}, "pairs=.* leaves none to move"),
    ],
)
def test_inputs_without_numbers_are_refused(claim, said):
    with pytest.raises(ClaimError, match=rf"{said}.*\. Allowed: inputs=queries"):
        audit(lambda data, rng: len(data) + rng.laplace(), eps=1.0, seed=1, **claim)


@pytest.mark.slow
def test_proposed_pairs_are_neighbours_that_say_where_they_come_from():
    promise = promise_of(inputs=queries(2), neighbors="all_queries")
    call = call_of(mechanisms.svt4, eps=1.0, threshold=20.0)
    proposer = ByGradients(promise, call, Clock(60.0), seed=1)
    pairs = list(proposer.propose())
    assert 4 <= len(pairs) <= 8
    losses = []
    for pair in pairs:
        assert not promise.relation.fault(pair.d1, pair.d2)
        assert "gradient" in pair.origin
        p, q = (
            of_sparse_vector([x - 20 for x in d], [False, True], 4.0, 4 / 3)
            for d in (pair.d1, pair.d2)
        )
        losses.append(abs(math.log(p / q)))
    assert max(losses) > 1.0, "around the threshold, which is an argument"
    assert not list(proposer.propose()), "that was all"


def test_mechanisms_that_refuse_arrays_propose_nothing():
    written = call_of(lambda data, rng: f"{data[0] + rng.laplace():.1f}")
    promise = promise_of(inputs=queries(2), neighbors="all_queries")
    proposer = ByGradients(promise, written, Clock(60.0), seed=1)
    assert not list(proposer.propose())
    assert proposer.notes()[0].startswith("no gradient was followed, as ")
