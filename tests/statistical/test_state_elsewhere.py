"""Mechanisms that keep something where copies do not reach: libraries, the environment."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import pytest
import states
from states import verdict

from benchmarks.state_zoo import LIBRARY, ZOO
from pytest_dp.running.calling import Call
from pytest_dp.running.subject import Subject

pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "memo_in_the_environment",
        "memo_of_a_bit_in_a_library",
        "noise_in_a_library_and_more",
        "memo_in_a_database_of_a_library",
        "memo_of_a_context",
    ],
)
def test_a_memo_where_copies_do_not_reach_is_no_violation(name):
    assert verdict(ZOO[name], "sequential", seed=0) == "error"


@pytest.mark.canary
@pytest.mark.usefixtures("_verdict_only")
def test_a_memo_where_copies_do_not_reach_hides_no_bug_without_noise():
    LIBRARY.kept = {}

    def mechanism(data):
        answer = LIBRARY.kept.setdefault(len(data), states.fixed_seed(data))
        os.environ["STATE_ZOO"] = repr(answer)
        return float(os.environ["STATE_ZOO"])

    assert verdict(lambda: mechanism, "sequential", seed=1) == "violated"


@pytest.mark.usefixtures("_verdict_only")
def test_what_a_run_leaves_in_a_library_hides_no_bug():
    def mechanism(data, rng):
        LIBRARY.asked = getattr(LIBRARY, "asked", 0) + 1
        os.environ["STATE_ZOO"] = str(LIBRARY.asked)
        return states.half_the_noise(data, rng)

    assert verdict(lambda: mechanism, "sequential", seed=1) == "violated"


def test_no_more_than_a_few_processes_wait_and_none_is_left(monkeypatch):
    """For later audits of the same mechanisms."""
    forked, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    made = [lambda data, rng: sum(data) + rng.laplace() for _ in range(8)]
    for mechanism in made:
        audited = Subject(Call(mechanism, {}), seed=1)
        audited.fork_origin()
        audited.close()
    assert len(forked) == 8
    assert 0 < sum(map(is_alive, forked)) <= 4
    made.clear()
    del mechanism, audited
    gc.collect()
    assert not any(map(is_alive, forked))


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


ENDS = """
import fcntl, os, signal, sys
from pytest_dp import audit

lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)  # forked processes hold it too

def mechanism(data, rng):
    {ends}
    return sum(data) + rng.laplace()

audit(mechanism, eps=1.0, neighbors="add_remove_one", inputs=[[1]], n_jobs=1, max_samples=1_000)
"""


@pytest.mark.parametrize("ends", ["os.kill(os.getpid(), signal.SIGTERM)", "0"])
def test_processes_that_wait_end_with_this_one_however_it_ends(ends, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    file = tmp_path / "lock"
    subprocess.run([sys.executable, "-c", ENDS.format(ends=ends), file], check=ends == "0")
    until = time.monotonic() + 60
    with file.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < until
                time.sleep(0.01)
