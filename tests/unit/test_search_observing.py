"""What a few runs show of an input does not depend on what else the machine does."""

from __future__ import annotations

import time

import pytest

from pytest_dp.claim import Arguments
from pytest_dp.sampling.calling import prepare
from pytest_dp.search import observing
from pytest_dp.search.observing import Clock, Observer

SECONDS = 0.05


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(observing, "NOTICED_SECONDS", SECONDS)
    monkeypatch.setattr(observing, "SLOW", 5.0)


class Mechanism:
    """Waits, or computes, where the data say so; each time, or only in one of its runs."""

    def __init__(self):
        self.runs = 0

    def __call__(self, data, rng):
        self.runs += 1
        if "waits" in data or (data == "waited once" and self.runs == 3):
            time.sleep(12 * SECONDS)
        until = time.thread_time() + 3 * SECONDS
        while data == "computes" and time.thread_time() < until:
            pass
        return rng.normal()


@pytest.fixture
def observer():
    call = prepare(Mechanism(), Arguments())
    observer = Observer(call, 1, Clock(60))
    assert observer.observe("as usual") is not None
    return observer


def runs_for(observer, data):
    mechanism = observer.call.mechanism
    before = mechanism.runs
    assert observer.observe(data) is None
    return mechanism.runs - before


def test_an_input_is_not_given_up_because_a_run_had_to_wait_once(observer):
    seen = observer.observe("waited once")
    assert seen is not None
    assert seen.noise == observer.observe("as usual").noise


def test_a_run_that_computes_for_so_long_is_slow(observer):
    assert observer.observe("computes") is None


def test_a_mechanism_that_waits_again_and_again_is_believed(observer):
    assert runs_for(observer, "waits") == len((1, 2, 4))
    assert runs_for(observer, "waits as well") == 1
    assert observer.observe("as usual but for this") is not None
