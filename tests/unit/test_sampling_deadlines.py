"""Calls that take too long: what is interrupted, and what is given up."""

# ruff: noqa: SIM105
from __future__ import annotations

import gc
import os
import signal
import sys
import time
from types import SimpleNamespace

import pytest
from drawing import outputs

from pytest_dp import audit
from pytest_dp.basics.errors import MechanismError
from pytest_dp.claiming.claim import Arguments
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.running.calling import prepare
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime, within
from pytest_dp.running.forked import first_state


def spins(data):
    while True:
        pass


def swallows_all(data):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [spins, swallows_all])
def test_a_hang_is_interrupted(mechanism):
    handler, tracer = signal.getsignal(signal.SIGALRM), sys.gettrace()
    with pytest.raises(OutOfTime) as caught:
        outputs(mechanism, seconds=0.2)
    assert mechanism.__name__ in caught.value.stack
    assert f"pytest_dp{os.sep}sampling" not in caught.value.stack
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert sys.gettrace() is tracer


def hangs_while_read(data, rng):
    def given():
        yield rng.random()
        spins([])

    return given()


@pytest.mark.slow
def test_reading_what_was_returned_is_part_of_the_run(monkeypatch):
    monkeypatch.setattr("pytest_dp.running.deadline.SECONDS_IN_ALL", 6.0)
    with pytest.raises(MechanismError, match="hangs: a run, or the reading of its") as caught:
        audit(hangs_while_read, eps=1.0, pairs=[([1], [])], max_seconds=1.5, n_jobs=1)
    assert "test_sampling_deadlines.py" in str(caught.value)
    assert "pytest_dp" + os.sep + "running" not in str(caught.value)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def computes():
    """Compute and never end: what calls it ends only where it is interrupted."""
    while True:
        sum(number * number for number in range(1_000))


def test_a_computation_is_given_up():
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(OutOfTime) as caught:
        within(0.1, computes)
    assert caught.value.stack == ""  # it does not hang
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


ENDED: list[str] = []
"""Finalizers that came to their end."""


class Finalized:
    """In a cycle, so that only the collector finds it."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        takes_a_while()


def takes_a_while(*_):
    until = time.process_time() + 0.15
    while time.process_time() < until:
        pass
    ENDED.append("finalizer")


def collects():
    """Makes garbage, has it collected as the alarm rings, and goes on."""
    node = Finalized()
    del node
    gc.collect()
    computes()


def watched():
    """The collector tells of itself, as to Hypothesis, which counts its seconds."""

    def told(phase, _):
        if phase == "stop":
            takes_a_while()

    gc.callbacks.append(told)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(told)
    computes()


def forgets_a_mechanism():
    """The first state of a mechanism is forgotten with it, which may end a process."""

    def mechanism(data):
        return data

    first_state(mechanism, Pristine(mechanism)).origin = SimpleNamespace(close=takes_a_while)
    del mechanism
    computes()


@pytest.mark.parametrize(
    "compute", [collects, watched, forgets_a_mechanism], ids=["del", "callback", "forgets"]
)
def test_nothing_is_raised_in_what_ends_an_object(compute, monkeypatch):
    ENDED.clear()
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    with pytest.raises(OutOfTime):
        within(0.05, compute)
    assert ENDED == ["finalizer"]
    assert not dropped


class Rang(BaseException):
    pass


@pytest.fixture
def alarm():
    """An alarm whose handler raises, and a function that sets it."""

    def ring(number, frame):
        raise Rang

    def set_it(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return ring

    earlier = signal.signal(signal.SIGALRM, ring)
    yield set_it
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, earlier)


def test_a_run_is_interrupted_while_somebody_else_has_an_alarm(alarm):
    handler = alarm(60)
    with pytest.raises(OutOfTime):
        outputs(spins, seconds=0.2)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60 - 0.2


def test_somebody_elses_alarm_rings_in_time(alarm):
    handler = alarm(0.2)
    with pytest.raises(Rang):
        outputs(spins, seconds=60)
    assert signal.getsignal(signal.SIGALRM) is handler


@pytest.mark.slow
def test_many_quick_runs_that_were_given_up_do_not_hang():
    """A busy machine ends a block of runs, too; only one run that stands still hangs."""
    runner = NoiselessRunner(prepare(lambda data, rng: len(data) + rng.laplace(), Arguments()))

    def run_until_given_up():
        with runner.in_place(Deadline(1.5)):
            while True:
                runner.run([1, 2])

    with pytest.raises(OutOfTime) as caught:
        run_until_given_up()
    assert not caught.value.stack
