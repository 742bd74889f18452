"""Losses in closed form, against what is known of them; and what has none, with its reason."""

from __future__ import annotations

import math
import secrets

import numpy as np
import pytest
from exact import call_of
from scipy import stats

from pytest_dp.auditors.known import Known
from pytest_dp.known import parameter_of
from pytest_dp.known.comparing import compared, largest_of
from pytest_dp.known.in_closed_form import compare
from pytest_dp.known.outcomes import outcomes_of
from pytest_dp.known.profiles import profile
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    ZeroConcentratedDP,
    gdp_to_delta,
    gdp_to_eps,
)
from pytest_dp.randomness import laws
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.deadline import Deadline


def cases(mechanism, d1, d2, **params):
    call = call_of(mechanism, **params)
    return compared(*(outcomes_of(call, data, Deadline(20.0)) for data in (d1, d2)))


def loss(mechanism, d1, d2, *, searched=False, **params):
    largest = largest_of(cases(mechanism, d1, d2, **params))
    assert math.isinf(largest.error) if searched else largest.error < 1e-6
    return max(largest.forward, largest.backward)


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (Law(laws.LAPLACE), stats.laplace()),
        (Law(laws.NORMAL), stats.norm()),
        (Law(laws.LOGISTIC), stats.logistic()),
        (Law(laws.GUMBEL), stats.gumbel_r()),
        (Law(laws.EXPONENTIAL), stats.expon()),
        (Law(laws.UNIFORM), stats.uniform()),
        (Law(laws.GEOMETRIC, 0.7), stats.geom(0.3, loc=-1)),
        (Law(laws.TWO_SIDED_GEOMETRIC, 0.7), stats.dlaplace(-math.log(0.7))),
        (Law(laws.INTEGERS, 4), stats.randint(0, 4)),
    ],
    ids=lambda law: getattr(law, "family", ""),
)
def test_laws_are_those_of_scipy(law, same):
    x = np.array([-9.0, -2.0, -0.75, 0.0, 0.25, 1.0, 2.5, 6.0, 30.0])
    below, between = np.exp(law.log_below(x)), np.exp(law.log_between(x[:-1], x[1:]))
    assert below == pytest.approx(same.cdf(x), rel=1e-9, abs=1e-300)
    assert np.exp(law.log_above(x)) == pytest.approx(same.sf(x), rel=1e-9, abs=1e-15)
    assert between == pytest.approx(np.diff(same.cdf(x)), rel=1e-9, abs=1e-15)
    if not law.lattice:
        assert law.log_density(x) == pytest.approx(same.logpdf(x), rel=1e-12)


def geometric(x, rng):
    return x + rng.geometric(0.25) - rng.geometric(0.25)


def mean(x, rng):
    return np.mean(np.asarray([x, 2.0, 3.0])) + rng.laplace(scale=0.5)


def written_as_dict(x, rng):
    return {"a": x + rng.laplace(), "b": (2 * x - rng.laplace(scale=4),)}


def helper(value):
    assert isinstance(value, float)
    return float(value)


class Holder:
    def answer(self, value):
        return float(value) if isinstance(value, float | int) else None


def converted(x, rng):
    table = np.zeros(2, dtype=float) + np.asarray([x, 0]).astype(float)
    noisy = table + rng.laplace(size=2)
    return {"a": helper(noisy[0]), "b": Holder().answer(float(x) / 2 - rng.laplace())}


def coins(x, rng):
    bits = np.arange(16) == x
    return np.where(rng.random(16) < 0.75, bits, ~bits), x + rng.laplace(scale=2)


def permanent(value, rng):
    kept = np.where(rng.random(30) < 0.5, rng.integers(2, size=30), np.arange(30) == value)
    return rng.random(30) < np.where(kept == 1, 0.7, 0.2)


ONE, ZERO = 0.75 * 0.7 + 0.25 * 0.2, 0.25 * 0.7 + 0.75 * 0.2


def chosen(x, rng):
    return rng.choice(["a", "b"], p=[0.25 + x / 2, 0.75 - x / 2]), x + rng.laplace()


def of_python(x, rng):
    order = rng.permutation(3)
    return {"which": (secrets.randbelow(4) + x) % 4, "order": order, "noise": x + rng.laplace()}


