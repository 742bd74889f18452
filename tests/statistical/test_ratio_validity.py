"""The test and bound for a ratio of probabilities keep their level: sizes by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_dp.evidence import ratio


def chances(n1: int, p1: np.ndarray, n2: int, p2: np.ndarray) -> np.ndarray:
    """P(c1, c2) for every pair of counts, in the rows those for p1[k], p2[k]."""
    first = stats.binom.pmf(np.arange(n1 + 1), n1, p1[:, None])
    second = stats.binom.pmf(np.arange(n2 + 1), n2, p2[:, None])
    return first[:, :, None] * second[:, None, :]


PLACES = np.concatenate(([1e-6, 1e-4, 1e-3, 0.999, 1.0], np.linspace(0.005, 0.995, 100)))


def worst_level(p_values: np.ndarray, weights: np.ndarray) -> float:
    """The largest `P(p <= t) / t` over all levels t below 1; in the rows of `weights` chances."""
    order = np.argsort(p_values, axis=None)
    reached = np.cumsum(weights.reshape(len(weights), -1)[:, order], axis=1)
    levels = p_values.ravel()[order]
    last = np.append(np.diff(levels) > 0, False)  # ties arrive together
    return float((reached[:, last] / levels[last]).max(initial=0))


@pytest.mark.parametrize(
    ("n1", "n2", "eps", "alpha"),
    [(5, 5, 0.0, 0.3), (12, 5, 1.0, 0.2), (5, 12, 0.1, 0.2), (12, 12, 0.0, 0.05)],
)
def test_true_hypotheses_are_rejected_with_chance_alpha_at_most(n1, n2, eps, alpha):
    """At every level, though it is sharpest at `alpha`."""
    p_values = np.array(
        [
            [ratio.p_value(c1, n1, c2, n2, eps, alpha) for c2 in range(n2 + 1)]
            for c1 in range(n1 + 1)
        ]
    )
    assert (p_values <= alpha).any()
    worst = []
    for share in (1.0, 0.9, 0.4):
        p1 = np.minimum(math.exp(eps) * PLACES, 1.0) * share
        worst.append(worst_level(p_values, chances(n1, p1, n2, PLACES)))
    assert 0.3 <= max(worst) <= 1


@pytest.mark.spot(2)
@pytest.mark.parametrize(
    ("n1", "n2", "alpha"), [(1, 1, 0.2), (5, 12, 0.05), (12, 5, 0.2), (20, 20, 0.05)]
)
def test_bound_exceeds_the_truth_with_chance_alpha_at_most(n1, n2, alpha):
    bounds = np.array(
        [[ratio.eps_lower(c1, n1, c2, n2, alpha) for c2 in range(n2 + 1)] for c1 in range(n1 + 1)]
    )
    ends = [1e-6, 1e-4, 1e-3, 0.01, 0.99, 0.999, 1.0]
    places = np.concatenate((ends, np.linspace(0.02, 0.98, 49)))
    p1, p2 = (p.ravel() for p in np.meshgrid(places, places))
    worst = 0.0
    for part in np.array_split(np.arange(len(p1)), 8):
        above = bounds[None] > np.log(p1[part] / p2[part])[:, None, None]
        missed = (chances(n1, p1[part], n2, p2[part]) * above).sum(axis=(1, 2))
        worst = max(worst, missed.max())
    assert worst <= alpha
    assert worst >= (0.6 * alpha if min(n1, n2) >= 20 else 0)


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("p1", "p2", "runs", "alpha"),
    [(0.1, 0.1, 1_000, 0.1), (0.4, 0.05, 500, 0.05), (0.3, 0.1, 1_000, 1e-4)],
)
def test_exact_size_at_moderate_counts_is_near_alpha(p1, p2, runs, alpha):
    """Each c1 has a largest rejected c2, and no larger c1 has a smaller one."""
    eps, size = math.log(p1 / p2), 0.0
    high = -1
    first, last = (int(q) for q in stats.binom.ppf((alpha * 1e-2, 1 - alpha * 1e-2), runs, p1))
    for c1 in range(first, last + 1):
        while high < runs and ratio.p_value(c1, runs, high + 1, runs, eps, alpha) <= alpha:
            high += 1
        size += stats.binom.pmf(c1, runs, p1) * stats.binom.cdf(high, runs, p2)
    outside = stats.binom.cdf(first - 1, runs, p1) + stats.binom.sf(last, runs, p1)
    assert 0.6 * alpha <= size <= alpha - outside


@pytest.mark.parametrize(
    ("p1", "p2", "n1", "n2", "alpha"),
    [
        (0.03, 0.03, 3_000_000, 3_000_000, 0.1),
        (0.5, 0.05, 100_000, 400_000, 0.2),
        (0.9, 0.85, 50_000, 50_000, 0.1),
    ],
)
def test_size_at_large_counts_is_near_alpha(p1, p2, n1, n2, alpha):
    """The largest rejected c2 at some c1 is where the bound crosses ε; smooth in between.

    Of 100,000 counts one more or less changes the size by less than 0.01 of it.
    """
    eps = math.log(p1 / p2)
    sd1, sd2 = (math.sqrt(n * p * (1 - p)) for n, p in ((n1, p1), (n2, p2)))
    at, critical = [round(n1 * p1 + k * sd1) for k in (-3, -1.5, 0, 1.5, 3)], []
    for c1 in at:
        expected = c1 / n1 * math.exp(-eps) * n2 - 2 * sd2
        ends = round(expected - sd2), round(expected + sd2)
        for _ in range(2):  # nearly linear on the short way between the ends, then on a shorter
            off = [ratio.eps_lower(c1, n1, c2, n2, alpha) - eps for c2 in ends]
            middle = ends[0] + (ends[1] - ends[0]) * off[0] / (off[0] - off[1])
            ends = round(middle) - 100, round(middle) + 100
        critical.append(middle)
    c1 = np.arange(at[0], at[-1] + 1)
    largest = np.polynomial.Polynomial.fit(at, critical, 3)(c1)
    rejected = stats.norm.cdf(largest, n2 * p2, sd2)
    size = float(stats.binom.pmf(c1, n1, p1) @ rejected)
    assert 0.9 * alpha <= size <= alpha - stats.binom.cdf(at[0], n1, p1)
