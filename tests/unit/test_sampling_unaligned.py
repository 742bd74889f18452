"""Many draws a call that cannot share their random numbers, and what says so."""

# ruff: noqa: NPY002
from __future__ import annotations

import random

import numpy as np
import pytest
from coupling import (
    KEPT,
    rejection_loop,
    vectorized,
)
from numpy.random import laplace


def binomial(data, rng, size):
    return rng.binomial(100, 0.1 + 0.1 * len(data), size)


def rejection_of_few(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := abs(noise) > 1.0).any():
        noise[far] = rng.laplace(size=far.sum())
    return sum(data) + noise


def shuffled_by_data(data, rng, size):
    noise = rng.laplace(size=size)
    return sum(data) + (noise[::-1] if len(data) > 1 else noise)


def sorted_noise(data, rng, size):
    return sum(data) + np.sort(rng.laplace(size=size))


def running_sum(data, rng, size):
    return sum(data) + np.cumsum(rng.laplace(size=size))


def rolled(data, rng, size):
    return sum(data) + np.roll(rng.laplace(size=size), len(data))


def minus_the_mean(data, rng, size):
    noise = rng.laplace(size=size)
    return sum(data) + noise - noise.mean()


def another_shape(data, rng, size):
    return rng.laplace(size=(size, len(data))).sum(axis=1)


def other_axis(data, rng, size):
    return sum(data) + rng.laplace(size=(3, size)).sum(axis=0)


def permuted(data, rng, size):
    return sum(data) + rng.permutation(rng.laplace(size=size))


def of_a_copy(data, rng, size):
    import copy

    return sum(data) + np.sort(copy.deepcopy(rng).laplace(size=size)) + rng.laplace(size=size)


def of_its_bits(data, rng, size):
    other = np.random.Generator(rng.bit_generator)
    return sum(data) + other.laplace(size=size) + rng.laplace(size=size)


def past_the_methods(data, rng, size):
    noise = np.random.Generator.laplace(rng, 0.0, 1.0, size)
    return sum(data) + noise + rng.laplace(size=size)


def into_memory(data, rng, size):
    noise = np.empty(size)
    rng.random(out=noise)
    return sum(data) + noise


def cumulated(data, size):
    values, total = [], 0.0
    for _ in range(size):
        total += random.gauss(0.0, 1.0)
        values.append(len(data) + total)
    return values


def column_by_column(data, size):
    one = [random.gauss(0.0, 1.0) for _ in range(size)]
    return [len(data) + a + random.random() for a in one]


def seeds_itself(data, size):
    np.random.seed(3)
    return len(data) + np.random.laplace(size=size)


def a_loop_by_data(data, size):
    return [sum(random.random() for _ in data) for _ in range(size)]


def also_random(data, rng, size):
    return sum(data) + rng.laplace(size=size) + random.random()


def also_its_own(data, rng, size):
    return sum(data) + rng.laplace(size=size) + KEPT.normal(size=size)


def counts_calls():
    calls = [0]

    def mechanism(data, rng, size):
        calls[0] += 1
        return sum(data) + rng.laplace(size=size) + calls[0]

    return mechanism


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (binomial, "different noise"),
        (rejection_loop, "different noise"),
        (another_shape, "different noise"),
        (lambda data, rng, size: rng.integers(1 + len(data), size=size), "different noise"),
        (rejection_of_few, "first axis"),
        (other_axis, "first axis"),
        (shuffled_by_data, "noise of others"),
        (sorted_noise, "noise of others"),
        (running_sum, "noise of others"),
        (rolled, "noise of others"),
        (minus_the_mean, "noise of others"),
        (counts_calls(), "earlier calls"),
        (permuted, "permutation"),
        (lambda data, rng, size: sum(data) + rng.choice(size, size, False), "replace=False"),
        (lambda data, rng, size: rng.choice(size, size, replace=False), "replace=False"),
        (of_a_copy, "rng.__deepcopy__"),
        (of_its_bits, "bit_generator"),
        (past_the_methods, "past the methods"),
        (into_memory, "out="),
        (also_random, "first axis"),
        (also_its_own, "more than rng"),
        (lambda data, size: [sum(data) + laplace() for _ in range(size)], "more than rng"),
        (lambda data, size: np.sort(np.random.laplace(len(data), size=size)), "noise of others"),
        (lambda data, size: np.random.permutation(size) + len(data), "np.random.permutation"),
        (cumulated, "noise of others"),
        (column_by_column, "noise of others"),
        (seeds_itself, "more than rng"),
        (lambda data, size: [random.choice(data) for _ in range(size)], "different noise"),
        (a_loop_by_data, "different noise"),
    ],
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
