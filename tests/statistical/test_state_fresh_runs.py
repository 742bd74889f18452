"""Claims that are refuted by runs each of which starts afresh, as the mechanism keeps something."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from states import verdict

from pytest_dp import audit
from pytest_dp.attacks.expected_bounds import PlannedTest
from pytest_dp.auditors import fresh_runs
from pytest_dp.auditors.fresh_runs import refuted_by_fresh_runs
from pytest_dp.inputs import Pair
from pytest_dp.privacy import ApproximateDP

pytestmark = pytest.mark.usefixtures("_without_blame")
PAIRS = {"neighbors": None, "inputs": None, "pairs": [([], [1])]}


def test_a_memo_of_an_answer_that_leaks_is_a_violation():
    kept = {}

    def memo(data, rng):
        return kept.setdefault(len(data), 5 * len(data) + rng.laplace())

    result = audit(memo, eps=1.0, seed=1, n_jobs=1, max_samples=4_000, pairs=[([], [1])])
    assert result.verdict == "violated"
    example = result.counterexample
    assert example.lower > 1.0
    assert any(f"counted in {example.runs[0]:,} runs" in note for note in result.notes)
    assert result.e_value is None  # bets on runs that depend on each other say nothing


def in_a_file_for_a_while(folder):
    """Keeps an answer in a file for some runs, below noise: processes have it in common."""
    left = [0]

    def mechanism(data, rng):
        file = folder / str(len(data))
        left[0] -= 1
        if left[0] < 0 or not file.exists():
            left[0] = 100
            file.write_text(repr(len(data) + rng.laplace()))
        return float(file.read_text()) + rng.normal(scale=0.01)

    return mechanism


def test_what_is_kept_in_a_file_is_no_violation(tmp_path):
    assert verdict(lambda: in_a_file_for_a_while(tmp_path), "sequential", 1, **PAIRS) != "violated"


@pytest.mark.nightly
def test_what_an_earlier_audit_left_below_noise_is_no_violation():
    """Forks of the second audit have the kept answers in common."""
    kept = {}

    def below_noise(data, rng):
        return kept.setdefault(len(data), len(data) + rng.laplace()) + 0.3 * rng.laplace()

    found = {verdict(lambda: below_noise, "sequential", seed, **PAIRS) for seed in range(2)}
    assert found == {"error"}


def context_of(alpha):
    """Return what fresh runs need of an audit of eps = 1."""
    return SimpleNamespace(
        guarantee=ApproximateDP(1.0),
        alpha=alpha,
        plan=lambda runs: PlannedTest(ApproximateDP(1.0), runs, alpha),
        before_the_limit=lambda: 60.0,
    )


def refuted(loss, seed, alpha, monkeypatch):
    """Return whether fresh runs that lose so much refute a claim of 1."""
    rng = np.random.default_rng(seed)
    noise = iter(rng.laplace(size=20_000).tolist())

    def start(item, key):
        return loss * len(item.live) + next(noise)

    monkeypatch.setattr(fresh_runs, "_certify_starts", lambda *_: (start, ([], [])))
    monkeypatch.setattr(fresh_runs, "_may_share", lambda *_: False)
    monkeypatch.setattr(fresh_runs, "_result", lambda *_: True)
    return refuted_by_fresh_runs(context_of(alpha), Pair([], [1])) is True


def test_a_claim_that_is_just_kept_is_refuted_with_chance_alpha_at_most(monkeypatch):
    """Of 50 trials at alpha = 0.1, more than 13 would be refuted with a chance below 0.001."""
    assert sum(refuted(1.0, seed, 0.1, monkeypatch) for seed in range(50)) <= 13


def test_the_event_is_tested_on_runs_that_were_drawn_after_it_was_chosen(monkeypatch):
    drawn, chosen, tested = [], [], []
    choose, rng = fresh_runs._most_promising, np.random.default_rng(0)

    def start(item, key):
        drawn.append(key)
        return 3.0 * len(item.live) + rng.laplace()

    def chosen_now(*given):
        chosen.append(len(drawn))
        return choose(*given)

    monkeypatch.setattr(fresh_runs, "_most_promising", chosen_now)
    monkeypatch.setattr(fresh_runs, "_certify_starts", lambda *_: (start, ([], [])))
    monkeypatch.setattr(fresh_runs, "_may_share", lambda *_: False)
    monkeypatch.setattr(fresh_runs, "_result", lambda *given: tested.append(given[4].counts))
    refuted_by_fresh_runs(context_of(1e-6), Pair([], [1]))
    assert len(drawn) - chosen[0] == sum(tested[0].runs) > 0
    assert len(set(drawn)) == len(drawn)


def test_three_times_the_loss_is_refuted(monkeypatch):
    assert all(refuted(3.0, seed, 1e-6, monkeypatch) for seed in range(8))
