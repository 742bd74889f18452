"""Claims that passed are not audited again while nothing has changed, if that is wanted."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_dp.auditors.session import AuditFinding

pytestmark = pytest.mark.usefixtures("_without_blame", "few_pairs")

NOISE = "SCALE = 1.0\n"
STATS = """
from pathlib import Path
from noise import SCALE
from pytest_dp import dp_claim

@dp_claim(eps=1.0, inputs=[[1, 2]], neighbors="add_remove_one", max_samples=2_000)
def noisy(records, rng):
    with open({calls!r}, "a") as calls:
        calls.write(".")
    return len(records) + rng.laplace(scale=SCALE)
"""
SPY = """
import sys
def pytest_unconfigure():
    loaded = set(sys.modules) & {"scipy", "joblib", "pytest_dp.auditors"}
    open("loaded", "w").write(" ".join(loaded))
"""
CHANGES = (
    ("stats", "", True),
    ("stats", "FURTHER = 1\n", False),
    ("noise", "SCALE = 1.001\n", False),
    ("conftest", "import random\n", False),
)


def audit(session):
    """Runs the mechanism once: its verdict is that of an audit."""
    sys.modules["test_stats"].noisy([1], np.random.default_rng())
    if sys.modules["noise"].SCALE < 0.5:
        return AuditFinding(session.result("violated", lower=2.0))
    if session.settings.max_samples < 100:
        return AuditFinding(session.result("inconclusive"))
    return AuditFinding(session.result("no violation", lower=0.5, resolution=1.5))


class Desk:
    """A project, how often its mechanism was called, and what is said of its claim."""

    def __init__(self, project) -> None:
        self.project, self.calls = project, project.root / "calls"
        subprocess.run(["git", "init", "-q", project.root], check=True)  # reports are no source
        self.code = {"stats": STATS.format(calls=str(self.calls)), "noise": NOISE, "conftest": ""}

    def run(self, *options: str, apart: bool = False) -> str:
        """The status of the claim."""
        self.calls.write_text("")
        for name, code in self.code.items():
            file = "test_stats" if name == "stats" else name
            self.project.write(f"{file}.py", code, imports="")
        options = options or ("--dp-changed",)
        run = self.project.run_apart if apart else self.project.run
        self.result = run("--dp-report=dp.json", *options)
        (self.record,) = json.loads((self.project.root / "dp.json").read_text())["claims"]
        assert bool(self.calls.read_text()) == (self.record["status"] != "unchanged")
        return self.record["status"]


@pytest.fixture
def desk(project, monkeypatch):
    quick = SimpleNamespace(audit=audit)
    monkeypatch.setitem(sys.modules, "pytest_dp.auditors.sequential", quick)
    return Desk(project)


@pytest.mark.slow
def test_a_claim_that_passed_is_told_of_and_not_audited(desk):
    """In the time of a look-up: nothing is loaded that only audits need."""
    desk.code["conftest"] = SPY
    assert desk.run("--dp-changed", apart=True) == "no violation"
    passed = desk.record
    assert "scipy" in (desk.project.root / "loaded").read_text()
    as_usual = "--dp-margin=1.25", "--dp-max-seconds=60"
    assert desk.run("--dp-profile=dev", *as_usual, apart=True) == "unchanged"
    assert (desk.project.root / "loaded").read_text() == ""
    day = desk.record["unchanged_since"][:10]
    assert desk.record["strength"] == passed["strength"]
    assert desk.record["resolution"] == passed["resolution"]
    assert (desk.record["samples"], desk.record["seconds"]) == (0, 0.0)
    desk.result.assert_outcomes(passed=0)
    desk.result.stdout.fnmatch_lines(
        ["test_stats.py u *", f"* eps 1.0 * unchanged since {day} *", "*1 unchanged in *"]
    )


@pytest.mark.slow
def test_what_has_changed_is_audited_again(desk):
    assert desk.run() == "no violation"
    for where, code, same in CHANGES:
        desk.code[where] = desk.code[where].replace(NOISE, "") + code
        assert desk.run() == ("unchanged" if same else "no violation"), code


@pytest.mark.slow
def test_settings_and_claims_are_looked_at_and_ci_audits_all(desk, monkeypatch):
    assert desk.run() == "no violation"
    assert desk.run() == "unchanged"
    assert desk.run("-q") == "no violation", "nobody asked for it"
    assert desk.run("--dp-changed", "--dp-profile=ci") == "no violation"
    assert desk.run("--dp-changed", "--dp-alpha=1e-7") == "no violation"
    desk.code["stats"] = desk.code["stats"].replace("eps=1.0", "eps=1.1")
    assert desk.run() == "no violation"
    monkeypatch.setenv("CI", "true")
    assert desk.run() == "no violation"


@pytest.mark.slow
def test_only_a_pass_is_kept(desk):
    desk.code["noise"] = "SCALE = 0.01\n"
    assert [desk.run(), desk.run()] == ["violated"] * 2
    desk.code["noise"] = NOISE
    tried = desk.code["stats"].replace("max_samples=2_000", "max_samples=20")
    desk.code["stats"], usual = tried, desk.code["stats"]
    assert [desk.run(), desk.run()] == ["inconclusive"] * 2
    desk.code["stats"] = usual.replace(
        "inputs=[[1, 2]]", "inputs=strategies.lists(strategies.just(1))"
    )
    desk.code["stats"] = "from hypothesis import strategies\n" + desk.code["stats"]
    assert "unchanged" not in [desk.run(), desk.run()], "what a strategy yields is not known"
    desk.code["stats"] = usual
    assert [desk.run(), desk.run()] == ["no violation", "unchanged"]
    (entry,) = (desk.project.root / ".dp" / "passed").glob("*.json")
    entry.write_text(entry.read_text()[:-20])
    assert desk.run() == "no violation", "an entry that is damaged is as good as none"
