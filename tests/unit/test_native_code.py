"""Mechanisms that call native code, which calls Python: nothing is raised below native code."""

from __future__ import annotations

import ctypes
import sqlite3
import subprocess
import sys
import time

import pytest
from drawing import outputs

from pytest_dp import MechanismError
from pytest_dp.running import deadline
from pytest_dp.running.deadline import OutOfTime, within

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
RETURNED: list[str] = []
"""What was called from native code and came to its end."""


def takes_a_while(*_):
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until:
        pass
    RETURNED.append("call")
    return 0


def sorts():
    """Sort two numbers in C, with a comparator in Python."""
    numbers = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), CALLBACK(takes_a_while))


def calls_through_cffi():
    ffi = pytest.importorskip("cffi").FFI()
    ffi.callback("int(int)", takes_a_while)(1)


@pytest.mark.parametrize("calls", [sorts, calls_through_cffi])
def test_waits_until_native_code_has_returned(calls, monkeypatch):
    dropped, ended = [], []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    def compute():
        calls()
        ended.append("call")
        for _ in range(10**9):
            pass

    RETURNED.clear()
    with pytest.raises(OutOfTime):
        within(0.05, compute)
    assert RETURNED, "what native code called was not interrupted"
    assert not dropped
    assert len(ended) <= 1  # the next line is enough


def spins():
    while True:
        pass


def test_an_interrupted_query_is_no_output():
    """SQLite makes an error of its own of what is raised in a function of SQL."""

    def counts(data):
        with sqlite3.connect(":memory:") as database:
            database.create_function("slow", 0, spins)
            return database.execute("select slow()").fetchone()[0]

    with pytest.raises(OutOfTime):
        outputs(counts, seconds=0.2)


HANGS = """
import ctypes
from pytest_dp import audit
from pytest_dp.running import deadline
deadline.PATIENCE_SECONDS = deadline.SECONDS_IN_ALL = 1.0
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def hangs(a, b):
    while True:
        pass
def noisy_count(records, rng):
    if rng.random() < 0.1:
        ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, hangs)
    return len(records) + rng.laplace()
audit(noisy_count, eps=1.0, pairs=[([1], [])], max_seconds=0.5, n_jobs=1)
"""


@pytest.mark.slow
def test_a_process_whose_native_code_never_returns_is_ended():
    command = [sys.executable, "-c", HANGS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    for said in ("Timeout", "in noisy_count", "in hangs", "in end_if_hung"):
        assert said in ended.stderr
    for said in ("Exception ignored", "Traceback"):
        assert said not in ended.stderr


@pytest.mark.slow
def test_pytest_says_where_it_was_ended(tmp_path):
    """Though pytest captures what is written."""
    (tmp_path / "conftest.py").write_text(
        "from pytest_dp.running import deadline\n"
        "deadline.PATIENCE_SECONDS = deadline.SECONDS_IN_ALL = 0.5\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import collections, itertools, pytest\n"
        "@pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])], max_seconds=0.3)\n"
        "def test_count(dp_check):\n"
        "    dp_check(lambda data: collections.deque(itertools.count(), 0))\n"
    )
    command = [sys.executable, "-m", "pytest", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ended.returncode
    assert 'test_it.py", line 4 in <lambda>' in ended.stderr


def test_what_hangs_outside_of_runs_is_interrupted(monkeypatch):
    class Hanging:
        def __repr__(self):
            return spins()

    monkeypatch.setattr(deadline, "SECONDS_IN_ALL", 0.1)
    with pytest.raises(MechanismError, match=r"shows hangs: it did not end(?s:.*)in spins"):
        deadline.end_if_hung("shows", 0.05, lambda: repr(Hanging()))
