"""Attacks on claims of more than ε: the threshold and the events that are expected to show most."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from pytest_dp.attacks.binning import cuts_of
from pytest_dp.attacks.expected_bounds import PlannedTest, choice_of, first_share, rough_bounds
from pytest_dp.attacks.threshold import best_cut, cuts_at
from pytest_dp.evidence.event_test import event_test
from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

CLAIMS = [
    ApproximateDP(0.5, 1e-3),
    GaussianDP(0.5),
    ZeroConcentratedDP(0.125),
    RenyiDP(((2.0, 0.25),)),
]


def between(cuts, found):
    return np.bincount(np.searchsorted(cuts.at, found), minlength=len(cuts.levels))


@pytest.mark.spot(3)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("distance", [0.3, 1.0])
def test_the_threshold_that_shows_most_of_a_claim(claim, distance):
    """Of normal noise, where all is known: nearly as much as the best one by known chances."""
    rng = np.random.default_rng(57)
    found = [rng.normal(d, 1, 100_000) * distance for d in (distance, 0.0)]
    cuts = cuts_at(cuts_of(np.concatenate(found), 200), 100_000)
    choice = best_cut(*(between(cuts, side) for side in found), cuts, PlannedTest(claim, 2e5, 1e-6))
    at = cuts.at / distance
    up = norm.sf(at - distance), norm.sf(at)
    down = norm.cdf(at), norm.cdf(at - distance)
    worth = [
        event_test(claim).predicted(p1, 2e5 * share, p2, 2e5 * (1 - share), 1e-6)
        for p1, p2 in (up, down)
        for share in (first_share(p1, p2, claim),)
    ]
    k = int(np.argmin(np.abs(cuts.at - choice.sign * choice.threshold)))
    best = np.nanmax(worth)
    assert worth[choice.sign < 0][k] > 0.93 * best - 0.01
    assert choice.expected < 1.15 * best + 0.002
    assert choice.expected > 0.8 * best - 0.02
    if claim.parameter == "mu":
        assert best < distance
        assert 0.2 < norm.sf(at[k]) < 0.8  # in the middle, where most is known


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_bound_to_expect_of_an_event_in_the_parameter_of_a_claim(claim):
    n, ahead = 10_000, PlannedTest(claim, 50_000, 1e-3)
    for c1, c2 in ((500, 100), (4_000, 3_000), (6_000, 3_000)):
        choice, turned = choice_of(c1, n, c2, n, ahead), choice_of(c2, n, c1, n, ahead)
        assert choice.sign == -turned.sign == 1
        assert choice.expected == turned.expected
        best = float(claim.shown_by(c1 / n, c2 / n))
        assert 0.3 * best < choice.expected < best
        paired = choice_of(c1, n, c2, n, ahead, both=c2)
        assert paired.expected >= choice.expected
    assert choice_of(3_000, n, 3_000, n, ahead).expected <= 0


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_events_are_ranked_about_as_by_the_bound_to_expect(claim):
    rng = np.random.default_rng(59)
    c2 = rng.integers(50, 3_000, 60)
    # Of events in most outputs the complement would show more of ε.
    c1 = np.minimum(c2 * rng.uniform(1.3, 4, 60), 5_000).astype(int)
    ahead = PlannedTest(claim, 50_000, 1e-3)
    rough = rough_bounds(c1, c2, 10_000, ahead)
    exact = [
        choice_of(int(a), 10_000, int(b), 10_000, ahead).expected
        for a, b in zip(c1, c2, strict=True)
    ]
    assert spearmanr(rough, exact).statistic > 0.9
    assert exact[int(np.argmax(rough))] > 0.8 * max(exact)


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_samples_are_shared_out_to_show_most_of_a_claim(claim):
    for p1, p2 in ((0.1, 0.02), (0.5, 0.3), (0.8, 0.4)):
        p1, p2 = np.array([p1]), np.array([p2])
        share = float(first_share(p1, p2, claim)[0])
        shares = np.linspace(0.05, 0.95, 37)
        worth = [
            float(event_test(claim).predicted(p1, 1e5 * s, p2, 1e5 * (1 - s), 1e-3)[0])
            for s in (share, *shares)
        ]
        best = float(claim.shown_by(p1, p2)[0])
        assert best - worth[0] < 1.06 * (best - max(worth))
