"""The additive model against closed forms, and the bins that it is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from learning import both, compared, gain, learned

from benchmarks import vectorized
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow

# -- The additive model against closed forms --------------------------------------------------


def laplace_odds(x, eps):
    return eps * (np.abs(x - 1) - np.abs(x))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("eps", [0.2, 0.8])
def test_laplace_noise(sign, eps):
    def draw(d, rng, n):
        return sign * (d + rng.laplace(scale=1 / eps, size=n))

    odds, exact, first = compared(draw, lambda x: laplace_odds(sign * x, eps), 40_000, 1)
    assert np.corrcoef(odds, exact)[0, 1] > 0.98
    assert np.polyfit(odds, exact, 1)[0] == pytest.approx(1, abs=0.15)
    assert gain(odds, first) > 0.95 * gain(exact, first)
    # Both plateaus, which carry the whole loss.
    assert odds[exact > 0.999 * eps].mean() == pytest.approx(eps, rel=0.1, abs=0.02)
    assert odds[exact < -0.999 * eps].mean() == pytest.approx(-eps, rel=0.1, abs=0.02)


def few_in_a_range(d, rng, n):
    hit = rng.random(n) < [0.06, 0.01][d]
    return np.where(hit, 0.5 + 0.02 * rng.random(n), rng.random(n))


def odds_in_a_range(x):
    inside = math.log((0.94 * 0.02 + 0.06) / (0.99 * 0.02 + 0.01))
    return np.where((x >= 0.5) & (x < 0.52), inside, math.log(0.94 / 0.99))


LAWS = {
    "sums, taken apart into differences": (
        lambda d, rng, n: vectorized.prefix_sum([d] * 10, 0.3, rng, n),
        lambda x: laplace_odds(np.diff(x, axis=1, prepend=0), 0.3).sum(axis=1),
        (40_000, 0.9, 0.9),
    ),
    "thinly spread over many coordinates": (
        lambda d, rng, n: 0.1 * d + rng.normal(size=(n, 30)),
        lambda x: 0.1 * (0.05 - x).sum(axis=1),
        (20_000, 0.9, 0.8),
    ),
    "a narrow range": (few_in_a_range, odds_in_a_range, (10_000, 0.7, 0.5)),
}


@pytest.mark.parametrize("law", LAWS)
def test_log_odds_against_closed_forms(law):
    draw, exact, (runs, related, gained) = LAWS[law]
    odds, truth, first = compared(draw, exact, runs, 5)
    assert np.corrcoef(odds, truth)[0, 1] > related
    assert gain(odds, first) > gained * gain(truth, first)


def noise_or(value, chances):
    def draw(d, rng, n):
        special = rng.random(n) < chances[d]
        return [value if s else x for s, x in zip(special, rng.laplace(size=n), strict=True)]

    return draw


LEAKS = {
    "nan": float("nan"),
    "none": None,
    "exception": Raised("ValueError"),
    "string": "n/a",
    "infinity": math.inf,
    "atom": 0.25,
    "bool": True,
    "length": [0.5, 0.5],
}


@pytest.mark.parametrize("classifier", [None, "logistic", "LogisticRegression"])
@pytest.mark.parametrize("leak", LEAKS)
def test_whatever_is_special_is_learned(leak, classifier):
    if classifier is not None and leak == "atom":
        pytest.skip("one number among others is nothing to a linear model")
    if classifier == "LogisticRegression":
        from sklearn.linear_model import LogisticRegression

        classifier = LogisticRegression()
    chances = 0.3, 0.1
    model = learned(*both(noise_or(LEAKS[leak], chances), 5_000, 8), classifier)
    special, *plain = model.log_odds(tabulate([LEAKS[leak], *np.linspace(-1.5, 1.6, 8).tolist()]))
    assert special == pytest.approx(math.log(0.3 / 0.1), abs=0.25)
    assert np.mean(plain) == pytest.approx(math.log(0.7 / 0.9), abs=0.15)
