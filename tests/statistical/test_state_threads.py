"""Claims beside threads that Python did not make, which forked processes lack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

A_THREAD = """
import ctypes

c = ctypes.CDLL(None)
assert not c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, c.pause, None)
"""
HELD = """
import numpy as np
from pytest_dp import dp_claim

class Held:
    def __init__(self):
        self.kept, self.bits = {}, {}

    def __reduce__(self):
        raise TypeError("not to be copied")

held = Held()
CLAIM = dict(eps=1.0, neighbors="add_remove_one", inputs=[[1, 1, 1]], max_samples=8_000)

@dp_claim(**CLAIM)
def half_the_noise(data, rng):
    return len(data) + rng.laplace(scale=0.4) + 0 * len(held.kept)

@dp_claim(**CLAIM)
def memo(data, rng):
    return held.kept.setdefault(len(data), len(data) + rng.laplace())

@dp_claim(**CLAIM)
def memo_of_a_bit(data, rng):
    truth = len(data) % 2
    return held.bits.setdefault(len(data), truth if rng.random() < 0.7 else 1 - truth)
"""
EXPECTED = {
    "half_the_noise": "violated",
    "memo": "error",
    "memo_of_a_bit": "error",
}


def verdicts(folder, source, *options, conftest=""):
    """Run claims in a process of its own, and return a verdict for each."""
    (folder / "test_claims.py").write_text(source)
    (folder / "conftest.py").write_text(conftest)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [*command, *options, "--dp-seed=1", "--dp-jobs=1", "test_claims.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    found = {}
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if "::" in rest:
            name = rest.partition("::")[2].partition("[")[0]
            found[name] = outcome(kind, rest)
    assert found, done.stdout + done.stderr
    return found, done.stdout


def outcome(kind, rest):
    if kind in ("PASSED", "INCONCLUSIVE"):
        return kind.lower()
    return "violated" if "PrivacyViolation" in rest else "error"


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
@pytest.mark.parametrize(
    ("place", "mode"), [("the process", "importlib"), ("each import", "prepend")]
)
def test_claims_beside_threads_are_judged_as_ever(place, mode, tmp_path):
    conftest = A_THREAD if place == "the process" else ""
    source = (A_THREAD if place == "each import" else "") + HELD
    found, output = verdicts(tmp_path, source, f"--import-mode={mode}", conftest=conftest)
    assert found == EXPECTED, output
