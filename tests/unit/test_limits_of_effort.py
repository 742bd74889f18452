"""Where limits of an audit are lent, divided by, waited for, or kept beside an object."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import pytest

from pytest_dp.known_losses.known import Deriving
from pytest_dp.methods import dpfinder
from pytest_dp.running.deadline import Deadline


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
