"""The sentence that says how far one record moves the answer."""

from __future__ import annotations

import math

import pytest

from pytest_dp import audit
from pytest_dp.auditors.presentation import movement_sentence
from pytest_dp.data.relations import Pair
from pytest_dp.privacy import ApproximateDP
from pytest_dp.results.screened import Moved, Movement, Screened

PAIR = Pair([120], [])


def screened(*movements):
    return Screened(2_143, largest=tuple(Moved(PAIR, movement) for movement in movements))


@pytest.mark.parametrize(
    ("movements", "said"),
    [
        ([Movement(120.0, answer=120.0, scale=1.0)], "by up to 120 (of 2,143 pairs tried)"),
        ([Movement(math.inf), Movement(9.0, answer=18.0, scale=2.0)], "the noise is enough for 2"),
        ([Movement(2.0, answer=2.0, scale=1.0)], ""),
        ([Movement(9.0, answer=18.0)], ""),
        ([Movement(math.inf)], ""),
        ([], ""),
    ],
    ids=["far", "beside-infinite", "a-little", "unknown-noise", "infinite", "none"],
)
def test_says_how_far_the_answer_moves(movements, said):
    sentence = movement_sentence(screened(*movements), ApproximateDP(1.0, 0.0))
    assert said in sentence if said else sentence == ""


def not_clipped(values, rng):
    return sum(values) + rng.laplace(scale=1.0)


def test_a_violation_says_how_far_the_answer_moves():
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[0, 1, 120, 3]]}
    result = audit(not_clipped, **claim, seed=1, n_jobs=1)
    assert any(
        "changes the answer by up to 120" in text for text in result.counterexample.diagnosis
    )
