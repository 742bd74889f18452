"""Samplers of a mechanism, what they draw, and two mechanisms to draw from."""

from __future__ import annotations

import random

import numpy as np

from pytest_dp.claim import expand
from pytest_dp.sampling.calling import prepare
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.sampler import Draw, Sampler


def sampler(mechanism, seed=1, n_jobs=1, **keywords):
    claim = expand({"eps": 1.0, "pairs": [([1], [0])], **keywords})[0]
    return Sampler(prepare(mechanism, claim.arguments), seed, n_jobs)


def outputs(mechanism, count=40, data=(1,), key=(1, 0, 0), seconds=30.0, **keywords):
    some = sampler(mechanism, **keywords)
    return list(some.draw([Draw(Input(list(data)), count, key)], Deadline(seconds))[0])


def by_name(data, rng):
    return rng.random()


class Keeper:
    def __init__(self, seed=3):
        self.rng = np.random.default_rng(seed)

    def __call__(self, data):
        return self.rng.random()

    def method(self, data, rng):
        return rng.random()


def both_globals(data):
    return np.random.random() + random.random()  # noqa: NPY002


class InClass:
    shared = np.random.default_rng(5)

    def __call__(self, data):
        return self.shared.random()
