"""Mechanisms whose modules are imported anew in a process that is forked."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import sys
from contextlib import suppress

import pytest

from pytest_dp import audit
from pytest_dp.basics.errors import DependentRuns
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Chunk, Input, Runner
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.forked import Origin, Start
from pytest_dp.running.locating import locate

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")

MODULE = """
import numpy as np

def plain(data, rng):
    return sum(data) + rng.laplace()

class Table:
    @staticmethod
    def nested(data, rng):
        return sum(data) + rng.laplace()

class Memo:
    def __init__(self):
        self.kept = {}

    def answer(self, data, rng):
        return self.kept.setdefault(len(data), sum(data) + rng.laplace())

memo = Memo()
"""


def loaded(folder, monkeypatch, source):
    """A module as pytest loads it in the mode importlib: its folder is not on sys.path."""
    file = folder / "test_released.py"
    file.write_text(source)
    name = "made_up.folders.test_released"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def drawn(mechanism, starts=2, runs=3, rng="rng"):
    call = Call(mechanism, {}, rng)
    origin = Origin(call)
    works = [[(Input([1, 2]), [Chunk(runs, (9, k, 0))])] for k in range(starts)]
    try:
        return [
            origin.run(call, Runner(1), work, Deadline(20), 5.0, start=Start.IMPORTED)[0]
            for work in works
        ]
    finally:
        origin.close()


@pytest.mark.parametrize(
    "find",
    [
        lambda module: module.plain,
        lambda module: module.Table.nested,
        lambda module: module.memo.answer,
    ],
    ids=["a function", "a function of a class", "a method of an object"],
)
def test_a_mechanism_is_found_in_its_module(find, tmp_path, monkeypatch):
    module = loaded(tmp_path, monkeypatch, MODULE)
    mechanism = find(module)
    module.memo.kept[2] = "from an earlier run"
    once, again = drawn(mechanism)
    assert locate(mechanism).module == module.__name__
    assert once != again
    assert len(set(once)) == (1 if mechanism == module.memo.answer else 3)
    assert once[0] != "from an earlier run"


@pytest.mark.parametrize("draw", ["np.random.laplace()", "random.random()"])
def test_what_is_drawn_at_the_import_is_drawn_anew(draw, tmp_path, monkeypatch):
    source = f"import random\nimport numpy as np\nKEPT = {draw}\ndef kept(data):\n    return KEPT\n"
    mechanism = loaded(tmp_path, monkeypatch, source).kept
    found = drawn(mechanism, 3, 2, rng=None)
    assert [len(set(of_one)) for of_one in found] == [1, 1, 1]
    assert len({of_one[0] for of_one in found} | {mechanism([1])}) == 4


def test_modules_that_raise_for_unknown_names_are_passed_over(tmp_path, monkeypatch):
    """As the namespaces of PyTorch do, which make an object for any name."""
    source = MODULE + "\ndef __getattr__(name):\n    raise RuntimeError(name)\n"
    module = loaded(tmp_path, monkeypatch, source)
    assert locate(lambda data, rng: sum(data) + rng.laplace()) is None
    assert locate(module.plain).module == module.__name__


def test_what_is_in_no_module_says_so():
    base = sqlite3.connect(":memory:")
    with pytest.raises(CannotCopy, match="in no module that can be imported again"):
        drawn(lambda data, rng: base.total_changes + rng.laplace())


def test_a_module_that_cannot_be_imported_again_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIGURED", "yes")
    source = 'import os\nassert os.environ.pop("CONFIGURED"), "only once"\n' + MODULE
    module = loaded(tmp_path, monkeypatch, source)
    with pytest.raises(CannotCopy, match="KeyError: 'CONFIGURED'"):
        drawn(module.plain)


def test_a_mechanism_that_ends_its_process_says_so(tmp_path, monkeypatch):
    source = "import os\n\ndef ends(data, rng):\n    os._exit(3)\n"
    module = loaded(tmp_path, monkeypatch, source)
    with pytest.raises(CannotCopy, match="it takes its process down"):
        drawn(module.ends)


@pytest.mark.slow
@pytest.mark.parametrize("module_number", range(2))
def test_a_coin_of_each_answer_that_is_thrown_at_the_import_is_no_violation(
    module_number, tmp_path, monkeypatch
):
    """Randomised response for good keeps eps = 1; coins of another import often fall alike."""
    source = (
        "import math, random\n"
        "LIES = [random.SystemRandom().random() < 1 / (1 + math.e) for _ in range(2)]\n"
        "def respond(records):\n    return records[0] ^ LIES[records[0]]\n"
    )
    respond = loaded(tmp_path, monkeypatch, source).respond
    with suppress(DependentRuns):  # it cannot be drawn again
        claim = {"eps": 1.0, "neighbors": "replace_one", "inputs": [[0], [1]], "n_jobs": 1}
        assert not audit(respond, **claim, seed=module_number, max_samples=3_000).violated


@pytest.mark.slow
def test_what_all_new_imports_drew_alike_is_held_against_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRST_PROCESS", str(os.getpid()))
    source = (
        "import os\nLIES = os.getpid() == int(os.environ['FIRST_PROCESS'])\n"
        "def respond(records):\n    return records[0] ^ LIES\n"
    )
    respond = loaded(tmp_path, monkeypatch, source).respond
    claim = {"eps": 1.0, "neighbors": "replace_one", "inputs": [[0], [1]], "n_jobs": 1}
    with pytest.raises(DependentRuns, match="with each import"):
        audit(respond, **claim, seed=1, max_samples=3_000)
