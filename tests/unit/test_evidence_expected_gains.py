"""What bets on divergences would gain with less noise, against what they do gain then."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from pytest_dp.evidence.betting import RUNGS, Ledger, Record
from pytest_dp.evidence.divergence_bets import allowed, paid
from pytest_dp.evidence.expected_gains import (
    LEARNING_FACTOR,
    EstimatedDivergences,
    largest_shown,
    smallest_divergence_scale,
)
from pytest_dp.evidence.resolution import PlannedBets, wealth_for
from pytest_dp.privacy import RenyiDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

ALPHA = 1e-6


def gaussian_record(mu, runs, coupled, bins=40):
    """Expected counts of Gaussian noise for inputs that are mu standard deviations apart."""
    reach = -norm.ppf(10 / runs)
    cuts = np.linspace(mu / 2 - reach, mu / 2 + reach, bins - 1)
    edge = np.concatenate([[-np.inf], cuts, [np.inf]])
    middle = np.concatenate([[cuts[0]], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1]]])
    if not coupled:
        p, q = np.diff(norm.cdf(edge - mu)), np.diff(norm.cdf(edge))
        return Record([runs * np.outer(p, q)], apart=True, scores=middle * mu)
    low = np.maximum(edge[:-1, None] - mu, edge[None, :-1])
    high = np.minimum(edge[1:, None] - mu, edge[None, 1:])
    return Record([runs * np.maximum(norm.cdf(high) - norm.cdf(low), 0)], scores=middle * mu)


def coins_record(p, q, runs):
    return Record([runs * np.outer([1 - p, p], [1 - q, q])], apart=True, scores=np.array([0.0, 1]))


@pytest.mark.parametrize("times", [1.0, 1.3, 2.0])
def test_less_noise_is_exact_for_gaussians_and_for_two_outcomes(times):
    record = gaussian_record(0.4, 1e9, coupled=False)
    apart = EstimatedDivergences(record)
    p, q, ratios = apart.scaled(times)
    assert p.sum() == pytest.approx(1)
    assert p @ ratios == pytest.approx((0.4 * times) ** 2 / 2, rel=0.02)
    assert q @ ratios == pytest.approx(-((0.4 * times) ** 2) / 2, rel=0.02)
    p, q, ratios = EstimatedDivergences(coins_record(0.7, 0.3, 1e9)).scaled(times)
    odds = (7 / 3) ** times
    assert p == pytest.approx([1 / (1 + odds), odds / (1 + odds)], rel=1e-3)
    assert q == pytest.approx(p[::-1], rel=1e-3)
    assert ratios == pytest.approx(np.log(p / q), abs=1e-6)


@pytest.mark.parametrize("order", [1.0, 2.0, 8.0])
def test_growth_is_about_what_the_best_stake_earns(order):
    """Two outcomes, of which all is known: every stake and direction tried out."""
    p, q, bound = 0.45, 0.3, 0.02
    expected = EstimatedDivergences(coins_record(p, q, 1e9)).growth(order, bound, 1.0)
    ratio = np.log([(1 - p) / (1 - q), p / q])
    best = 0.0
    for cut in np.arange(1, 7) / 6 * np.abs(ratio).max():
        held = np.clip(ratio, -cut, cut)
        (gain, cost), (back, price) = paid(held, order), paid(-held, order)
        for one, two, ways in (
            (gain, cost, 1),
            (price, back, 1),
            (gain + price, cost + back, 2),
        ):
            pays = one[:, None] + two[None, :] - ways * allowed(order, bound)
            weights = np.outer([1 - p, p], [1 - q, q])
            for stake in np.linspace(0, 1, 200) / -pays.min():
                with np.errstate(divide="ignore"):
                    best = max(best, float((weights * np.log1p(stake * pays)).sum()))
    assert best > 0
    assert 0.7 * best < expected < 1.4 * best


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize(
    ("claim", "rho"),
    [(ZeroConcentratedDP(0.125), 1.0), (RenyiDP(((8.0, 1.0),)), 8.0)],
)
def test_bets_do_win_at_the_scale_that_is_reported(claim, rho, coupled):
    """And not halfway back to the claim; what order 8 bounds is mostly rare."""
    runs = 9_000.0
    times = smallest_divergence_scale(
        gaussian_record(0.5, runs, coupled), PlannedBets(claim, runs, ALPHA)
    )
    assert 1.05 < times < 2.2
    ledger = Ledger(claim, ALPHA)
    won = []
    for much in (times, 1 + (times - 1) / 2):
        record = gaussian_record(0.5 * much, runs, coupled)
        attacks, _ = ledger._attacks(record, np.array([len(RUNGS) - 1]))
        won.append(float(attacks.growth(record.joint[0]).max()))
    assert won[0] > 0.8 * wealth_for(ALPHA)
    assert won[1] < LEARNING_FACTOR * wealth_for(ALPHA)


def test_what_is_too_rare_to_be_seen_counts_for_what_may_be_shown():
    """Few outputs of Gaussian noise show less of a divergence of order 8 than there is."""
    record = gaussian_record(0.5, 2_000.0, coupled=False)
    assert EstimatedDivergences(record).divergence(8.0) < 0.9
    assert largest_shown(record, RenyiDP(((8.0, 1.0),))) > 0.95
    assert math.isfinite(largest_shown(record, RenyiDP(((8.0, 1.0),))))
