"""Guarantees as values: what they allow and what is proven of them, against brute force."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy

from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    PrivacyProfile,
    Renyi,
    RenyiDP,
    TradeOff,
    ZeroConcentratedDP,
    read_guarantee,
)

GAUSSIAN = GaussianDP(0.8)


def laplace_profile(eps):
    """Of Laplace noise at eps = 1."""
    return max(1 - math.exp((eps - 1) / 2), 0.0)


EVERY = {
    "pure": ApproximateDP(1.0),
    "approximate": ApproximateDP(0.5, 1e-3),
    "small rho": ZeroConcentratedDP(1e-3),
    "rho and delta": ZeroConcentratedDP(0.3, delta=0.01),
    "mu": GAUSSIAN,
    "rdp": RenyiDP(((8.0, 0.5),)),
    "profile": PrivacyProfile(GAUSSIAN.delta_at),
    "profile with a kink": PrivacyProfile(laplace_profile),
    "tradeoff": TradeOff(lambda x: float(scipy.stats.norm.cdf(scipy.stats.norm.isf(x) - 0.8))),
}
every = pytest.mark.parametrize("name", EVERY)
Q = np.concatenate([np.geomspace(1e-9, 0.3, 25), np.linspace(0.35, 0.99, 15)])


def exact_renyi(p, q, order):
    """D_order(Bern(p) || Bern(q)) to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        p, q, order = Decimal(p), Decimal(q), Decimal(order)
        if order == 1:
            return float(p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln())
        moment = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        return float(moment.ln() / (order - 1))


def test_known_values():
    for eps, gaussian, concentrated in [(0, 0.1066, 0.1336), (0.5, 0.0041, 0.0100)]:
        assert GaussianDP(0.268).delta_at(eps) == pytest.approx(gaussian, rel=8e-3)
        assert ZeroConcentratedDP(0.0359).delta_at(eps) == pytest.approx(concentrated, rel=8e-3)


def test_divergences_of_coins():
    for p, q in [(0.3, 0.2), (0.3, 0.2999), (1e-8, 1e-12), (0.999, 0.2), (0.1, 0.8), (0.5, 1e-9)]:
        for order in [1.0, 1.0001, 1.5, 2.0, 8.0, 300.0]:
            from pytest_dp.privacy.regions import renyi

            exact = exact_renyi(p, q, order)
            value = float(renyi(p, q, order))
            assert exact * (1 - 1e-7) <= value <= exact * (1 + 1e-15)


@pytest.mark.slow
def test_concentration_is_the_largest_over_all_orders():
    from pytest_dp.privacy.regions import concentration, renyi

    rng = np.random.default_rng(1)
    q = np.concatenate([rng.uniform(size=60), 10 ** rng.uniform(-12, -1, 60)])
    p = q + (1 - q) * 10 ** rng.uniform(-6, 0, 120)
    orders = np.geomspace(1, 1e8, 30_000)
    for p1, q1, value in zip(p, q, concentration(p, q), strict=True):
        both = renyi(p1, q1, orders) / orders, renyi(1 - q1, 1 - p1, orders) / orders
        assert value == pytest.approx(np.max(both), rel=1e-5, abs=1e-13)


@every
def test_an_event_proves_more_than_claimed_exactly_where_it_is_not_allowed(name):
    claim = EVERY[name]
    most = claim.largest_probability(Q)
    assert np.all(most >= Q)
    outside, inside = np.minimum(most * 1.004 + 1e-12, 1.0), most - 0.004 * (most - Q)
    beyond = most < 1 - 1e-3
    assert np.all(claim.shown_by(outside, Q)[beyond] > claim.claimed)
    if not isinstance(claim, ApproximateDP):
        assert np.all(claim.shown_by(inside * (1 - 1e-12), Q) <= claim.claimed * (1 + 2e-3))
    else:
        assert np.all(claim.shown_by(inside, Q) <= claim.claimed)


