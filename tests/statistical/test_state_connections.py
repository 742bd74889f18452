"""Mechanisms behind connections: violated ones red, correct ones green, caching ones not red."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from states import RECORDS

from pytest_dp import MechanismError, audit

pytestmark = pytest.mark.usefixtures("_without_blame")

ANSWERS = {
    "right": "n + rng.laplace()",
    "half": "n + rng.laplace(scale=0.4)",
    "bit": "n % 2 if rng.random() < 0.9 else 1 - n % 2",
    "memo": "kept.setdefault(n, n + rng.laplace())",
    "memo_of_a_bit": "kept.setdefault(n, n % 2 if rng.random() < 0.7 else 1 - n % 2)",
}
"""What the other end answers on n, with random numbers of its own and what it keeps."""
OTHER_END = """
import sys
import numpy as np

rng = np.random.default_rng({seed})
kept = {{}}

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


def result_of(name, kind, request):
    """Return the result for an answer behind a kind of connection, or None if it is an error."""
    behind = behind_sqlite if kind == "behind_sqlite" else request.getfixturevalue(kind)
    common = {"eps": 1.0, "n_jobs": 1, "seed": 1, "max_samples": 4_000, **RECORDS}
    try:
        return audit(behind(name), **common)
    except MechanismError:
        return None


@pytest.mark.canary
@pytest.mark.parametrize(("name", "kind"), [("half", "behind_a_pipe"), ("bit", "behind_sqlite")])
def test_violations_behind_a_connection_are_red(name, kind, request):
    result = result_of(name, kind, request)
    assert result.verdict == "violated"
    if kind == "behind_a_pipe":
        (note,) = (note for note in result.notes if "could not be restarted" in note)
        assert "runs looked independent" in note


@pytest.mark.parametrize("kind", ["behind_a_pipe", "behind_sqlite"])
def test_correct_mechanisms_behind_a_connection_are_green(kind, request):
    assert result_of("right", kind, request).verdict == "no violation"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("memo", "behind_a_pipe"), ("memo_of_a_bit", "behind_sqlite")],
)
def test_what_is_kept_behind_a_connection_is_not_red(name, kind, request):
    result = result_of(name, kind, request)
    assert result is None or result.verdict != "violated"
