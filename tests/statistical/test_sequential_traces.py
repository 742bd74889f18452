"""Leaks that noise leaves behind are found with default settings; what looks like them is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_dp import audit

PAIR = [([3.27, 1.5, 2.41], [3.27, 1.5])]


pytestmark = pytest.mark.usefixtures("_without_blame")


def noise(rng, scale=20.0):
    return float(rng.laplace(scale=scale))


def audited(mechanism, seed=1, **settings):
    return audit(mechanism, eps=1.0, pairs=PAIR, seed=seed, n_jobs=1, **settings)


def shared_in_lists(d, rng):
    z = noise(rng)
    return [{"x": sum(d) + z, "y": noise(rng)}, [noise(rng), (3 * len(d) + z,)]]


def shared_factor(d, rng):
    z = math.exp(noise(rng, 3))
    return {"a": sum(d) * z, "b": noise(rng), "c": len(d) * z}


def rounded_noise(d, rng):
    return sum(d) + round(noise(rng), 1)


def rounded_before_a_mean(d, rng):
    return (sum(d) + round(noise(rng), 2)) / len(d)


AT_ONCE = {
    shared_in_lists: "share their noise",
    shared_factor: "share their noise",
    rounded_noise: "a grid with steps of 0.1",
    rounded_before_a_mean: "a grid with steps of 0.001",
}


@pytest.mark.canary
@pytest.mark.parametrize("mechanism", AT_ONCE, ids=lambda one: one.__name__)
def test_noise_that_can_be_taken_off_is_found_at_once(mechanism):
    result = audited(mechanism, max_samples=20_000)
    assert result.verdict == "violated"
    assert result.bet_samples < 1_000
    assert AT_ONCE[mechanism] in result.counterexample.diagnosis[0]


def apart(d, rng):
    return {"sum": sum(d) + noise(rng), "count": 2 * len(d) + noise(rng)}


def one_answer_twice(d, rng):
    answer = sum(d) + noise(rng)
    return [answer, 2 * answer + 1]


def rounded_answer(d, rng):
    return round(sum(d) + noise(rng), 1)


def at_random(d, rng):
    return [5.0, math.nan, sum(d) + noise(rng)][np.searchsorted([0.002, 0.004], rng.random())]


@pytest.mark.parametrize("mechanism", [apart, one_answer_twice, rounded_answer, at_random])
def test_correct_mechanisms_that_look_alike_are_not_called_violated(mechanism):
    assert audited(mechanism, max_samples=10_000).verdict == "no violation"
