"""The statistics against brute force, closed forms and numerical optimisation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp.statistics import clopper_pearson, mclt, statdp

pytestmark = pytest.mark.slow

EPSILONS = (0.0, 1e-12, 1e-3, 0.1, 0.7, 1.5, 5.0, 30.0, 800.0)


def quantile_of_tails(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """The definition: ten times the 10 % quantile of the tail over the thinnings."""
    kept = np.arange(c1 + 1)
    weights = scipy.stats.binom.pmf(kept, c1, math.exp(-eps))
    tails = scipy.stats.hypergeom.sf(kept - 1, n1 + n2, n1, kept + c2)
    order = np.argsort(tails, stable=True)
    enough = np.cumsum(weights[order]) >= 0.1
    return min(1.0, 10.0 * float(tails[order][np.argmax(enough)]))


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (2, 2), (3, 8), (8, 3), (9, 9)])
def test_p_value_is_the_quantile_of_the_tails(n1, n2):
    for eps in EPSILONS:
        for c1 in range(n1 + 1):
            for c2 in range(n2 + 1):
                truth = quantile_of_tails(c1, n1, c2, n2, eps)
                p = statdp.p_value(c1, n1, c2, n2, eps)
                assert truth * (1 - 1e-14) <= p <= truth * (1 + 1e-11), (c1, c2, eps)


def test_p_value_at_moderate_counts_never_falls_below_the_truth():
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 80:
        n1, n2 = rng.integers(30, 3_000, 2).tolist()
        c1 = int(rng.integers(0, n1 + 1))
        c2 = int(rng.integers(0, min(n2, 2 * c1 + 2) + 1))
        eps = float(rng.exponential())
        truth = quantile_of_tails(c1, n1, c2, n2, eps)
        if truth > 1e-290:
            p = statdp.p_value(c1, n1, c2, n2, eps)
            assert truth * (1 - 1e-12) <= p <= truth * (1 + 1e-8), (c1, n1, c2, n2, eps)
            checked += 1


@pytest.mark.parametrize(("c1", "c2", "runs"), [(40, 5, 50), (0, 30, 100), (10_012, 1_351, 20_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_eps_lower_agrees_with_the_test(c1, c2, runs, alpha):
    bound = statdp.eps_lower(c1, runs, c2, runs, alpha)
    assert math.isfinite(bound)
    if bound > 0:
        assert statdp.p_value(c1, runs, c2, runs, bound) <= alpha
    assert statdp.p_value(c1, runs, c2, runs, bound + 2e-6) > alpha
    for eps in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0):
        assert (statdp.p_value(c1, runs, c2, runs, eps) <= alpha) == (bound >= eps - 1e-6)


@pytest.mark.parametrize("alpha", [0.3, 1e-12])
@pytest.mark.parametrize(
    ("count", "runs"), [(0, 9), (9, 9), (1, 9), (4, 9), (3, 10_000), (700, 1_000)]
)
def test_clopper_pearson_solves_its_defining_equations(count, runs, alpha):
    low = clopper_pearson.lower(count, runs, alpha)
    high = clopper_pearson.upper(count, runs, alpha)
    assert 0 <= low <= count / runs <= high <= 1
    if count > 0:
        assert scipy.stats.binom.sf(count - 1, runs, low) == pytest.approx(alpha, rel=1e-6)
    if count < runs:
        assert scipy.stats.binom.cdf(count, runs, high) == pytest.approx(alpha, rel=1e-6)


def test_clopper_pearson_interval_is_scipys():
    for count in (0, 1, 13, 40):
        theirs = scipy.stats.binomtest(count, 40).proportion_ci(0.95, method="exact")
        assert clopper_pearson.interval(count, 40, 0.05) == pytest.approx(tuple(theirs), abs=1e-12)


def test_dp_sniper_bound():
    low = clopper_pearson.lower(10_012, 20_000, 5e-7)
    high = clopper_pearson.upper(1_351, 20_000, 5e-7)
    bound = clopper_pearson.eps_lower(10_012, 20_000, 1_351, 20_000, 1e-6)
    assert bound == pytest.approx(math.log(low / high))
    with_delta = clopper_pearson.eps_lower(10_012, 20_000, 1_351, 20_000, 1e-6, delta=0.1)
    assert with_delta == pytest.approx(math.log((low - 0.1) / high))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "q", "rho", "runs"), [(0.3, 0.2, 0.5, 500), (0.05, 0.04, 0.9, 3_000)]
)
def test_it_is_the_law_of_a_ratio_of_normal_numbers(p, q, rho, runs):
    """By integration over the denominator, given which the numerator is normal."""
    width = mclt.half_width(p, q, rho, runs, 0.01)
    s, t = (math.sqrt(x * (1 - x) / runs) for x in (p, q))

    def inside(y):
        given = scipy.stats.norm(p + rho * s / t * (y - q), s * math.sqrt(1 - rho**2))
        low, high = (p / q * y * math.exp(sign * width) for sign in (-1, 1))
        return (given.cdf(high) - given.cdf(low)) * scipy.stats.norm(q, t).pdf(y)

    covered, _ = scipy.integrate.quad(inside, max(0.0, q - 9 * t), q + 9 * t, limit=200)
    assert covered == pytest.approx(0.99, abs=2e-5)
