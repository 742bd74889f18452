"""What bets would have caught, against closed forms and against mechanisms scaled in fact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import laplace, norm

from pytest_dp.evidence.betting import FRACTIONS, RUNGS, Record
from pytest_dp.evidence.resolution import (
    LEARNING,
    curve,
    largest_loss,
    smallest_eps,
    smallest_scale,
    sum_of_losses,
)

NOTHING = np.zeros((len(RUNGS), 2, len(FRACTIONS)))
CUTS = np.concatenate([[-np.inf], np.linspace(-4, 5, 40), [np.inf]])


def seen(law, distance, pairs=1e9):
    """The record of a sum with noise of this law, on inputs so far apart; no luck in it."""
    p, q = np.diff(law.cdf(CUTS, distance)), np.diff(law.cdf(CUTS, 0))
    return pairs * np.outer(p, q)


@pytest.mark.parametrize("law", [laplace, norm])
@pytest.mark.parametrize("times", [1, 1.5, 2, 3.7, 10])
def test_noise_scaled_down_is_like_inputs_farther_apart(law, times):
    """That is so by definition; the curve knows neither the law nor the distance."""
    p, q, shared = curve(seen(law, 0.2)).scaled(times)
    some = (q > 0.01) & (q < 0.9)
    exact = law.sf(law.isf(q[some]), times * 0.2)
    assert p[some] == pytest.approx(exact, abs=0.005)
    assert np.abs(shared).max() < 1e-3


@pytest.mark.parametrize("times", [1, 2, 5])
def test_randomised_response_scaled(times):
    keep = 1 / (1 + math.exp(-0.2))
    found = curve(1e9 * np.outer([1 - keep, keep], [keep, 1 - keep]))
    p, q, _ = found.scaled(times)
    expected = 1 / (1 + math.exp(-0.2 * times))
    assert (p, q) == (pytest.approx(expected, abs=1e-3), pytest.approx(1 - expected, abs=1e-3))
    assert found.loss(times) == pytest.approx(0.2 * times, rel=0.01)


@pytest.mark.parametrize("distance", [1.0, 0.2, 0.02])
def test_the_scale_does_not_depend_on_where_one_starts(distance):
    """Laplace noise for a loss of 1, 0.2 or 0.02 is caught at the same loss in the end."""
    caught = [
        distance * smallest_scale([curve(seen(laplace, distance))], runs, 1.0, 0.0, 1e-6)
        for runs in (3_000, 30_000, 1_000_000)
    ]
    assert caught == sorted(caught, reverse=True)
    half_lines = [smallest_eps(0.5, runs, 1.0, 0.0, 1e-6) for runs in (3_000, 30_000, 1_000_000)]
    assert caught == pytest.approx(half_lines, rel=0.02)


def test_inputs_that_chance_may_tell_apart_are_not():
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(200):
        one, two = rng.integers(0, 20, (2, 2_000))
        joint = np.zeros((20, 20))
        np.add.at(joint, (np.sort(one % 20), two), 1)
        found = curve(joint)
        told += found.shift.max() > 0
        assert math.isinf(smallest_scale([found], 1e9, 1.0, 0.0, 1e-6)) == (not found.shift.any())
    assert told <= 20


def test_a_score_that_never_varies_has_no_curve():
    assert curve(np.array([[10.0]])) is None
    assert largest_loss(Record([np.array([[10.0]])], NOTHING)) == 0


def test_the_largest_loss_leaves_room_for_luck():
    exact = math.log(0.5 / 0.15)
    for pairs in (300, 3_000, 300_000):
        joint = pairs * np.outer([0.2, 0.3, 0.5], [0.6, 0.25, 0.15])
        error = 2 * math.sqrt((0.5 * 0.85 + 0.15 * 0.5) / (0.5 * 0.15) / pairs)
        assert largest_loss(Record([joint], NOTHING)) == pytest.approx(exact + error, rel=0.05)
    nested = 300 * np.array([[0.5, 0.0], [0.35, 0.15]])  # the rarer side never alone
    apart = 300 * np.outer([0.5, 0.5], [0.85, 0.15])
    assert largest_loss(Record([nested], NOTHING)) < largest_loss(Record([apart], NOTHING))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("places", [1, 4, 12])
def test_losses_of_many_places_add_up(places, paired):
    rng = np.random.default_rng(places)
    each, runs = 0.6 / places, 60_000
    noise = rng.laplace(scale=1 / each, size=(2, places, runs))
    one, two = noise[0] + 1, noise[0] if paired else noise[1]
    cuts = np.quantile(np.concatenate([one, two], 1), np.linspace(0.1, 0.9, 9), axis=1).T
    events = [(one[i] >= cuts[i][:, None], two[i] >= cuts[i][:, None]) for i in range(places)]
    assert 0.6 * 0.97 < sum_of_losses(events, paired) < 0.6 * 1.5


def test_the_resolution_improves_with_samples_and_with_shared_randomness():
    def found(pairs, shared=0.0):
        return smallest_eps(0.5, pairs, 0.5, 0.0, 1e-6, shared)

    assert math.isinf(found(10))
    assert found(1_000) > found(10_000) > found(100_000) > 0.5
    assert found(100_000, 1.0) < found(100_000)


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.3), (0.5, 0.0), (0.5, 0.1), (2.0, 1e-3)])
def test_the_resolution_is_where_the_best_single_stake_just_suffices(eps, delta):
    """At the loss that it names, the best growth of one stake on the event pays for 1/alpha."""
    p1, pairs, alpha = 0.6, 3_000, 1e-3
    p2 = p1 * math.exp(-smallest_eps(p1, pairs, eps, delta, alpha))
    cells = np.array([p1 * p2, p1 * (1 - p2), (1 - p1) * p2, (1 - p1) * (1 - p2)])
    worst = math.exp(eps) + delta
    pays = np.array([1 - worst, 1 - delta, -worst, -delta])
    best = scipy.optimize.minimize_scalar(
        lambda stake: -cells @ np.log1p(stake * pays), bounds=(0, 0.98 / worst), method="bounded"
    )
    assert -best.fun * pairs == pytest.approx(
        -math.log(alpha) + LEARNING + 2 * math.sqrt(-2 * math.log(alpha)), rel=0.01
    )
