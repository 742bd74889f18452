"""Where limits of an audit are lent, divided by, waited for, or kept beside an object."""

from __future__ import annotations

import math
import threading
import time
from types import SimpleNamespace

import pytest

from pytest_dp.basics.reprs import safe_repr
from pytest_dp.known_losses.known import Deriving
from pytest_dp.methods import dpfinder
from pytest_dp.running import workers
from pytest_dp.running.deadline import Deadline, OutOfTime, interrupt_if_hung


def sleeps(*_):
    """Wait as joblib does, in frames that are not ours."""
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        time.sleep(0.01)
    return iter(())


def test_waiting_for_workers_is_no_hang_of_the_mechanism(monkeypatch):
    """The machine may be busy, and give them no time."""
    monkeypatch.setattr(workers, "_run_pool", sleeps)
    with interrupt_if_hung(Deadline(0.05)):
        assert list(workers._results(2, iter(()), Deadline(60))) == []


def test_what_is_called_besides_waiting_may_hang():
    class Hanging:
        def __repr__(self):
            sleeps()
            return ""

    with pytest.raises(OutOfTime) as caught, interrupt_if_hung(Deadline(0.05)):
        safe_repr(Hanging())
    assert "sleeps" in caught.value.stack


class Unpicklable:
    def __init__(self, number):
        self.number, self.lock = number, threading.Lock()


def test_a_law_belongs_to_its_data_however_short_they_live():
    """Data that cannot be pickled are known by their id, which another object may get."""
    deriving = Deriving(lambda data, _: data.number, lambda d1, d2, _: (d1, d2))
    for number in range(50):
        inputs = Unpicklable(number), Unpicklable(-number)
        assert deriving.pair(inputs, Deadline(math.inf)) == (number, -number)


class BrokenError(Exception):
    pass


@pytest.mark.parametrize("ends", ["violated", "raised"])
def test_limits_that_dpfinder_lends_are_given_back(monkeypatch, ends):
    whole = Deadline(60)
    budget = SimpleNamespace(max_samples=1_000, deadline=whole)
    session = SimpleNamespace(budget=budget, pairs=[], is_report_only=lambda pair: pair == "beyond")

    def audited(session, *_):
        assert session.budget.max_samples == 500
        if ends == "raised":
            raise BrokenError
        return SimpleNamespace(violated=True)

    found = [SimpleNamespace(pair="beyond"), SimpleNamespace(pair="inside")]
    monkeypatch.setattr(dpfinder, "_run_restarts", lambda session: found)
    monkeypatch.setattr(dpfinder, "_audit_pairs", audited)
    if ends == "raised":
        with pytest.raises(BrokenError):
            dpfinder.audit(session)
    else:
        assert dpfinder.audit(session).result.violated
    assert (budget.max_samples, budget.deadline) == (1_000, whole)
