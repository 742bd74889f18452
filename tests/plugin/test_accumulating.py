"""``--dp-accumulate``: evidence of runs with random seeds, from one run of pytest to the next."""

from __future__ import annotations

import json
import sys
from datetime import datetime

import pytest
from projects import QUICK, laplace

from pytest_dp.records.evidence_store import Store, StoredRun

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_without_blame")]

CLAIM = "test_stats.py::count[eps=1.0]"
FEW = f"eps=1.0, {QUICK.replace('2000', '600')}"


@pytest.fixture
def stats(project):
    project.write("test_stats.py", laplace("count", 1.0, FEW))
    return project


def nightly(project, *options):
    return project.run("--dp-profile=nightly", *options)


def files(project):
    return sorted((project.root / ".dp").rglob("*.json"))


def grown(project, to):
    """As if the runs so far had shown so much more."""
    for file in files(project):
        kept = json.loads(file.read_text())
        kept["log_e_values"] = [to] * len(kept["log_e_values"])
        file.write_text(json.dumps(kept))


def test_each_run_adds_and_what_they_refuted_stays_refuted(stats):
    nightly(stats)
    nightly(stats)
    assert len(files(stats)) == 2
    result = nightly(stats, "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note *the evidence of 2 earlier runs counts as well: an e-val*"])
    grown(stats, 20.0)
    result = nightly(stats)
    assert result.ret == 1
    # The seed is random: the event of some runs comes on D only, and is then what is said.
    result.stdout.fnmatch_lines(["E   PrivacyViolation: claimed eps = 1.0, but *"])
    result.stdout.fnmatch_lines(["*--dp-accumulate"])
    assert nightly(stats, "--reruns=1").ret == 1, "not even a second try turns it green"
    assert stats.run().ret == 0, "without evidence of others, it is not"
    stats.write("test_stats.py", laplace("count", 1.01, FEW))
    assert nightly(stats).ret == 0, "evidence is of one source"


def test_the_same_seed_is_not_counted_twice(stats):
    seed = "--dp-seed=8f2c"
    nightly(stats, seed)
    grown(stats, 13.0)  # not yet enough to refute the claim
    result = nightly(stats, seed, "-v")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*counts as well*")
    assert len(files(stats)) == 1


MADE_LATE = """
from datetime import UTC, datetime
from pathlib import Path

def made():
    Path("made").write_text(datetime.now(UTC).isoformat())
    return [([1], [])]
"""


def test_a_run_comes_after_those_that_ended_while_its_pairs_were_made(stats):
    """Their evidence is read afterwards, so they have to be earlier in the order."""
    stats.write(
        "test_stats.py", MADE_LATE, laplace("count", 1.0, FEW.replace("[([1], [])]", "made"))
    )
    assert nightly(stats).ret == 0
    (run,) = Store(stats.root).runs()
    made = datetime.fromisoformat((stats.root / "made").read_text())
    assert datetime.fromisoformat(run.started) > made


def test_what_cannot_add_up_is_told(stats):
    program = [sys.executable, "-c", "import random; print(random.expovariate())"]
    claim = f"count = dp_command({program})\n"
    stats.write(
        "test_stats.py",
        f"from pytest_dp import dp_command\n{claim}",
        "@pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])], max_samples=50)\n"
        "def test_count(dp_check): dp_check(count)\n",
    )
    result = nightly(stats)
    result.stdout.fnmatch_lines(["*does not add up: it calls a program or a service, which may *"])
    assert not files(stats)


def test_damaged_evidence_is_told_and_the_test_judged(stats):
    nightly(stats)
    files(stats)[0].write_text("{")
    result = nightly(stats)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*PytestCacheWarning: *.json is left out: *"])


def test_the_evidence_is_printed(stats):
    empty = stats.run("--dp-evidence")
    assert (empty.ret, empty.outlines[0].split(":")[0]) == (0, f"No evidence in {stats.root}/.dp")
    store = Store(stats.root)
    for seed, log_e in (("1", 2.0), ("2", 13.0)):
        store.add(StoredRun(CLAIM, "0123456789ab", seed, "2026-01-01", 1_500, (log_e,), 1e-6))
    store.add(StoredRun(CLAIM, "ba9876543210", "3", "2026-01-02", 7, (1.0,), 1e-6))
    result = stats.run("--dp-evidence")
    assert result.ret == 0
    assert result.outlines[0] == CLAIM
    result.stdout.fnmatch_lines(
        [
            "  0123456789ab: e-value 3e6 of 2 runs, 3,000 samples, *; refuted",
            "  ba9876543210: e-value 2.7 of 1 run, 7 samples, *; refutes at 1e6",
        ]
    )
