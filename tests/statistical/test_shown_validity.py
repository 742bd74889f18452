"""Tests and bounds for claims of every kind keep their level: sizes by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_dp.evidence import clopper_pearson, region
from pytest_dp.evidence.counts import Counts, as_published, classical
from pytest_dp.evidence.event_test import event_test
from pytest_dp.privacy import ApproximateDP, GaussianDP, PrivacyProfile, RenyiDP, ZeroConcentratedDP

CLAIMS = [
    ApproximateDP(0.0, 0.2),
    ApproximateDP(1.0, 0.05),
    ApproximateDP(0.5, 1e-5),
    GaussianDP(0.8),
    ZeroConcentratedDP(0.3),
    RenyiDP(((2.0, 0.6),)),
    RenyiDP(((1.5, 0.3), (8.0, 2.0))),
]
PLACES = np.concatenate(([1e-6, 1e-4, 1e-3, 0.999, 1.0], np.linspace(0.005, 0.995, 100)))


@pytest.fixture(autouse=True)
def _coarse(monkeypatch, request):
    """Cells ten times as wide: as valid, and quicker by far."""
    if "near_alpha" not in request.node.name:
        monkeypatch.setattr(region, "NODES", 100)


def chances(n1: int, p1: np.ndarray, n2: int, p2: np.ndarray) -> np.ndarray:
    """P(c1, c2) for every pair of counts, in the rows those for p1[k], p2[k]."""
    first = stats.binom.pmf(np.arange(n1 + 1), n1, p1[:, None])
    second = stats.binom.pmf(np.arange(n2 + 1), n2, p2[:, None])
    return first[:, :, None] * second[:, None, :]


def at_counts(function, n1, n2, *given) -> np.ndarray:
    """A bound, or a p-value, for every pair of counts."""
    return np.array(
        [[function(c1, n1, c2, n2, *given) for c2 in range(n2 + 1)] for c1 in range(n1 + 1)]
    )


def worst_level(p_values: np.ndarray, weights: np.ndarray) -> float:
    """The largest `P(p <= t) / t` over all levels t below 1; in the rows of `weights` chances."""
    order = np.argsort(p_values, axis=None)
    reached = np.cumsum(weights.reshape(len(weights), -1)[:, order], axis=1)
    levels = p_values.ravel()[order]
    last = np.append(np.diff(levels) > 0, False)  # ties arrive together
    return float((reached[:, last] / levels[last]).max(initial=0))


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n1", "n2", "alpha"), [(12, 6, 0.2), (14, 14, 0.05)])
def test_true_claims_are_rejected_with_chance_alpha_at_most(claim, n1, n2, alpha):
    """At the boundary and inside, at every level."""
    p_values = at_counts(event_test(claim).p_value, n1, n2, alpha)
    worst = [
        worst_level(p_values, chances(n1, share * claim.largest_probability(PLACES), n2, PLACES))
        for share in (1.0, 0.9, 0.4)
    ]
    assert max(worst) <= 1
    assert max(worst) >= 0.15 or not (p_values <= alpha).any()


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n1", "n2", "alpha"), [(5, 12, 0.05), (16, 16, 0.1)])
def test_bounds_exceed_the_truth_with_chance_alpha_at_most(claim, n1, n2, alpha):
    sharp = at_counts(event_test(claim).lower, n1, n2, alpha)
    published = at_counts(clopper_pearson.claim_lower, n1, n2, claim, alpha)
    ends = [1e-6, 1e-3, 0.01, 0.99, 0.999, 1.0]
    places = np.concatenate((ends, np.linspace(0.03, 0.97, 33)))
    p1, p2 = (p.ravel() for p in np.meshgrid(places, places))
    truth = np.maximum(event_test(claim).shows(p1, p2), 0)
    weights = chances(n1, p1, n2, p2)
    for bounds in (sharp, published):
        assert (bounds > 0).any()
        missed = (weights * (bounds[None] > truth[:, None, None])).sum(axis=(1, 2))
        assert missed.max() <= alpha


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_both_directions_and_published_p_values_are_valid(claim):
    runs, alpha = 9, 0.2

    def p_value(prove):
        def of_counts(c1, n1, c2, n2):
            counts = Counts(c1, n1, c2, n2, (c1, c2), n1)
            return prove("event", counts, claim, alpha).p_value

        return at_counts(of_counts, runs, runs)

    two_sided, published = p_value(classical), p_value(as_published)
    weights = chances(runs, claim.largest_probability(PLACES), runs, PLACES)
    assert worst_level(two_sided, weights) <= 1
    assert worst_level(two_sided.T, weights) <= 1
    assert worst_level(published, weights) <= 1
    assert (two_sided <= alpha).any()


@pytest.mark.spot(2)
@pytest.mark.parametrize(
    ("claim", "p2"), [(claim, (0.04, 0.5)[k % 2]) for k, claim in enumerate(CLAIMS)], ids=str
)
def test_exact_size_at_moderate_counts_is_near_alpha(claim, p2):
    """Each c1 has a largest rejected c2, and no larger c1 has a smaller one."""
    runs, alpha, size, high = 500, 0.02, 0.0, -1
    p1 = float(claim.largest_probability(p2))
    first, last = (int(q) for q in stats.binom.ppf((alpha * 1e-2, 1 - alpha * 1e-2), runs, p1))
    for c1 in range(first, last + 1):
        while high < runs and event_test(claim).p_value(c1, runs, high + 1, runs, alpha) <= alpha:
            high += 1
        size += stats.binom.pmf(c1, runs, p1) * stats.binom.cdf(high, runs, p2)
    outside = stats.binom.cdf(first - 1, runs, p1) + stats.binom.sf(last, runs, p1)
    assert 0.4 * alpha <= size <= alpha - outside


# pairs


def outcomes(total: int) -> np.ndarray:
    """Every (both, only1, only2) of so many pairs."""
    all_of_them = np.indices((total + 1,) * 3).reshape(3, -1).T
    return all_of_them[all_of_them.sum(axis=1) <= total]


@pytest.mark.spot(2)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("pairs", "alpha"), [(4, 0.3), (9, 0.1)])
def test_bounds_of_pairs_hold(claim, pairs, alpha):
    counts = outcomes(pairs)
    test = event_test(claim)
    bounds = np.array([test.paired_lower(*c, pairs, alpha) for c in counts.tolist()])
    p_values = np.array([test.paired_p_value(*c, pairs, alpha) for c in counts.tolist()])
    assert ((bounds > claim.claimed) == (p_values <= alpha)).all()
    assert (bounds > 0).any() or claim.delta > 0.1
    rng = np.random.default_rng(3)
    shares = np.concatenate([rng.dirichlet([0.4] * 4, 400), rng.dirichlet([5, 5, 0.3, 5], 100)])
    # A boundary case of each: as much only on the first as the claim allows.
    both, _, only2, _ = shares.T
    most = claim.largest_probability(both + only2)
    fits = (most - both >= 0) & (most + only2 <= 1)
    exact = np.stack([both, most - both, only2, 1 - most - only2], axis=1)[fits]
    laws = np.concatenate([shares, exact])
    of_each = np.column_stack([counts, pairs - counts.sum(axis=1)])
    weights = stats.multinomial.pmf(of_each, pairs, (laws / laws.sum(1, keepdims=True))[:, None])
    p1, p2 = laws[:, 0] + laws[:, 1], laws[:, 0] + laws[:, 2]
    truth = np.maximum(test.shows(p1, p2), 0.0)
    missed = (weights * (bounds > truth[:, None] + 1e-9)).sum(axis=1)
    assert missed.max() <= alpha
    keeps = p1 <= claim.largest_probability(p2)
    assert keeps.sum() > 50
    assert worst_level(p_values, weights[keeps]) <= 1 + 1e-9


@pytest.mark.spot(4)
@pytest.mark.parametrize("claim", [CLAIMS[1], *CLAIMS[3:5], CLAIMS[6]], ids=str)
def test_simulated_misses_of_pairs_at_large_counts(claim):
    """Nested events of shared noise, exactly at the claim."""
    alpha, pairs, audits = 0.1, 20_000, 200
    p2 = 0.4
    p1 = float(claim.largest_probability(p2))
    rng = np.random.default_rng(11)
    together = rng.multinomial(pairs, [p2, p1 - p2, 0.0, 1 - p1], size=audits)
    lower = event_test(claim).paired_lower
    misses = [lower(*c[:3], pairs, alpha) > claim.claimed for c in together]
    assert sum(misses) <= audits * alpha + 3 * math.sqrt(audits * alpha)


# broken claims


@pytest.mark.parametrize("claim", [*CLAIMS, PrivacyProfile(GaussianDP(0.8).delta_at)], ids=str)
def test_broken_claims_are_rejected(claim):
    """Twice what is claimed, at 10,000 runs and alpha = 1e-6; once what is claimed is not."""
    runs, p2 = 10_000, 0.2
    for factor, broken in ((2.0, True), (1.0, False)):
        p1 = float(claim.times(factor).largest_probability(p2)) * (1 - 1e-9)
        if p1 < 1.2 * float(claim.largest_probability(p2)) and broken:
            continue
        c1, c2 = round(runs * p1), round(runs * p2)
        assert (event_test(claim).p_value(c1, runs, c2, runs, 1e-6) <= 1e-6) == broken
        both = round(0.9 * c2)
        split = both, c1 - both, c2 - both, runs
        assert (event_test(claim).paired_p_value(*split, 1e-6) <= 1e-6) == broken
        assert (event_test(claim).lower(c1, runs, c2, runs, 1e-6) > claim.claimed) == broken
