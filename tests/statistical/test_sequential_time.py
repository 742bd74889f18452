"""Audits end with their time, whatever it is that takes long, with a verdict from what was bet."""

from __future__ import annotations

import pytest

from pytest_dp import audit
from pytest_dp.auditors.budget import Budget
from pytest_dp.basics import clocks
from pytest_dp.report.violation import violation

SECONDS = 2.0
ASLEEP = 0.02


def audited(mechanism, **keywords):
    common = {"pairs": [([0], [])], "seed": 1, "n_jobs": 1, "max_seconds": SECONDS}
    return audit(mechanism, eps=1.0, **{**common, **keywords})


def by_clock(monkeypatch, now):
    """Let nothing but `now` tell how much time has passed, and was computed."""
    monkeypatch.setattr(clocks, "seconds", lambda: now[0])
    monkeypatch.setattr(clocks, "process_seconds", lambda: now[0])


def broken_count(records, rng):
    return len(records) + rng.laplace(scale=0.4)


@pytest.mark.canary
def test_a_mechanism_that_takes_all_the_time_is_run_no_more_often_than_that_allows(monkeypatch):
    """By a clock that each run moves on, which interrupts none of the runs of a batch."""
    now = [0.0]
    by_clock(monkeypatch, now)

    def sleepy(records, rng):
        now[0] += ASLEEP
        return len(records) + rng.laplace()

    one = audited(sleepy)
    pairs = {"inputs": [[i] * i for i in range(12)], "neighbors": "add_remove_one", "pairs": None}
    many = audited(sleepy, **pairs)
    for result in (one, many):
        assert 0 < result.samples * ASLEEP < 1.5 * SECONDS
    assert any("what may help" in note and "vectorized=" in note for note in one.notes)


def test_what_was_refuted_stays_so_if_a_run_is_cut_off_later(monkeypatch):
    from pytest_dp.auditors import violation_shown
    from pytest_dp.running.deadline import OutOfTime

    def cut_off(*_):
        raise OutOfTime("in the middle of a run")

    monkeypatch.setattr(violation_shown, "find_attack", cut_off)
    result = audited(broken_count)
    assert result.violated
    assert not any("cut off after max_seconds" in note for note in result.notes), "they were not up"
    assert any(note.endswith("run it again to see more") for note in result.notes)


def test_a_machine_that_gets_busy_takes_no_counterexample_away(monkeypatch):
    """By a clock that each run moves on: after the claim is refuted, by 50 times as much."""
    now, cost, proved = [0.0], [0.005], []
    by_clock(monkeypatch, now)
    start = Budget.start_reporting

    def gets_busy(budget):
        proved.append(now[0])
        start(budget)
        cost[0] *= 50

    monkeypatch.setattr(Budget, "start_reporting", gets_busy)

    def slow(records, rng):
        now[0] += cost[0]
        return sum(records) + rng.laplace(scale=0.3)

    result = audit(slow, eps=1.0, inputs=[[1, 0, 1]], neighbors="add_remove_one", seed=1, n_jobs=1)
    assert result.violated
    assert proved[0] < 30.0, "half of max_seconds is left, and more"
    assert now[0] < 66.0
    example = result.counterexample
    assert min(example.runs) > 0
    assert "No effort was left" not in violation(result)
