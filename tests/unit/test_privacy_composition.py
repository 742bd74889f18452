"""What parts add up to, against enumeration and published rules; which claim implies which."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    PrivacyProfile,
    RenyiDP,
    TradeOff,
    ZeroConcentratedDP,
    compose_profile,
    pure_to_zcdp,
    read_guarantee,
    smallest_claim,
)
from pytest_dp.privacy.composition import implies
from pytest_dp.privacy.losses import Losses

LOSSES = (0.0, 0.05, 0.2, 0.5, 1.0, 1.7)


def randomised_response(eps, delta=0.0):
    """The worst pair under (eps, delta): four outputs, two of which give P or Q away."""
    high, low = math.exp(eps) / (1 + math.exp(eps)), 1 / (1 + math.exp(eps))
    p = np.array([delta, (1 - delta) * high, (1 - delta) * low, 0.0])
    return p, p[::-1]


def enumerated(parts):
    """All outputs of all parts together, with their probabilities."""
    pairs = [randomised_response(*part) for part, times in parts for _ in range(times)]
    p = [math.prod(each) for each in product(*(pair[0].tolist() for pair in pairs))]
    q = [math.prod(each) for each in product(*(pair[1].tolist() for pair in pairs))]
    return np.array(p), np.array(q)


def delta_of(p, q, eps):
    return float(np.sum(np.maximum(p - math.exp(eps) * q, 0)))


def test_approximate_privacy_adds_up_as_the_worst_pairs_do():
    for parts in [
        [((0.5, 0.0), 1)],
        [((0.5, 0.01), 2), ((0.2, 0.0), 3)],
        [((0.1, 0.001), 2), ((0.17, 0.0), 2), ((1.0, 0.0), 1)],
        [((0.0, 0.02), 3)],
    ]:
        p, q = enumerated(parts)
        given = [(ApproximateDP(*part), times) for part, times in parts]
        whole = compose_profile(given)
        for eps in LOSSES:
            exact = delta_of(p, q, eps)
            assert exact * (1 - 1e-12) - 1e-15 <= whole.function(eps) <= exact * (1 + 1e-3) + 1e-6
        delta = delta_of(p, q, 0.3)
        needed = smallest_claim(ApproximateDP(9.0, delta * (1 + 2e-3) + 2e-6), given)
        assert needed.delta == delta * (1 + 2e-3) + 2e-6
        assert needed.eps <= 0.3 * (1 + 1e-9)
        assert delta_of(p, q, needed.eps) <= needed.delta * (1 + 1e-12)


def test_basic_composition():
    parts = [(ApproximateDP(0.1, 1e-6), 3), (ApproximateDP(0.5), 1)]
    assert smallest_claim(ApproximateDP(2.0), [(ApproximateDP(0.1), 3)]).eps == pytest.approx(0.3)
    assert smallest_claim(ApproximateDP(0.3), [(ApproximateDP(0.1), 3)]) == ApproximateDP(0.3)
    needed = smallest_claim(ApproximateDP(0.1, 3e-6), parts)
    assert needed.delta == 3e-6
    assert 0.79 <= needed.eps <= 0.8 * (1 + 1e-12)
    same = ApproximateDP(0.5, 1e-6)
    assert smallest_claim(same, [(same, 1)]) == same


def test_gaussian_and_concentrated_privacy():
    assert smallest_claim(
        GaussianDP(0.1), [(GaussianDP(0.3), 4), (GaussianDP(0.8), 1)]
    ) == GaussianDP(1.0)
    needed = smallest_claim(
        ZeroConcentratedDP(0.1), [(ZeroConcentratedDP(0.2), 3), (GaussianDP(1.0), 2)]
    )
    assert needed.claimed == pytest.approx(1.6)
    needed = smallest_claim(ZeroConcentratedDP(0.1), [(ApproximateDP(0.5), 4)])
    assert needed.claimed == pytest.approx(4 * pure_to_zcdp(0.5))


@pytest.mark.parametrize("coins", [[(0.3, 1)], [(0.1, 100)], [(0.3, 20), (0.11, 50)]])
def test_pure_parts_as_gaussian_privacy(coins):
    """What hides each part hides all of them; of a single part, no smaller mu does."""
    parts = [(ApproximateDP(eps), times) for eps, times in coins]
    mu = smallest_claim(GaussianDP(0.01), parts).mu
    q = np.concatenate([np.geomspace(1e-12, 0.01, 300), np.linspace(0.01, 0.99, 5000)])
    allowed = PrivacyProfile(compose_profile(parts).function).largest_probability(q)
    assert np.all(GaussianDP(mu * (1 + 1e-3)).largest_probability(q) >= allowed * (1 - 1e-3))
    if coins == [(0.3, 1)]:
        assert np.any(GaussianDP(mu * 0.99).largest_probability(q) < allowed)


def test_curves_add_up_to_what_gaussians_do():
    exact, part, delta = GaussianDP(1.0), PrivacyProfile(GaussianDP(0.25).delta_at), 1e-5
    needed = smallest_claim(ApproximateDP(0.1, delta), [(part, 16)])
    assert exact.eps_at(delta) * (1 - 1e-9) <= needed.eps <= exact.eps_at(delta) * 1.01
    claim = PrivacyProfile(exact.delta_at)
    assert smallest_claim(claim, [(part, 8)]).claimed < 0.75
    assert smallest_claim(claim, [(part, 16)]).claimed == pytest.approx(1.0, rel=5e-3)
    assert smallest_claim(claim, [(part, 32)]).claimed > 1.3


def test_losses_are_only_ever_rounded_towards_more():
    rng = np.random.default_rng(5)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        losses = Losses._on_lattice(np.log(p / q), p, 0.3, 0.0)
        at = losses.start + losses.step * np.arange(len(losses.probabilities))
        assert losses.probabilities.sum() == pytest.approx(1)
        assert np.sum(losses.probabilities * np.exp(-at)) == pytest.approx(1)
        for eps in LOSSES:
            lattice = np.sum(losses.probabilities * np.maximum(-np.expm1(eps - at), 0))
            assert lattice >= delta_of(p, q, eps) - 1e-12


def test_parts_that_add_up_to_no_such_claim():
    for claim, parts, message in [
        (ApproximateDP(1.0), [(GaussianDP(1.0), 1)], "no eps with delta=0.0.*larger delta="),
        (ApproximateDP(1.0, 1e-6), [(ApproximateDP(0.1, 1e-6), 2)], "2 x .eps=0.1.*delta=2e-06"),
        (ZeroConcentratedDP(1.0), [(ApproximateDP(1.0, 1e-6), 1)], "claim rho= of each part"),
        (RenyiDP(((8.0, 1.0),)), [(RenyiDP(((2.0, 1.0),)), 1)], "claim RenyiDP of each part"),
        (ApproximateDP(1.0), [], "needs parts"),
        (ApproximateDP(1.0), [(ApproximateDP(1.0), 0)], "at least once"),
    ]:
        with pytest.raises(ClaimError, match=f"(?s){message}"):
            smallest_claim(claim, parts)


def test_against_dp_accounting():
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_distribution import (
        from_gaussian_mechanism,
        from_privacy_parameters,
    )

    gaussian = from_gaussian_mechanism(4.0).self_compose(16)
    theirs = gaussian.compose(
        from_privacy_parameters(DifferentialPrivacyParameters(0.1, 1e-7)).self_compose(10)
    )
    parts = [(GaussianDP(0.25), 16), (ApproximateDP(0.1, 1e-7), 10)]
    for delta in (1e-3, 1e-5):
        ours = smallest_claim(ApproximateDP(0.01, delta), parts).eps
        assert ours == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)


@pytest.mark.parametrize(
    ("part", "off"),
    [
        (GaussianDP, 1e-8),
        (lambda mu: TradeOff(lambda x: 1 - GaussianDP(mu).largest_probability(x)), 6e-3),
    ],
    ids=["mu", "tradeoff"],
)
@pytest.mark.parametrize("times", [1, 1000])
def test_what_is_exactly_right_is_met_and_less_is_not(part, off, times):
    parts = [(part(1 / math.sqrt(times)), times)]
    claim = ApproximateDP(GaussianDP(1.0).eps_at(1e-4), 1e-4)
    assert smallest_claim(claim, parts) == claim
    short = claim.times(1 - off)
    assert smallest_claim(short, parts).eps > short.eps


GIVEN = [
    *({"eps": eps, "delta": delta} for eps, delta in product((0.1, 3.0), (0.0, 1e-6))),
    *({"rho": rho} for rho in (0.01, 4.0)),
    *({"mu": mu} for mu in (0.1, 3.0)),
    {"guarantee": RenyiDP({2: 0.1})},
    {"guarantee": RenyiDP({2: 0.5, 8: 2.0})},
    {"guarantee": PrivacyProfile(lambda eps: max(0.0, 0.2 - 0.1 * (math.exp(eps) - 1)))},
    {"guarantee": TradeOff(lambda x: max(0.0, 0.9 - x))},
]
GUARANTEES = [read_guarantee(keywords) for keywords in GIVEN]
QUANTILES = np.concatenate([np.geomspace(1e-12, 0.5, 60), 1 - np.geomspace(1e-12, 0.5, 60)])


@pytest.mark.parametrize("given", GUARANTEES, ids=str)
def test_what_follows_allows_no_less(given):
    """Of any event, and of any order."""
    followed = [asked for asked in GUARANTEES if implies(given, asked)]
    assert given in followed
    for asked in followed:
        assert np.all(
            given.largest_probability(QUANTILES)
            <= asked.largest_probability(QUANTILES) * (1 + 1e-8) + 1e-12
        )
        for order in (1.5, 2.0, 8.0):
            assert given.renyi_at(order) <= asked.renyi_at(order) * (1 + 1e-6)


def test_between_notions():
    for given, asked, follows in [
        ({"eps": 1.0}, {"eps": 1.0, "delta": 1e-9}, True),
        ({"eps": 1.0, "delta": 1e-9}, {"eps": 1.0}, False),
        ({"eps": 1.1, "delta": 1e-9}, {"eps": 1.0, "delta": 0.1}, True),
        ({"eps": 1.0}, {"rho": 0.4}, False),
        ({"rho": 0.5}, {"eps": 6.0, "delta": 1e-5}, True),
        ({"mu": 1.0}, {"rho": 0.5}, True),
        ({"eps": 0.5}, {"mu": 1.0}, True),
        ({"rho": 0.06}, {"guarantee": RenyiDP({2: 0.1})}, False),
        (
            {"guarantee": RenyiDP({2: 0.1, 4: 0.3})},
            {"guarantee": RenyiDP({2: 0.2, 4: 0.25})},
            False,
        ),
        ({"auc": 0.7}, {"auc": 0.6}, False),
        ({"eps": 0.1}, {"auc": 0.9}, False),
        ({"guarantee": RenyiDP({2: 0.1})}, {"guarantee": RenyiDP({2: 0.1, 4: 0.2})}, False),
    ]:
        assert implies(read_guarantee(given), read_guarantee(asked)) == follows


def test_what_nearly_follows_does_not():
    """A trade-off function composes to within half a percent, which is no leave to lose that."""

    def pure(eps):
        return TradeOff(lambda x: max(0.0, 1 - math.exp(eps) * x, math.exp(-eps) * (1 - x)))

    asked = read_guarantee({"eps": 1.0, "delta": 1e-5})
    assert implies(pure(1.0), asked)
    assert not implies(pure(1.002), asked)
