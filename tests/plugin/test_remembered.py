"""Pairs that broke a claim are tried first the next time, on new samples."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from results import BROKEN, PASSED

import pytest_dp.auditors
from pytest_dp.auditors.session import Session
from pytest_dp.data.relations import Pair
from pytest_dp.pairs import resolve_promise

STATS = """
SCALE = {scale}
@dp_claim(eps=1.0, neighbors="add_remove_one", inputs={inputs}, search=(), max_samples=12_000)
def noisy(records, rng):
    return len(records) + rng.laplace(scale={scale} if 9 in records else 1.0)
"""
INPUTS = [[0, 1, 2, 3, 4, 9]]
LONG = 5
"""Records on either input, at least, where nothing is remembered."""


class Watched:
    """A project, and the pair that the last audit looked at first."""

    def __init__(self, project) -> None:
        self.project = project
        self.first = Pair(None, None)

    def audit(self, scale: float, *options: str, inputs: object = INPUTS) -> pytest.RunResult:
        self.project.write("test_stats.py", STATS.format(scale=scale, inputs=inputs))
        run = self.project.pytester.runpytest_inprocess
        return run("-p", "no:hypothesispytest", "--dp-jobs=1", *options)

    @property
    def is_short(self) -> bool:
        """Whether that pair was one which had been made smaller, and broke the claim."""
        return len(self.first.d1) < LONG and 9 in (*self.first.d1, *self.first.d2)

    @property
    def kept(self) -> list[Path]:
        return sorted(self.project.root.glob(".pytest_cache/d/pytest-dp/*"))


@pytest.fixture
def watched(project, monkeypatch):
    watching = Watched(project)

    def prepare_session(*given) -> Session:
        session = prepared(*given)
        watching.first = session.pairs[0]
        return session

    prepared = pytest_dp.auditors.prepare_session
    monkeypatch.setattr(pytest_dp.auditors, "prepare_session", prepare_session)
    return watching


@pytest.fixture
def quick(watched, monkeypatch):
    """One in which nothing is run: small noise is found to break the claim by two short inputs."""

    def run(claim, mechanism, settings, name, root, progress, past):
        promise = resolve_promise(claim.promise, root)
        watched.first = (*past.pairs(promise), Pair(INPUTS[0], []))[0]
        result = BROKEN if sys.modules["test_stats"].SCALE < 1 else PASSED
        return replace(result, claim=replace(claim, promise=promise))

    monkeypatch.setattr(pytest_dp.auditors, "run", run)
    return watched


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame", "few_pairs")
def test_it_is_tried_first_until_it_breaks_the_claim_no_more(watched):
    result = watched.audit(0.3)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E     D* = [[]9]*"])
    assert len(watched.first.d1) >= LONG
    assert watched.audit(0.3, "--dp-beyond=off", inputs=[[1, 2]]).ret == 0
    assert 9 not in watched.first.d1, "other inputs have a memory of their own"
    assert len(watched.kept) == 1
    watched.audit(0.3).assert_outcomes(failed=1)
    assert watched.is_short
    watched.audit(1.0).assert_outcomes(passed=1)
    assert watched.is_short
    assert not watched.kept
    watched.audit(1.0).assert_outcomes(passed=1)
    assert not watched.is_short


def test_an_audit_with_a_seed_asks_for_none_and_a_file_that_cannot_be_read_is_forgotten(quick):
    quick.audit(0.3)
    quick.audit(0.3, "--dp-seed=1")
    assert len(quick.first.d1) >= LONG, "an audit that is repeated by its seed is the same"
    quick.kept[0].write_bytes(b"not a pickle")
    quick.audit(0.3).assert_outcomes(failed=1)
    assert len(quick.first.d1) >= LONG
    assert quick.kept[0].read_bytes() != b"not a pickle"


def test_a_cache_that_cannot_be_written_is_a_warning(quick, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    result = quick.audit(0.3)
    result.assert_outcomes(failed=1, warnings=2)
    result.stdout.fnmatch_lines(["*could not keep the pair that broke the claim: no space left*"])
    result.stdout.fnmatch_lines(["*.dp/pairs/*.py could not be written: no space left*"])
    assert not quick.kept


def test_without_a_cache_nothing_is_kept(quick):
    quick.audit(0.3, "-p", "no:cacheprovider").assert_outcomes(failed=1)
    assert not quick.kept
