"""Draws shared out between processes: the same outputs, no copied generators, no orphans."""

# ruff: noqa: NPY002
from __future__ import annotations

import os
import threading
import time
from collections import deque

import numpy as np
import pytest
from drawing import at_work, sampler

from pytest_dp.basics.errors import MechanismError
from pytest_dp.outputs.raised import equal_outputs
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import SampleRequest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("always_share", "stop_workers")]


def drawn(mechanism, n_jobs=2, count=300, seconds=60.0, **keywords):
    some = sampler(mechanism, n_jobs=n_jobs, **keywords)
    given = Input([1])
    deadline = Deadline(seconds)
    some.warm_up(given, deadline)
    draws = [SampleRequest(given, count, (1, side, 0)) for side in (0, 1)]
    return [list(part) for part in some.draw(draws, deadline)], some


def tells_its_process(data, rng):
    time.sleep(0.002)
    return os.getpid(), rng.random()


def closed_over(scale):
    return lambda data, rng: scale * rng.random()


HERE = os.getpid()


class Held:
    """An instance of a class that workers get by value, with data in it."""

    def __init__(self):
        self.rng = np.random.default_rng(3)

    def __call__(self, data):
        return [self.rng.random()] * 2


def test_workers_that_give_other_outputs_are_not_used():
    (one, two), some = drawn(tells_its_process, count=200)
    assert {process for process, _ in one + two} == {HERE}
    assert any("other outputs in a worker process" in note for note in some.notes)


@pytest.mark.parametrize(
    ("mechanism", "keywords"),
    [
        (closed_over(2.0), {}),
        (lambda data: np.random.random(), {}),
        (Held(), {}),
        (lambda data, rng, size: rng.random((size, 2)), {"vectorized": "size", "count": 34_000}),
    ],
)
def test_one_and_two_processes_give_the_same(mechanism, keywords):
    shared, some = drawn(mechanism, **keywords)
    alone, _ = drawn(mechanism, n_jobs=1, **keywords)
    assert some.n_jobs == 2
    assert all(map(equal_outputs, shared[0], alone[0]))
    assert all(map(equal_outputs, shared[1], alone[1]))
    assert not all(map(equal_outputs, shared[0], shared[1]))


def in_deque():
    held = deque([np.random.default_rng(3)])
    return lambda data: data[0] + held[0].random()


def test_a_generator_out_of_reach_stays_in_one_process():
    mechanism = in_deque()
    assert "reseeded" not in str(drawn(mechanism, n_jobs=1)[1].notes)
    (one, two), some = drawn(mechanism, count=2000)
    assert some.n_jobs == 1
    assert "out of reach" in some.notes[0]
    assert len({round(x % 1, 12) for x in one + two}) == 4000


def test_system_entropy_is_shared_out():
    (one, two), some = drawn(lambda data: (os.getpid(), os.urandom(8)), count=400)
    assert some.n_jobs == 2
    assert not some.replayable
    assert not some.notes
    assert HERE not in {process for process, _ in one + two}


def test_outputs_that_cannot_be_pickled():
    (one, _), some = drawn(lambda data, rng: [rng.random(), threading.Lock()])
    assert len(one) == 300
    assert some.n_jobs == 1
    assert "cannot be pickled" in some.notes[0]


def test_processes_that_cannot_be_started(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("joblib.Parallel.__call__", full)
    outputs, some = drawn(tells_its_process)
    assert {process for part in outputs for process, _ in part} == {HERE}
    assert any("one process, as no others could be started" in note for note in some.notes)


def exits(data):
    if os.getpid() != HERE_PID[0]:
        os._exit(3)
    return np.random.random()


HERE_PID = [os.getpid()]


def test_a_worker_that_dies():
    with pytest.raises(MechanismError, match="worker process died"):
        drawn(exits)
    time.sleep(0.2)
    assert at_work() == (0, 0)


def test_an_error_in_a_worker_is_the_same_error():
    def raises(data, size):
        if os.getpid() != HERE_PID[0]:
            raise KeyError("inside")
        return np.random.random(size)

    with pytest.raises(MechanismError, match="KeyError"):
        drawn(raises, vectorized="size", count=10_000)
