"""The ranking of events against numerical minimisation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import rel_entr

from pytest_dp.evidence import statdp
from pytest_dp.evidence.event_test import event_test
from pytest_dp.privacy import ApproximateDP, GaussianDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

CLAIMS = [
    ApproximateDP(0.0, 0.2),
    ApproximateDP(1.0, 1e-9),
    ApproximateDP(1.0, 0.05),
    GaussianDP(0.1),
    GaussianDP(1.0),
    ZeroConcentratedDP(0.5),
]


def divergence(observed, expected):
    return rel_entr(observed, expected) + rel_entr(1 - observed, 1 - expected)


@pytest.mark.spot(3)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_score_is_the_likelihood_ratio(claim):
    rng = np.random.default_rng(7)
    everywhere = np.concatenate([np.geomspace(1e-13, 1, 20_001), np.linspace(0, 1, 100_001)])
    checked = 0
    for _ in range(150):
        runs = int(rng.choice([5, 40, 1_000, 1_000_000]))
        c1, c2 = (int(c) for c in rng.integers(0, runs + 1, 2))
        f1, f2 = c1 / runs, c2 / runs
        score = event_test(claim).score([c1], [c2], runs)[0]
        p2 = everywhere[everywhere >= f2]
        p1 = np.minimum(claim.largest_probability(p2), f1)
        expected = runs * (divergence(f1, p1) + divergence(f2, p2)).min()
        if f1 <= claim.largest_probability(f2):
            assert score < 1e-6 * runs
        else:
            checked += 1
            assert score == pytest.approx(expected, rel=0.01, abs=2e-3), (c1, c2, runs)
    assert checked > 15


def test_of_eps_alone_it_is_that_of_statdp():
    c1, c2 = np.array([[900, 5], [20, 0]]), np.array([[100, 9], [4, 0]])
    theirs = statdp.score(c1, c2, 1_000, 0.7)
    assert (event_test(ApproximateDP(0.7)).score(c1, c2, 1_000) == theirs).all()


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_score_keeps_shape_and_survives_the_corners(claim):
    runs = 30
    c1, c2 = np.meshgrid(np.arange(runs + 1), np.arange(runs + 1))
    with np.errstate(all="raise", under="ignore"):
        scores = event_test(claim).score(c1, c2, runs)
    assert scores.shape == c1.shape
    assert np.isfinite(scores).all()
    assert (scores[c1 <= c2] == 0).all()
    assert (np.diff(scores, axis=1) >= -1e-9).all()
    assert (np.diff(scores, axis=0) <= 1e-9).all()
    assert event_test(claim).score(np.zeros((0, 2), int), np.zeros((0, 2), int), runs).shape == (
        0,
        2,
    )
