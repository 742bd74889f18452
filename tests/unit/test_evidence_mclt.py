"""The interval by correlated runs: the figures of the paper, the exact law of a ratio, coverage."""

from __future__ import annotations

import math

import pytest
import scipy

from pytest_dp.statistics import mclt

P, Q, RUNS, ALPHA = 0.0324, 0.0304, 10**7, 0.001
"""The example of the paper."""


def union(width1, width2):
    """The interval of the logarithm of a ratio, by one interval for each share."""
    return math.log((P - width1) / (Q + width2)), math.log((P + width1) / (Q - width2))


def test_figures_of_the_paper():
    """Where Hoeffding gives [.023, .105] and the CLT [.051, .076], it gives .064 ± .0014."""
    hoeffding = math.sqrt(math.log(4 / ALPHA) / 2 / RUNS)
    assert union(hoeffding, hoeffding) == pytest.approx((0.0227, 0.1048), abs=1e-4)
    z = scipy.stats.norm.isf(ALPHA / 4)
    normal = (z * math.sqrt(share * (1 - share) / RUNS) for share in (P, Q))
    assert union(*normal) == pytest.approx((0.0515, 0.0760), abs=1e-4)
    assert mclt.half_width(P, Q, 0.97, RUNS, ALPHA) == pytest.approx(0.0014, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "q", "rho", "runs"),
    [(0.3, 0.2, 0.5, 500), (0.9, 0.1, -0.1, 200), (0.05, 0.04, 0.9, 3_000), (0.02, 0.02, 0, 900)],
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
