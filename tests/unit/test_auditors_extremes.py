"""Data that cannot be compared, and integers that no float holds, cost no verdict."""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_dp import audit

HUGE = 10**400


def in_the_output(data, rng):
    return [HUGE * len(data), {"n": HUGE}, len(data) + rng.laplace(scale=0.1)]


def in_the_input(data, rng):
    return len(data) + rng.laplace(scale=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (in_the_output, {"inputs": [[0], [0, 1]]}),
        (in_the_input, {"inputs": [pd.DataFrame({"x": [HUGE, 1]}, dtype=object)]}),
    ],
)
def test_integers_beyond_floats(mechanism, claim):
    given = {"neighbors": "add_remove_one", "max_samples": 6_000, "seed": 3, "n_jobs": 1, **claim}
    assert audit(mechanism, eps=1.0, **given).verdict == "violated"


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_events_are_as_round_as_they_can_be_without_proving_less():
    claim = {"eps": 1.0, "pairs": [([1, 0, 1], [1, 0])], "max_seconds": 600}
    result = audit(lambda d, rng: sum(d) + rng.laplace(scale=0.5), **claim, seed=0, n_jobs=1)
    assert str(result.counterexample.event) in ("output < 1.0", "output >= 2.0")
