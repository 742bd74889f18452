"""Mechanisms behind connections: violated ones red, correct ones green, caching ones not red."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from states import RECORDS
from test_state_threads import verdicts

from pytest_dp import MechanismError, audit

pytestmark = pytest.mark.usefixtures("_without_blame")

ANSWERS = {
    "right": "n + rng.laplace()",
    "half": "n + rng.laplace(scale=0.4)",
    "bit": "n % 2 if rng.random() < 0.9 else 1 - n % 2",
    "memo": "kept.setdefault(n, n + rng.laplace())",
    "memo_of_a_bit": "kept.setdefault(n, n % 2 if rng.random() < 0.7 else 1 - n % 2)",
    "expiring": "expiring(n, n + rng.laplace())",
    "pool": "n + pool()[rng.integers(300)]",
}
"""What the other end answers on n, with random numbers of its own and what it keeps."""
KEPT = "memo_of_a_bit", "expiring", "pool"
"""Those beside a memo that keep their claim, and something."""
OTHER_END = """
import sys
import numpy as np

rng = np.random.default_rng({seed})
kept, left = {{}}, {{}}
pooled = []

def pool():
    pooled.extend([] if pooled else rng.laplace(size=300).tolist())
    return pooled

def expiring(n, new):
    if not left.get(n):
        left[n] = [new] * 20
    return left[n].pop()

def answer(n):
    return {answer}

if __name__ == "__main__":
    for line in sys.stdin:
        print(repr(float(answer(int(line)))), flush=True)
"""


def other_end(name):
    return OTHER_END.format(answer=ANSWERS[name], seed=11)


@pytest.fixture
def behind_a_pipe():
    started = []

    def make(name):
        child = subprocess.Popen(
            [sys.executable, "-c", other_end(name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)

        def mechanism(data):
            child.stdin.write(f"{len(data)}\n")
            child.stdin.flush()
            return float(child.stdout.readline())

        return mechanism

    yield make
    for child in started:
        child.stdin.close()
        child.stdout.close()
        child.kill()
        child.wait()


def behind_sqlite(name):
    space = {"__name__": "other end"}
    exec(other_end(name), space)
    base = sqlite3.connect(":memory:")
    base.create_function("answer", 1, lambda n: float(space["answer"](n)))
    return lambda data: base.execute("select answer(?)", [len(data)]).fetchone()[0]


KINDS = "behind_a_pipe", "behind_sqlite"


def result_of(name, kind, request):
    """Return the result for an answer behind a kind of connection, or None if it is an error."""
    behind = behind_sqlite if kind == "behind_sqlite" else request.getfixturevalue(kind)
    common = {"eps": 1.0, "n_jobs": 1, "seed": 1, "max_samples": 4_000, **RECORDS}
    try:
        return audit(behind(name), **common)
    except MechanismError:
        return None


@pytest.mark.canary
@pytest.mark.parametrize("kind", KINDS)
def test_violations_behind_a_connection_are_red(kind, request):
    assert result_of("half", kind, request).verdict == "violated"


def test_the_report_says_that_runs_looked_independent(request):
    result = result_of("half", "behind_a_pipe", request)
    (note,) = (note for note in result.notes if "could not be restarted" in note)
    assert "runs looked independent" in note


def test_a_bit_that_leaks_behind_a_connection_is_red(request):
    assert result_of("bit", "behind_sqlite", request).verdict == "violated"


@pytest.mark.parametrize("kind", KINDS)
def test_correct_mechanisms_behind_a_connection_are_green(kind, request):
    assert result_of("right", kind, request).verdict == "no violation"


@pytest.mark.parametrize(
    ("name", "kind"),
    [*(("memo", kind) for kind in KINDS), *((name, "behind_sqlite") for name in KEPT)],
)
def test_what_is_kept_behind_a_connection_is_not_red(name, kind, request):
    result = result_of(name, kind, request)
    assert result is None or result.verdict != "violated"


PIPE = """
import subprocess, sys
from pytest_dp import dp_claim

child = subprocess.Popen(
    [sys.executable, {file!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)

@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[1, 1, 1]], max_samples=4_000)
def asks(data):
    child.stdin.write(f"{{len(data)}}\\n")
    child.stdin.flush()
    return float(child.stdout.readline())
"""


@pytest.mark.parametrize(("name", "expected"), [("half", "violated"), ("memo", "error")])
def test_a_module_that_opens_its_connection_is_imported_anew(name, expected, tmp_path):
    """Each interpreter has a child process of its own."""
    child = tmp_path / "child.py"
    child.write_text(other_end(name).replace("default_rng(11)", "default_rng()"))
    found, output = verdicts(tmp_path, PIPE.format(file=str(child)))
    assert found == {"asks": expected}, output
    assert "could not be restarted" not in output