@every
def test_a_curve_is_that_of_its_hockey_sticks(name):
    claim = EVERY[name]
    losses = np.linspace(0, 12, 3001)
    delta = np.array([claim.delta_at(eps) for eps in losses])
    assert np.all(np.diff(delta) <= 0)
    assert np.all((delta >= 0) & (delta <= 1))
    for eps, value in zip(losses, delta, strict=True):
        assert np.all(claim.largest_probability(Q) <= (np.exp(eps) * Q + value) * (1 + 2e-3))
    lowest = np.min(np.exp(losses[:, None]) * Q + delta[:, None], axis=0)
    early = Q < 0.2  # where sticks of eps >= 0 are the ones that count
    assert np.all(claim.largest_probability(Q)[early] >= (1 - 2e-3) * lowest[early])


def test_approximate():
    claim = ApproximateDP(1.0, 0.01)
    assert claim.hockey_sticks == ((1.0, 0.01),)
    assert claim.divergences == ()
    assert claim.shown_by(0.5, 0.1) == pytest.approx(math.log(4.9))
    assert claim.shown_by(0.02, 0.0) == math.inf
    assert claim.shown_by(0.01, 0.0) == 0.0
    assert claim.shown_by(1.0, 0.5) == math.inf
    assert claim.shown_by(0.9, 0.5) == pytest.approx(math.log(0.49 / 0.1))
    assert claim.times(2) == ApproximateDP(2.0, 0.01)
    assert ApproximateDP(0.0, 0.1).times(2.0) == ApproximateDP(math.log(2), 0.1)
    assert ApproximateDP(0.0, 0.1).times(0.5) == ApproximateDP(0.0, 0.1)
    assert claim.largest_probability(0.1) == pytest.approx(math.e / 10 + 0.01)
    np.testing.assert_allclose(
        ApproximateDP(1.0).largest_probability(np.array([0.0, 0.1])), [0, math.e / 10]
    )


def test_gaussian():
    claim = GaussianDP(0.5)
    assert claim.parameter == "mu"
    assert claim.divergences[0] == Renyi(1.0, pytest.approx(0.125))
    assert claim.shown_by_divergence(1.0, 0.5) == pytest.approx(1.0)
    assert claim.group(3) == GaussianDP(1.5)
    above, below = scipy.stats.norm.ppf([0.5, 0.3])
    assert claim.shown_by(0.5, 0.3) == pytest.approx(above - below)
    assert claim.shown_by(0.5, 0.0) == claim.shown_by(1.0, 0.5) == math.inf


def test_delta_of_gaussian_privacy_is_rounded_up():
    for mu, eps, exact in [  # by arithmetic with 600 digits
        (1e-3, 0.0, 0.0003989422637788383),
        (1e-3, 0.0040005, 7.143713649903355e-09),
        (1.0, 0.0, 0.3829249225480262),
        (1.0, 4.5, 5.867689649769556e-06),
        (20.0, 280.0, 2.610461344271116e-05),
        (20.0, 600.0, 1.3742480638151289e-89),
        (24.0, 600.0, 3.956894753849331e-39),
    ]:
        assert exact <= GaussianDP(mu).delta_at(eps) <= exact * (1 + 1e-8)


def test_concentrated():
    claim = ZeroConcentratedDP(0.5)
    assert Renyi(1.0, 0.5) in claim.divergences
    assert Renyi(2.0, 1.0) in claim.divergences
    assert claim.shown_by_divergence(4.0, 3.0) == 0.75
    assert claim.group(3) == ZeroConcentratedDP(4.5)
    assert claim.shown_by(0.5, 0.0) == math.inf
    assert claim.shown_by(0.2, 0.5) == 0.0


def test_group_of_approximate_privacy():
    group = ApproximateDP(0.5, 0.01).group(3)
    assert group.eps == 1.5
    assert group.delta == pytest.approx(0.01 * (math.exp(1.5) - 1) / (math.exp(0.5) - 1))
    with pytest.raises(ClaimError, match="promises nothing"):
        ApproximateDP(1.0, 0.1).group(5)
    with pytest.raises(ClaimError, match="promises nothing"):
        ApproximateDP(1.0, 1e-6).group(10**9)
    assert ApproximateDP(0.0, 0.01).group(3).delta == pytest.approx(0.03)


