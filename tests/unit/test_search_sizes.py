"""Proposed numbers that a mechanism takes for sizes do not fill the memory."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

from pytest_dp import audit, queries
from pytest_dp.datasets.relations import WithParams
from pytest_dp.errors import MechanismError
from pytest_dp.limits import MILLION
from pytest_dp.sampling.deadline import OutOfTime
from pytest_dp.search.observing import is_too_large


def zeros(data):
    return np.zeros(max(data))


def listed(data):
    return [0] * data[0]


def refusing(data):
    raise MechanismError("negative")


def endless(data):
    if data[0] > 99:
        raise OutOfTime


@pytest.mark.parametrize(
    ("data", "run", "too_large"),
    [
        ([10**9], zeros, True),
        ([2, 10**9], zeros, True),
        ([10**9], listed, True),
        ([10**9], sum, False),
        ([MILLION], listed, False),
        ([10**9], refusing, False),
        ([10**9], endless, True),
        ([(10**9, 1)], lambda data: zeros(data[0]), True),
        ([float("inf"), 1e300], sum, False),
        (WithParams([10**9], {"k": 1}), lambda data: zeros(data.data), True),
        (10**9, np.zeros, True),
        ("text", len, False),
    ],
)
def test_whether_numbers_are_sizes(data, run, too_large):
    assert is_too_large(data, run) is too_large
    assert not tracemalloc.is_tracing()


@pytest.mark.parametrize(("run", "too_large"), [(len, False), (listed, True)])
@pytest.mark.parametrize("others", [{0}, {0, 1}, {0, 3}, {4}, {0, 4}], ids=str)
def test_memory_that_others_take_meanwhile_is_no_size(run, too_large, others):
    runs = iter(range(9))

    def beside_others(data):
        kept = bytearray(4 * MILLION) if next(runs) in others else b""
        return run(data), kept

    assert is_too_large([10**9], beside_others) is too_large


@pytest.mark.slow
def test_no_size_is_proposed_that_fills_the_memory(monkeypatch):
    monkeypatch.setenv("LARGEST", "0")

    def histogram(counts, rng):
        bins = np.zeros(max(counts), dtype=np.int8)
        # Copies of a mechanism share nothing but libraries.
        os.environ["LARGEST"] = str(max(int(os.environ["LARGEST"]), len(bins)))
        return counts[0] + rng.laplace()

    audit(histogram, eps=1.0, inputs=queries(2), seed=1, n_jobs=1, max_samples=20_000)
    assert 1_000 < int(os.environ["LARGEST"]) <= MILLION
