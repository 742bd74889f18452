"""What bets would have detected, against closed forms and against mechanisms scaled in fact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp import RenyiDP
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    ZeroConcentratedDP,
    gaussian_sigma,
    gdp_to_eps,
)
from pytest_dp.statistics import power
from pytest_dp.statistics.event_bets import FRACTIONS, payoffs
from pytest_dp.statistics.ledger import BetRecord, Ledger

pytestmark = pytest.mark.slow

CLAIM = ApproximateDP(1.0)
ALPHA = 1e-6
NEEDED = -math.log(ALPHA) + power.LEARNING_COST + 2 * math.sqrt(-2 * math.log(ALPHA))


def cuts_of(law, distance, runs, bins=40):
    """As scores are cut: about ten of so many outputs are in either tail."""
    reach = law.isf(10 / runs)
    return np.concatenate([[-np.inf], np.linspace(-reach, reach + distance, bins - 1), [np.inf]])


def seen(law, distance, runs=1e9, together=False):
    """The record of a sum with noise of this law, on inputs so far apart; no luck in it."""
    ends = cuts_of(law, distance, runs)
    middle = np.concatenate([[ends[1]], (ends[2:-1] + ends[1:-2]) / 2, [ends[-2]]])
    if not together:
        p, q = (np.diff(law.cdf(ends - at)) for at in (distance, 0))
        return BetRecord([runs * np.outer(p, q)], scores=middle * distance)
    low = np.maximum(ends[:-1, None] - distance, ends[None, :-1])
    high = np.minimum(ends[1:, None] - distance, ends[None, 1:])
    joint = np.maximum(law.cdf(high) - law.cdf(low), 0)
    return BetRecord([runs * joint], scores=middle * distance)


AT_CLAIM = {
    "eps": (CLAIM, "laplace", 1.0),
    "delta": (ApproximateDP(1.0, 1e-3), "norm", gaussian_sigma(1.0, 1e-3)),
    "mu": (GaussianDP(1.0), "norm", 1.0),
    "rho": (ZeroConcentratedDP(0.5), "norm", 1.0),
    "order 8": (RenyiDP({8: 1.0}), "norm", 2.0),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("name", "start"),
    [(name, start) for name in AT_CLAIM for start in (1.0, 0.7)] + [("order 8", 0.4)],
)
def test_bets_do_win_at_the_loss_that_is_reported(name, start, together):
    """On the record of noise that is scaled in fact; and not at a fifth of what is missing."""
    claim, noise, scale = AT_CLAIM[name]
    law = getattr(scipy.stats, noise)(scale=scale)
    runs = 50_000.0
    bets = power.PlannedBets(claim, runs, ALPHA)
    times = claim.noise_below(power.detection_limit(seen(law, start, runs, together), bets, 1.0))
    assert 1.0 < times < 2.5
    won = []
    for much in (times, 1 + (times - 1) / 5):
        events, soft = Ledger(claim).growth(seen(law, much, runs, together))
        won.append(max(events, soft / power.LEARNING_FACTOR))
    assert won[0] > 0.8 * NEEDED
    assert won[1] < NEEDED


def test_nothing_is_detected_by_differences_that_chance_explains():
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        one, two = rng.integers(0, 20, (2, 2_000))
        joint = np.zeros((20, 20))
        np.add.at(joint, (np.sort(one % 20), two), 1)
        found += math.isfinite(
            power.detection_limit(BetRecord([joint]), power.PlannedBets(CLAIM, 1e9, ALPHA), 1)
        )
    assert found <= 2


@pytest.mark.parametrize("noise", [1.0, 1.5])
def test_the_largest_eps_is_that_beside_the_delta(noise):
    """Neither that of an event hardly likelier than delta, nor that of a common one."""
    rng, sigma = np.random.default_rng(1), noise * gaussian_sigma(1.0, 1e-3)
    true = gdp_to_eps(1 / sigma, 1e-3)
    cuts = np.concatenate([[-np.inf], np.linspace(-3.5 * sigma, 3.5 * sigma + 1, 32), [np.inf]])
    on_d, on_d2 = (np.diff(scipy.stats.norm.cdf(cuts, mean, sigma)) for mean in (1.0, 0.0))
    shown = []
    for _ in range(60):
        joint = rng.multinomial(180_000, np.outer(on_d, on_d2).ravel()).reshape(33, 33)
        shown.append(
            power.shown_by_events(BetRecord([joint.astype(float)]), ApproximateDP(1.0, 1e-3))
        )
    assert 0.95 * true < min(shown)
    assert max(shown) < 1.4 * true


def test_a_shared_loss_is_detected_where_the_count_of_places_that_show_it_is():
    """Brute force: the best threshold of the count, and the best stake, at what is reported."""
    runs, places = 1_000_000, 5  # so many that learning costs next to nothing
    loss = power.smallest_event(power.PlannedBets(CLAIM, runs, ALPHA), places)
    p = scipy.stats.binom.sf(np.arange(-1, places), places, 0.5)
    q = scipy.stats.binom.sf(np.arange(-1, places), places, 0.5 * math.exp(-loss / places))
    best = best_of_one_event(p, q, CLAIM.hockey_sticks[0])
    assert 0.8 * NEEDED < best * runs <= 1.02 * NEEDED  # bets both ways may win more


def test_a_loss_is_harder_to_detect_the_more_places_share_it():
    def found(places, runs=9_000):
        return power.smallest_event(power.PlannedBets(CLAIM, runs, ALPHA), places)

    shared = [found(places) for places in (1, 1.5, 3, 10, 100, 1_000)]
    assert shared == sorted(shared)
    assert shared[1] == found(2)
    assert found(100, 30_000) < found(100)
    assert math.isinf(found(3, 10))


def best_of_one_event(p, q, stick):
    """Log growth of the best stake on any of these events, of independent outputs; brute force."""
    stakes = FRACTIONS / (math.exp(stick.eps) + stick.delta)
    won = np.log1p(stakes[:, None] * payoffs(*stick))
    cells = [
        [a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)] for a, b in zip(p, q, strict=True)
    ]
    return float((np.array(cells) @ won.T).max())


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.3), (0.5, 0.0), (2.0, 1e-3)])
def test_the_resolution_is_where_the_best_single_bet_just_suffices(eps, delta):
    """At the loss that it names, the growth of one stake on the event pays for 1/alpha, or more."""
    p1, pairs, claim = 0.5, 3_000, ApproximateDP(eps, delta)
    shown = power.smallest_event(power.PlannedBets(claim, pairs, ALPHA))
    p2 = p1 * math.exp(-shown)
    best = best_of_one_event([p1, 1 - p2], [p2, 1 - p1], claim.hockey_sticks[0])
    assert 0.8 * NEEDED < best * pairs <= 1.01 * NEEDED


@pytest.mark.parametrize("order", [1.0, 2.0, 8.0])
def test_a_divergence_is_that_of_the_law(order):
    """Of Gaussian noise; and what is too rare to be seen counts for what may be shown."""
    mu = 0.3 if order > 2 else 0.5
    shape = power.Shape(seen(scipy.stats.norm, mu).joint[0])
    assert shape.divergence(order) == pytest.approx(order * mu**2 / 2, rel=0.05)
    few = seen(scipy.stats.norm, 0.5, 2_000.0)
    assert power.Shape(few.joint[0]).divergence(8.0) < 1.0
    assert 0.95 < power.largest_loss(few, RenyiDP({8: 1.0})) < 3
