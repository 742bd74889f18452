"""Claims that bound a divergence: what is reported of it stays below the truth, and comes close."""

from __future__ import annotations

import numpy as np
import pytest
from boundary import most

from pytest_dp import RenyiDP, Sequential, audit
from pytest_dp.report.violation import violation

ALPHA = 0.05
MU = 0.5


pytestmark = pytest.mark.usefixtures("_without_blame")


def gaussian(records, sigma, rng, size):
    return len(records) + rng.normal(scale=sigma, size=size)


def audited(seed, noise, coupled, max_samples=8_000, **claim):
    return audit(
        gaussian,
        pairs=[([0], [])],
        params={"sigma": noise / MU},
        vectorized="size",
        alpha=ALPHA,
        max_samples=max_samples,
        method=Sequential(coupled=coupled),
        seed=seed,
        n_jobs=1,
        **claim,
    )


CLAIMS = {
    "mu": ({"mu": MU}, lambda noise: MU / noise),
    "rho": ({"rho": MU**2 / 2}, lambda noise: MU**2 / 2 / noise**2),
    "rdp": ({"guarantee": RenyiDP({4: 2 * MU**2})}, lambda noise: 2 * MU**2 / noise**2),
}


CLOSE = {"mu": 0.75, "rho": 0.5, "rdp": 0.4}
"""Share of the truth that so few samples show; of the order 4, which rare outputs have, less."""


@pytest.mark.canary
@pytest.mark.parametrize(("name", "coupled"), [("mu", True), ("rho", False), ("rdp", True)])
def test_half_of_the_noise_is_caught_and_bounded_and_all_of_it_passes(name, coupled):
    claim, truth = CLAIMS[name]
    right = audited(0, 1.0, coupled, 2_000, **claim)
    assert not right.violated
    assert right.lower <= truth(1.0)
    results = [audited(seed, 0.5, coupled, **claim) for seed in range(5)]
    assert all(result.violated for result in results)
    lower = np.array([result.lower for result in results])
    assert np.sum(lower > truth(0.5)) <= most(len(results), ALPHA)
    assert np.median(lower) > CLOSE[name] * truth(0.5)
    assert all(result.eps_lower is None for result in results)


def test_the_report_names_the_divergence():
    result = audited(3, 0.5, True, rho=MU**2 / 2)
    assert result.counterexample.divergence.shown.order == 1
    assert result.lower == result.counterexample.divergence.lower
    text = " ".join(violation(result).split())
    assert "differ by a Kullback-Leibler divergence of at least 0." in text
    assert "and the claim allows 0.125: rho >= 0." in text