def test_what_is_not_allowed():
    for keywords, message in [
        ({}, "none of them.*eps=1.0"),
        ({"delta": 1e-6}, "delta=1e-06 without eps="),
        ({"eps": 1, "rho": 1}, "eps= and rho=: several claims.*one @dp_claim for each"),
        ({"mu": 1, "delta": 1e-6}, "beside mu=.*Write eps= and delta="),
        ({"rho": 1, "delta": 1.5}, "delta=1.5.*below 1, such as 1e-6"),
        ({"eps": 0}, "eps=0.*above 0.*Beside delta > 0, eps may be 0"),
        ({"eps": math.inf}, "eps=inf.*finite"),
        ({"eps": 301}, "at most 300"),
        ({"rho": -1}, "rho=-1.*such as 0.5"),
        ({"mu": 25}, "at most 24"),
        ({"guarantee": RenyiDP(3)}, "Invalid orders=3.*an order with its eps"),
        ({"guarantee": RenyiDP({1: 0.5})}, "above 1.*Order 1 alone"),
        ({"guarantee": RenyiDP({math.inf: 0.5})}, "write eps="),
        ({"guarantee": RenyiDP({2: 400, 8: 500})}, "one of them at most 300"),
        ({"guarantee": RenyiDP({2: 0.5}, name=3)}, "Invalid name=3.*text"),
        ({"guarantee": RenyiDP({2: 0.5}, scale=2.0)}, "Invalid scale=2.0"),
        ({"guarantee": 0.5}, r"Invalid guarantee=0.5.*RenyiDP\(\{8: 0.5\}\).*Write eps=0.5"),
        ({"guarantee": laplace_profile}, r"Allowed: .*PrivacyProfile\(f\) or TradeOff\(g\)"),
        ({"guarantee": ApproximateDP(1.0)}, "Invalid guarantee=.*eps=, rho= or mu="),
        ({"guarantee": PrivacyProfile(3)}, "not callable. Allowed: a function"),
        ({"guarantee": PrivacyProfile(lambda eps: eps / 301)}, "other values imply 0"),
        ({"guarantee": PrivacyProfile(lambda eps: 1 / 0)}, "raised ZeroDivisionError"),
        (
            {"guarantee": PrivacyProfile(lambda eps: 1e-5 if eps >= 1 else 1.0)},
            "cannot belong to a mechanism",
        ),
        ({"guarantee": TradeOff(lambda x: 1 - x / 2)}, "above 1 - x"),
        ({"guarantee": TradeOff(lambda x: 0.1 + x / 9 if x < 0.5 else 0.0)}, "not convex"),
        ({"guarantee": TradeOff(lambda x: 0.4 if x < 0.3 else 0.0)}, "not convex"),
        ({"guarantee": TradeOff(lambda x: None)}, "raised TypeError"),
    ]:
        with pytest.raises(ClaimError, match=f"(?s){message}"):
            read_guarantee(keywords)


def test_what_is_proven_is_rounded_down_and_what_holds_is_rounded_up():
    """By more than floats err, and hardly more."""
    p, q = np.array([0.9, 0.3, 1e-9, 1 - 1e-9]), np.array([0.1, 1e-3, 1e-12, 0.5])
    above, below = scipy.stats.norm.ppf([p, q])
    off = (above - below - GAUSSIAN.shown_by(p, q)) / (1 + abs(above) + abs(below))
    assert np.all((off > 3e-15) & (off < 6e-15))
    for claim, order in ((GAUSSIAN, 1.0), (EVERY["rdp"], 8.0)):
        value = claim.divergences[0 if order == 1 else -1].bound
        assert claim.claimed * (1 - 3e-15) < claim.shown_by_divergence(order, value / (1 + 4e-16))
        assert claim.shown_by_divergence(order, value / (1 + 4e-16)) < claim.claimed
    for name in ("rdp", "profile with a kink"):
        region = EVERY[name].region
        eps, delta = region.sticks()
        lines = np.interp(np.exp(eps[1:]), region.slopes, region.intercepts)
        assert np.all(delta[1:] >= lines)
        assert np.all(delta[1:] <= lines * (1 + 1e-11))
        assert np.any(delta[1:] > lines)
