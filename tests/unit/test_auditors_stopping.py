"""Doubts that keep an audit from stopping at its margin."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pytest_dp import audit
from pytest_dp.auditors.stopping import may_release
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP

PAIRS = 4_000


def pair_with(keys_on_d, keys_on_d2):
    """Noisy counts on both inputs, some of them beside a count that the others do not release."""
    rng = np.random.default_rng(1)
    outputs = [
        {"a": rng.laplace()} | ({"b": rng.laplace()} if run < keys else {})
        for keys in (keys_on_d, keys_on_d2)
        for run in range(PAIRS)
    ]
    on_d = np.arange(2 * PAIRS) < PAIRS
    seen = SimpleNamespace(extract=None, table=lambda: (tabulate(outputs), on_d))
    return SimpleNamespace(outputs=seen)


@pytest.mark.parametrize(
    ("keys", "eps", "delta", "doubt"),
    [
        ((20, 0), 1.0, 1e-4, True),
        ((0, 20), 1.0, 0.0, True),
        ((8, 0), 1.0, 1e-4, False),  # by chance on D alone, once in 12 pairs that keep the claim
        ((20, 1), 1.0, 1e-4, False),
        ((20, 0), 1.0, 2e-3, False),  # twice as often as delta
        ((20, 0), 3.0, 1e-4, False),  # e^3 times as often is allowed
    ],
)
def test_a_part_that_is_released_now_and_then_on_one_input_is_in_doubt(keys, eps, delta, doubt):
    assert may_release(pair_with(*keys), ApproximateDP(eps, delta)) is doubt


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_bets_that_gain_under_a_delta_go_on(seed):
    """An audit that ended at its margin, where it would catch more, missed both."""

    def release_keys(keys, rng):
        return {key: int(rng.integers(5)) for key in keys if rng.random() < 0.3}

    claim = {"rho": 0.5, "delta": 0.1587, "pairs": [(["a"], [])], "n_jobs": 1}
    assert audit(release_keys, **claim, seed=seed).violated
