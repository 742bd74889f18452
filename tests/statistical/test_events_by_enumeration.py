"""Tests and bounds by the counts of one event keep their level: sizes, summed over all counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.statistics.event_test import Counts, EventTest, PublishedTest, StatDPTest

pytestmark = pytest.mark.canary

CLAIMS = [
    ApproximateDP(0.5),
    ApproximateDP(0.0, 0.2),
    ApproximateDP(1.0, 0.05),
    GaussianDP(0.8),
    ZeroConcentratedDP(0.3),
    RenyiDP(((1.5, 0.3), (8.0, 2.0))),
]
PLACES = np.concatenate(([1e-6, 1e-4, 1e-3, 0.999, 1.0], np.linspace(0.005, 0.995, 60)))
PLANNED = (0.9, 0.1)
"""What is expected of all counts here: weights that suit large losses."""
of_claims = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def by_turns(names: str, *cases: tuple) -> pytest.MarkDecorator:
    """Each claim with one of the cases."""
    turns = [(claim, *cases[k % len(cases)]) for k, claim in enumerate(CLAIMS)]
    ids = [f"{claim}-{case}" for claim, *case in turns]
    return pytest.mark.parametrize(f"claim, {names}", turns, ids=ids)


def chances(n1: int, p1: np.ndarray, n2: int, p2: np.ndarray) -> np.ndarray:
    """P(c1, c2) for every pair of counts, in the rows those for p1[k], p2[k]."""
    first = scipy.stats.binom.pmf(np.arange(n1 + 1), n1, p1[:, None])
    second = scipy.stats.binom.pmf(np.arange(n2 + 1), n2, p2[:, None])
    return first[:, :, None] * second[:, None, :]


def at_counts(function, n1, n2) -> np.ndarray:
    """A bound, or a p-value, for every pair of counts."""

    def of(c1, c2):
        return function(Counts(c1, n1, c2, n2, PLANNED))

    return np.array([[of(c1, c2) for c2 in range(n2 + 1)] for c1 in range(n1 + 1)])


def worst_level(p_values: np.ndarray, weights: np.ndarray) -> float:
    """The largest `P(p <= t) / t` over all levels t below 1; in the rows of `weights` chances."""
    order = np.argsort(p_values, axis=None)
    reached = np.cumsum(weights.reshape(len(weights), -1)[:, order], axis=1)
    levels = p_values.ravel()[order]
    last = np.append(np.diff(levels) > 0, False)  # ties arrive together
    return float((reached[:, last] / levels[last]).max(initial=0))


@by_turns("n1, n2, alpha", (12, 6, 0.2), (14, 14, 0.05))
def test_true_claims_are_rejected_with_chance_alpha_at_most(claim, n1, n2, alpha):
    """At the boundary and inside, at every level."""
    p_values = at_counts(lambda seen: EventTest(claim).p_value(seen), n1, n2)
    worst = [
        worst_level(p_values, chances(n1, share * claim.largest_probability(PLACES), n2, PLACES))
        for share in (1.0, 0.9, 0.4)
    ]
    assert max(worst) <= 1
    assert max(worst) >= 0.15 or not (p_values <= alpha).any()


@by_turns("n1, n2, alpha", (8, 12, 0.05), (16, 16, 0.1))
def test_bounds_exceed_the_truth_with_chance_alpha_at_most(claim, n1, n2, alpha):
    sharp = at_counts(lambda seen: EventTest(claim).lower(seen, alpha), n1, n2)
    published = at_counts(lambda seen: PublishedTest(claim).lower(seen, alpha), n1, n2)
    ends = [1e-6, 1e-3, 0.01, 0.99, 0.999, 1.0]
    places = np.concatenate((ends, np.linspace(0.03, 0.97, 33)))
    p1, p2 = (p.ravel() for p in np.meshgrid(places, places))
    truth = EventTest(claim).parameter_shown(p1, p2)
    weights = chances(n1, p1, n2, p2)
    for bounds, least in ((sharp, -math.inf if claim.largest_ratio else 0), (published, 0)):
        assert (bounds > 0).any()
        above = bounds[None] > np.maximum(truth, least)[:, None, None]
        assert (weights * above).sum(axis=(1, 2)).max() <= alpha


@of_claims
def test_both_directions_and_published_p_values_are_valid(claim):
    runs, alpha = 9, 0.2

    two_sided, published = (
        at_counts(proof(claim).p_value, runs, runs) for proof in (StatDPTest, PublishedTest)
    )
    weights = chances(runs, claim.largest_probability(PLACES), runs, PLACES)
    assert worst_level(two_sided, weights) <= 1
    assert worst_level(two_sided.T, weights) <= 1
    assert worst_level(published, weights) <= 1
    assert (two_sided <= alpha).any()


@pytest.mark.parametrize(
    ("claim", "p2"), [(claim, (0.04, 0.5)[k % 2]) for k, claim in enumerate(CLAIMS)], ids=str
)
def test_exact_size_at_moderate_counts_is_near_alpha(claim, p2):
    """Each c1 has a largest rejected c2, and no larger c1 has a smaller one.

    Weights are planned for twice the ratio, as where a violation is expected.
    """
    runs, alpha, size, high = 500, 0.02, 0.0, -1
    p1, refutes = float(claim.largest_probability(p2)), EventTest(claim).refutes
    first, last = (
        int(q) for q in scipy.stats.binom.ppf((alpha * 1e-2, 1 - alpha * 1e-2), runs, p1)
    )
    for c1 in range(first, last + 1):
        while high < runs and refutes(Counts(c1, runs, high + 1, runs, (p1, p2 / 2)), alpha):
            high += 1
        size += scipy.stats.binom.pmf(c1, runs, p1) * scipy.stats.binom.cdf(high, runs, p2)
    outside = scipy.stats.binom.cdf(first - 1, runs, p1) + scipy.stats.binom.sf(last, runs, p1)
    assert 0.15 * alpha <= size <= alpha - outside


@pytest.mark.parametrize(
    ("p1", "p2", "n1", "n2", "alpha"),
    [(0.03, 0.03, 3_000_000, 3_000_000, 0.1), (0.5, 0.05, 100_000, 400_000, 0.2)],
)
def test_size_at_large_counts_is_near_alpha(p1, p2, n1, n2, alpha):
    """The largest rejected c2 at some c1 is where the bound crosses ε; smooth in between.

    Of 100,000 counts one more or less changes the size by less than 0.01 of it.
    """
    eps = math.log(p1 / p2)
    sd1, sd2 = (math.sqrt(n * p * (1 - p)) for n, p in ((n1, p1), (n2, p2)))
    at, critical = [round(n1 * p1 + k * sd1) for k in (-3, -1.5, 0, 1.5, 3)], []
    lower = EventTest(CLAIMS[0]).lower
    for c1 in at:
        expected = c1 / n1 * math.exp(-eps) * n2 - 2 * sd2
        ends = round(expected - sd2), round(expected + sd2)
        for _ in range(2):  # nearly linear on the short way between the ends, then on a shorter
            off = [lower(Counts(c1, n1, c2, n2, (p1, p2)), alpha) - eps for c2 in ends]
            middle = ends[0] + (ends[1] - ends[0]) * off[0] / (off[0] - off[1])
            ends = round(middle) - 100, round(middle) + 100
        critical.append(middle)
    c1 = np.arange(at[0], at[-1] + 1)
    largest = np.polynomial.Polynomial.fit(at, critical, 3)(c1)
    rejected = scipy.stats.norm.cdf(largest, n2 * p2, sd2)
    size = float(scipy.stats.binom.pmf(c1, n1, p1) @ rejected)
    assert 0.9 * alpha <= size <= alpha - scipy.stats.binom.cdf(at[0], n1, p1)
