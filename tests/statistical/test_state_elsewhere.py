"""Mechanisms that keep something where copies do not reach: libraries, the environment."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import states
from states import verdict

from benchmarks.state_zoo import ELSEWHERE, LIBRARY, ZOO
from pytest_dp.running.calling import Call
from pytest_dp.running.subject import Subject

pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.nightly
@pytest.mark.parametrize("make", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_memo_where_copies_do_not_reach_is_no_violation(make):
    assert verdict(make, "sequential", seed=0) == "error"


def test_a_response_that_is_kept_where_copies_do_not_reach_is_no_violation():
    pairs = {"pairs": [([], [1])], "neighbors": None, "inputs": None}
    found = [verdict(ZOO["response_in_a_library"], "sequential", n, **pairs) for n in range(3)]
    assert "violated" not in found
    assert "error" in found


def kept_by(bug):
    """Answers in a library and in the environment, beside a mechanism that is broken."""
    LIBRARY.kept = {}

    def mechanism(data, rng):
        answer = bug(data) if bug is states.fixed_seed else bug(data, rng)
        os.environ["STATE_ZOO"] = repr(LIBRARY.kept.setdefault(len(data), answer))
        return float(os.environ["STATE_ZOO"])

    return mechanism


@pytest.mark.canary
@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize("bug", [states.missing, states.fixed_seed])
def test_a_memo_where_copies_do_not_reach_hides_no_bug_without_noise(bug):
    assert verdict(lambda: kept_by(bug), "sequential", seed=1) == "violated"


@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize("name", ["missing", "fixed_seed", "half_the_noise"])
def test_what_a_run_leaves_in_a_library_hides_no_bug(name):
    bug = getattr(states, name)

    def mechanism(data, rng):
        LIBRARY.asked = getattr(LIBRARY, "asked", 0) + 1
        os.environ["STATE_ZOO"] = str(LIBRARY.asked)
        return bug(data) if name == "fixed_seed" else bug(data, rng)

    assert verdict(lambda: mechanism, "sequential", seed=1) == "violated"


@pytest.mark.usefixtures("_verdict_only")
def test_a_generator_that_all_forked_processes_share_hides_no_violation():
    """As that of compiled code, which nobody can seed."""
    held = iter(np.random.default_rng(1).laplace(scale=0.5, size=100_000))
    LIBRARY.draw = lambda: next(held)
    assert verdict(lambda: lambda data: sum(data) + LIBRARY.draw(), "sequential", 1) == "violated"


def test_no_more_than_a_few_processes_wait_and_none_is_left(monkeypatch):
    """For later audits of the same mechanisms."""
    forked, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    made = [lambda data, rng: sum(data) + rng.laplace() for _ in range(8)]
    for mechanism in made:
        audited = Subject(Call(mechanism, {}), seed=1)
        audited.begin()
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


@pytest.mark.parametrize(
    "ends", ["os._exit(1)", "os.kill(os.getpid(), signal.SIGTERM)", "os.abort()", "0"]
)
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
