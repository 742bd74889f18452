"""`estimate`: by enumeration, in closed form, or by samples, with honest bands."""

from __future__ import annotations

import math

import pytest

from pytest_dp import ClaimError, estimate


def noisy(x, rng):
    return x + rng.laplace(scale=2)


def coin(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def exponential_of_noise(x, rng):
    return math.exp(x + rng.laplace(scale=2))


def test_closed_form():
    found = estimate(noisy, pairs=[(0, 1), (0, 2)])
    assert (found.value, found.mode, found.pair) == (pytest.approx(1.0), "analytic", (0, 2))
    low, high = found.profile(0.5)
    assert low <= 1 - math.exp(-0.25) <= high


def test_enumerated():
    found = estimate(coin, pairs=[(0, 1)])
    assert (found.value, found.mode) == (pytest.approx(math.log(3)), "exact")
    assert found.profile(0.0) == (pytest.approx(0.5), pytest.approx(0.5))


def test_by_samples():
    found = estimate(exponential_of_noise, pairs=[(0, 1)], seed=1, max_samples=20_000)
    assert found.mode == "sampled"
    assert found.value - 3 * found.error < 0.5 < found.value + 3 * found.error + 0.1
    assert "cannot be traced" in found.reason
    low, high = found.profile(0.2)
    assert low <= 1 - math.exp(-0.15) <= high == 1.0


def test_nothing_is_claimed():
    with pytest.raises(ClaimError, match="takes no eps="):
        estimate(noisy, eps=1.0, pairs=[(0, 1)])
    with pytest.raises(ClaimError, match="inputs= or pairs="):
        estimate(noisy)
    with pytest.raises(ValueError, match="at least 0"):
        estimate(noisy, pairs=[(0, 1)]).profile(-1.0)
