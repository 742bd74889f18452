"""Losses in closed form, against what is known of them; and what has none, with its reason."""

from __future__ import annotations

import math

import numpy as np
import pytest
from exact import call_of
from scipy import stats

from pytest_dp.known.comparing import compared, largest_of
from pytest_dp.known.outcomes import outcomes_of
from pytest_dp.known.profiles import profile
from pytest_dp.privacy import gdp_to_delta
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


def sum_of_laplace(x, rng):
    return x + rng.laplace(scale=2) + rng.laplace(scale=5)


def geometric(x, rng):
    return x + rng.geometric(0.25) - rng.geometric(0.25)


def shared(x, rng):
    noise = rng.laplace()
    return [x + noise, 1 + noise]


def scale_of_data(x, rng):
    return rng.laplace(scale=1 + x)


def loop(x, rng):
    return [x + rng.laplace(scale=20) for _ in range(20)]


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


CLOSED = {
    "laplace": (lambda x, rng: x + rng.laplace(scale=4), 0.25),
    "vector": (lambda x, rng: np.array([x, 2 * x]) + rng.laplace(scale=4, size=2), 0.75),
    "a loop": (loop, 1.0),
    "a mean": (mean, 2 / 3),
    "loc": (lambda x, rng: rng.laplace(x, 2), 0.5),
    "scaled": (lambda x, rng: 3 * (x - rng.laplace(scale=2)) / 5 - 1, 0.5),
    "logistic": (lambda x, rng: x + rng.logistic(scale=4), 0.25),
    "two exponentials": (lambda x, rng: x + rng.exponential(2) - rng.exponential(2), 0.5),
    "two gumbels": (lambda x, rng: x + rng.gumbel(scale=2) - rng.gumbel(scale=2), 0.5),
    "two geometrics": (geometric, math.log(4 / 3)),
    "sum of laplace": (sum_of_laplace, 0.2),
    "laplace and normal": (lambda x, rng: x + rng.laplace() + rng.normal(scale=30), 1.0),
    "a dict": (written_as_dict, 1.5),
    "normal": (lambda x, rng: x + rng.normal(), math.inf),
    "exponential": (lambda x, rng: x + rng.exponential(), math.inf),
    "uniform": (lambda x, rng: x + rng.uniform(-5, 5), math.inf),
    "a scale of the data": (scale_of_data, math.inf),
    "shared noise": (shared, math.inf),
    "no noise": (lambda x, rng: [x, rng.laplace()], math.inf),
    "half a count": (lambda x, rng: x / 2 + rng.geometric(0.1), math.inf),
    "nothing of the data": (lambda x, rng: rng.laplace(size=3), 0.0),
    "converted": (converted, 1.5),
    "a whole number": (lambda x, rng: int(x + rng.geometric(0.25)), math.inf),
    "a count": (lambda x, rng: round(x) + int(geometric(0, rng)), math.log(4 / 3)),
    "python's": (lambda x, rng: [x + rng.laplace(), len("ab")], 1.0),
}


@pytest.mark.parametrize(("mechanism", "expected"), CLOSED.values(), ids=CLOSED)
def test_closed_forms(mechanism, expected):
    assert loss(mechanism, 0, 1) == loss(mechanism, 1, 0) == pytest.approx(expected, rel=1e-10)


def gaussian(x, rng):
    return np.array([x, -x, 2 * x]) + rng.normal(scale=2, size=3)


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 3.0])
def test_profile_of_gaussian_noise(eps):
    expected = gdp_to_delta(math.sqrt(6) / 2, eps)
    for forward in (True, False):
        low, high = profile(cases(gaussian, 0, 1), forward=forward).delta(eps)
        assert low <= expected <= high
        assert high - low < 1e-3


@pytest.mark.parametrize("eps", [0.0, 0.3, 0.9])
def test_profile_of_laplace_noise(eps):
    expected = 1 - math.exp((eps - 1) / 2)
    low, high = profile(cases(lambda x, rng: x + rng.laplace(), 0, 1), forward=True).delta(eps)
    assert low <= expected <= high
    assert high - low < 1e-3


def product(x, rng):
    return x + rng.laplace() * rng.laplace()


REFUSED = {
    "a product of draws": product,
    "np.exp of a draw": lambda x, rng: np.exp(x + rng.laplace()),
    "np.log of a draw": lambda x, rng: x + np.log(rng.random(3)),
    "a draw is rounded": lambda x, rng: round(x + rng.laplace()),
    "rounded to a whole number": lambda x, rng: int(x + rng.laplace()),
    "a float that cannot be traced": lambda x, rng: math.exp(rng.laplace()),
    "depends on another draw": lambda x, rng: x + rng.laplace(scale=abs(rng.normal())),
    "converted to float32": lambda x, rng: (x + rng.laplace(size=2)).astype(np.float32),
    "converted to float16": lambda x, rng: np.add(x, rng.laplace(size=2), dtype=np.float16),
    "converted to uint8": lambda x, rng: rng.integers(256, size=2, dtype=np.uint8) + 200,
    "converted to int8": lambda x, rng: (rng.integers(3, size=2)).astype(np.int8),
    "written into an array": lambda x, rng: rng.standard_normal(out=np.empty(2)) + x,
    "draws of poisson": lambda x, rng: x + rng.poisson(),
    "more draws than there are outputs": lambda x, rng: (
        np.array([[1, 2, 3], [3, 1, 2]]) @ rng.laplace(size=3) + x
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals_carry_a_reason(reason):
    with pytest.raises(CannotInstrument, match=reason):
        loss(REFUSED[reason], 0, 1)


def test_a_sum_of_normal_draws_is_normal():
    def summed(x, rng):
        return x + rng.normal(scale=3) - rng.normal(scale=4)

    low, high = profile(cases(summed, 0, 1), forward=True).delta(0.1)
    assert low <= gdp_to_delta(1 / 5, 0.1) <= high
    assert high - low < 1e-6
