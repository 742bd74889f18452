"""Samplers of a mechanism, what they draw, and mechanisms to draw from."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np

from pytest_dp.claiming.claim import expand
from pytest_dp.running.calling import prepare
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import Sampler, SampleRequest


def sampler(mechanism, seed=1, n_jobs=1, **keywords):
    claim = expand({"eps": 1.0, "pairs": [([1], [0])], **keywords})[0]
    return Sampler(prepare(mechanism, claim.arguments), seed, n_jobs)


def outputs(mechanism, count=40, data=(1,), key=(1, 0, 0), seconds=30.0, **keywords):
    some = sampler(mechanism, **keywords)
    return list(some.draw([SampleRequest(Input(list(data)), count, key)], Deadline(seconds))[0])


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


def draws_of(given, *counts):
    return [SampleRequest(given, count, (1, side)) for side, count in enumerate(counts)]


def warm(mechanism, n_jobs=1, data=(1,), **keywords):
    """A sampler that has tried the mechanism on an input, and the input."""
    some, given = sampler(mechanism, n_jobs=n_jobs, **keywords), Input(list(data))
    some.warm_up(given, Deadline(60))
    return some, given


def measure(mechanism, function, n_jobs=1, counts=(300, 300), seconds=60.0, **keywords):
    some, given = warm(mechanism, n_jobs, **keywords)
    return some.measure(draws_of(given, *counts), function, Deadline(seconds)), some


def scalar(data, rng):
    return rng.laplace()


def at_work():
    """Processor time of the worker processes of this one, and how many there are."""
    ticks = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            command = (path.parent / "cmdline").read_text()
        except OSError:
            continue
        if fields[1] == str(os.getpid()) and "popen_loky" in command:
            ticks.append(int(fields[11]) + int(fields[12]))
    return sum(ticks), len(ticks)
