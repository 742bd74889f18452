"""`estimate`: by enumeration, alignment, or by samples, with honest bands."""

from __future__ import annotations

import math
import time

import pytest

from pytest_dp import ClaimError, MechanismError, estimate


def noisy(x, rng):
    return x + rng.laplace(scale=2)


def coin(x, rng):
    return x if rng.random() < 0.75 else 1 - x


@pytest.mark.slow
def test_aligned():
    found = estimate(noisy, pairs=[(0, 1), (0, 2)], seed=1)
    assert (found.value, found.mode, found.pair) == (pytest.approx(1.0), "aligned", (0, 2))
    assert 0.7 < found.value - found.error < 1.0
    assert 0.001 < found.unseen < 0.1
    assert "runs may go unseen" in str(found)
    low, high = found.profile(0.5)
    assert low <= 1 - math.exp(-0.25) <= high
    assert estimate(noisy, pairs=[(0, 1)], check=False).error == 0.5


@pytest.mark.slow
def test_an_estimate_is_as_sure_as_on_its_least_sure_pair():
    def of_coin_or_noise(x, rng):
        return coin(x, rng) if x < 2 else x / 4 + rng.laplace()

    found = estimate(of_coin_or_noise, pairs=[(0, 1), (2, 6)], seed=1)
    assert (found.value, found.mode) == (pytest.approx(math.log(3)), "aligned")
    assert found.pair == (0, 1)
    assert 0 < found.error < 1e-6  # of rounding


@pytest.mark.slow
def test_by_samples():
    def gamma_noise(x, rng):
        return x + 2 * (rng.gamma(1) - rng.gamma(1))

    found = estimate(gamma_noise, pairs=[(0, 1)], seed=1, max_samples=20_000)
    assert found.mode == "sampled"
    assert found.value - 3 * found.error < 0.5 < found.value + 3 * found.error + 0.1
    assert "not enumerated" in found.reason
    low, high = found.profile(0.2)
    assert low <= 1 - math.exp(-0.15) <= high == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0, 7.0])
def test_real_runs_are_looked_at_on_each_input_of_each_pair(wrong):
    def other_coin_in_real_runs(x, rng):
        noise = rng.random()
        cut = 1 / (1 + math.exp(4.0)) if x == wrong and type(noise) is float else 0.25
        return x % 2 if noise >= cut else 1 - x % 2

    pairs = [(2, 0), (0, 1), (4, 5), (-1, -2), (6, 7.0)]
    found = estimate(other_coin_in_real_runs, pairs=pairs, seed=1, max_samples=500)
    assert found.mode == "sampled"
    assert f"other outputs than enumerated, on {wrong}" in found.reason
    assert estimate(other_coin_in_real_runs, pairs=pairs, check=False).mode == "exact"


@pytest.mark.slow
def test_what_runs_show_above_the_bound_is_by_samples():
    """An alignment may miss what is rare; this one's claims are of another noise altogether."""

    def sums_to_none(x, rng):
        noise = rng.laplace()
        return x + (noise if type(noise).__module__ != "builtins" else 0.2 * noise)

    found = estimate(sums_to_none, pairs=[(0, 1)], seed=1, max_samples=10_000)
    assert found.mode == "sampled" or found.value >= 4.9


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [noisy, coin])
def test_what_holds_on_many_inputs_is_not_refuted(mechanism):
    pairs = [(x % 2, 1 - x % 2) if mechanism is coin else (x, x + 1) for x in range(20)]
    assert estimate(mechanism, pairs=pairs, max_samples=2_000).mode in ("aligned", "exact")


@pytest.mark.slow
def test_nothing_is_claimed():
    with pytest.raises(ClaimError, match="takes no eps="):
        estimate(noisy, eps=1.0, pairs=[(0, 1)])
    with pytest.raises(ClaimError, match="inputs= or pairs="):
        estimate(noisy)
    with pytest.raises(ValueError, match="at least 0"):
        estimate(noisy, pairs=[(0, 1)]).profile(-1.0)
    with pytest.raises(MechanismError, match="raised in all"):
        estimate(lambda x, rng: 1 / 0, pairs=[([0.0], [1.0])])


@pytest.mark.slow
def test_rounded_noise_whose_tails_lose_more_is_not_known_by_likely_values():
    """The loss has no bound; a table of likely values has one."""
    found = estimate(lambda x, rng: round(x + rng.normal()), pairs=[(0, 1)], max_samples=4_000)
    assert found.mode == "sampled" or math.isinf(found.value)


def test_an_audit_that_tells_nothing_is_no_loss_of_zero():
    def slow(x, rng):
        time.sleep(0.2)
        z = rng.laplace()
        return x + z**2 + (z > 0)

    found = estimate(slow, pairs=[(0, 1)], max_seconds=1, seed=1)
    assert math.isinf(found.error)
