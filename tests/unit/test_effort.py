"""How much of `max_seconds` is spent: by clocks that only the tests move."""

from __future__ import annotations

import math

import pytest
from scipy.special import ndtri

from pytest_dp import audit
from pytest_dp.basics import clocks
from pytest_dp.claiming.settings import VECTORIZED_SAMPLES
from pytest_dp.running.deadline import Deadline


class Machine:
    """A machine that gives this process a share of a core."""

    def __init__(self):
        self.now, self.computed, self.share = 1_000.0, 7.0, 1.0

    def compute(self, seconds):
        self.computed += seconds
        self.now += seconds / self.share

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    monkeypatch.setattr(clocks, "seconds", lambda: made.now)
    monkeypatch.setattr(clocks, "process_seconds", lambda: made.computed)
    return made


def test_no_more_than_four_times_as_much_time_passes_on_a_busy_machine(machine):
    deadline, machine.share = Deadline(60), 0.01
    while deadline.remaining() > 0:
        machine.compute(0.01)
    assert 1_000 + 4 * 60 <= machine.now <= 1_000 + 4 * 60 + 1.1


def test_processor_time_of_workers_counts(monkeypatch):
    monkeypatch.setattr(clocks, "_ELSEWHERE", [0.0])
    deadline = Deadline(1e6)
    clocks.add_process_seconds(5e5)
    assert deadline.remaining() == pytest.approx(5e5, rel=1e-3)


def test_workers_share_the_time_that_is_left(machine):
    there = Deadline(*Deadline(60).remaining_times(), clocks.Stopwatch(2))
    machine.compute(10)
    assert there.remaining() == 40
    machine.wait(80)  # of which a quarter counts
    assert there.remaining() == 60 - 90 / 4
    machine.wait(151)
    assert there.remaining() < 0


@pytest.mark.slow
def test_an_audit_on_a_busy_machine_does_the_same_work(machine):
    """What it would have caught after 2 s of a core does not depend on what else runs."""

    def noisy_count(records, rng):
        machine.compute(0.001)
        return len(records) + rng.laplace()

    def audited():
        claim = {"eps": 1.0, "pairs": [([0], [])], "margin": None, "max_seconds": 2}
        return audit(noisy_count, **claim, seed=1, n_jobs=1)

    idle, machine.share = audited(), 0.3
    busy = audited()
    assert idle.samples > 500
    assert (busy.samples, busy.resolution) == (idle.samples, idle.resolution)


@pytest.mark.slow
def test_what_is_cut_off_says_what_was_left_undone(machine):
    def noisy_count(records, rng):
        machine.compute(0.5)
        return len(records) + rng.laplace()

    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[k] * k for k in range(12)]}
    result = audit(noisy_count, **claim, max_seconds=20, seed=1, n_jobs=1)
    (note,) = (note for note in result.notes if note.startswith("cut off after max_seconds=20"))
    assert "pairs not looked at well" in note
    assert math.isinf(result.resolution)
    assert result.verdict == "inconclusive"


NEEDED = 3.7303
"""The deviation of Gaussian noise that (1, 1e-5) needs at sensitivity 1 (analytic mechanism)."""
PAIR = {"pairs": [([0], [1])], "n_jobs": 1, "vectorized": "size"}


def gaussian(data, scale, rng, size):
    return data[0] + rng.normal(scale=scale, size=size)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("factor", "violated"), [(0.8, True), (1.001, False)])
def test_gaussian_noise_a_fifth_too_small_under_a_delta_is_found_by_default(factor, violated):
    common = {"eps": 1.0, "delta": 1e-5, "seed": 1, "max_seconds": 200, **PAIR}
    result = audit(lambda d, rng, size: d[0] + factor * NEEDED * ndtri(rng.random(size)), **common)
    assert result.violated == violated
    assert 400_000 < result.samples <= VECTORIZED_SAMPLES


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_a_violation_by_gaussian_noise_names_the_claim_that_takes_fewer_runs():
    said = "claim mu=0.268: it asks the same of Gaussian noise, and takes fewer runs"
    claim = {"eps": 1.0, "delta": 1e-5, "seed": 1, **PAIR}
    by_delta = audit(gaussian, params={"scale": 0.4 * NEEDED}, **claim)
    by_mu = audit(gaussian, params={"scale": 0.4 * NEEDED}, mu=0.268, seed=1, **PAIR)
    assert by_delta.violated
    assert by_mu.violated
    assert by_mu.bet_samples < by_delta.bet_samples / 4
    assert (said in by_delta.notes, said in by_mu.notes) == (True, False)
