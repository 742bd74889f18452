"""Mechanisms that keep what cannot be copied, or files: confirmed, or not red."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from states import RECORDS, NoCopy, half_the_noise, missing, verdict

from benchmarks.state_zoo import ZOO
from pytest_dp import audit
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.sampler import Sampler

pytestmark = pytest.mark.usefixtures("_without_blame")


def a_bit_behind_a_pool_of_threads():
    pool, kept = ThreadPoolExecutor(1), {}

    def mechanism(data, rng):
        truth = len(data) % 2
        answer = truth if rng.random() < 0.7 else 1 - truth
        return pool.submit(kept.setdefault, len(data), answer).result()

    return mechanism


UNCOPIED = [
    ZOO["memo_that_refuses_to_be_copied"],
    ZOO["memo_in_memory_of_c"],
    a_bit_behind_a_pool_of_threads,
]


@pytest.mark.canary
@pytest.mark.parametrize("make", UNCOPIED)
def test_a_memo_that_cannot_be_copied_is_no_violation(make):
    assert verdict(make, "sequential", seed=0) == "error"


@pytest.mark.usefixtures("_verdict_only")
def test_bugs_that_hold_what_cannot_be_copied_stay_violations():
    held = NoCopy()

    def mechanism(data, rng):
        assert held.kept == {}
        return half_the_noise(data, rng)

    assert verdict(lambda: mechanism, "sequential", seed=1) == "violated"


@pytest.mark.usefixtures("_verdict_only")
def test_each_process_that_is_forked_has_random_numbers_of_its_own():
    hidden = np.array([np.random.default_rng(3), NoCopy()], dtype=object)
    assert verdict(lambda: lambda data: sum(data) + hidden[0].laplace(0, 0.5), "sequential", 1) == (
        "violated"
    )


def half_the_noise_of_bytes():
    """Draws are of bytes in reserve, as of compiled code: a process that is forked has them too."""
    hold, draws = NoCopy(), iter(np.random.default_rng(5).bytes(1 << 20))

    def mechanism(data):
        uniform = (next(draws) + (next(draws) + 0.5) / 256) / 256 - 0.5
        noise = -0.4 * np.sign(uniform) * np.log1p(-2 * abs(uniform))
        return len(data) + noise + len(hold.kept)

    return mechanism


def a_bit_that_is_kept_and_noise():
    hold, draws, kept = NoCopy(), iter(np.random.default_rng(5).bytes(1 << 20)), {}

    def mechanism(data):
        bit = kept.setdefault(len(data), len(data) % 2 ^ (next(draws) < 128))
        return 2 * (next(draws) % 8) + bit + len(hold.kept)

    return mechanism


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("make", "found"), [(half_the_noise_of_bytes, True), (a_bit_that_is_kept_and_noise, False)]
)
def test_forks_that_draw_alike_confirm_nothing_and_the_order_of_runs_does(make, found):
    assert (verdict(make, "sequential", seed=0) == "violated") == found


def connected():
    here, there = socket.socketpair()

    def mechanism(data, rng):
        here.send(b"?")
        there.recv(1)
        return sum(data)

    return mechanism


def test_an_answer_in_a_file_and_below_noise_is_no_violation(tmp_path):
    """Files are no part of a process: nothing can start afresh there."""

    def kept_below_noise(data, rng):
        file = tmp_path / str(len(data))
        if not file.exists():
            file.write_text(repr(sum(data) + rng.laplace()))
        return float(file.read_text()) + rng.normal(scale=0.01)

    result = audit(kept_below_noise, eps=1.0, seed=1, n_jobs=1, max_samples=2_000, **RECORDS)
    assert result.verdict == "inconclusive"
    assert f"reads {tmp_path}" in result.reason


def test_files_that_each_run_writes_hide_no_violation(tmp_path):
    def written_and_read(data):
        file = tmp_path / "passed on"
        file.write_text(repr(sum(data)))
        return float(file.read_text())

    assert verdict(lambda: written_and_read, "sequential", 1, max_samples=4_000) == "violated"


def waits_for_a_thread():
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    return lambda data, rng: pool.submit(sum, data).result()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (connected, "BrokenPipeError"),
        (waits_for_a_thread, "waits for a thread"),
        (ZOO["memo_in_a_database"], "cannot pickle 'sqlite3.Connection'"),
    ],
)
def test_a_violation_that_cannot_be_confirmed_is_inconclusive_and_says_why(make, why, monkeypatch):
    if make is waits_for_a_thread:
        monkeypatch.setattr("pytest_dp.running.subject.HUNG_SECONDS", 2.0)
        monkeypatch.setattr(OutOfTime, "__reduce__", lambda _: 1 / 0)  # such as with a frame in it
    if make is ZOO["memo_in_a_database"]:
        monkeypatch.delattr("os.fork")
    result = audit(make(), eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "inconclusive"
    assert result.p_value is None
    assert "could not be restarted: " in result.reason
    assert why in result.reason, result.reason
    assert "Claim a function that makes its own connection" in result.reason
    assert "It was seen on D = " in result.reason


def test_a_violation_without_time_to_confirm_it_is_inconclusive(monkeypatch):
    def late(*_):
        raise OutOfTime

    monkeypatch.setattr(Sampler, "run_afresh", late)
    result = audit(missing, eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "inconclusive"
    assert "raise max_seconds" in result.reason


def test_the_pair_that_broke_the_claim_is_confirmed(monkeypatch):
    """Also where there was no time for a counterexample."""
    confirmed = []

    def run_afresh(self, dataset, *others):
        confirmed.append(dataset.live)
        return afresh_before(self, dataset, *others)

    afresh_before = Sampler.run_afresh
    monkeypatch.setattr(Sampler, "run_afresh", run_afresh)
    monkeypatch.setattr("pytest_dp.auditors.violation_shown.find_attack", lambda *_: None)

    def mechanism(data, rng):
        return rng.laplace(scale=0.1 if len(data) == 4 else 1.0)

    result = audit(mechanism, eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "violated"
    assert result.counterexample is None
    assert [1] * 4 in confirmed
