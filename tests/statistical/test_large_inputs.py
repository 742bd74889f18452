"""Tables of a thousand rows: noise for a row where a user has several is found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_dp import add_remove_one, audit

USERS = np.random.default_rng(0).integers(0, 400, 1_000)
VISITS = pd.DataFrame({"user_id": USERS, "paid": np.arange(1_000) % 97, "city": ["a", "b"] * 500})
MOST = int(VISITS["user_id"].value_counts().max())
CLAIM = {"eps": 1.0, "inputs": [VISITS]}
BY_USER = add_remove_one(unit="user_id")
CLAIM |= {"n_jobs": 1, "max_seconds": 100}


def for_rows(frame, rng):
    return len(frame) + rng.laplace(scale=1.0)


def for_users(frame, rng):
    return len(frame) + rng.laplace(scale=MOST)


@pytest.mark.usefixtures("_without_blame")
def test_noise_for_rows_is_found_to_be_too_small_for_users():
    result = audit(for_rows, **CLAIM, neighbors=BY_USER, seed=1)
    assert result.verdict == "violated"
    assert "rows of user_id=" in result.counterexample.difference


@pytest.mark.nightly
@pytest.mark.slow
def test_noise_for_users_reaches_the_margin_on_the_pairs_tried():
    result = audit(
        for_users,
        **CLAIM,
        neighbors=add_remove_one(unit="user_id", rows=MOST),
        search=(),
        margin=2.0,
        seed=1,
    )
    assert result.verdict == "no violation"
    assert result.resolution <= 2.0
    assert "of 1,000: extremes of each column, one of each category" in str(result.notes)