MIXED = {
    "rounded and continuous": (
        lambda x, rng: [round(x + rng.laplace()), int(x / 4 + rng.laplace()), x + rng.laplace()],
        2.25,
    ),
    "rounded in an array": (lambda x, rng: np.floor(x + rng.laplace(size=2)), 2.0),
    "rounded as integers": (
        lambda x, rng: np.round(x + rng.laplace(size=2), 1).astype(int),
        2.0,
    ),
    "many coins and noise": (coins, 2 * math.log(3) + 0.5),
    "coins of coins": (permanent, math.log(ONE / ZERO) + math.log((1 - ZERO) / (1 - ONE))),
    "logical coins": (
        lambda x, rng: np.logical_xor(rng.random(30) < 0.25, np.arange(30) == x),
        2 * math.log(3),
    ),
    "a choice and noise": (chosen, math.log(3) + 1),
    "trials and noise": (
        lambda x, rng: (rng.binomial(4, 0.25 + x / 4), x + rng.laplace()),
        4 * math.log(2) + 1,
    ),
    "draws of Python": (of_python, 1.0),
    "rounded or not": (lambda x, rng: np.where(rng.random(2) < 0.5, 0, x), math.inf),
    "a function compared": (
        lambda x, rng: (math.exp(rng.laplace() - x) > 1, x + rng.laplace()),
        1 + math.log(0.5 / math.exp(-1) / 0.5),
    ),
    "a logarithm compared": (lambda x, rng: np.log(rng.random(3)) < -1 - x, 3.0),
    "half of a whole number": (lambda x, rng: (rng.geometric(0.5) + x) // 2 == 1, math.log(2.5)),
}
"""Mechanisms whose outputs are rounded or chosen, and continuous as well."""
CLOSED = {
    "laplace": (lambda x, rng: x + rng.laplace(scale=4), 0.25),
    "vector": (lambda x, rng: np.array([x, 2 * x]) + rng.laplace(scale=4, size=2), 0.75),
    "a loop": (lambda x, rng: [x + rng.laplace(scale=20) for _ in range(20)], 1.0),
    "a mean": (mean, 2 / 3),
    "loc": (lambda x, rng: rng.laplace(x, 2), 0.5),
    "scaled": (lambda x, rng: 3 * (x - rng.laplace(scale=2)) / 5 - 1, 0.5),
    "logistic": (lambda x, rng: x + rng.logistic(scale=4), 0.25),
    "two exponentials": (lambda x, rng: x + rng.exponential(2) - rng.exponential(2), 0.5),
    "two gumbels": (lambda x, rng: x + rng.gumbel(scale=2) - rng.gumbel(scale=2), 0.5),
    "two geometrics": (geometric, math.log(4 / 3)),
    "sum of laplace": (lambda x, rng: x + rng.laplace(scale=2) + rng.laplace(scale=5), 0.2),
    "laplace and normal": (lambda x, rng: x + rng.laplace() + rng.normal(scale=30), 1.0),
    "a dict": (written_as_dict, 1.5),
    "normal": (lambda x, rng: x + rng.normal(), math.inf),
    "exponential": (lambda x, rng: x + rng.exponential(), math.inf),
    "uniform": (lambda x, rng: x + rng.uniform(-5, 5), math.inf),
    "a scale of the data": (lambda x, rng: rng.laplace(scale=1 + x), math.inf),
    "shared noise": (lambda x, rng: np.array([x, 1]) + rng.laplace(), math.inf),
    "no noise": (lambda x, rng: [x, rng.laplace()], math.inf),
    "half a count": (lambda x, rng: x / 2 + rng.geometric(0.1), math.inf),
    "nothing of the data": (lambda x, rng: rng.laplace(size=3), 0.0),
    "converted": (converted, 1.5),
    "a whole number": (lambda x, rng: int(x + rng.geometric(0.25)), math.inf),
    "a count": (lambda x, rng: round(x) + int(geometric(0, rng)), math.log(4 / 3)),
    "python's": (lambda x, rng: [x + rng.laplace(), len("ab")], 1.0),
    **MIXED,
}


@pytest.mark.parametrize(("mechanism", "expected"), CLOSED.values(), ids=CLOSED)
def test_closed_forms(mechanism, expected):
    assert loss(mechanism, 0, 1) == loss(mechanism, 1, 0) == pytest.approx(expected, rel=1e-10)


def gaussian(x, rng):
    return np.array([x, -x, 2 * x]) + rng.normal(scale=2, size=3)


def summed(x, rng):
    return 5 * math.sqrt(6) / 2 * x + rng.normal(scale=3) - rng.normal(scale=4)


@pytest.mark.parametrize("eps", [0.0, 0.3, 3.0])
def test_profile_of_gaussian_noise(eps):
    expected = gdp_to_delta(math.sqrt(6) / 2, eps)
    for mechanism, forward in ((gaussian, True), (gaussian, False), (summed, True)):
        low, high = profile(cases(mechanism, 0, 1), forward=forward).delta(eps)
        assert low <= expected <= high
        assert high - low < 1e-3


@pytest.mark.parametrize("shift", [20, 25.5, 51, 1e3, 1e6])
def test_profile_of_gaussian_noise_that_hides_next_to_nothing(shift):
    outcomes = cases(lambda x, rng: shift * x + rng.normal(), 0, 1)
    for eps in (0.0, 1.0, 100.0, 400.0):
        far = eps / shift
        expected = stats.norm.cdf(shift / 2 - far) - math.exp(
            eps + stats.norm.logcdf(-shift / 2 - far)
        )
        low, high = profile(outcomes, forward=True).delta(eps)
        assert low * (1 - 1e-9) <= expected <= high
        assert high - low < 1e-2


@pytest.mark.parametrize("eps", [0.0, 0.3, 0.9])
def test_profile_of_laplace_noise(eps):
    expected = 1 - math.exp((eps - 1) / 2)
    low, high = profile(cases(lambda x, rng: x + rng.laplace(), 0, 1), forward=True).delta(eps)
    assert low <= expected <= high
    assert high - low < 1e-3


def chain(x, rng):
    first, second, third, fourth = rng.laplace(size=4)
    return first + x > second, second > third, third > fourth


def endless(x, rng):
    while rng.laplace() + rng.laplace() < x:
        pass
    return 0


def released(x, rng):
    noise = rng.laplace(size=2)
    total = noise.sum() + x
    return [total, noise[0]] if noise[0] > 1 else [total, noise[1]]


REFUSED = {
    "more than one way": chain,
    "more than 1,000 times": endless,
    "several ways lead": released,
    "integer draws are compared": lambda x, rng: rng.geometric(0.5) + rng.geometric(0.5) > x,
    "ZeroDivisionError": lambda x, rng: 1 / 0,
    "whole numbers that": lambda x, rng: x + rng.geometric(0.5) if rng.random() < 0.5 else 1,
    "a product of draws": lambda x, rng: x + rng.laplace() * rng.laplace(),
    "released that is no sum of draws": lambda x, rng: np.exp(x + rng.laplace()),
    "np.arctan2 of a draw": lambda x, rng: x + np.arctan2(rng.random(3), 1),
    "endless values, decides": lambda x, rng: [round(rng.laplace()) + x] * round(rng.laplace()),
    "more than 4,096 values": lambda x, rng: round(x + rng.laplace(scale=1e9)),
    "a function of several draws": lambda x, rng: round(x + rng.laplace() + rng.normal()),
    "depends on another draw": lambda x, rng: x + rng.laplace(scale=abs(rng.normal())),
    "converted to float32": lambda x, rng: (x + rng.laplace(size=2)).astype(np.float32),
    "converted to float16": lambda x, rng: np.add(x, rng.laplace(size=2), dtype=np.float16),
    "converted to uint8": lambda x, rng: rng.integers(256, size=2, dtype=np.uint8) + 200,
    "converted to int8": lambda x, rng: (rng.integers(3, size=2)).astype(np.int8),
    "written into an array": lambda x, rng: rng.standard_normal(out=np.empty(2)) + x,
    "endless values, which are branches": lambda x, rng: x + rng.poisson(),
    "more draws than there are outputs": lambda x, rng: (
        np.array([[1, 2, 3], [3, 1, 2]]) @ rng.laplace(size=3) + x
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals_carry_a_reason(reason):
    with pytest.raises(CannotInstrument, match=reason):
        loss(REFUSED[reason], 0, 1)


def known(mechanism):
    return compare(*(outcomes_of(call_of(mechanism), data, Deadline(20.0)) for data in (0, 1)))


def test_parameters_of_other_notions():
    mu = math.sqrt(6) / 2
    pair = known(gaussian)
    assert parameter_of(pair, GaussianDP(1.0))[0] == pytest.approx(mu)
    assert parameter_of(pair, ZeroConcentratedDP(1.0))[0] == pytest.approx(mu**2 / 2)
    eps = gdp_to_eps(mu, 1e-3)
    assert parameter_of(pair, ApproximateDP(1.0, 1e-3))[0] == pytest.approx(eps, rel=1e-6)
    with pytest.raises(CannotInstrument, match="a claim of mu"):
        parameter_of(known(geometric), GaussianDP(1.0))


def test_proposals_are_the_sets_that_break_a_claim():
    claim = ApproximateDP(1.0, 0.0)
    half_the_noise = Known({0: known(lambda x, rng: x + rng.laplace(scale=0.5))})
    proposal = half_the_noise.proposal(0, claim, 1e-6, math.inf)
    # P(x < 0) = 1/2 against exp(-2)/2, the largest excess over e times it
    p, q = 0.5, 0.5 * math.exp(-2)
    edge = (p - math.e * q) / math.sqrt(p * (1 - p) + math.e**2 * q * (1 - q))
    assert proposal.edge > 0.9 * edge
    assert half_the_noise.proposal(0, claim, 1e-6, proposal.needed - 1) is None
    enough = Known({0: known(lambda x, rng: x + rng.laplace())})
    assert enough.proposal(0, claim, 1e-6, math.inf) is None
