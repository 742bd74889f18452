"""A mechanism on two inputs with shared random numbers, and mechanisms to try it with."""

from __future__ import annotations

import numpy as np
from drawing import sampler

from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import SampleRequest

ONE, OTHER = [1, 1], [1]
KEY = (1, 0, 0)


class Pair:
    """A mechanism and two inputs."""

    def __init__(self, mechanism, one=ONE, other=OTHER, **keywords):
        self.sampler = sampler(mechanism, **keywords)
        self.inputs = Input(one), Input(other)

    def can_couple(self, seconds=30.0):
        return self.sampler.can_couple(*self.inputs, Deadline(seconds))

    def draw(self, count=2_000, shared=True, key=KEY):
        draws = [SampleRequest(given, count, key, shared) for given in self.inputs]
        return [list(outputs) for outputs in self.sampler.draw(draws, Deadline(60.0))]

    def draw_batches(self, batches, count):
        for batch in range(batches):
            self.draw(count, key=(1, 0, batch))


def assert_independent(x, y):
    """No output of one input goes with a neighbouring output of the other, or of its own."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    for lag in (1, 2, 3, 16):
        for a, b in ((x, x), (y, y), (x, y), (y, x)):
            r = np.corrcoef(a[lag:], b[:-lag])[0, 1]
            assert abs(r) < 4.5 / np.sqrt(len(x))


class Owner:
    def __init__(self, source):
        self.source = source

    def __call__(self, data):
        return sum(data) + self.source.normal(0.0, 1.0)


KEPT = np.random.default_rng(8)


def vectorized(mechanism, **keywords):
    return Pair(mechanism, vectorized="size", **keywords)


def rejection_loop(data, rng, size):
    noise = rng.laplace(size=size)
    while (far := noise + len(data) < 0).any():
        noise = np.where(far, rng.laplace(size=size), noise)
    return sum(data) + noise
