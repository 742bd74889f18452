"""Lower bounds on divergences from held-out pairs: how often they are too high, and how tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from pytest_dp.evidence.divergence_bounds import DivergenceBet, best_bet
from pytest_dp.privacy import GaussianDP, RenyiDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

MU = 0.6
CUTS = norm.ppf(np.linspace(0, 1, 24)[1:-1], MU / 2, 1.05)
SCORES = np.concatenate([[CUTS[0] - 0.3], (CUTS[1:] + CUTS[:-1]) / 2, [CUTS[-1] + 0.3]])
CLAIMS = {
    1.0: ZeroConcentratedDP(MU**2 / 2),
    2.0: RenyiDP(((2.0, MU**2),)),
    8.0: RenyiDP(((8.0, 4 * MU**2),)),
}


def draw(rng, pairs, coupled, shift=MU):
    y = rng.normal(size=pairs)
    x = (y if coupled else rng.normal(size=pairs)) + shift
    width = len(CUTS) + 1
    both = np.searchsorted(CUTS, x) * width + np.searchsorted(CUTS, y)
    return np.bincount(both, minlength=width**2).reshape(width, width)


def truth(order):
    """The divergence between the bins, a little less than that of the outputs."""
    p, q = (np.diff(np.concatenate([[0], norm.cdf(CUTS, m), [1]])) for m in (MU, 0))
    if order == 1:
        return max(np.sum(p * np.log(p / q)), np.sum(q * np.log(q / p)))
    moments = np.sum(p**order * q ** (1 - order)), np.sum(q**order * p ** (1 - order))
    return math.log(max(moments)) / (order - 1)


@pytest.mark.parametrize("order", CLAIMS)
@pytest.mark.parametrize("coupled", [False, True])
def test_bounds_are_seldom_too_high_and_not_far_below(order, coupled):
    rng = np.random.default_rng(int(order))
    alpha, pairs, found = 0.1, 4_000, []
    past = draw(rng, 4_000, coupled).astype(float)
    bet = best_bet(past, SCORES, CLAIMS[order], pairs, alpha)
    for _ in range(300):
        found.append(bet.lower(draw(rng, pairs, coupled), alpha))
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


def test_nothing_is_shown_where_nothing_differs():
    rng = np.random.default_rng(1)
    claim = GaussianDP(0.3)
    bet = best_bet(draw(rng, 1_000, False).astype(float), SCORES, claim, 1_000, 0.01)
    assert bet.lower(np.zeros((24, 24), int), 0.01) == 0
    same = [bet.lower(draw(rng, 1_000, True, shift=0), 0.01) for _ in range(50)]
    assert max(same) == 0
    with pytest.raises(ValueError, match="alpha"):
        bet.lower(draw(rng, 10, False), 0)


def test_the_order_is_the_one_that_shows_most_of_the_claim():
    """For Gaussian noise all orders show the same rho; the smallest is known best."""
    rng = np.random.default_rng(2)
    past = draw(rng, 20_000, False).astype(float)
    assert best_bet(past, SCORES, CLAIMS[1.0], 20_000, 1e-6).order == 1.0
    assert best_bet(past, SCORES, RenyiDP(((8.0, 0.1),)), 20_000, 1e-6).order == 8.0
