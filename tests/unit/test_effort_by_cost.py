"""How often a mechanism may run by default, and what keeps an audit from ending early."""

from __future__ import annotations

import pytest
from scipy.special import ndtri

from pytest_dp import audit
from pytest_dp.claiming.settings import VECTORIZED_SAMPLES

NEEDED = 3.7303
"""The deviation of Gaussian noise that (1, 1e-5) needs at sensitivity 1 (analytic mechanism)."""
PAIR = {"pairs": [([0], [1])], "n_jobs": 1, "vectorized": "size"}


def traced(data, scale, rng, size):
    return data[0] + rng.normal(scale=scale, size=size)


def untraced(data, scale, rng, size):
    return data[0] + scale * ndtri(rng.random(size))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [traced, untraced])
def test_gaussian_noise_a_fifth_too_small_under_a_delta_is_found_by_default(mechanism):
    common = {"eps": 1.0, "delta": 1e-5, "seed": 1, "max_seconds": 200, **PAIR}
    result = audit(mechanism, params={"scale": 0.8 * NEEDED}, **common)
    assert result.violated
    assert 400_000 < result.samples <= VECTORIZED_SAMPLES


@pytest.mark.nightly
@pytest.mark.slow
def test_gaussian_noise_that_is_enough_is_not():
    common = {"eps": 1.0, "delta": 1e-5, "seed": 1, "max_seconds": 200, **PAIR}
    assert not audit(untraced, params={"scale": 1.001 * NEEDED}, **common).violated


@pytest.mark.nightly
@pytest.mark.slow
def test_an_audit_does_not_end_early_where_gaussian_noise_is_likely_too_small():
    """Under a delta it ends some runs after its margin, where nothing is above the claim."""
    common = {"eps": 1.0, "delta": 1e-5, "seed": 1, "max_samples": 300_000, **PAIR}
    result = audit(traced, params={"scale": 0.9 * NEEDED}, margin=2.0, **common)
    assert result.strength not in ("exact", "aligned")
    assert any("claim mu=0.268: it asks the same of Gaussian" in note for note in result.notes)
    assert result.samples > 250_000


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_a_violation_by_gaussian_noise_names_the_claim_that_takes_fewer_runs():
    said = "claim mu=0.268: it asks the same of Gaussian noise, and takes fewer runs"
    claim = {"eps": 1.0, "delta": 1e-5, "seed": 1, **PAIR}
    by_delta = audit(traced, params={"scale": 0.4 * NEEDED}, **claim)
    by_mu = audit(traced, params={"scale": 0.4 * NEEDED}, mu=0.268, seed=1, **PAIR)
    assert by_delta.violated
    assert by_mu.violated
    assert by_mu.bet_samples < by_delta.bet_samples / 4
    assert (said in by_delta.notes, said in by_mu.notes) == (True, False)
