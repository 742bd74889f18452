"""What a mechanism may lose now, by records of noise whose loss is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp import audit
from pytest_dp.auditors.stopping import DetectionPower
from pytest_dp.betting.additive import quantile_positions
from pytest_dp.privacy import ApproximateDP, gaussian_sigma
from pytest_dp.statistics.event_bets import payoffs
from pytest_dp.statistics.ledger import BetRecord
from pytest_dp.statistics.power import LEARNING_COST, PlannedBets, largest_loss, rarest_leak


def record_of(law, distance, pairs, rng, leak=0.0):
    """A record of noise of this law, cut as scores are; some outputs on D are far out."""
    on_d, on_d2 = law.rvs(size=(2, pairs), random_state=rng) + np.array([[distance], [0.0]])
    on_d = np.where(rng.random(pairs) < leak, 1e6, on_d)
    both = np.sort(np.concatenate([on_d, on_d2]))
    cuts = np.unique(both[quantile_positions(len(both), 20, 19, 3)])
    joint = np.zeros((len(cuts) + 1,) * 2)
    np.add.at(joint, tuple(np.searchsorted(cuts, side) for side in (on_d, on_d2)), 1)
    return BetRecord([joint])


@pytest.mark.slow
@pytest.mark.parametrize(("claimed", "delta", "true"), [(1, 1e-5, 1.0), (3, 1e-5, 4.8)])
def test_under_a_delta_it_is_that_of_the_whole_profile(claimed, delta, true):
    """The events that are seen for sure lose half of it."""
    rng, noise = np.random.default_rng(1), scipy.stats.norm(scale=gaussian_sigma(true, delta))
    claim = ApproximateDP(claimed, delta)
    found = [largest_loss(record_of(noise, 1.0, 150_000, rng), claim) for _ in range(20)]
    assert np.quantile(found, 0.05) > true
    assert np.median(found) < 1.7 * true


@pytest.mark.slow
@pytest.mark.parametrize(("leak", "broken"), [(0.0, False), (3e-4, True)])
def test_outputs_of_one_input_only_may_break_any_eps(leak, broken):
    rng, claim = np.random.default_rng(1), ApproximateDP(1.0, 1e-5)
    noise = scipy.stats.laplace()
    found = [largest_loss(record_of(noise, 1.0, 150_000, rng, leak), claim) for _ in range(20)]
    if broken:
        assert np.median(found) > 2.0
    else:
        assert np.mean(np.isinf(found)) < 0.2
        assert np.median(found) < 1.6


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.0), (1.0, 1e-3)])
def test_the_rarest_leak_is_won_in_19_of_20_audits(eps, delta):
    """Brute force: the number of hits is binomial, and the stake the best of those that win."""
    runs, alpha = 20_000, 1e-6
    rarest = rarest_leak(PlannedBets(ApproximateDP(eps, delta), runs, alpha))
    hit, missed = payoffs(eps, delta)[[1, 3]]

    def power(p, stake):
        hits = np.arange(runs + 1)
        won = hits * math.log1p(stake * hit) + (runs - hits) * math.log1p(stake * missed)
        return scipy.stats.binom.pmf(hits, runs, p)[won >= LEARNING_COST - math.log(alpha)].sum()

    stakes = np.linspace(0.01, 0.99, 60) / (math.exp(eps) + delta)
    assert max(power(rarest, stake) for stake in stakes) > 0.94
    assert max(power(0.9 * rarest, stake) for stake in stakes) < 0.93


def test_what_is_lost_now_is_not_caught():
    assert DetectionPower(by_bets=1.2, now=1.7, rarest=0.01).at == 1.7
    assert DetectionPower(by_bets=1.2, now=1.1, rarest=0.01).at == 1.2


def gaussian(records, sigma, rng, size):
    """Of which no trace is known, as it goes through bytes."""
    noisy = np.asarray(len(records) + rng.normal(scale=sigma, size=size))
    return np.frombuffer(noisy.tobytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "true", "method"), [((2.0, 1e-4), 2.6, "dpsniper"), ((3.0, 1e-5), 4.8, "sequential")]
)
def test_a_pass_does_not_say_that_what_is_lost_would_have_been_caught(claim, true, method):
    eps, delta = claim
    common = {"pairs": [([0], [])], "vectorized": "size", "n_jobs": 1, "seed": 1, "method": method}
    common["max_samples"] = 400_000  # of which one passes and is not near enough to be found
    params = {"sigma": gaussian_sigma(true, delta)}
    result = audit(gaussian, eps=eps, delta=delta, params=params, **common)
    assert result.verdict == "no violation"
    assert result.resolution >= result.may_lose > true
    assert result.strength == "weak"
    assert ": up to " in result.to_dict()["headline"]
    assert not any("stopped at the margin" in note for note in result.notes)
