"""Evidence over many runs: what keeps its claim is left alone, a small bug is found in the end."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from benchmarks.type_one_histories import ALPHA, at_the_claim, broken

HISTORIES = 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Laplace", "Gaussian, rho"])
def test_histories_at_the_claim_are_rejected_no_more_often_than_alpha(name):
    rejected = sum(at_the_claim(name, seed) for seed in range(HISTORIES))
    assert rejected <= binom.ppf(1 - 1e-4, HISTORIES, ALPHA)


@pytest.mark.slow
def test_two_percent_are_found_over_many_runs_and_in_none_of_them():
    # The best bet on one event gains (1 - e^-0.02)^2 / 4 / (2 * 0.85) nats a pair on average, so
    # that 1e6 takes about 480,000 samples: 13 runs.
    refuted, runs, samples = broken(seed=1)
    assert refuted
    assert 2 < runs <= 26
    assert samples < 2 * 480_000
