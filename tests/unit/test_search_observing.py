"""What a few runs show of an input does not depend on what else the machine does."""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np
import pytest

from pytest_dp import audit, queries
from pytest_dp.basics.errors import MechanismError
from pytest_dp.claiming.claim import Arguments
from pytest_dp.data.relations import WithParams
from pytest_dp.proposers import observing
from pytest_dp.proposers.observing import MANY_BYTES, Clock, Observer, is_too_large
from pytest_dp.running.calling import prepare
from pytest_dp.running.deadline import OutOfTime

SECONDS = 0.05


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(observing, "NOTICED_SECONDS", SECONDS)
    monkeypatch.setattr(observing, "SLOW", 5.0)


class Mechanism:
    """Waits, or computes, where the data say so; each time, or only in one of its runs."""

    def __init__(self):
        self.runs = 0

    def __call__(self, data, rng):
        self.runs += 1
        if data == "waits":
            time.sleep(12 * SECONDS)
        if data == "waited once" and self.runs == 3:
            time.sleep(2.5 * SECONDS)
        until = time.thread_time() + 3 * SECONDS
        while data == "computes" and time.thread_time() < until:
            pass
        return rng.normal()


@pytest.fixture
def observer(soon):
    call = prepare(Mechanism(), Arguments())
    observer = Observer(call, 1, Clock(60))
    assert observer.observe("as usual") is not None
    return observer


def test_an_input_is_not_given_up_because_a_run_had_to_wait_once(observer):
    seen = observer.observe("waited once")
    assert seen is not None
    assert seen.noise == observer.observe("as usual").noise


def test_a_run_that_computes_for_so_long_is_slow(observer):
    assert observer.observe("computes") is None


def test_an_input_on_which_the_mechanism_waits_for_long_is_given_up(observer):
    assert observer.observe("waits") is None
    assert observer.observe("as usual but for this") is not None


# Numbers that a mechanism takes for sizes do not fill the memory


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
        ([MANY_BYTES], listed, False),
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
        kept = bytearray(4 * MANY_BYTES) if next(runs) in others else b""
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
    assert 1_000 < int(os.environ["LARGEST"]) <= MANY_BYTES
