"""`estimate`: by enumeration, in closed form, or by samples, with honest bands."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_dp import ClaimError, MechanismError, estimate


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


def other_when_traced(x, rng):
    noise = rng.laplace()
    return x + (noise if type(noise) is float else 2 * noise)


def test_what_real_runs_do_not_bear_out_is_estimated_by_samples():
    found = estimate(other_when_traced, pairs=[(0, 1)], seed=1, max_samples=10_000)
    assert found.mode == "sampled"
    assert "real runs give other outputs" in found.reason
    assert estimate(other_when_traced, pairs=[(0, 1)], check=False).value == 0.5


def test_what_only_a_traced_run_raises_is_a_reason():
    def rows(x, rng, size):
        noisy = np.exp2(x + rng.laplace(size=size))
        if noisy.dtype != np.float64:
            raise IndexError
        return np.log2(noisy)

    found = estimate(rows, pairs=[(0, 1)], vectorized="size", seed=1, max_samples=5_000)
    assert found.mode == "sampled"
    assert found.value == pytest.approx(1.0, abs=0.3)


def test_vectorised_with_parameters():
    def rows(x, scale, rng, size):
        return np.asarray(x) + rng.laplace(scale=scale, size=(size, 2))

    claim = {"pairs": [([0, 0], [1, 1])], "params": {"scale": 4.0}, "vectorized": "size"}
    found = estimate(rows, **claim)
    assert (found.value, found.mode) == (pytest.approx(0.5), "analytic")


def test_inputs_and_neighbours():
    def total(records, generator):
        return sum(records) + generator.laplace(scale=5)

    found = estimate(
        total, inputs=[[1, 2, 3]], neighbors="add_remove_one", rng="generator", max_seconds=5
    )
    assert found.mode == "analytic"
    assert found.pairs > 1
    assert found.value == pytest.approx(0.6)


def test_nothing_is_claimed():
    with pytest.raises(ClaimError, match="takes no eps="):
        estimate(noisy, eps=1.0, pairs=[(0, 1)])
    with pytest.raises(ClaimError, match="inputs= or pairs="):
        estimate(noisy)
    with pytest.raises(ValueError, match="at least 0"):
        estimate(noisy, pairs=[(0, 1)]).profile(-1.0)


def test_clamped_at_both_ends():
    def clamped(data, rng):
        return min(max(data[0] + rng.laplace(), 0.0), 1.0)

    assert estimate(clamped, pairs=[([0.0], [1.0])]).value == pytest.approx(1.0, abs=1e-6)


def test_a_mechanism_that_always_raises_is_refused():
    def raises(data, rng):
        raise ValueError("no")

    with pytest.raises(MechanismError, match="raised in all"):
        estimate(raises, pairs=[([0.0], [1.0])])
