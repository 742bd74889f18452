"""The sentence that says how far one record moves the answer."""

from __future__ import annotations

from pytest_dp import audit


def not_clipped(values, rng):
    return sum(values) + rng.laplace(scale=1.0)


def test_a_violation_says_how_far_the_answer_moves():
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[0, 1, 120, 3]]}
    result = audit(not_clipped, **claim, seed=1, n_jobs=1)
    assert any(
        "changes the answer by up to 120" in text for text in result.counterexample.diagnosis
    )
