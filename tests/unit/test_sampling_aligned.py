"""Shared random numbers: many draws a call, what refuses them, and what remembers."""

# ruff: noqa: NPY002
from __future__ import annotations

import copy
import functools
import itertools
from collections import deque

import numpy as np
import pytest
from coupling import KEPT, KEY, Pair, assert_independent, rejection_loop, vectorized
from numpy.random import laplace

from pytest_dp.running.coupling import CannotCouple
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import SampleRequest


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
        lambda data, rng, size: sum(data) + rng.laplace(size=(size, 3)).sum(axis=1),
        lambda data, rng, size: sum(data) + rng.choice([False, True], size, p=[0.7, 0.3]),
        of_wide_noise,
        rejects_until_all_are_near,
    ],
)
def test_many_draws_a_call_are_shared(mechanism):
    pair = vectorized(mechanism)
    assert pair.can_couple()
    assert pair.sampler.notes == []
    x, y = pair.draw(20_000)
    if mechanism is not of_wide_noise:
        assert set(np.round(np.subtract(x, y), 6)) == {1.0}
    assert len(set(x)) >= 2
    assert_independent(x, y)


@pytest.mark.parametrize("late", ["np.random", "shape", "shuffle"])
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
            elif late == "shuffle":
                noise = np.sort(noise)
        return sum(data) + noise

    pair = vectorized(mechanism)
    assert pair.can_couple()
    with pytest.raises(CannotCouple):
        pair.draw_batches(150, 30)


def test_the_noise_of_two_inputs_is_compared_over_several_calls():
    pair = vectorized(rejection_loop)
    one, other = ([SampleRequest(given, 300, KEY, True)] for given in pair.inputs)
    pair.sampler.draw(one, Deadline(9.0))
    with pytest.raises(CannotCouple, match="different noise"):
        pair.sampler.draw(other, Deadline(9.0))


def rejection_of_few(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := abs(noise) > 1.0).any():
        noise[far] = rng.laplace(size=far.sum())
    return sum(data) + noise


def minus_the_mean(data, rng, size):
    noise = rng.laplace(size=size)
    return sum(data) + noise - noise.mean()


def of_its_bits(data, rng, size):
    return sum(data) + np.random.Generator(rng.bit_generator).laplace(size=size)


def past_the_methods(data, rng, size):
    noise = np.random.Generator.laplace(rng, 0.0, 1.0, size)
    return sum(data) + noise + rng.laplace(size=size)


def into_memory(data, rng, size):
    noise = np.empty(size)
    rng.random(out=noise)
    return sum(data) + noise


def seeds_itself(data, size):
    np.random.seed(3)
    return len(data) + np.random.laplace(size=size)


CALLS = itertools.count()
LAST = slice(None, None, -1)
REFUSED = {
    "different noise": [rejection_loop],
    "first axis": [
        rejection_of_few,
        lambda data, rng, size: sum(data) + rng.laplace(size=(3, size)).sum(axis=0),
    ],
    "noise of others": [
        lambda data, rng, size: rng.laplace(size=size)[LAST if len(data) > 1 else slice(None)],
        lambda data, rng, size: sum(data) + np.sort(rng.laplace(size=size)),
        minus_the_mean,
    ],
    "earlier calls": [lambda data, rng, size: rng.laplace(size=size) + next(CALLS)],
    "permutation": [lambda data, rng, size: rng.permutation(rng.laplace(size=size))],
    "replace=False": [lambda data, rng, size: sum(data) + rng.choice(size, size, False)],
    "rng.__deepcopy__": [lambda data, rng, size: copy.deepcopy(rng).laplace(size=size)],
    "bit_generator": [of_its_bits],
    "past the methods": [past_the_methods],
    "out=": [into_memory],
    "more than rng": [
        lambda data, rng, size: rng.laplace(size=size) + KEPT.normal(size=size),
        lambda data, size: [sum(data) + laplace() for _ in range(size)],
        seeds_itself,
    ],
}


@pytest.mark.parametrize(
    ("mechanism", "reason"), [(m, reason) for reason, ms in REFUSED.items() for m in ms]
)
def test_many_draws_a_call_that_cannot_be_shared(mechanism, reason):
    pair = vectorized(mechanism)
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert reason in note


def test_many_draws_of_system_entropy():
    pair = vectorized(lambda data, size: np.random.default_rng().laplace(size=size))
    assert not pair.can_couple()
    assert pair.sampler.notes == []


def buffered(size, draw=lambda rng: rng.laplace(), per_input=False):
    kept: dict[int, deque[float]] = {}

    def mechanism(data, rng):
        noise = kept.setdefault(len(data) if per_input else 0, deque())
        if not noise:
            noise.extend(draw(rng) for _ in range(size))
        return sum(data) + noise.popleft()

    return mechanism


def cached(most):
    @functools.lru_cache(most)
    def noise(length):
        return np.random.laplace()

    return lambda data: sum(data) + noise(len(data))


REMEMBERING = {
    "buffer per input": buffered(50, per_input=True),
    "buffer of coin tosses": buffered(1_000, lambda rng: rng.random() < 0.02),
    "cache": cached(None),
    "counter": lambda data, rng: sum(data) + rng.laplace() + next(CALLS),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_what_depends_on_earlier_runs_is_not_shared(name):
    pair = Pair(REMEMBERING[name])
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert "depend on earlier runs" in note


@pytest.mark.parametrize("period", [1_000, 10_000])
def test_checks_go_on_while_drawing(period):
    """Pure at first; later on, one run in ten adds what an earlier one left."""
    calls, left = [0], [0.0]

    def mechanism(data, rng):
        calls[0] += 1
        noise = rng.laplace()
        if calls[0] > period and noise < -1.6:
            noise += left[0]
            left[0] = noise
        return sum(data) + noise

    pair = Pair(mechanism)
    assert pair.can_couple()
    with pytest.raises(CannotCouple, match="earlier runs"):
        pair.draw_batches(20, 5_000)
