"""Mechanisms that keep something from run to run: no verdict of ours may be red because of it."""

# ruff: noqa: NPY002
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pytest_dp import MechanismError, audit
from pytest_dp.sampling.deadline import OutOfTime
from pytest_dp.sampling.sampler import Sampler

METHODS = ["sequential", "statdp", "dpsniper"]
RECORDS = {"neighbors": "add_remove_one", "inputs": [[1] * n for n in range(1, 6)]}
TRUTH_KEPT = np.exp(0.9) / (1 + np.exp(0.9))


pytestmark = pytest.mark.usefixtures("_without_blame")


def verdict(make, method, seed, **keywords):
    common = {"eps": 1.0, "n_jobs": 1, "max_samples": 10_000, **RECORDS}
    try:
        return audit(make(), method=method, seed=seed, **{**common, **keywords}).verdict
    except MechanismError as error:
        said = str(error)
        return "error" if "keeps something" in said or "not independent" in said else said


class NoCopy:
    def __init__(self):
        self.kept = {}

    def __reduce__(self):
        raise TypeError("not to be copied")


# --- correct, as long as it is not asked twice ---


def memo():
    kept = {}

    def mechanism(data, rng):
        return kept.setdefault(len(data), sum(data) + rng.laplace())

    return mechanism


def cached():
    @functools.lru_cache
    def noise(n):
        return np.random.laplace()

    return lambda data: sum(data) + noise(len(data))


class CachedOnTheClass:
    kept: dict = {}  # noqa: RUF012

    def __call__(self, data, rng):
        if len(data) not in self.kept:
            self.kept[len(data)] = sum(data) + int(rng.geometric(0.63) - rng.geometric(0.63))
        return self.kept[len(data)]


def cached_on_the_class():
    CachedOnTheClass.kept.clear()
    return CachedOnTheClass()


def memo_of_a_bit():
    kept = {}

    def mechanism(data, rng):
        truth = len(data) % 2
        return kept.setdefault(len(data), truth if rng.random() < 0.7 else 1 - truth)

    return mechanism


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [memo, cached, cached_on_the_class, memo_of_a_bit])
def test_a_memo_is_an_error_and_no_verdict(make, method):
    found = [verdict(make, method, seed) for seed in range(3 if make is memo_of_a_bit else 1)]
    assert "violated" not in found
    # By chance a bit may be the same on all inputs.
    assert found.count("error") >= (2 if make is memo_of_a_bit else 1)


def permanent_response():
    """RAPPOR: a bit is kept, and then randomised again for every answer."""
    kept = {}

    def mechanism(bit, rng):
        if bit not in kept:
            kept[bit] = bit if rng.random() < TRUTH_KEPT else 1 - bit
        return kept[bit] if rng.random() < 0.85 else 1 - kept[bit]

    return mechanism


@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_and_then_randomised_again_is_an_error(method):
    pairs = {"pairs": [(0, 1)], "neighbors": None, "inputs": None}
    found = [verdict(permanent_response, method, seed, **pairs) for seed in range(5)]
    assert "violated" not in found
    assert found.count("error") >= 1


def test_the_reason_and_the_remedy_are_given():
    with pytest.raises(MechanismError, match=r"lambda.* keeps something .* Claim .* afresh"):
        audit(cached(), eps=1.0, seed=1, n_jobs=1, **RECORDS)


def test_what_an_audit_left_behind_makes_no_alarm_in_the_next():
    mechanism = memo()
    assert verdict(lambda: mechanism, "sequential", 1) == "error"
    assert verdict(lambda: mechanism, "sequential", 2) == "error"


ANSWERED: dict = {}


def remembers_in_its_module(data):
    if len(data) not in ANSWERED:
        ANSWERED[len(data)] = sum(data) + np.random.laplace()
    return ANSWERED[len(data)]


SCALES = {"laplace": 0.5}


def looks_a_constant_up(data):
    return sum(data) * SCALES["laplace"]


def test_a_memo_that_was_filled_before_is_told_by_another_process():
    for n in range(7):
        remembers_in_its_module([1] * n)
    assert verdict(lambda: remembers_in_its_module, "sequential", 1) == "error"
    assert verdict(lambda: looks_a_constant_up, "sequential", 1, eps=0.3) == "violated"


