"""Attacks: where the threshold is put, and the bound to expect of an event."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pytest_dp.auditors.witness import cautious
from pytest_dp.betting.binning import cuts_of
from pytest_dp.betting.scores import Attack
from pytest_dp.methods.cuts import PlannedTest, best_cut
from pytest_dp.methods.dpsniper import threshold_attack
from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

# -- The threshold ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Itself:
    """The posterior whose score is the output."""

    def log_odds(self, table):
        return table.leaf("output")[0]


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=60),
    st.floats(0.001, 0.999),
    st.sampled_from([1, -1]),
)
def test_a_fixed_share_is_covered_exactly(values, c, sign):
    found = np.array(values, dtype=float)
    attack = threshold_attack(Itself(), sign, found, c)
    assert 0 <= attack.tie <= 1
    covered = math.fsum(attack(x) for x in values)
    assert covered == pytest.approx(c * len(values), abs=1e-9)
    # No output inside points less to its input than one outside.
    by_sign = sorted(values, key=lambda x: -sign * x)
    chances = [attack(x) for x in by_sign]
    assert chances == sorted(chances, reverse=True)
    assert len({chance for chance in chances if 0 < chance < 1}) <= 1


def test_the_paper_by_hand():
    attack = threshold_attack(Itself(), 1, np.array([5.0, 4, 4, 3, 3, 3, 2, 1, 0, 0]), 0.4)
    assert (attack.threshold, attack.tie) == (3.0, pytest.approx(1 / 3))
    assert [attack(x) for x in (4, 3, 2)] == [1.0, pytest.approx(1 / 3), 0.0]
    assert str(attack) == "score(output) > 3, and a random 33% of those at it"
    mirrored = threshold_attack(Itself(), -1, np.array([5.0, 4, 4, 3, 3, 3, 2, 1, 0, 0]), 0.45)
    assert (mirrored.threshold, mirrored.tie) == (-3.0, pytest.approx(1 / 6))
    assert [mirrored(x) for x in (2, 3, 4)] == [1.0, pytest.approx(1 / 6), 0.0]
    assert str(Attack(Itself(), 1, 0.5)) == "score(output) > 0.5"


PURE = ApproximateDP(1.0)
CLAIMS = [
    PURE,
    ApproximateDP(0.5, 1e-3),
    GaussianDP(0.5),
    ZeroConcentratedDP(0.125),
    RenyiDP(((2.0, 0.25),)),
]


def plan(runs, alpha, claim=PURE):
    return PlannedTest(claim, runs, alpha)


def bounds_to_expect(p1, p2, runs, alpha, claim=PURE):
    """Bounds to expect of events if their probabilities are known."""
    return plan(runs, alpha, claim).expect(p1, p2)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("distance", [0.3, -1.0])
def test_the_threshold_that_shows_most_of_a_claim(claim, distance):
    """Of normal noise, where all is known: nearly as much as the best one by known chances."""
    rng, far = np.random.default_rng(57), abs(distance)
    means = (far, 0.0) if distance > 0 else (0.0, far)
    found = [rng.normal(d, 1, 100_000) * distance for d in means]
    cuts = cuts_of(np.concatenate(found), 200)
    choice = best_cut(*(between(cuts, side) for side in found), cuts, plan(2e5, 1e-6, claim))
    chances = [scipy.stats.norm.sf(cuts, d * distance, far) for d in means]
    up, down = chances, [1 - p for p in chances[::-1]]
    worth = [bounds_to_expect(*side, 2e5, 1e-6, claim) for side in (up, down)]
    k = int(np.argmin(np.abs(cuts - choice.sign * choice.threshold)))
    best = np.nanmax(worth)
    assert worth[choice.sign < 0][k] > 0.93 * best - 0.01
    assert 0.8 * best - 0.02 < choice.expected < 1.15 * best + 0.002
    truth = (up if choice.sign > 0 else down)[0][k], (up if choice.sign > 0 else down)[1][k]
    assert (choice.p1, choice.p2) == pytest.approx(truth, rel=0.2, abs=2e-4)
    if claim.parameter == "mu":
        assert best < far
        assert 0.2 < truth[0] < 0.9  # in the middle, where most is known


def between(cuts, found):
    return np.bincount(np.searchsorted(cuts, found), minlength=len(cuts) + 1)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_bound_to_expect_of_an_event(claim):
    n, ahead = 10_000, plan(50_000, 1e-3, claim)
    for c1, c2 in ((500, 100), (4_000, 3_000), (6_000, 3_000)):
        p1, p2 = cautious(np.array([c1]), n, np.array([c2]), n)
        assert p1 < c1 / n
        assert p2 > c2 / n
        expected = ahead.expect(p1, p2)
        known = ahead.expect(np.array([c1 / n]), np.array([c2 / n]))
        assert expected < known < float(claim.shown_by(c1 / n, c2 / n))
        assert expected > 0.3 * float(claim.shown_by(c1 / n, c2 / n))
        assert plan(500_000, 1e-3, claim).expect(p1, p2) > expected
    assert ahead.expect(np.array([0.3]), np.array([0.3])) <= 0
