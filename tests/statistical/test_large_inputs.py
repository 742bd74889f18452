"""A table of a thousand rows: noise for a row where a user has several is found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_dp import add_remove_one, audit

USERS = np.random.default_rng(0).integers(0, 400, 1_000)
VISITS = pd.DataFrame({"user_id": USERS, "paid": np.arange(1_000) % 97, "city": ["a", "b"] * 500})


@pytest.mark.usefixtures("_without_blame")
def test_noise_for_rows_is_found_to_be_too_small_for_users():
    def for_rows(frame, rng):
        return len(frame) + rng.laplace(scale=1.0)

    claim = {"eps": 1.0, "inputs": [VISITS], "neighbors": add_remove_one(unit="user_id")}
    result = audit(for_rows, **claim, seed=1, n_jobs=1, max_seconds=100)
    assert result.verdict == "violated"
    assert "rows of user_id=" in result.counterexample.difference