class Service:
    """Which two claims of a session are on; it may hold what cannot be copied."""

    def __init__(self, held=None):
        self.kept, self.held = {}, held

    def total(self, data, rng):
        return self.kept.setdefault(len(data), sum(data) + rng.laplace())

    def half(self, data, rng, times=1):
        return times * self.kept.setdefault(len(data), 2 * sum(data) + 2 * rng.laplace()) / 2


SHARED = Service()


@pytest.mark.parametrize("held", [None, NoCopy()])
def test_what_an_audit_left_in_an_object_makes_no_alarm_in_the_next(held):
    service = Service(held)
    assert verdict(lambda: service.total, "sequential", 1) == "error"
    assert verdict(lambda: service.half, "sequential", 2, params={"times": 1}) == "error"


def test_what_an_audit_left_in_a_module_makes_no_alarm_in_the_next():
    assert verdict(lambda: SHARED.total, "sequential", 1) == "error"
    assert verdict(lambda: through_a_function, "sequential", 2) == "error"


def through_a_function(data, rng):
    return SHARED.total(data, rng)


# --- what cannot be copied ---


def behind_what_cannot_be_copied():
    """Answers behind an object that refuses to be copied."""
    return Service(NoCopy()).total


def in_a_database():
    base = sqlite3.connect(":memory:")
    base.execute("create table kept (n primary key, answer)")

    def mechanism(data, rng):
        (known,) = base.execute("select max(answer) from kept where n = ?", [len(data)]).fetchone()
        if known is None:
            known = sum(data) + rng.laplace()
            base.execute("insert into kept values (?, ?)", [len(data), known])
        return known

    return mechanism


def in_a_generator():
    def answers():
        kept, answer = {}, None
        while True:
            data, rng = yield answer
            answer = kept.setdefault(len(data), sum(data) + rng.laplace())

    running = answers()
    next(running)
    return lambda data, rng: running.send((data, rng))


def in_a_thread():
    local = threading.local()
    return lambda data, rng: vars(local).setdefault(str(len(data)), sum(data) + rng.laplace())


def in_memory_of_c():
    cells = (ctypes.c_double * 10)()
    known = ctypes.pointer(cells)

    def mechanism(data, rng):
        known.contents[len(data)] = known.contents[len(data)] or sum(data) + rng.laplace()
        return known.contents[len(data)]

    return mechanism


def copies_that_fail_when_used():
    class Handle:
        open, kept = True, {}

        def __setstate__(self, state):
            self.open = False

        def __getstate__(self):
            return {"closed": True}

        def answer(self, data, rng):
            if not self.open:
                raise OSError("closed")
            return self.kept.setdefault(len(data), sum(data) + rng.laplace())

    return Handle().answer


def a_bit_behind_a_pool_of_threads():
    pool, kept = ThreadPoolExecutor(1), {}

    def mechanism(data, rng):
        truth = len(data) % 2
        answer = truth if rng.random() < 0.7 else 1 - truth
        return pool.submit(kept.setdefault, len(data), answer).result()

    return mechanism


UNCOPIED = [
    behind_what_cannot_be_copied,
    in_a_database,
    in_a_generator,
    in_a_thread,
    in_memory_of_c,
    copies_that_fail_when_used,
    a_bit_behind_a_pool_of_threads,
]


@pytest.mark.parametrize("make", UNCOPIED)
def test_a_memo_that_cannot_be_copied_is_no_violation(make):
    assert verdict(make, "sequential", seed=0) == "error"


@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize("name", ["fixed_seed", "half_the_noise"])
def test_bugs_that_hold_what_cannot_be_copied_stay_violations(name):
    def make():
        held, bug = NoCopy(), globals()[name]

        def mechanism(data, rng):
            assert held.kept == {}
            return bug(data) if name == "fixed_seed" else bug(data, rng)

        return mechanism

    assert verdict(make, "sequential", seed=1) == "violated"


@pytest.mark.usefixtures("_verdict_only")
def test_each_process_that_is_forked_has_random_numbers_of_its_own():
    hidden = np.array([np.random.default_rng(3), NoCopy()], dtype=object)
    assert verdict(lambda: lambda data: sum(data) + hidden[0].laplace(0, 0.5), "sequential", 1) == (
        "violated"
    )


