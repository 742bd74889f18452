"""Whole audits by betting: how many samples they take, and a correct mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cases import CORPUS
from benchmarks.resolution import untraced
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


@pytest.mark.usefixtures("_by_samples")
def test_a_correct_mechanism_of_the_literature_passes():
    case = next(case for case in CORPUS if case.name == "SVT1")
    keywords = {**case.keywords(0.7, many=True), "max_samples": 30_000}
    result = audit(untraced(case.vectorized), **keywords, seed=1, n_jobs=1)
    assert result.verdict == "no violation"
    assert 0.7 < result.resolution < 2.5
    assert result.eps_lower < 0.7
    assert result.counterexample is None
