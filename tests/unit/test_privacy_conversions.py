"""Conversions between notions of privacy: against linear programmes, brute force, dp-accounting."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from pytest_dp import privacy
from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy import ApproximateDP, GaussianDP, PrivacyProfile, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.regions import Region, concentration, renyi

pytestmark = pytest.mark.slow

LOSSES = (0.0, 0.1, 0.5, 1.0, 3.0)


def events(n):
    every = chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1))
    return [np.isin(np.arange(n), event).astype(float) for event in every]


def largest_excess(eps, sticks, steps=1, n=3):
    """By a linear programme: the largest P(S) - e^eps Q(S) at `steps` steps from Q to P.

    Each two neighbours keep all hockey sticks on all events, in both directions.
    """
    size = (steps + 1) * n
    rows, bounds = [], []
    for step in range(steps):
        for near, far in ((step, step + 1), (step + 1, step)):
            for event in events(n):
                for price, delta in ((math.exp(each), delta) for each, delta in sticks):
                    row = np.zeros(size)
                    row[near * n : (near + 1) * n] = event
                    row[far * n : (far + 1) * n] = -price * event
                    rows.append(row)
                    bounds.append(delta)
    sums = np.kron(np.eye(steps + 1), np.ones(n))
    best = 0.0
    for event in events(n)[:-1]:
        goal = np.zeros(size)
        goal[:n], goal[-n:] = -event, math.exp(eps) * event
        found = linprog(goal, rows, bounds, sums, np.ones(steps + 1), bounds=(0, 1))
        assert found.success
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.1), (0.5, 0.0), (1.0, 0.05)])
def test_delta_of_approximate_privacy_at_any_eps(eps, delta):
    for at in LOSSES:
        exact = largest_excess(at, [(eps, delta)])
        assert ApproximateDP(eps, delta).delta_at(at) == pytest.approx(exact, abs=1e-9)
        assert ApproximateDP(eps, delta).region.delta_at(at) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("sticks", [[(0.2, 0.1), (0.7, 0.02)], [(0.0, 0.3), (1.0, 0.05), (2, 0)]])
def test_a_region_is_all_that_its_hockey_sticks_allow(sticks):
    region = Region.of_sticks(*(np.array(each, float) for each in zip(*sticks, strict=True)))
    for at in LOSSES:
        assert region.delta_at(at) == pytest.approx(largest_excess(at, sticks), abs=1e-9)


@pytest.mark.parametrize(("eps", "delta"), [(0.5, 0.0), (0.4, 0.02)])
def test_groups_of_two(eps, delta):
    """The rule for groups is sound, and the trade-off function taken twice is exact."""
    group = ApproximateDP(eps, delta).group(2)
    profile = PrivacyProfile(ApproximateDP(eps, delta).delta_at).group(2)
    assert group.delta >= largest_excess(group.eps, [(eps, delta)], steps=2) - 1e-9
    for at in (0.0, 0.3, 0.8, 1.0):
        exact = largest_excess(at, [(eps, delta)], steps=2)
        assert exact - 1e-9 <= profile.delta_at(at) <= exact * (1 + 1e-3) + 1e-9


def coins_within(broken, n=400):
    """The largest p for each of many q, by bisection on what is broken."""
    q = np.exp(-(np.linspace(0.02, 8, n) ** 2))
    q = np.concatenate([q, 1 - q[q < 0.3]])
    low, high = q, np.ones_like(q)
    for _ in range(42):
        middle = (low + high) / 2
        above = broken(middle, q)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low, q


@pytest.mark.parametrize("rho", [1e-3, 0.0359, 3.0])
def test_delta_of_zero_concentrated_privacy_is_attained_by_coins(rho):
    p, q = coins_within(lambda p, q: concentration(p, q) > rho)
    for eps in rho + np.sqrt(2 * rho) * np.array([0.0, 0.5, 1, 2, 3, 4, 5]):
        attained = np.max(p - math.exp(eps) * q)
        delta = privacy.zcdp_to_delta(rho, eps)
        assert attained <= delta <= attained * (1 + 2e-3)


@pytest.mark.parametrize("rho", [0.0359, 3.0])
def test_beside_a_delta_coins_that_leak_attain_it(rho):
    """With probability delta each input puts out what the other never does."""
    coins, delta = coins_within(lambda p, q: concentration(p, q) > rho), 0.01
    p, q = delta + (1 - delta) * coins[0], (1 - delta) * coins[1]
    claim = ZeroConcentratedDP(rho, delta=delta)
    for eps in rho + np.sqrt(2 * rho) * np.array([0.0, 0.5, 1, 2, 3, 4, 5]):
        attained = np.max(p - math.exp(eps) * q)
        assert attained <= claim.delta_at(eps) <= attained * (1 + 2e-3)
    shown = claim.shown_by(p, q)
    assert np.all(shown <= rho * (1 + 1e-9))
    assert np.median(shown) > rho * (1 - 1e-3)
    assert claim.shown_by(0.009, 0.0) == 0.0


@pytest.mark.parametrize("rdp", [{8: 0.5}, {1.5: 0.1, 2: 0.2, 8: 1.5}, {2: 3}])
def test_delta_of_renyi_privacy_is_attained_by_coins(rdp):
    def broken(p, q):
        both = [
            np.maximum(renyi(p, q, order), renyi(1 - q, 1 - p, order)) > eps
            for order, eps in rdp.items()
        ]
        return np.any(both, axis=0)

    p, q = coins_within(broken, n=6000)
    for eps in (0.0, 0.1, 0.5, 1.0, 2.0):
        attained = np.max(p - math.exp(eps) * q)
        assert attained <= privacy.rdp_to_delta(rdp, eps) <= attained * (1 + 2e-3)


def test_renyi_to_delta_is_canonnes_proposition():
    for order, bound, eps in ((2.0, 0.5, 1.0), (1.01, 0.1, 3.0), (30.0, 2.0, 3.5)):
        delta = math.exp((order - 1) * (bound - eps)) * (1 - 1 / order) ** order / (order - 1)
        assert privacy.renyi_to_delta(order, bound, eps) == pytest.approx(delta, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(mu=st.floats(0.01, 6), delta=st.floats(1e-12, 0.5), weaker=st.floats(1.001, 2))
def test_the_smallest_eps_and_noise_are_that(mu, delta, weaker):
    rho = mu * mu / 2
    for claim in (GaussianDP(mu), ZeroConcentratedDP(rho), RenyiDP(((4.0, 4 * rho),))):
        eps = claim.eps_at(delta)
        assert claim.delta_at(eps) <= delta
        assert eps == 0 or claim.delta_at(eps * (1 - 1e-9)) > delta
        assert claim.times(weaker).eps_at(delta) >= eps
    assert privacy.rdp_to_eps({4.0: 4 * rho}, delta) == eps
    eps = privacy.gdp_to_eps(mu, delta)
    sigma = privacy.gaussian_sigma(eps, delta, sensitivity=3.0)
    assert privacy.gdp_to_delta(3 / sigma, eps) <= delta
    assert privacy.gdp_to_delta(3 / sigma * (1 + 1e-6), eps) > delta * (1 - 1e-9)
    if eps > 0:
        assert sigma == pytest.approx(3 / mu, rel=1e-6)


@pytest.mark.parametrize("eps", [0.01, 2.0, 20.0])
def test_pure_privacy_is_randomised_response(eps):
    p, q = 1 / (1 + math.exp(-eps)), math.exp(-eps) / (1 + math.exp(-eps))
    for order in (1.0, 1.5, 2.0, 10.0):
        exact = float(renyi(p, q, order))
        assert exact * (1 - 1e-12) <= ApproximateDP(eps).renyi_at(order) <= exact * (1 + 1e-9)
    exact = float(concentration(p, q))
    assert exact * (1 - 1e-12) <= privacy.pure_to_zcdp(eps) <= exact * (1 + 1e-7)
    assert privacy.pure_to_zcdp(eps) <= eps * eps / 2
    mu = privacy.pure_to_gdp(eps)
    x = np.concatenate([np.geomspace(1e-12, 0.5), 1 - np.geomspace(1e-12, 0.5)])
    assert np.all(
        GaussianDP(mu).largest_probability(x)
        >= ApproximateDP(eps).largest_probability(x) * (1 - 1e-12)
    )
    assert GaussianDP(mu * (1 - 1e-6)).largest_probability(q) < p


def test_gaussian_privacy_in_other_notions():
    assert GaussianDP(0.6).renyi_at(3.0) == pytest.approx(0.54)
    for eps in LOSSES:
        assert privacy.gdp_to_delta(0.6, eps) <= privacy.zcdp_to_delta(0.18, eps)


def test_what_is_no_guarantee_is_refused():
    for call in [
        lambda: privacy.zcdp_to_delta(0.0, 1.0),
        lambda: privacy.gdp_to_delta(0.5, math.nan),
        lambda: privacy.rdp_to_eps({1: 1}, 0.1),
        lambda: privacy.gaussian_sigma(1.0, 1.0),
        lambda: privacy.gaussian_sigma(1.0, 1e-5, sensitivity=0.0),
    ]:
        with pytest.raises(ClaimError, match="Allowed"):
            call()
