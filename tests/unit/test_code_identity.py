"""The identity of code: another after each edit that matters, and the same in every process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from benchmarks.identity_edits import EDITS, HARMLESS, identity_after, project
from pytest_dp.records.code import forget, of_modules, of_names
from pytest_dp.records.syntax import imports, loads, normalised

USUAL: dict[str, str] = {}


@pytest.fixture(autouse=True)
def _anew():
    forget()
    yield
    forget()


def usual(name="count"):
    return USUAL.setdefault(name, identity_after(name=name))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: " ".join(edit)[:60])
def test_an_edit_is_new(edit):
    assert identity_after(edit) != usual()


@pytest.mark.spot(3)
@pytest.mark.parametrize("edit", HARMLESS, ids=lambda edit: " ".join(edit)[:60])
def test_formatting_comments_and_names_of_locals_are_not(edit):
    assert identity_after(edit) == usual()


@pytest.mark.parametrize("name", ["counter", "bound", "part", "Counter"])
def test_objects_methods_and_partials_have_one_too(name):
    stats = "pkg/stats.py"
    assert identity_after((stats, "", ""), name=name) == usual(name)
    assert identity_after((stats, "Counter(3.0)", "Counter(3.5)"), name=name) != usual(name)


PROCESS = """
from benchmarks.identity_edits import identity_after
print(*(identity_after(name=name) for name in ("count", "counter", "bound", "part")))
"""


@pytest.mark.slow
def test_it_is_the_same_in_every_process_and_place():
    told = set()
    for seed in "12":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        told.add(subprocess.check_output([sys.executable, "-c", PROCESS], env=environment))
    assert len(told) == 1


def test_what_runs_leave_in_a_module_does_not_matter(tmp_path):
    with project(tmp_path) as stats:
        before = of_modules(stats.count)
        stats.cache["a"] = 1
        stats.counter.scale = 9.0
        assert of_modules(stats.count) == before
        assert of_modules(stats.counter) != of_modules(stats.Counter(3.0))


def test_without_a_file_functions_count_by_what_they_name():
    def made(source="len(d) + LIMIT", limit=3):
        space = {"LIMIT": limit, "__name__": "notebook"}
        exec(f"def helper(d): return {source}\ndef count(d): return helper(d)", space)
        return of_modules(space["count"])

    assert made() == made("len(d)  + LIMIT")
    assert len({made(), made("len(d) - LIMIT"), made(limit=4), made(limit=3.0)}) == 4


class Opaque:
    def __reduce__(self):
        raise TypeError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "same"),
    [
        (lambda: threading.Lock(), True),
        (lambda: np.random.default_rng(), True),
        (lambda: Opaque(), True),
        (lambda: (number for number in [1]), False),  # nobody knows what is left in it
        (lambda: float("nan"), True),
        (lambda: {"a": {1, 2, "x"}, "b": np.arange(9).reshape(3, 3)[:, 1]}, True),
    ],
)
def test_what_cannot_be_compared_is_new(value, same):
    assert (of_modules(value()) == of_modules(value())) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.float32(1), np.float64(1)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        ("1", b"1"),
        (Path("/a/b"), "/a/b"),
    ],
)
def test_what_is_not_the_same_is_told_apart(one, other):
    assert of_modules(one) != of_modules(other)
    assert of_modules([one]) != of_modules([other])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    'a'\n    return f.__doc__", "def f():\n    'b'\n    return f.__doc__"),
        (
            "def f(t):\n    low, high = 1, 2\n    return t.query('x > @low')",
            "def f(t):\n    high, low = 1, 2\n    return t.query('x > @low')",
        ),
    ],
)
def test_what_code_reads_of_itself_is_kept(before, after):
    assert normalised(ast.parse(before)) != normalised(ast.parse(after))


def test_code_that_no_import_names_is_seen():
    source = "import runpy, sys\nruns = runpy.run_path('a.py')\nnoise = sys.modules['noise']"
    assert loads(ast.parse(source)) == ["run_path", "sys.modules"]
    assert loads(ast.parse("import sys\nloaded = 'scipy' in sys.modules")) == []
    by_name = "import importlib\nnoise = importlib.import_module('noise_x').noise"
    assert "noise_x" in {name for name, _ in imports(ast.parse(by_name), globals())}


def features(output):
    return helper(output)


def helper(output):
    return output


def unrelated():
    return None


def test_what_is_named_is_less_than_the_module(monkeypatch):
    before = of_names(features)
    monkeypatch.setitem(globals(), "unrelated", None)
    assert of_names(features) == before
    monkeypatch.setitem(globals(), "helper", lambda output: -output)
    assert of_names(features) != before
    assert of_names(np.mean) == of_names(3) == ""
