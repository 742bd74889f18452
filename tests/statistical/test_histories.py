"""Evidence over many runs: what keeps its claim is left alone, a small bug is found in the end."""

from __future__ import annotations

import pytest
from boundary import most

from benchmarks.type_one_histories import ALPHA, at_the_claim, broken


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Laplace", "Gaussian, rho"])
def test_histories_at_the_claim_are_rejected_no_more_often_than_alpha(name):
    """More of them are run by `benchmarks.type_one_histories`."""
    rejected = sum(at_the_claim(name, seed) for seed in range(6))
    assert rejected <= most(6, ALPHA)


@pytest.mark.nightly
@pytest.mark.slow
def test_eight_percent_are_found_over_many_runs_and_in_none_of_them():
    # The best bet on one event gains (1 - e^-0.08)^2 / 4 / (2 * 0.85) nats a pair on average, so
    # that 1e6 takes about 32,000 samples. Each run learns anew what to bet on.
    refuted, runs, samples = broken(seed=1, samples=20_000, times=1.08)
    assert refuted
    assert 1 < runs <= 7
    assert samples < 2 * 32_000
