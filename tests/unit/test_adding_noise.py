"""A kind of noise is added in one place: an entry of the catalogue of draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from coupling import vectorized

import pytest_dp
from pytest_dp.explain.counted import with_more_noise
from pytest_dp.running import laws
from pytest_dp.running.generator_stand_ins import RNG, Request
from pytest_dp.running.instrumented import Draw
from pytest_dp.running.laws import Arguments, DrawMethod, Family, Law, Standard

TRIANGULAR = Family(
    "triangular",
    log_below=lambda x, mode: scipy.stats.triang(mode).logcdf(x),
    log_above=lambda x, mode: scipy.stats.triang(mode).logsf(x),
    log_density=lambda x, mode: scipy.stats.triang(mode).logpdf(x),
    draws=lambda generator, mode, count: generator.triangular(0, mode, 1, count),
    support=lambda _: (0.0, 1.0),
    bulk=lambda _: (0.0, 1.0),
    edges=lambda mode: (0.0, mode, 1.0),
    centre=lambda mode: mode,
)


def standard(given: Arguments) -> Standard:
    left, mode, right = (float(given[name]) for name in ("left", "mode", "right"))
    return Law(TRIANGULAR, (mode - left) / (right - left)), right - left, left


@pytest.fixture(autouse=True)
def added(monkeypatch):
    monkeypatch.setitem(laws.NUMPY, "triangular", DrawMethod(standard, "free"))


@pytest.mark.slow
def test_tails_that_end_have_no_bound():
    def noisy(x, rng):
        return x + rng.triangular(-3, 0, 5)

    estimate = pytest_dp.estimate(noisy, pairs=[(0.0, 1.0)], max_seconds=20, seed=1)
    assert not np.isfinite(estimate.value) or estimate.mode == "sampled"
    low, high = estimate.profile(0.0)
    assert 0.0 < low <= 15 / 64 <= high  # the total variation, by integration


def test_rows_are_coupled_and_blame_knows_its_scale():
    def mechanism(data, rng, size):
        return sum(data) + rng.triangular(-3, 0, 5, size)

    assert vectorized(mechanism).can_couple()
    draw = Draw(0, Request(RNG, "triangular", (-3, 0, 5), {}), (), 1.0)
    assert with_more_noise(draw) == pytest.approx(4.0)
