"""What bets would have caught, against closed forms and against mechanisms scaled in fact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import binom, laplace, norm

from pytest_dp.evidence.betting import Record
from pytest_dp.evidence.resolution import (
    LEARNING_COST,
    PlannedBets,
    curve,
    shown_by_events,
    smallest_event,
    smallest_scale,
)
from pytest_dp.evidence.shared_loss import sharing, smallest_shared_loss
from pytest_dp.privacy import ApproximateDP, gaussian_sigma, gdp_to_eps

pytestmark = pytest.mark.slow

CLAIM = ApproximateDP(1.0)
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
        distance * smallest_scale([curve(seen(laplace, distance))], PlannedBets(CLAIM, runs, 1e-6))
        for runs in (3_000, 30_000, 1_000_000)
    ]
    assert caught == sorted(caught, reverse=True)
    half_lines = [
        smallest_event(0.5, PlannedBets(CLAIM, runs, 1e-6)) for runs in (3_000, 30_000, 1_000_000)
    ]
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
        assert math.isinf(smallest_scale([found], PlannedBets(CLAIM, 1e9, 1e-6))) == (
            not found.shift.any()
        )
    assert told <= 20


def test_a_score_that_never_varies_has_no_curve():
    assert curve(np.array([[10.0]])) is None
    assert shown_by_events(Record([np.array([[10.0]])]), CLAIM) == 0


def test_the_largest_loss_leaves_room_for_luck():
    exact = math.log(0.5 / 0.15)
    for pairs in (300, 3_000, 300_000):
        joint = pairs * np.outer([0.2, 0.3, 0.5], [0.6, 0.25, 0.15])
        error = 2 * math.sqrt((0.5 * 0.85 + 0.15 * 0.5) / (0.5 * 0.15) / pairs)
        assert shown_by_events(Record([joint]), CLAIM) == pytest.approx(exact + error, rel=0.05)
    nested = 300 * np.array([[0.5, 0.0], [0.35, 0.15]])  # the rarer side never alone
    apart = 300 * np.outer([0.5, 0.5], [0.85, 0.15])
    assert shown_by_events(Record([nested]), CLAIM) < shown_by_events(Record([apart]), CLAIM)


@pytest.mark.parametrize("noise", [1.0, 1.5])
def test_the_largest_eps_is_that_beside_the_delta(noise):
    """Neither that of an event hardly likelier than delta, nor that of a common one."""
    rng, sigma = np.random.default_rng(1), noise * gaussian_sigma(1.0, 1e-3)
    true = gdp_to_eps(1 / sigma, 1e-3)
    cuts = np.concatenate([[-np.inf], np.linspace(-3.5 * sigma, 3.5 * sigma + 1, 32), [np.inf]])
    on_d, on_d2 = (np.diff(norm.cdf(cuts, mean, sigma)) for mean in (1.0, 0.0))
    shown = []
    for _ in range(60):
        joint = rng.multinomial(180_000, np.outer(on_d, on_d2).ravel()).reshape(33, 33)
        shown.append(shown_by_events(Record([joint.astype(float)]), ApproximateDP(1.0, 1e-3)))
    assert 0.95 * true < min(shown)
    assert max(shown) < 1.4 * true


def at_places(losses, runs, paired, seed=1):
    """Labels of places to which Laplace noise is added for such losses; from their definition."""
    rng = np.random.default_rng(seed)
    for loss in losses:
        noise = rng.laplace(size=(2, runs))
        one, two = noise[0] + loss, noise[0] if paired else noise[1]
        yield (one > loss / 2).astype(np.int64), (two > loss / 2).astype(np.int64)


@pytest.mark.parametrize("noise", [1, 5])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    ("losses", "expected"),
    [([0.2] * 4, 4), ([1, 0, 0, 0, 0, 0], 1), ([0.5] * 2 + [0.0] * 30, 2), ([0.8, 0.2], 1.5)],
)
def test_as_how_many_places_share_a_loss(losses, expected, paired, noise):
    """Also where there is so much noise that single places are hardly told apart."""
    found = [
        sharing(at_places([loss / noise for loss in losses], 9_000, paired, seed), paired)
        for seed in range(5)
    ]
    assert np.median(found) == pytest.approx(expected, rel=0.15)


def test_where_no_place_stands_out_all_of_them_share_the_loss():
    """That is the worst case; chance alone must not make one of many stand out."""
    found = [sharing(at_places([0.0] * 100, 2_000, False, seed), False) for seed in range(20)]
    assert found.count(100.0) >= 19


def test_a_shared_loss_is_caught_where_the_count_of_places_that_show_it_is():
    """Brute force: the best threshold of the count, and the best stake, at what is reported."""
    runs, places = 1_000_000, 5  # so many that learning costs next to nothing
    loss = smallest_shared_loss(places, PlannedBets(CLAIM, runs, 1e-6))
    p = binom.sf(np.arange(-1, places), places, 0.5)
    q = binom.sf(np.arange(-1, places), places, 0.5 * math.exp(-loss / places))
    best = max(
        a * (1 - b) * math.log1p(f)
        + b * (1 - a) * math.log1p(-f * math.e)
        + a * b * math.log1p(f * (1 - math.e))
        for a, b in zip(p, q, strict=True)
        for f in np.linspace(0.001, 0.36, 400)
    )
    needed = -math.log(1e-6) + LEARNING_COST + 2 * math.sqrt(-2 * math.log(1e-6))
    assert best * runs == pytest.approx(needed, rel=0.02)


def test_a_loss_is_harder_to_catch_the_more_places_share_it():
    def found(places, runs=9_000):
        return smallest_shared_loss(places, PlannedBets(CLAIM, runs, 1e-6))

    shared = [found(places) for places in (1, 1.5, 2, 3, 10, 100, 1_000)]
    assert shared == sorted(shared)
    assert shared[1] == pytest.approx((shared[0] + shared[2]) / 2)
    assert shared[0] == pytest.approx(
        smallest_event(0.5, PlannedBets(CLAIM, 9_000, 1e-6)), rel=0.01
    )
    assert found(100, 30_000) < found(100)
    assert math.isinf(found(3, 10))


def test_tails_in_which_few_outputs_are_do_not_decide():
    """Of a Laplace loss of 0.2, seen in few outputs, the shape of the noise is not known."""
    rng = np.random.default_rng(1)
    law = np.diff(laplace.cdf(CUTS, 0.2)), np.diff(laplace.cdf(CUTS, 0))
    losses = []
    for _ in range(100):
        found = curve(np.outer(*(rng.multinomial(9_000, p) for p in law)) / 9_000)
        losses.append(found.loss(smallest_scale([found], PlannedBets(CLAIM, 9_000, 1e-6))))
    exact = smallest_event(0.5, PlannedBets(CLAIM, 9_000, 1e-6))
    assert np.quantile(losses, 0.9) < 1.25 * exact


def test_the_shape_of_noise_is_seen_through_much_of_it():
    """With Gaussian noise the clearest event shows half of what rarer ones show."""
    rng = np.random.default_rng(1)
    ends = np.concatenate([[-np.inf], np.linspace(-1, 1, 10), [np.inf]])
    law = np.diff(norm.cdf(ends, 0.122)), np.diff(norm.cdf(ends))
    losses = []
    for _ in range(50):
        found = curve(np.outer(*(rng.multinomial(9_000, p) for p in law)) / 9_000)
        losses.append(found.loss(smallest_scale([found], PlannedBets(CLAIM, 9_000, 1e-6))))
    assert np.median(losses) > 1.15 * smallest_event(0.5, PlannedBets(CLAIM, 9_000, 1e-6))


def test_the_resolution_improves_with_samples_and_with_shared_randomness():
    def found(pairs, shared=0.0):
        return smallest_event(0.5, PlannedBets(ApproximateDP(0.5), pairs, 1e-6), shared)

    assert math.isinf(found(10))
    assert found(1_000) > found(10_000) > found(100_000) > 0.5
    assert found(100_000, 1.0) < found(100_000)


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.3), (0.5, 0.0), (0.5, 0.1), (2.0, 1e-3)])
def test_the_resolution_is_where_the_best_single_stake_just_suffices(eps, delta):
    """At the loss that it names, the best growth of one stake on the event pays for 1/alpha."""
    p1, pairs, alpha = 0.6, 3_000, 1e-3
    shown = smallest_event(p1, PlannedBets(ApproximateDP(eps, delta), pairs, alpha))
    p2 = (p1 - delta) * math.exp(-shown)
    cells = np.array([p1 * p2, p1 * (1 - p2), (1 - p1) * p2, (1 - p1) * (1 - p2)])
    worst = math.exp(eps) + delta
    pays = np.array([1 - worst, 1 - delta, -worst, -delta])
    best = scipy.optimize.minimize_scalar(
        lambda stake: -cells @ np.log1p(stake * pays), bounds=(0, 0.98 / worst), method="bounded"
    )
    assert -best.fun * pairs == pytest.approx(
        -math.log(alpha) + LEARNING_COST + 2 * math.sqrt(-2 * math.log(alpha)), rel=0.01
    )
