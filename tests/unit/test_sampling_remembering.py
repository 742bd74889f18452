"""Mechanisms that remember, change their input or draw elsewhere, one draw a call: not shared."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools
import itertools
from collections import deque

import numpy as np
import pytest
from coupling import Owner, Pair

from pytest_dp.running.deadline import Deadline
from pytest_dp.running.per_run import CannotCouple


def buffered(size, draw=lambda rng: rng.laplace(), per_input=False):
    kept: dict[int, deque[float]] = {}

    def mechanism(data, rng):
        noise = kept.setdefault(len(data) if per_input else 0, deque())
        if not noise:
            noise.extend(draw(rng) for _ in range(size))
        return sum(data) + noise.popleft()

    return mechanism


def beside_a_buffer(size, draw):
    """Outputs may tell nearly nothing; what is taken from the stream does."""
    kept: deque[float] = deque()

    def mechanism(data, rng):
        if not kept:
            kept.extend(draw(rng) for _ in range(size))
        return sum(data) + draw(rng) + kept.popleft()

    return mechanism


def cached(most):
    @functools.lru_cache(most)
    def noise(length):
        return np.random.laplace()

    return lambda data: sum(data) + noise(len(data))


def counts():
    calls = itertools.count()
    return lambda data, rng: sum(data) + rng.laplace() + next(calls)


def replaces_its_generator():
    held = Owner(np.random.default_rng(1))

    def mechanism(data):
        held.source = np.random.default_rng(held.source.integers(2**60))
        return sum(data) + held.source.laplace()

    return mechanism


REMEMBERING = {
    "buffer of 2": buffered(2),
    "buffer per input": buffered(50, per_input=True),
    "buffer of coin tosses": buffered(1_000, lambda rng: rng.random() < 0.02),
    "second noise from a buffer": beside_a_buffer(10_000, lambda rng: rng.laplace()),
    "cache": cached(None),
    "counter": counts(),
    "new generators": replaces_its_generator(),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_what_depends_on_earlier_runs_is_not_shared(name):
    pair = Pair(REMEMBERING[name])
    assert not pair.can_couple()
    (note,) = [note for note in pair.sampler.notes if "not shared" in note]
    assert "depend on earlier runs" in note


@pytest.mark.parametrize("size", [20, 100_000])
def test_a_buffer_of_coin_tosses_that_was_filled_before_is_not_shared(size):
    pair = Pair(buffered(size, lambda rng: rng.random() < 0.001))
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    assert not pair.can_couple()


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
