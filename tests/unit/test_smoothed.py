"""Smoothed runs against closed forms: probabilities, their slopes, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from exact import call_of

from pytest_dp.methods.smooth import HARD, STEEPNESS, Output, Smooth, Smoothed, Smoothing
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument


class Numbers:
    """A list, or an array, of the numbers of a vector."""

    def __init__(self, build=list):
        self.build, self.numbers = build, lambda vectors: vectors


def runs_of(mechanism, steepness=STEEPNESS, draws=20_000, **params):
    return Smoothed(call_of(mechanism, **params), Smoothing(draws, 1, steepness), Deadline(60))


def shares(mechanism, vector, steepness=STEEPNESS, build=list, **params):
    """The probability of each output on one input."""
    runs = runs_of(mechanism, steepness, **params)
    outcomes = runs.weigh_outputs(Numbers(build), np.array([vector], float))
    found = {}
    for outcome in outcomes:
        key = outcome.key[1]
        found[key] = found.get(key, 0.0) + float(outcome.weights.mean())
    assert sum(found.values()) == pytest.approx(1.0)
    return found


def test_slopes_are_those_of_the_closed_form():
    """Of the probability that a noisy number is above a threshold: the density there."""

    def above(data, rng):
        return bool(data[0] + rng.laplace(scale=2.0) >= 1.0)

    runs = runs_of(above)
    step = 1e-6
    for x in (-3.0, -1.0, 0.0, 3.0, 5.0):
        vectors = np.array([[x], [x + step]])
        output = Output(("number", (True,)), ())
        chances = runs.chances(Numbers(), vectors, [(output, np.zeros((2, 0)))])
        low, high = chances.mean(axis=2)[0]
        noise = scipy.stats.laplace(1.0, 2.0)
        assert low == pytest.approx(noise.cdf(x), abs=0.02)
        assert (high - low) / step == pytest.approx(noise.pdf(x), rel=0.1)


def numpy_functions(data, rng):
    noisy = np.asarray(data) + rng.laplace(scale=2.0, size=3)
    clipped = np.clip(noisy, 0.0, 4.0)
    larger = np.where(noisy > 2.0, np.exp(clipped / 4), 0.0)
    return bool(np.maximum(larger.mean(), np.abs(clipped[0])) > 1.0)


def python_functions(data, rng):
    noisy = [x + rng.exponential() for x in data]
    total = math.floor(sum(noisy)) + int(abs(noisy[0])) + round(noisy[1] % 3) - math.sqrt(4.0)
    return [np.log(max(noisy)) > 0.5, total // 2 == 1, -total < -4 or total**2 > 30]


def whole_numbers(data, rng):
    count = int(data[0]) + int(rng.geometric(0.3))
    return ["none", "two"][int(count == 2)], int(rng.integers(3)), rng.random() < 0.25


def weights(data, rng):
    chances = np.array([data[0], data[1], 1 - data[0] - data[1]])
    return int(rng.choice(3, p=chances))


def test_what_mechanisms_do_with_numbers():
    """The outputs of 4,000 real runs, but for numbers with noise."""
    for mechanism, vector, steepness in [
        (numpy_functions, [1.0, 2.0, 3.0], HARD),
        (python_functions, [0.5, 1.5], HARD),
        (whole_numbers, [0.0], STEEPNESS),
        (weights, [0.2, 0.5], STEEPNESS),
    ]:
        rng, runs, real = np.random.default_rng(1), 4_000, {}
        for _ in range(runs):
            output = mechanism(vector, rng=rng)
            values = tuple(output) if isinstance(output, list | tuple) else (output,)
            values = tuple(Smooth if isinstance(v, float) else v for v in values)
            real[values] = real.get(values, 0) + 1
        found = shares(mechanism, vector, steepness)
        assert {k for k, n in real.items() if n > runs / 100} <= found.keys()
        for key, share in found.items():
            assert share == pytest.approx(real.get(key, 0) / runs, abs=0.05)


def as_text(data, rng):
    return str(data[0] + rng.laplace())


def as_key(data, rng):
    return {0.0: "zero"}.get(data[0] + rng.laplace())


def always_raises(data, rng):
    raise ValueError(data)


@pytest.mark.parametrize("mechanism", [as_text, as_key, always_raises])
def test_what_arrays_cannot_do_is_refused(mechanism):
    with pytest.raises(CannotInstrument):
        runs_of(mechanism).weigh_outputs(Numbers(), np.array([[1.0]]))
