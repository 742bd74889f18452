"""Claims of every kind, audited by counts: kept promises pass, broken ones do not, bounds hold.

How often a bound at the claim is too high is summed over all counts elsewhere:
`test_events_by_enumeration`.
"""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import DPSniper, PrivacyProfile, RenyiDP, audit
from pytest_dp.privacy import GaussianDP, read_guarantee


def of_noise(sigma):
    """What Gaussian noise keeps, exactly, if one record changes the sum by 1, as keywords."""
    mu = GaussianDP(1 / sigma)
    return {
        "delta": {"eps": 0.5, "delta": mu.delta_at(0.5)},
        "mu": {"mu": mu.mu},
        "rho": {"rho": 0.5 / sigma**2},
        "rdp": {"guarantee": RenyiDP({2.0: 1 / sigma**2})},
        "profile": {"guarantee": PrivacyProfile(mu.delta_at)},
    }


SIGMA = 1.25
KEPT = {name: read_guarantee(keywords) for name, keywords in of_noise(SIGMA).items()}


pytestmark = pytest.mark.usefixtures("_without_blame")


def mechanism(sigma):
    def noisy_sum(d, rng, size):
        return sum(d) + rng.normal(scale=sigma, size=size)

    return noisy_sum


def audited(mechanism, keywords, **more):
    common = {"pairs": [([1], [0])], "vectorized": True, "max_samples": 40_000, "n_jobs": 1}
    return audit(mechanism, **keywords, **common, **more)


@pytest.mark.canary
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("delta", "statdp"),
        ("mu", "dpsniper"),
        ("rho", "statdp"),
        ("rdp", DPSniper(c=0.2)),
        ("profile", "dpsniper"),
        ("delta", DPSniper(coupled=False)),
    ],
    ids=str,
)
def test_half_of_the_noise_is_caught_and_all_of_it_passes(name, method):
    claim = KEPT[name]
    keywords = of_noise(SIGMA)[name]
    kept = audited(mechanism(SIGMA), keywords, seed=1, method=method)
    assert not kept.violated
    assert kept.lower <= claim.claimed
    assert kept.p_value > kept.alpha
    assert kept.resolution > claim.claimed
    broken = audited(mechanism(SIGMA / 2), keywords, seed=1, method=method)
    assert broken.violated
    assert broken.p_value <= broken.alpha
    truth = read_guarantee(of_noise(SIGMA / 2)[name])
    if name in ("mu", "rho", "rdp"):
        assert claim.claimed < broken.lower < truth.claimed
    example = broken.counterexample
    assert example.lower > claim.claimed
    assert example.counts[0] > example.counts[1]
    if name == "delta":
        assert claim.delta < example.delta_lower < GaussianDP(2 / SIGMA).delta_at(0.5)
    else:
        assert example.delta_lower is None


@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_a_leak_beside_much_noise_breaks_delta_alone(method):
    """One run in 50 tells the record: within ε at no price, beside δ = 0.05 allowed."""

    def leaky(d, rng, size):
        out = sum(d) + rng.normal(scale=20.0, size=size)
        return np.where(rng.random(size) < 0.02, 1_000.0 * d[0], out)

    assert not audited(leaky, {"eps": 0.5, "delta": 0.05}, seed=3, method=method).violated
    broken = audited(leaky, {"eps": 0.5, "delta": 0.005}, seed=3, method=method)
    assert broken.violated
    assert broken.lower > 0.5
    assert 0.005 < broken.counterexample.delta_lower < 0.02
