"""Many draws a call that cannot share their random numbers, and what says so."""

# ruff: noqa: NPY002
from __future__ import annotations

import copy
import itertools
import random

import numpy as np
import pytest
from coupling import KEPT, rejection_loop, vectorized
from numpy.random import laplace


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
    "different noise": [
        rejection_loop,
        lambda data, rng, size: rng.binomial(100, 0.1 + 0.1 * len(data), size),
        lambda data, rng, size: rng.laplace(size=(size, len(data))).sum(axis=1),
        lambda data, rng, size: rng.integers(1 + len(data), size=size),
    ],
    "first axis": [
        rejection_of_few,
        lambda data, rng, size: sum(data) + rng.laplace(size=(3, size)).sum(axis=0),
        lambda data, rng, size: sum(data) + rng.laplace(size=size) + rng.random(),
        lambda data, rng, size: [sum(data) + rng.laplace() for _ in range(size)],
    ],
    "noise of others": [
        lambda data, rng, size: rng.laplace(size=size)[LAST if len(data) > 1 else slice(None)],
        lambda data, rng, size: sum(data) + np.sort(rng.laplace(size=size)),
        lambda data, rng, size: sum(data) + np.cumsum(rng.laplace(size=size)),
        lambda data, rng, size: sum(data) + np.roll(rng.laplace(size=size), len(data)),
        minus_the_mean,
    ],
    "earlier calls": [lambda data, rng, size: rng.laplace(size=size) + next(CALLS)],
    "permutation": [lambda data, rng, size: rng.permutation(rng.laplace(size=size))],
    "replace=False": [
        lambda data, rng, size: sum(data) + rng.choice(size, size, False),
        lambda data, rng, size: rng.choice(size, size, replace=False),
    ],
    "rng.__deepcopy__": [lambda data, rng, size: copy.deepcopy(rng).laplace(size=size)],
    "bit_generator": [of_its_bits],
    "past the methods": [past_the_methods],
    "out=": [into_memory],
    "more than rng": [
        lambda data, rng, size: rng.laplace(size=size) + KEPT.normal(size=size),
        lambda data, size: [sum(data) + laplace() for _ in range(size)],
        lambda data, rng, size: sum(data) + rng.laplace(size=size) + np.random.laplace(size=size),
        lambda data, size: [sum(data) + random.expovariate(1.0) for _ in range(size)],
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
