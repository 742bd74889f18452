"""Mechanisms exactly at their claim, with pairs that are searched; and broken behind a gate."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from benchmarks.gated import GATED
from benchmarks.type_one_searched import ALPHA, CLAIMS, trial
from pytest_dp import audit

AUDITS = 30


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_searched_pairs_make_no_false_alarms(name):
    """A version that alarms in three of ten audits passes one of 30 such tests.

    One that knows a batch when it bets on it, as in `test_sequential_audit`, alarms in all of them.
    """
    found = [trial(name, 1.0, seed, 6_000) for seed in range(AUDITS)]
    assert sum(red for red, _ in found) <= binom.ppf(1 - 1e-4, AUDITS, ALPHA)
    assert sum(proposed for _, proposed in found) > AUDITS


@pytest.mark.slow
@pytest.mark.parametrize("gated", GATED, ids=lambda gated: gated.name)
def test_what_leaks_behind_a_gate_only_is_found(gated):
    result = audit(gated.make(True), **gated.claim(), seed=0, n_jobs=1)
    assert result.violated


@pytest.mark.parametrize("gated", GATED[:3], ids=lambda gated: gated.name)
def test_without_a_search_it_is_not(gated):
    result = audit(gated.make(True), **gated.claim(), search=(), seed=0, n_jobs=1)
    assert not result.violated
    assert result.proposed == 0
