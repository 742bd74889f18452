"""Mechanisms in interpreters that start anew: how they are found there, and that none is left."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest

from pytest_dp.running import forked, interpreters
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Chunk, Input
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.interpreters import STARTS, NewInterpreters
from pytest_dp.running.locating import locate
from pytest_dp.running.runner import Runner

MODULE = """
import numpy as np

def plain(data, rng):
    return sum(data) + rng.laplace()

named = lambda data, rng: sum(data) + rng.laplace()
table = {"a": [None, {"b": lambda data, rng: sum(data) + rng.laplace()}]}

class Memo:
    def __init__(self):
        self.kept = {}

    def answer(self, data, rng):
        return self.kept.setdefault(len(data), sum(data) + rng.laplace())

memo = Memo()
"""
A_THREAD = """
import ctypes

c = ctypes.CDLL(None)
assert not c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, c.pause, None)
"""
"""Starts a thread that Python did not make, as compiled code does."""
needs_tasks = pytest.mark.skipif(not forked.TASKS.exists(), reason="threads are listed on Linux")


@pytest.fixture(autouse=True)
def _stopped():
    interpreters.stop()
    yield
    interpreters.stop()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module as pytest loads it in the mode importlib: its folder is not on sys.path."""
    return loaded(tmp_path, monkeypatch, MODULE)


def loaded(folder, monkeypatch, source):
    file = folder / "test_released.py"
    file.write_text(source)
    name = "made_up.folders.test_released"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def drawn(mechanism, starts=2, runs=3):
    anew = NewInterpreters(Call(mechanism, {}, "rng"), Pristine((mechanism, {})))
    works = [[(Input([1, 2]), [Chunk(runs, (9, k, 0))])] for k in range(starts)]
    return [anew.run(None, Runner(1), work, Deadline(20), 5.0)[0] for work in works], anew


@pytest.mark.parametrize(
    "find",
    [
        lambda module: module.plain,
        lambda module: module.named,
        lambda module: module.table["a"][1]["b"],
        lambda module: module.memo.answer,
    ],
    ids=["a function", "a lambda", "an entry of a table", "a method of an object"],
)
def test_a_mechanism_is_found_in_its_module(module, find):
    mechanism = find(module)
    (once, again), _ = drawn(mechanism)
    assert locate(mechanism).module == module.__name__
    assert once != again
    assert len(set(once)) == (1 if mechanism == module.memo.answer else 3)


def test_a_closure_is_sent_as_it_was_before_its_first_run():
    kept = {}

    def mechanism(data, rng):
        return kept.setdefault(len(data), sum(data) + rng.laplace())

    anew = NewInterpreters(Call(mechanism, {}, "rng"), Pristine((mechanism, {})))
    kept[2] = "from an earlier run"
    work = [(Input([1, 2]), [Chunk(2, (9, 0, 0))])]
    (outputs,) = anew.run(None, Runner(1), work, Deadline(20), 5.0)
    assert outputs[0] == outputs[1] != kept[2]


def test_what_can_neither_be_imported_nor_copied_says_why():
    base = sqlite3.connect(":memory:")
    with pytest.raises(CannotCopy, match=r"no part of a module.*sqlite3.Connection"):
        drawn(lambda data, rng: base.total_changes + rng.laplace())


def test_one_interpreter_forks_all_starts_of_all_mechanisms(module):
    for mechanism in (module.plain, module.named):
        outputs, anew = drawn(mechanism, starts=6)
        assert len({tuple(of_one) for of_one in outputs}) == 6
        assert not anew.seconds_a_start
    assert len(interpreters._KEPT) == 1


@needs_tasks
def test_an_interpreter_with_threads_of_others_runs_each_mechanism_once(tmp_path, monkeypatch):
    """And is kept for other mechanisms."""
    module = loaded(tmp_path, monkeypatch, MODULE)
    (tmp_path / "test_released.py").write_text(A_THREAD + MODULE)
    outputs, anew = drawn(module.memo.answer, starts=STARTS)
    assert [len(set(of_one)) for of_one in outputs] == [1] * STARTS
    assert len({of_one[0] for of_one in outputs}) == STARTS
    assert anew.seconds_a_start > 0
    before = list(interpreters._KEPT)
    drawn(module.plain, starts=STARTS)
    assert all(kept in before for kept in interpreters._KEPT)


@needs_tasks
def test_threads_that_python_did_not_make_are_counted():
    script = (
        "from threading import Thread, Event\n"
        "from pytest_dp.running.forked import foreign_threads\n"
        "Thread(target=Event().wait, daemon=True).start()\n"
        f"before = foreign_threads()\n{A_THREAD}\nprint(before, foreign_threads())"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["0", "1"]


def test_a_mechanism_that_ends_its_interpreter_says_so(tmp_path, monkeypatch):
    source = "import os\n\ndef ends(data, rng):\n    os._exit(3)\n"
    module = loaded(tmp_path, monkeypatch, source)
    with pytest.raises(CannotCopy, match="it takes its process down"):
        drawn(module.ends)


ENDS = """
    import os, signal, sys
    from pytest_dp.running import interpreters

    started = interpreters.Interpreter()
    print(started._process.pid, flush=True)
    {ends}
"""


@pytest.mark.parametrize(
    "ends",
    ["pass", "os._exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "raise KeyboardInterrupt"],
    ids=["end of the run", "exit", "crash", "ctrl-c"],
)
def test_no_interpreter_is_left_however_the_run_ends(ends):
    script = textwrap.dedent(ENDS).format(ends=ends)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process = int(done.stdout)
    until = time.monotonic() + 60
    while is_alive(process):
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
