"""Data that cannot be compared, and integers that no float holds, cost no verdict."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from pytest_dp import audit
from pytest_dp.explain.source import written_budget

HUGE = 10**400


def in_a_variable(data, rng):
    limit = HUGE
    return sum(x < limit for x in data) + rng.laplace(scale=0.1)


def in_the_output(data, rng):
    return [HUGE * len(data), {"n": HUGE}, len(data) + rng.laplace(scale=0.1)]


def in_a_parameter(data, rng, limit=HUGE):
    return sum(x < limit for x in data) + rng.laplace(scale=0.1)


def in_the_input(data, rng):
    return len(data) + rng.laplace(scale=0.1)


@pytest.mark.slow
@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (in_a_variable, {"inputs": [[0], [0, 1]]}),
        (in_the_output, {"inputs": [[0], [0, 1]]}),
        (in_a_parameter, {"inputs": [[0], [0, 1]], "params": {"limit": HUGE}}),
        (in_the_input, {"inputs": [[0], [0.5, -HUGE, HUGE]]}),
        (in_the_input, {"inputs": [pd.DataFrame({"x": [HUGE, 1]}, dtype=object)]}),
    ],
)
def test_integers_beyond_floats(mechanism, claim):
    given = {"neighbors": "add_remove_one", "max_samples": 6_000, "seed": 3, "n_jobs": 1, **claim}
    assert audit(mechanism, eps=1.0, **given).verdict == "violated"


def test_a_budget_beyond_floats_is_read():
    def spends(data, rng, epsilon=HUGE):
        return rng.laplace(scale=1 / epsilon)

    assert written_budget(spends, {}, 1.0) == math.inf
