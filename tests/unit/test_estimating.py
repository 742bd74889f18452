"""`estimate`: by enumeration, in closed form, or by samples, with honest bands."""

from __future__ import annotations

import math
import time
from fnmatch import fnmatchcase

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
    assert "no sum of draws" in found.reason
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


def other_when_traced_at(wrong, *, real):
    """Noise of scale 1, but real runs at one input, or traced ones, have another."""

    def mechanism(x, rng):
        noise = rng.laplace()
        return x + (real * noise if x == wrong and type(noise) is float else noise)

    return mechanism


def other_coin_when_traced_at(wrong, *, real):
    def mechanism(x, rng):
        noise = rng.random()
        cut = 1 / (1 + math.exp(real)) if x == wrong and type(noise) is float else 0.25
        return x % 2 if noise >= cut else 1 - x % 2

    return mechanism


PAIRS = [(2, 0), (0, 1), (4, 5), (-1, -2), (6, 7.0)]


@pytest.mark.spot(3)
@pytest.mark.parametrize("wrong", [0, 5, 7.0])
@pytest.mark.parametrize(
    ("mechanism", "real"), [(other_when_traced_at, 0.125), (other_coin_when_traced_at, 4.0)]
)
def test_real_runs_are_looked_at_on_each_input_of_each_pair(mechanism, real, wrong):
    found = estimate(mechanism(wrong, real=real), pairs=PAIRS, seed=1, max_samples=500)
    assert found.mode == "sampled"
    assert f"real runs give other outputs than those that are traced, on {wrong}" in found.reason


@pytest.mark.parametrize("mechanism", [noisy, coin])
def test_what_holds_on_many_inputs_is_not_refuted(mechanism):
    pairs = [(x % 2, 1 - x % 2) if mechanism is coin else (x, x + 1) for x in range(60)]
    assert estimate(mechanism, pairs=pairs).mode in ("analytic", "exact")


def test_a_slow_mechanism_is_looked_at_for_as_long_as_there_is_time():
    def slow(x, rng):
        time.sleep(0.001)
        return x + rng.laplace()

    assert estimate(slow, pairs=[(x, x + 1) for x in range(8)], max_seconds=60).mode == "analytic"
    found = estimate(
        slow, pairs=[(x, x + 1) for x in range(8)], max_seconds=0.25, max_samples=2_000
    )
    assert found.mode == "sampled"


def largest_by_search(data, rng):
    answer, threshold = data + rng.laplace(), rng.laplace()
    return answer if answer > threshold else None


def test_a_largest_loss_that_is_searched_for_is_numerical_without_a_bound_on_its_error():
    found = estimate(largest_by_search, pairs=[(0.0, 1.0)])
    assert (found.mode, found.error) == ("numerical", math.inf)
    assert found.value == pytest.approx(1.0, abs=0.2)
    lower, upper = found.profile(0.1)
    assert 0 < lower < upper == 1.0
    sure = estimate(noisy, pairs=[(0, 1)])
    assert sure.error < 1e-11


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


@pytest.mark.parametrize(
    "noise",
    [
        lambda x, rng: rng.normal(),
        lambda x, rng: rng.gumbel() - rng.gumbel() * 0,
        lambda x, rng: rng.laplace(scale=1 + x),
    ],
    ids=["normal", "gumbel", "laplace of another scale"],
)
def test_rounded_noise_whose_tails_lose_more_is_not_known_by_likely_values(noise):
    """The loss has no bound; a table of likely values has one."""
    found = estimate(lambda x, rng: round(x + noise(x, rng)), pairs=[(0, 1)], max_seconds=4, seed=1)
    assert found.mode == "sampled" or math.isinf(found.value)


def test_a_continuous_draw_is_no_single_number():
    def sign(x, rng):
        return np.sign(x - 0.5 + rng.laplace())

    found = estimate(sign, pairs=[(0, 1)], max_seconds=20, seed=1)
    above = [1 - math.exp(-0.5) / 2, math.exp(-0.5) / 2]
    assert found.mode == "analytic"
    assert found.value == pytest.approx(math.log(above[0] / above[1]), rel=1e-9)


def test_an_audit_that_tells_nothing_is_no_loss_of_zero():
    def slow(x, rng):
        time.sleep(0.2)
        z = rng.laplace()
        return x + z**2 + (z > 0)

    found = estimate(slow, pairs=[(0, 1)], max_seconds=1, seed=1)
    assert math.isinf(found.error)


@pytest.mark.parametrize(
    ("mechanism", "pair", "lines"),
    [
        (noisy, (0, 2), ["eps = 1.000000 (analytic: by *)", "  on D = 0, D' = 2"]),
        (coin, (0, 1), ["eps = 1.098612 (exact: by all outcomes *)", "  on D = 0, D' = 1"]),
        (
            exponential_of_noise,
            (0, 1),
            [
                "eps at most 0.5 by alignment, at least 0.* by runs (sampled: *)",
                "  on *",
                "  sampled, as *",
            ],
        ),
    ],
)
def test_it_is_printed_in_words(mechanism, pair, lines):
    printed = str(estimate(mechanism, pairs=[pair], seed=1, max_samples=5_000)).splitlines()
    assert len(printed) == len(lines)
    assert all(fnmatchcase(line, like) for line, like in zip(printed, lines, strict=True)), printed
