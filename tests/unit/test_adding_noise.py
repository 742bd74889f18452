"""A kind of noise is added in one place: an entry of the catalogue of draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from coupling import vectorized

import pytest_dp
from pytest_dp.explain.more_noise import with_more_noise
from pytest_dp.running import catalogue
from pytest_dp.running.catalogue import Arguments, Kind, Standard
from pytest_dp.running.laws import Family, Law
from pytest_dp.running.requests import RNG, Request
from pytest_dp.running.tape import Draw


@pytest.fixture(scope="module", autouse=True)
def _laws() -> None:
    """Load the laws of scipy before a mechanism draws from one."""
    assert scipy.stats.norm


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
    monkeypatch.setitem(catalogue.NUMPY, "triangular", Kind(standard, "free"))


def noisy(x, rng):
    return x + rng.triangular(-3, 0, 5)


@pytest.mark.slow
def test_tails_that_end_have_no_bound():
    estimate = pytest_dp.estimate(noisy, pairs=[(0.0, 1.0)], max_seconds=20, seed=1)
    assert not np.isfinite(estimate.value) or estimate.mode == "sampled"
    low, high = estimate.profile(0.0)
    assert 0.0 < low <= 15 / 64 <= high  # the total variation, by integration


def test_what_is_compared_is_enumerated():
    estimate = pytest_dp.estimate(lambda x, rng: bool(noisy(x, rng) > 0), pairs=[(0.0, 1.0)])
    p, q = (scipy.stats.triang(3 / 8, x - 3, 8).cdf(0) for x in (0.0, 1.0))
    assert estimate.mode == "exact"
    assert estimate.value == pytest.approx(max(np.log(p / q), np.log((1 - q) / (1 - p))))


def test_comparisons_are_integrated():
    def larger(x, rng):
        return bool(x + rng.triangular(-3, 0, 5) > rng.laplace())

    estimate = pytest_dp.estimate(larger, pairs=[(0.0, 1.0)], max_seconds=20, seed=1)
    noise = scipy.stats.triang(3 / 8, -3, 8)

    def probability(x):
        def above(y):
            return noise.pdf(y) * scipy.stats.laplace.cdf(y + x)

        return scipy.integrate.quad(above, -3, 5, points=[-1, 0])[0]

    true = probability(0), probability(1)
    losses = np.log([true[1] / true[0], (1 - true[0]) / (1 - true[1])])
    assert estimate.mode == "exact"
    assert estimate.value == pytest.approx(losses.max(), rel=1e-6)


def test_rows_are_coupled():
    def mechanism(data, rng, size):
        return sum(data) + rng.triangular(-3, 0, 5, size)

    assert vectorized(mechanism).can_couple()


def test_blame_knows_its_scale():
    draw = Draw(0, Request(RNG, "triangular", (-3, 0, 5), {}), (), 1.0)
    assert with_more_noise(draw) == pytest.approx(4.0)