def connected():
    here, there = socket.socketpair()

    def mechanism(data, rng):
        here.send(b"?")
        there.recv(1)
        return sum(data)

    return mechanism


@pytest.mark.parametrize("kept", ["json", "database", "lines"])
def test_an_answer_in_a_file_is_no_violation(kept, tmp_path):
    """Files are no part of a process: nothing can start afresh there."""
    file = tmp_path / "answers"

    def mechanism(data, rng):
        if kept == "database":
            with contextlib.closing(sqlite3.connect(file)) as base, base:
                base.execute("create table if not exists kept (n primary key, answer)")
                found = base.execute("select answer from kept where n = ?", [len(data)]).fetchall()
                answer = found[0][0] if found else sum(data) + rng.laplace()
                base.execute("insert or ignore into kept values (?, ?)", [len(data), answer])
            return answer
        known = json.loads(file.read_text()) if file.exists() else {}
        if str(len(data)) not in known:
            known[str(len(data))] = sum(data) + rng.laplace()
            file.write_text(json.dumps(known))
        return known[str(len(data))]

    def writes_lines(data, rng):
        with file.open("a") as lines:
            lines.write("asked\n")
        return sum(data)

    if kept == "lines":
        assert verdict(lambda: writes_lines, "sequential", 1) == "violated"
    else:
        result = audit(mechanism, eps=1.0, seed=1, n_jobs=1, max_samples=2_000, **RECORDS)
        assert result.verdict == "inconclusive"
        assert f"reads {file}" in result.reason


def kept_in_names(folder):
    def mechanism(data, rng):
        start = f"{len(data)}_"
        for file in folder.iterdir():
            if file.name.startswith(start):
                return float(file.name.removeprefix(start))
        answer = sum(data) + rng.laplace()
        (folder / f"{start}{answer!r}").touch()
        return answer

    return mechanism


def kept_below_noise(folder):
    """As RAPPOR does: an answer that is drawn once, and some noise for each time it is told."""

    def mechanism(data, rng):
        file = folder / str(len(data))
        if not file.exists():
            file.write_text(repr(sum(data) + rng.laplace()))
        return float(file.read_text()) + rng.normal(scale=0.01)

    return mechanism


@pytest.mark.parametrize("make", [kept_in_names, kept_below_noise])
def test_an_answer_in_a_folder_or_below_noise_is_no_violation(make, tmp_path):
    result = audit(make(tmp_path), eps=1.0, seed=1, n_jobs=1, max_samples=2_000, **RECORDS)
    assert result.verdict == "inconclusive"
    assert f"reads {tmp_path}" in result.reason


def written_and_read(folder):
    def mechanism(data):
        file = folder / "passed on"
        file.write_text(repr(sum(data)))
        return float(file.read_text())

    return mechanism


def counted_in_a_file(folder):
    def mechanism(data, rng):
        file = folder / "asked"
        file.write_text(str(int(file.read_text()) + 1 if file.exists() else 1))
        return sum(data) + rng.laplace(scale=0.2)

    return mechanism


@pytest.mark.parametrize("make", [written_and_read, counted_in_a_file])
def test_files_that_each_run_writes_hide_no_violation(make, tmp_path):
    assert verdict(lambda: make(tmp_path), "sequential", 1, max_samples=4_000) == "violated"


