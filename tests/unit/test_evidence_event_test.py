"""What counts show of any claim: against single points, other bounds, exact cases and itself."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy

from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP
from pytest_dp.statistics import clopper_pearson, event_test
from pytest_dp.statistics.event_test import BETA, Counts, EventTest

pytestmark = pytest.mark.slow

PURE = ApproximateDP(1.0)
CLAIMS = [PURE, ApproximateDP(0.5, 0.05), GaussianDP(0.7), RenyiDP(((2.0, 0.5),))]


def counted(c1, n1, c2, n2):
    """Counts as they were expected."""
    return Counts(c1, n1, c2, n2, (c1 / n1, c2 / n2))


APART = [
    counted(12, 30, 4, 50),
    counted(700, 1_000, 300, 1_000),
    counted(100, 100, 20, 100),
    counted(60, 1_000, 0, 1_000),
    counted(60_000, 100_000, 90_000, 200_000),
    counted(500, 1_000, 2, 100_000_000),
]
of_claims = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def best_of(seen, claim):
    """What an event shows whose probabilities are its frequencies, half a hit at least."""
    c1, n1, c2, n2 = seen.four
    return float(EventTest(claim).parameter_shown(c1 / n1, max(c2, 0.5) / n2))


def points_in_region(seen, claim, alpha, points=8_000):
    """Points of the region, by its definition, near its edge or anywhere in it."""
    m = scipy.stats.norm.isf(BETA * alpha / 4)
    u, v = scipy.stats.norm.cdf(np.random.default_rng(seen.c1).uniform(-m, m, (2, points)))
    c1, n1, c2, n2 = seen.four
    x1 = scipy.stats.beta.ppf(u, max(c1, 0.01), n1 - c1 + 1)
    x2 = scipy.stats.beta.ppf(v, c2 + 1, max(n2 - c2, 1))
    inside = (x1 > 1e-200) & (x1 < 1) & (x2 > 0) & (x2 < 1)
    x1, x2 = x1[inside], x2[inside]
    z1 = scipy.stats.norm.isf(scipy.stats.binom.sf(c1 - 1, n1, x1))
    z2 = scipy.stats.norm.isf(scipy.stats.binom.cdf(c2, n2, x2))
    w1, w2 = EventTest(claim).costs(seen.planned[0], n1, seen.planned[1], n2)
    score = (w1 * np.maximum(z1, -m) + w2 * np.maximum(z2, -m)) / np.hypot(w1, w2)
    kept = (z1 < m) & (z2 < m) & (score < scipy.stats.norm.isf((1 - BETA) * alpha))
    return x1[kept], x2[kept]


EACH = [
    (seen, claim, (0.3, 1e-9)[(k + j) % 2])
    for k, seen in enumerate(APART)
    for j, claim in enumerate(CLAIMS)
    if j == 0 or (j + k) % 3 == 0
]


@pytest.mark.parametrize(("seen", "claim", "alpha"), EACH, ids=str)
def test_no_point_contradicts_the_bound_and_some_come_close(seen, claim, alpha):
    bound = EventTest(claim).lower(seen, alpha)
    x1, x2 = points_in_region(seen, claim, alpha)
    shown = EventTest(claim).parameter_shown(x1, x2)
    assert bound <= shown.min()
    if math.isfinite(best_of(seen, claim)):
        slack = max(best_of(seen, claim) - bound, 0.05)
        floor = -math.inf if claim == PURE else 0
        assert max(shown.min(), floor) - max(bound, floor) <= 0.1 * slack + 0.02


def test_fewer_cells_are_only_less_sharp(monkeypatch):
    fine = [EventTest(claim).lower(APART[1], 1e-6) for claim in CLAIMS]
    monkeypatch.setattr(event_test, "CELLS", 8)
    for claim, sharp in zip(CLAIMS, fine, strict=True):
        assert EventTest(claim).lower(APART[1], 1e-6) < sharp


@of_claims
@pytest.mark.parametrize(
    ("seen", "alpha"), [(seen, (0.4, 1e-12)[k % 2]) for k, seen in enumerate(APART[:3])], ids=str
)
def test_p_value_passes_alpha_where_the_bound_is(seen, claim, alpha):
    """What is allowed under ρ is known to a few 1e-4; weights follow the claim a little."""
    first, answers = EventTest(claim).lower(seen, alpha), []
    for value in (0.5 * first, 0.9 * first, first, 1.1 * first, 1.5 * first, claim.claimed):
        tried = claim.at(max(value, 0.001))
        bound, p = EventTest(tried).lower(seen, alpha), EventTest(tried).p_value(seen)
        if abs(bound - tried.claimed) > 1e-3 * tried.claimed:
            assert (p <= alpha) == (bound > tried.claimed)
            answers.append(p <= alpha)
    if first > 0.002:
        assert answers[0]
    assert not all(answers)


def test_interval_is_two_bounds_at_half_of_alpha_each():
    for claim in (PURE, GaussianDP(1.0)):
        seen = counted(300, 1_000, 100, 1_000)
        low, high = EventTest(claim).interval(seen, 0.1)
        assert low == EventTest(claim).lower(seen, 0.05)
        far = clopper_pearson.upper(300, 1_000, 0.025), clopper_pearson.lower(100, 1_000, 0.025)
        assert best_of(seen, claim) < high < float(EventTest(claim).parameter_shown(*far))


@pytest.mark.parametrize("claim", [PURE, GaussianDP(0.7)], ids=str)
def test_the_upper_end_of_an_interval_is_missed_with_chance_half_alpha_at_most(claim):
    n, p1, p2 = 12, 0.6, 0.2
    chance = np.outer(*(scipy.stats.binom.pmf(np.arange(n + 1), n, p) for p in (p1, p2)))
    ends = [
        [EventTest(claim).interval(Counts(a, n, b, n), 0.3)[1] for b in range(n + 1)]
        for a in range(n + 1)
    ]
    missed = chance[np.array(ends) < EventTest(claim).parameter_shown(p1, p2)].sum()
    assert 0.001 < missed <= 0.15


@of_claims
@pytest.mark.parametrize("alpha", [0.9, 1e-200])
def test_corners_give_bounds_without_a_warning(claim, alpha):
    every = [
        Counts(c1, n1, c2, n2)
        for n1, n2 in ((1, 1), (1, 1_000_000), (1_000_000, 1), (40, 40))
        for c1 in {0, 1, n1 - 1, n1}
        for c2 in {0, 1, n2 - 1, n2}
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seen in every:
            bound = EventTest(claim).lower(seen, alpha)
            assert not math.isnan(bound)
            assert (bound > claim.claimed) == EventTest(claim).refutes(seen, alpha)
            assert 0 < EventTest(claim).p_value(seen) <= 1


def test_nothing_is_proved_without_hits_below_the_smallest_level_or_by_what_scipy_cannot(
    monkeypatch,
):
    for claim in (PURE, GaussianDP(1.0)):
        for seen, alpha in ((Counts(0, 10, 3, 10), 0.1), (Counts(10, 10, 0, 10), 1e-260)):
            assert EventTest(claim).lower(seen, alpha) == -math.inf
            assert not EventTest(claim).refutes(seen, alpha)
    for inverse in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(event_test, inverse, lambda a, b, u: np.full(np.shape(u), np.nan))
    seen = Counts(50, 101, 10, 103)
    assert EventTest(PURE).lower(seen, 0.1) == -math.inf
    assert EventTest(PURE).p_value(seen) == 1.0
