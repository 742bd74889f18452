"""Bets beyond pure eps: what they pay at the boundary of a claim, exactly, and what they earn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from scipy.special import ndtri

from pytest_dp.privacy import RenyiDP, ZeroConcentratedDP
from pytest_dp.statistics.event_bets import FRACTIONS
from pytest_dp.statistics.soft_bets import (
    SHARPNESS,
    DivergenceBet,
    against_divergences,
    against_sticks,
    best_bet,
    largest_mean_payoff,
    log_ratio_of,
    payoffs_of_ratio,
)

pytestmark = pytest.mark.slow

ORDERS = [1.0, 1.5, 8.0]


def divergence(p, q, order):
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


def laws(seed, bins=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(bins)), rng.dirichlet(np.ones(bins))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(2))
def test_no_function_of_the_output_pays_more_than_the_divergence(order, seed):
    p, q = laws(seed)
    most = largest_mean_payoff(order, divergence(p, q, order))
    gain, cost = payoffs_of_ratio(np.log(p / q), order)
    assert p @ gain + q @ cost == pytest.approx(most)
    rng = np.random.default_rng(seed)
    for scale in (0.01, 0.1, 1.0):
        gain, cost = payoffs_of_ratio(np.log(p / q) + scale * rng.normal(size=4), order)
        assert p @ gain + q @ cost < most


def known(p, q, runs=1e9):
    """A record of independent outputs in which nothing is due to chance, and their scores."""
    return runs * np.outer(p, q), np.log(p / q)


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_bet_on_pays_the_divergences_and_no_more(order):
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    joint, scores = known(p, q)
    value = divergence(p, q, order)
    attacks = against_divergences(joint, scores, [order], np.array([[value]]))
    mean = p @ attacks.paid1[0] + q @ attacks.paid2[0] - attacks.r[0]
    assert mean.max() <= 1e-6  # both directions have the same divergence here
    assert mean.max() >= -1e-6 * (1 + attacks.r.max())
    ways = np.sum(mean > -1e-6 * (1 + attacks.r[0]))
    assert ways == 3  # the estimate that is true: of D, of D', of both


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.1), (0.7, 0.05), (2.0, 1e-3)])
def test_soft_attacks_pay_nothing_on_average_where_the_claim_is_attained(eps, delta):
    """Randomised response that tells for certain, with probability delta, which input it got."""
    lie = (1 - delta) / (1 + math.exp(eps))
    p = np.array([0.0, lie, 1 - lie - delta, delta])
    q = p[::-1]
    ratio = np.clip(np.log((p + 1e-12) / (q + 1e-12)), -30, 30)
    attacks = against_sticks(ratio, *np.exp([[[eps]]]), np.array([[delta]]), SHARPNESS)
    mean = p @ attacks.paid1[0] + q @ attacks.paid2[0] - attacks.r[0]
    # Each is 1 on what tells for certain, and elsewhere ratios are at most exp(eps).
    assert mean == pytest.approx(np.zeros(3 * len(SHARPNESS)), abs=1e-9)
    assert attacks.r[0].tolist() == [delta, delta, 2 * delta] * 3


@pytest.mark.parametrize("steep", [1.5, 5.0])
def test_soft_attacks_gain_nothing_by_a_ratio_that_is_estimated_too_large(steep):
    """Where something is bet, the ratio of randomised response is exp(eps), no more."""
    eps = 0.7
    p = np.array([1.0, math.exp(eps)]) / (1 + math.exp(eps))
    q = p[::-1]
    attacks = against_sticks(
        steep * np.log(p / q), *np.exp([[[eps]]]), np.array([[0.05]]), SHARPNESS
    )
    assert np.all(attacks.paid1[0].max(axis=0) + attacks.paid2[0].max(axis=0) > 0.5)
    mean = p @ attacks.paid1[0] + q @ attacks.paid2[0]
    assert mean == pytest.approx(np.zeros(3 * len(SHARPNESS)), abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_no_pair_of_outputs_can_ruin(order):
    rng = np.random.default_rng(0)
    joint = rng.integers(0, 30, (6, 6)).astype(float)
    scores = np.sort(rng.normal(size=6))
    bounds = np.array([[0.01], [1.0]])
    several = against_divergences(joint, scores, [order], bounds)
    ratio = log_ratio_of(joint, scores)
    sticks = against_sticks(ratio, np.exp(bounds), bounds / 50, np.array([1.0, 3.0]))
    for attacks in (several, sticks):
        stakes, r = attacks.stakes, attacks.r[:, None]
        staked = stakes / (1 + stakes * r)
        pays = attacks.paid1[:, :, None] + attacks.paid2[:, None]
        worst = staked * (pays.min(axis=(1, 2))[:, None] - r)
        assert worst.min() > -1
        # Without r, the largest stake is nearly all that can be borne.
        cap = (stakes * -pays.min(axis=(1, 2))[:, None])[:, 0]
        assert cap[cap > 1e-3] == pytest.approx(FRACTIONS[0])


@pytest.mark.parametrize("order", ORDERS)
def test_growth_is_that_of_all_factors_for_every_rung(order):
    rng = np.random.default_rng(0)
    joint = rng.integers(0, 30, (4, 4))
    attacks = against_divergences(joint, np.arange(4.0), [order], np.array([[0.01], [0.3]]))
    found = attacks.growth(joint)
    for rung, k, f in itertools.product(range(2), (0, 7, 30, 35), (0, 4, 8)):
        odds, r = attacks.stakes[0, f, k], attacks.r[rung, k]
        share = odds / (1 + odds * r)
        pays = attacks.paid1[0, :, None, k] + attacks.paid2[0, None, :, k] - r
        assert found[rung, k, f] == pytest.approx(np.sum(joint * np.log1p(share * pays)))


# lower bounds from held-out pairs: how often they are too high, and how tight

MU = 0.6
CUTS = MU / 2 + 1.05 * ndtri(np.linspace(0, 1, 24)[1:-1])
SCORES = np.concatenate([[CUTS[0] - 0.3], (CUTS[1:] + CUTS[:-1]) / 2, [CUTS[-1] + 0.3]])
CLAIMS = {
    1.0: ZeroConcentratedDP(MU**2 / 2),
    2.0: RenyiDP(((2.0, MU**2),)),
    8.0: RenyiDP(((8.0, 4 * MU**2),)),
}


def drawn(rng, pairs, coupled, shift=MU):
    y = rng.normal(size=pairs)
    x = (y if coupled else rng.normal(size=pairs)) + shift
    width = len(CUTS) + 1
    both = np.searchsorted(CUTS, x) * width + np.searchsorted(CUTS, y)
    return np.bincount(both, minlength=width**2).reshape(width, width)


def truth(order):
    """The divergence between the bins, a little less than that of the outputs."""
    p, q = (np.diff(np.concatenate([[0], scipy.stats.norm.cdf(CUTS, m), [1]])) for m in (MU, 0))
    if order == 1:
        return max(np.sum(p * np.log(p / q)), np.sum(q * np.log(q / p)))
    moments = np.sum(p**order * q ** (1 - order)), np.sum(q**order * p ** (1 - order))
    return math.log(max(moments)) / (order - 1)


@pytest.mark.parametrize("order", CLAIMS)
@pytest.mark.parametrize("coupled", [False, True])
def test_bounds_are_seldom_too_high_and_not_far_below(order, coupled):
    rng = np.random.default_rng(int(order))
    alpha, pairs, found = 0.1, 4_000, []
    past = drawn(rng, 4_000, coupled).astype(float)
    bet = best_bet(past, SCORES, CLAIMS[order], pairs, alpha)
    for _ in range(300):
        found.append(bet.lower(drawn(rng, pairs, coupled), alpha))
    too_high = np.mean(np.array(found) > truth(order))
    assert too_high <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / 300)
    assert np.median(found) > {1.0: 0.8, 2.0: 0.7, 8.0: 0.5}[order] * truth(order)


def test_a_bet_that_is_true_shows_the_divergence_itself():
    """With pairs in which nothing is due to chance, and so many that alpha costs nothing."""
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    exact = float(np.sum(p * np.log(p / q)))
    joint = 1e12 * np.outer(p, q)
    bet = DivergenceBet(1.0, np.log(p / q), 1 - p / q, 1e-4, 1)
    assert 0.999 * exact < bet.lower(joint, 1e-6) < exact
    twice = DivergenceBet(1.0, np.log(p / q) + 1 - q / p, 1 - p / q - np.log(p / q), 1e-4, 2)
    assert 0.999 * exact < twice.lower(joint, 1e-6) < exact
