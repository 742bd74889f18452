"""Measurements of what a mechanism returns, and two mechanisms to measure."""

from __future__ import annotations

import numpy as np

from pytest_dp.claim import expand
from pytest_dp.sampling.calling import prepare
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.sampler import Draw, Sampler


def sampler(mechanism, n_jobs=1, data=(1,), **keywords):
    claim = expand({"eps": 1.0, "pairs": [([1], [0])], **keywords})[0]
    some = Sampler(prepare(mechanism, claim.arguments), 1, n_jobs)
    given = Input(list(data))
    some.warm_up(given, Deadline(60))
    return some, given


def draws_of(given, *counts):
    return [Draw(given, count, (1, side)) for side, count in enumerate(counts)]


def measure(mechanism, function, n_jobs=1, counts=(300, 300), seconds=60.0, **keywords):
    some, given = sampler(mechanism, n_jobs, **keywords)
    return some.measure(draws_of(given, *counts), function, Deadline(seconds)), some


def scalar(data, rng):
    return rng.laplace()


def in_rows(data, rng, size):
    return rng.laplace(size=(size, 3))


def moments(outputs):
    array = np.asarray(outputs)
    return len(outputs), float(array.sum()), float((array * array).sum())
