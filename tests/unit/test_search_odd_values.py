"""Values that no example holds, tried in every field, and told as beyond the examples."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from pytest_dp import audit
from pytest_dp.proposers.odd_values import (
    far_values,
    missing_values,
)

INFINITE = [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("values", "far", "missing"),
    [
        pytest.param([0.0, 1.0], [10.0, -10.0], [math.nan, *INFINITE, None], id="flags"),
        pytest.param([3, 250], [10_000, -10_000], [None], id="whole"),
        pytest.param([math.nan, 2.5], [100.0, -100.0], [math.nan, *INFINITE, None], id="nan"),
        pytest.param([None, 7], [100, -100], [None], id="none"),
        pytest.param(["a", "b"], [], ["", None], id="texts"),
        pytest.param(["20", "5", None], ["1000", "-1000"], ["", None], id="texts-of-numbers"),
        pytest.param(["2.5", "5"], ["100.0", "-100.0"], ["", None], id="texts-of-floats"),
        pytest.param([("a",)], [], [], id="others"),
    ],
)
def test_odd_values_of_a_field(values, far, missing):
    assert far_values(values) == far
    assert str(missing_values(values)) == str(missing)


FRAME = pd.DataFrame({"name": ["ann", "bob"], "pay": [1200.0, 40.0]})


CLAIM = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [FRAME], "n_jobs": 1, "seed": 1}


def not_clipped(rows, rng):
    return sum(second for _, second in rows) + rng.laplace(scale=0.2)


@pytest.mark.slow
def test_the_field_that_matters_is_named():
    rows = [(0.1, 0.2), (0.3, -0.1), (0.0, 0.2)]
    result = audit(not_clipped, **{**CLAIM, "inputs": [rows]})
    assert re.match(r"record\[1\] = -?\d", result.beyond.outside)
