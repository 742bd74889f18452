"""Membership games, both ways: false alarms at the boundary, coverage, and what leaks is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp import audit
from pytest_dp.statistics.guessing_bounds import AreaBets

INFORMATION_LIMIT = math.log(1e6) / (0.8 * math.log(0.8 / 0.6) + 0.2 * math.log(0.2 / 0.4))
"""Pairs by which wins with probability .8 refute .6 at 1e-6 on average, if .8 is known: 151."""
GAMES = 2_000


def game(seed: int, truth: float, claimed: float, alpha: float, pairs: int, kind: str) -> AreaBets:
    """Bets on batches that grow, of scores whose area is the truth, until the claim is refuted."""
    rng, bets = np.random.default_rng(seed), AreaBets(claimed)
    shift = math.sqrt(2) * scipy.stats.norm.ppf(truth)
    while bets.p_value > alpha and bets.pairs < pairs:
        size = max(4, bets.pairs // 5)
        if kind == "normal":
            bets.settle(rng.normal(shift, 1, size), rng.normal(0, 1, size))
        else:  # won or lost, with nothing between
            bets.settle((rng.random(size) < truth).astype(float), np.full(size, 0.5))
    return bets


@pytest.mark.parametrize("kind", ["normal", "won or lost"])
def test_false_alarms_at_the_boundary_are_within_alpha(kind):
    alarms = sum(game(s, 0.6, 0.6, 0.05, 400, kind).p_value <= 0.05 for s in range(GAMES))
    assert alarms <= scipy.stats.binom.isf(1e-6, GAMES, 0.05)


def test_intervals_have_the_true_area_at_any_time():
    missed = 0
    for seed in range(GAMES):
        rng, bets, truth = np.random.default_rng(seed), AreaBets(), (0.5, 0.7, 0.95)[seed % 3]
        shift = math.sqrt(2) * scipy.stats.norm.ppf(truth)
        for _ in range(25):
            bets.settle(rng.normal(shift, 1, 10), rng.normal(0, 1, 10))
        missed += not bets.lower(0.025) <= truth <= bets.upper(0.025)
    assert missed <= scipy.stats.binom.isf(1e-6, GAMES, 0.05)


def test_an_area_of_eight_tenths_is_soon_told_from_six():
    assert pytest.approx(151, abs=1) == INFORMATION_LIMIT
    pairs = [game(seed, 0.8, 0.6, 1e-6, 2_000, "normal").pairs for seed in range(40)]
    assert np.mean(pairs) < 1.5 * INFORMATION_LIMIT
    assert np.quantile(pairs, 0.9) < 2.5 * INFORMATION_LIMIT


def people(count: int = 40) -> list[list[object]]:
    """Records that are much alike, and one that is not."""
    rng = np.random.default_rng(0)
    usual = zip(rng.integers(20, 60, count), rng.integers(0, 3, count), strict=True)
    return [[int(age), int(kind), "ab"[age % 2]] for age, kind in usual] + [[99, 9, "z"]]


def memoriser(data, rng):
    return [data[i] for i in rng.permutation(len(data))]


def forgetful(data, rng):
    """Keeps the records of every other run: the target comes out in half of those."""
    return [data[i] for i in np.flatnonzero(rng.random(len(data)) < 0.5)]


def constant(data, rng):
    return [[30, 1, "a"]] * 5


def independent(data, rng):
    return [[int(age), 1, "b"] for age in rng.integers(20, 60, 40)]


@pytest.mark.canary
def test_a_memoriser_is_refuted_within_sixty_runs():
    result = audit(memoriser, auc=0.6, data=people(), records=[-1], seed=0)
    assert result.violated
    (risk,) = result.risks
    assert 2 * risk.pairs <= 60
    assert result.bet_samples == 2 * risk.pairs
    assert risk.auc == 1


def test_a_record_with_which_there_often_is_no_output_is_found():
    """The tables that come out otherwise say nothing of it."""

    def fragile(data, rng):
        failed = [99, 9, "z"] in data and rng.random() < 0.6
        return None if failed else independent(data, rng)

    seed = 1  # by which the first output is a table
    assert audit(fragile, auc=0.6, data=people(), records=[-1], seed=seed).violated


def test_what_comes_out_half_of_the_time_is_refuted_and_measured():
    result = audit(forgetful, auc=0.6, data=people(), records=[-1], seed=0)
    assert result.violated
    (risk,) = result.risks
    assert risk.interval[0] <= 0.75 <= risk.interval[1]  # a coin where it is left out
    assert 0.6 <= result.lower <= 0.75


@pytest.mark.canary
@pytest.mark.parametrize("mechanism", [constant, independent], ids=lambda f: f.__name__)
def test_what_knows_nothing_of_the_record_stands(mechanism):
    claim = {"auc": 0.6, "data": people(), "records": [-1, 0, 3], "max_samples": 2_000}
    result = audit(mechanism, **claim, seed=1)
    assert result.verdict == "no violation"
    assert result.resolution < 0.8
    assert all(risk.interval[0] <= 0.5 <= risk.interval[1] for risk in result.risks)
    assert result.p_value > result.alpha


def test_games_with_a_learned_attack_keep_alpha():
    """The record changes nothing, so that the area is one half: a claim just above it holds."""
    claim = {"auc": 0.5001, "data": people(12), "records": [-1, 0], "alpha": 0.1}
    found = [audit(noisy, **claim, max_samples=600, seed=seed).violated for seed in range(200)]
    assert sum(found) <= scipy.stats.binom.isf(1e-6, 200, 0.1)


def noisy(data, rng):
    return {"a": rng.normal(), "b": rng.integers(5), "c": rng.choice(["x", "y"])}
