"""Shared random numbers, many draws a call, and any number of processes: where, and why not."""

# ruff: noqa: NPY002
from __future__ import annotations

import numpy as np
import pytest
from coupling import (
    KEY,
    assert_independent,
    rejection_loop,
    vectorized,
)

from pytest_dp.running.catalogue import NUMPY
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.per_run import CannotCouple
from pytest_dp.running.requests import GENERATOR
from pytest_dp.running.sampler import Draw

# --- many draws a call ---


def of_wide_noise(data, rng, size):
    return sum(data) + rng.normal(0.0, np.arange(3) + len(data), (size, 3))[:, 0] / len(data)


def rejects_until_all_are_near(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := abs(noise) > 1.0).any():
        noise = np.where(far, rng.laplace(size=size), noise)
    return sum(data) + noise


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng, size: rng.laplace(sum(data), 1.0, size),
        lambda data, rng, size: rng.normal(loc=np.full(size, float(sum(data)))),
        lambda data, rng, size: list(sum(data) + rng.gumbel(size=size)),
        lambda data, rng, size: sum(data) + rng.exponential(2.0, size) - rng.random(size),
        lambda data, rng, size: sum(data) + rng.laplace(size=(size, 3)).sum(axis=1),
        lambda data, rng, size: sum(data) + rng.geometric(0.1, size) - rng.geometric(0.1, size),
        lambda data, rng, size: sum(data) + rng.choice([False, True], size, p=[0.7, 0.3]),
        lambda data, rng, size: rng.multivariate_normal([sum(data), 0.0], np.eye(2), size)[:, 0],
        of_wide_noise,
        rejects_until_all_are_near,
    ],
)
@pytest.mark.parametrize("count", [2_000, 20_000])
def test_many_draws_a_call_are_shared(mechanism, count):
    pair = vectorized(mechanism)
    assert pair.can_couple()
    assert pair.sampler.notes == []
    x, y = pair.draw(count)
    if mechanism is not of_wide_noise:
        assert set(np.round(np.subtract(x, y), 6)) == {1.0}
    assert len(set(x)) >= 2
    assert_independent(x, y)


@pytest.mark.parametrize("late", ["np.random", "shape", "shuffle", "more"])
def test_many_draws_a_call_are_checked_while_drawing(late):
    """As it should be in the trial, and not later on."""
    calls = [0]

    def mechanism(data, rng, size):
        calls[0] += 1
        noise = rng.laplace(size=size)
        if calls[0] > 40:
            if late == "np.random":
                np.random.random()
            elif late == "shape":
                rng.laplace(size=len(data))
            elif late == "more" and len(data) > 1:
                rng.laplace(size=size)
            elif late == "shuffle":
                noise = np.sort(noise)
        return sum(data) + noise

    pair = vectorized(mechanism)
    assert pair.can_couple()
    with pytest.raises(CannotCouple):
        pair.draw_batches(150, 30)


def test_the_noise_of_two_inputs_is_compared_over_several_calls():
    pair = vectorized(rejection_loop)
    one, other = ([Draw(given, 300, KEY, True)] for given in pair.inputs)
    pair.sampler.draw(one, Deadline(9.0))
    with pytest.raises(CannotCouple, match="different noise"):
        pair.sampler.draw(other, Deadline(9.0))


@pytest.mark.parametrize("size_that_mixes", [300, 5_000])
def test_larger_calls_that_are_not_as_small_ones(size_that_mixes):
    def mixes(data, rng, size):
        noise = rng.laplace(size=size)
        return sum(data) + (np.roll(noise, 1) if size > size_that_mixes else noise)

    pair = vectorized(mixes)
    assert pair.can_couple()
    pair.draw(64)
    with pytest.raises(CannotCouple, match="noise of others"):
        pair.draw(200_000)


FREE = [name for name, kind in NUMPY.items() if kind.rows == "free"]
SCALED = {name: lambda s: (0.0, s) for name in FREE} | {
    "exponential": lambda s: (s,),
    "rayleigh": lambda s: (s,),
    "multivariate_normal": lambda s: ([s, 0.0], [[s, 0.0], [0.0, 2 * s]]),
}


PLAIN = {name: scaled(1.0) for name, scaled in SCALED.items()} | {
    "geometric": (0.5,),
    "binomial": (7, 0.5),
    "negative_binomial": (7, 0.5),
    "poisson": (7,),
    "integers": (7,),
    "choice": (7,),
    "gamma": (2.0,),
    "standard_gamma": (2.0,),
    "chisquare": (2.0,),
    "standard_t": (2.0,),
    "weibull": (2.0,),
    "beta": (2.0, 3.0),
    "dirichlet": ([2.0, 3.0],),
    "multinomial": (7, [0.5, 0.5]),
}


def test_rows_of_noise_do_not_depend_on_later_rows():
    for name in sorted(GENERATOR & {n for n in NUMPY if NUMPY[n].rows}):
        few, many = (np.random.Generator(np.random.Philox(3)) for _ in range(2))
        args = PLAIN.get(name, ())
        short = getattr(few, name)(*args, size=10)
        assert np.array_equal(getattr(many, name)(*args, size=1_000)[:10], short)