def waits_for_a_thread():
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    return lambda data, rng: pool.submit(sum, data).result()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (connected, "BrokenPipeError"),
        (waits_for_a_thread, "waits for a thread"),
        (in_a_database, "cannot fork"),
    ],
)
def test_a_violation_that_cannot_be_confirmed_is_inconclusive_and_says_why(make, why, monkeypatch):
    monkeypatch.setattr("pytest_dp.sampling.subject.HUNG_SECONDS", 0.5)
    if make is in_a_database:
        monkeypatch.delattr("os.fork")
    result = audit(make(), eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "inconclusive"
    assert result.p_value is None
    assert "could not be started afresh: " in result.reason
    assert why in result.reason
    assert "Claim a function that makes what it holds" in result.reason


def test_a_violation_without_time_to_confirm_it_is_inconclusive(monkeypatch):
    def late(*_):
        raise OutOfTime

    monkeypatch.setattr(Sampler, "afresh", late)
    result = audit(missing, eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "inconclusive"
    assert "raise max_seconds" in result.reason


def test_the_pair_that_broke_the_claim_is_confirmed(monkeypatch):
    """Also where there was no time for a counterexample."""
    confirmed = []

    def afresh(self, dataset, *others):
        confirmed.append(dataset.live)
        return afresh_before(self, dataset, *others)

    afresh_before = Sampler.afresh
    monkeypatch.setattr(Sampler, "afresh", afresh)
    monkeypatch.setattr("pytest_dp.auditors.concluding._strongest", lambda *_: None)

    def mechanism(data, rng):
        return rng.laplace(scale=0.1 if len(data) == 4 else 1.0)

    result = audit(mechanism, eps=1.0, seed=1, n_jobs=1, **RECORDS)
    assert result.verdict == "violated"
    assert result.counterexample is None
    assert [1] * 4 in confirmed


def test_processes_end_with_the_mechanism(monkeypatch):
    forked, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    assert verdict(in_a_database, "sequential", 1) == "error"
    gc.collect()
    assert forked
    for process in forked:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


# --- real bugs, whatever they look like ---

AT_IMPORT = np.random.default_rng(5).laplace()


def missing(data, rng):
    return sum(data)


def fixed_seed(data):
    return sum(data) + np.random.default_rng(3).laplace()


def seeds_the_globals(data):
    np.random.seed(3)
    return sum(data) + np.random.laplace()


def drawn_at_import(data):
    """One noise value for all inputs that are ever asked about: it cancels in differences."""
    return sum(data) + AT_IMPORT


def caches_nothing_random(data, rng):
    return _total(len(data)) + rng.laplace(scale=0.4)


@functools.lru_cache
def _total(n):
    return n


def half_the_noise(data, rng):
    return sum(data) + rng.laplace(scale=0.5)


def response(data, rng):
    return len(data) % 2 if rng.random() < 0.9 else 1 - len(data) % 2


@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize(
    ("mechanism", "method"),
    [
        (missing, "sequential"),
        (fixed_seed, "sequential"),
        (seeds_the_globals, "sequential"),
        (drawn_at_import, "sequential"),
        (caches_nothing_random, "sequential"),
        (half_the_noise, "sequential"),
        (response, "sequential"),
        (fixed_seed, "statdp"),
        (caches_nothing_random, "statdp"),
        (seeds_the_globals, "dpsniper"),
        (half_the_noise, "dpsniper"),
    ],
)
def test_bugs_stay_violations(mechanism, method):
    assert verdict(lambda: mechanism, method, seed=1) == "violated"


# --- buffers ---


@pytest.mark.parametrize("size", [150, 1_000])
def test_a_buffer_is_no_violation(size):
    def make():
        buffer = []

        def pooled(data, rng):
            if not buffer:
                buffer.extend(rng.laplace(size=size))
            return sum(data) + buffer.pop()

        return pooled

    inputs = {"inputs": [[1] * n for n in range(1, 16)]}
    found = [verdict(make, "sequential", seed, **inputs) for seed in range(2)]
    assert set(found) <= {"no violation", "inconclusive"}


# --- samples ---


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [0.5, 1.0])
@pytest.mark.parametrize("vectorized", [None, "size"])
def test_samples_are_all_runs_that_were_made(method, scale, vectorized, monkeypatch):
    from pytest_dp.sampling.calling import Made

    made = []

    class Counting(Made):
        def __init__(self, runs=0):
            super().__init__(runs)
            made.append(self)

    monkeypatch.setattr("pytest_dp.sampling.subject.Made", Counting)

    def mechanism(data, rng, size=None):
        return sum(data) + rng.laplace(scale=scale, size=size)

    result = audit(
        mechanism, eps=1.0, max_samples=5_000, method=method, vectorized=vectorized, n_jobs=1,
        **RECORDS
    )  # fmt: skip
    assert result.samples == max(count.runs for count in made)  # the others look at copies only
    assert result.samples <= 5_000 * 1.15
