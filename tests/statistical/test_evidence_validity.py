"""False alarms and coverage, by enumeration where that is possible: no seed, no tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import stats

from pytest_dp.evidence import clopper_pearson, statdp

EPSILONS = (0.0, 0.05, 0.5, 1.0, 2.0)


def table(runs: int, of_counts: Callable[[int, int], float]) -> np.ndarray:
    """`of_counts` at every pair of counts."""
    return np.array([[of_counts(c1, c2) for c2 in range(runs + 1)] for c1 in range(runs + 1)])


def chances(runs: int, p1: float, p2: float) -> np.ndarray:
    """Probability of every pair of counts."""
    counts = np.arange(runs + 1)
    return np.outer(stats.binom.pmf(counts, runs, p1), stats.binom.pmf(counts, runs, p2))


def allowed(eps: float) -> Iterator[tuple[float, float]]:
    """Pairs of probabilities at the boundary of the claim, and inside."""
    for p1 in (0.002, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1.0):
        p2 = p1 * math.exp(-eps)
        yield p1, p2
        yield p1, p2 + 0.1 * (1 - p2)


def worst_excess(p_values: np.ndarray, weights: np.ndarray) -> float:
    """Largest P(p <= a) / a over all levels a."""
    p, order = p_values.ravel(), np.argsort(p_values, axis=None)
    reached = np.cumsum(weights.ravel()[order])
    levels = p[order]
    last = np.append(np.diff(levels) > 0, True)  # ties arrive together
    return float(np.max(reached[last] / levels[last]))


@pytest.mark.spot(4)
@pytest.mark.parametrize("runs", [5, 12, 20, 30])
@pytest.mark.parametrize("eps", EPSILONS)
def test_p_value_is_valid_at_every_level(runs, eps):
    one = table(runs, lambda c1, c2: statdp.p_value(c1, runs, c2, runs, eps))
    both = table(runs, lambda c1, c2: statdp.p_value_both(c1, runs, c2, runs, eps))
    for p1, p2 in allowed(eps):
        weights = chances(runs, p1, p2)
        assert worst_excess(one, weights) <= 1 + 1e-9
        if p2 <= p1 * math.exp(eps):
            assert worst_excess(both, weights) <= 1 + 1e-9
            assert worst_excess(both, weights.T) <= 1 + 1e-9


@pytest.mark.parametrize(("n1", "n2"), [(6, 15), (15, 6), (1, 20)])
@pytest.mark.parametrize("eps", EPSILONS)
def test_p_value_is_valid_for_any_numbers_of_runs(n1, n2, eps):
    """Against the definition too, by the quantile of the tails over thinnings."""
    found = np.array(
        [[statdp.p_value(c1, n1, c2, n2, eps) for c2 in range(n2 + 1)] for c1 in range(n1 + 1)]
    )
    both = np.array(
        [[statdp.p_value_both(c1, n1, c2, n2, eps) for c2 in range(n2 + 1)] for c1 in range(n1 + 1)]
    )
    for p1, p2 in allowed(eps):
        one, other = (stats.binom.pmf(np.arange(n + 1), n, p) for n, p in ((n1, p1), (n2, p2)))
        assert worst_excess(found, np.outer(one, other)) <= 1 + 1e-9
        if p2 <= p1 * math.exp(eps):
            assert worst_excess(both, np.outer(one, other)) <= 1 + 1e-9
    for c1, c2 in ((n1, 0), (n1 // 2, n2 // 5), (n1, n2 // 2)):
        kept = np.arange(c1 + 1)
        tails = stats.hypergeom.sf(kept - 1, n1 + n2, n1, kept + c2)
        enough = np.cumsum(stats.binom.pmf(kept, c1, math.exp(-eps))[::-1]) >= 0.1
        truth = min(1.0, 10 * tails[::-1][np.argmax(enough)])
        assert truth * (1 - 1e-13) <= found[c1, c2] <= truth * (1 + 1e-11)


def test_the_plain_mean_is_not_a_p_value():
    """Why the mean is doubled: it falls below 0.84 in 92 of 100 honest audits."""
    runs, eps, p2 = 20, 1.0, 0.366

    def mean(c1: int, c2: int) -> float:
        kept = np.arange(c1 + 1)
        weights = stats.binom.pmf(kept, c1, math.exp(-eps))
        return float(weights @ stats.hypergeom.sf(kept - 1, 2 * runs, runs, kept + c2))

    weights = chances(runs, p2 * math.exp(eps), p2)
    assert weights[table(runs, mean) <= 0.84].sum() > 0.91
    assert worst_excess(np.minimum(1, 2 * table(runs, mean)), weights) <= 1


@pytest.mark.spot(2)
@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("runs", [12, 25])
def test_bounds_on_eps_cover(runs, alpha):
    inverted = table(runs, lambda c1, c2: statdp.eps_lower(c1, runs, c2, runs, alpha))
    sniper = table(runs, lambda c1, c2: clopper_pearson.eps_lower(c1, runs, c2, runs, alpha))
    for eps in EPSILONS:
        for p1, p2 in allowed(eps):
            weights = chances(runs, p1, p2)
            assert weights[sniper > eps].sum() <= alpha
            if p2 <= p1 * math.exp(eps):
                assert weights[inverted > eps].sum() <= alpha
                assert weights.T[inverted > eps].sum() <= alpha
    assert (inverted > 0).any()
    assert (sniper > 0).any()


@pytest.mark.parametrize("runs", [12, 40])
def test_clopper_pearson_covers(runs):
    counts = np.arange(runs + 1)
    for alpha in (0.2, 0.05, 1e-3):
        ends = np.array([clopper_pearson.interval(c, runs, alpha) for c in counts.tolist()])
        for p in np.linspace(0, 1, 101):
            chance = stats.binom.pmf(counts, runs, p)
            assert chance[ends[:, 0] > p].sum() <= alpha / 2
            assert chance[ends[:, 1] < p].sum() <= alpha / 2


def largest_rejected(c1: int, runs: int, eps: float, alpha: float) -> int:
    """The last c2 with `p_value(c1, c2) <= alpha`, or -1."""
    low, high = -1, c1 + 1
    while high - low > 1:
        middle = (low + high) // 2
        if statdp.p_value(c1, runs, min(middle, runs), runs, eps) <= alpha:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.spot(4)
@pytest.mark.parametrize(("eps", "p1"), [(0.1, 0.5), (1.0, 0.5), (1.0, 0.02), (3.0, 0.9)])
def test_false_alarms_at_five_thousand_runs(eps, p1):
    """Exactly at the claim; the counts on D that are left out have a chance of 1e-4."""
    runs, p2 = 5_000, p1 * math.exp(-eps)
    first, last = (int(q) for q in stats.binom.ppf((5e-5, 1 - 5e-5), runs, p1))
    values = np.arange(first, last + 1)
    for alpha in (0.05, 0.01):
        limits = np.array([largest_rejected(c, runs, eps, alpha) for c in values.tolist()])
        alarm = float(np.sum(stats.binom.pmf(values, runs, p1) * stats.binom.cdf(limits, runs, p2)))
        assert 0.1 * alpha <= alarm <= alpha - 1e-4
