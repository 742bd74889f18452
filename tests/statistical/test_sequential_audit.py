"""Whole audits by betting: how many samples they take until a claim is refuted."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import Sequential, audit

pytestmark = pytest.mark.usefixtures("_without_blame")


# `limit`: pairs that each test with alpha = 1e-6 and power one needs on average: ln(1/alpha) by the
# least divergence of the outputs from those of a mechanism that keeps the claim.
@pytest.mark.canary
@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize(
    ("claimed", "ratio", "limit", "coupled", "most"),
    [
        (1.0, 1.5, 734, False, 2.0),
        (1.0, 1.5, 734, True, 1.3),
        (0.1, 2.0, 6_316, True, 0.3),
    ],
)
def test_laplace_noise_that_is_too_small_takes_few_samples(claimed, ratio, limit, coupled, most):
    common = {
        "pairs": [(0.0, 1.0)],
        "vectorized": "size",
        "n_jobs": 1,
        "method": Sequential(coupled=coupled),
    }

    def plain(answer, scale, rng, size):
        return answer + rng.laplace(scale=scale, size=size)

    results = [
        audit(plain, eps=claimed, params={"scale": 1 / (claimed * ratio)}, seed=seed, **common)
        for seed in range(3)
    ]
    assert all(result.violated for result in results)
    assert np.median([result.bet_samples / 2 for result in results]) <= most * limit
