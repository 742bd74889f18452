"""What counts show of any claim: against single points, other bounds, exact cases and itself."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.statistics import clopper_pearson, region
from pytest_dp.statistics.counts import Counts
from pytest_dp.statistics.event_test import event_test

pytestmark = pytest.mark.slow

PURE = ApproximateDP(1.0)
CLAIMS = [
    PURE,
    ApproximateDP(0.0, 0.1),
    ApproximateDP(0.5, 0.05),
    GaussianDP(0.7),
    ZeroConcentratedDP(0.25),
    RenyiDP(((2.0, 0.5),)),
]
APART = [
    Counts(12, 30, 4, 50),
    Counts(700, 1_000, 300, 1_000),
    Counts(100, 100, 20, 100),
    Counts(60, 1_000, 0, 1_000),
    Counts(60_000, 100_000, 90_000, 200_000),
    Counts(500, 1_000, 2, 100_000_000),
]
of_claims = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def frequencies(seen, least=0.0):
    c1, n1, c2, n2 = seen.four
    return np.array(c1 / n1), np.array(max(c2, least) / n2)


def best_of(seen, claim):
    """What an event shows whose probabilities are its frequencies, half a hit at least."""
    return float(event_test(claim).shows(*frequencies(seen, 0.5)))


def plain_bound(seen, alpha):
    """Two Clopper-Pearson bounds, not raised to 0."""
    c1, n1, c2, n2 = seen.four
    low = clopper_pearson.lower(c1, n1, alpha / 2)
    return math.log(low) - math.log(clopper_pearson.upper(c2, n2, alpha / 2))


# the smallest over a continuum, against single points


def apart_at(seen, claim, alpha, p1, p2):
    """Z1, Z2 and the weights of points, by the definition."""
    c1, n1, c2, n2 = seen.four
    z1 = stats.norm.isf(stats.binom.sf(c1 - 1, n1, p1))
    z2 = stats.norm.isf(stats.binom.cdf(c2, n2, p2))
    plain = (1 - p1) / (n1 * p1), (1 - p2) / (n2 * p2)
    v1, v2 = plain if claim == PURE else event_test(claim).variances(p1, n1, p2, n2)
    tilt = np.exp(np.minimum(stats.norm.isf(0.99 * alpha) / 6 * np.sqrt(sum(plain)), 0.5))
    return z1, z2, np.sqrt(v1), np.sqrt(v2) * tilt


def scores(alpha, z1, z2, w1, w2):
    """S, and whether a point is in the region if its S is small enough."""
    m = stats.norm.isf(0.0025 * alpha)
    score = (w1 * np.maximum(z1, -m) + w2 * np.maximum(z2, -m)) / np.hypot(w1, w2)
    return score, (z1 < m) & (z2 < m)


def on_points(seen, claim, alpha, points=8_000):
    """Scores of points near the edge of the region or anywhere in it, and what they show."""
    m = stats.norm.isf(0.0025 * alpha)
    u, v = stats.norm.cdf(np.random.default_rng(seen.c1).uniform(-m, m, (2, points)))
    c1, n1, c2, n2 = seen.four
    x1 = stats.beta.ppf(u, max(c1, 0.01), n1 - c1 + 1)
    x2 = stats.beta.ppf(v, c2 + 1, max(n2 - c2, 1))
    inside = (x1 > 1e-200) & (x1 < 1) & (x2 > 0) & (x2 < 1)
    x1, x2 = x1[inside], x2[inside]
    found = scores(alpha, *apart_at(seen, claim, alpha, x1, x2))
    return *found, event_test(claim).shows(x1, x2)


EACH = [
    (seen, claim, (0.3, 1e-9)[(k + j) % 2])
    for k, seen in enumerate(APART)
    for j, claim in enumerate(CLAIMS)
    if j == 0 or (j + k) % 3 == 0
]


@pytest.mark.parametrize(("seen", "claim", "alpha"), EACH, ids=str)
def test_no_point_contradicts_the_bound_or_the_p_value(seen, claim, alpha):
    """All counts against claims of every kind, at either alpha."""
    score, possible, values = on_points(seen, claim, alpha)
    bound = event_test(claim).lower(seen, alpha)
    kept = values[possible & (score < stats.norm.isf(0.99 * alpha))]
    assert bound <= kept.min()
    if not math.isfinite(best_of(seen, claim)):
        return
    # The points come close to the edge, and so does the bound.
    slack = max(best_of(seen, claim) - bound, 0.05)
    floor = -math.inf if claim == PURE else 0
    assert max(kept.min(), floor) - max(bound, floor) <= 0.08 * slack + 0.02
    for value in (bound - 0.5 * slack, bound + 0.05 * slack, bound + 0.5 * slack):
        if value > 0.01 or claim == PURE:
            tried = claim.at(value)
            p = event_test(tried).p_value(seen, alpha)
            if claim != PURE:  # whose weights follow the claim
                score, possible, values = on_points(seen, tried, alpha)
            worst = score[possible & (values <= value)].min(initial=np.inf)
            assert p >= 0.01 * alpha + stats.norm.sf(worst) or p == 1.0


@pytest.mark.parametrize("seen", [APART[0], APART[3], APART[4], APART[5]], ids=str)
@pytest.mark.parametrize("size", [1, 8, 64])
def test_blocks_bound_the_points_in_them(seen, size):
    rng, alpha = np.random.default_rng(size), 0.05
    test = event_test(PURE)
    grid = test._grid(seen, alpha)
    i, j = (rng.integers(0, cells, 400) for cells in grid.cells)
    i[:100] = np.maximum(np.searchsorted(grid.axis1.at, 0.5) - rng.integers(1, size + 1, 100), 0)
    end_i, end_j = grid.ends(i, j, size)
    for share, other in rng.random((10, 2, 400)):
        x1 = grid.axis1.at[i] * (1 - share) + grid.axis1.at[end_i] * share
        x1[:100] = 0.5
        x2 = grid.axis2.at[j] * (1 - other) + grid.axis2.at[end_j] * other
        with np.errstate(all="ignore"):
            z1, z2, w1, w2 = apart_at(seen, PURE, alpha, x1, x2)
            score, _ = scores(alpha, z1, z2, w1, w2)
            low, high = grid.odds(i, j, size)
            least = test._proved(*grid.corner(i, end_j - 1))
            inside = (grid.axis1.at[i] <= x1) & (x1 <= grid.axis1.at[end_i])
            inside &= (x1 < 1) & (x1 > 0) & (x2 > 0) & (x2 < 1)
            assert (low <= (w2 / w1) ** 2 * (1 + 1e-9))[inside].all()
            assert ((w2 / w1) ** 2 <= high * (1 + 1e-9))[inside].all()
            assert (least <= np.log(x1 / x2))[inside].all()
            positive = inside & (grid.score(i, j, size) > 0)
            assert (grid.score(i, j, size) <= score)[positive].all()


@pytest.mark.parametrize(
    "seen", [Counts(80, 90, 60, 90), Counts(10**9, 10**10, 3, 10**10), APART[0]]
)
def test_ratios_are_rounded_downwards(seen):
    test = event_test(PURE)
    grid = test._grid(seen, 0.05)
    k = np.arange(1, min(grid.cells) - 200, 5)
    with localcontext(prec=40):
        for at, rounded in zip(k, test._proved(*grid.corner(k, k)), strict=True):
            x1, x2 = Decimal(float(grid.axis1.at[at])), Decimal(float(grid.axis2.at[at + 1]))
            exact = x1.ln() - x2.ln()
            assert 1e-13 < exact - Decimal(float(rounded)) < 2e-12


def test_scores_are_rounded_downwards():
    grid = event_test(PURE)._grid(Counts(80, 90, 10, 90), 0.05)
    exact = stats.norm.isf(stats.binom.cdf(10, 90, grid.axis2.at))
    inner = np.abs(exact) < 3
    assert 5e-8 < (exact - grid.axis2.z)[inner].min() < 2e-7


def test_points_that_are_just_critical_are_not_rejected(monkeypatch):
    monkeypatch.setattr(region.Grid, "score", lambda grid, i, j, size: np.full(len(i), grid.z))
    seen = Counts(90, 100, 60, 100)
    assert math.isfinite(event_test(PURE).lower(seen, 0.1))
    assert event_test(ApproximateDP(0.0)).p_value(seen, 0.1) == pytest.approx(0.1, rel=1e-12)


# p-value and bound belong together


@of_claims
@pytest.mark.parametrize(
    ("seen", "alpha"),
    [(seen, (0.4, 1e-12)[k % 2]) for k, seen in enumerate(APART[:5])],
    ids=str,
)
@pytest.mark.usefixtures("coarse")
def test_p_value_passes_alpha_where_the_bound_is(seen, claim, alpha):
    """What is allowed under ρ is known to a few 1e-4."""
    first, answers = event_test(claim).lower(seen, alpha), []
    for value in (0.5 * first, 0.9 * first, first, 1.1 * first, 1.5 * first, claim.claimed):
        tried = claim.at(max(value, 0.001))
        bound, p = event_test(tried).lower(seen, alpha), event_test(tried).p_value(seen, alpha)
        assert p >= 0.01 * alpha
        if abs(bound - tried.claimed) > 1e-3 * tried.claimed:
            assert (p <= alpha) == (bound > tried.claimed)
            answers.append(p <= alpha)
    if first > 0.002:
        assert answers[0]
    assert not all(answers)


@pytest.mark.parametrize("seen", APART, ids=str)
@pytest.mark.parametrize("alpha", [0.5, 1e-12])
def test_p_value_of_a_ratio_rises_and_passes_alpha_exactly_at_the_bound(seen, alpha):
    bound = event_test(PURE).lower(seen, alpha)
    assert math.isfinite(bound)
    slack = best_of(seen, PURE) - bound
    shares = np.array([-2, -0.01, -1e-9, 1e-9, 0.01, 0.5, 1, 1.3, 2])
    distances = np.sort(np.append(shares * slack, (-30, 30)))
    by_eps = np.array([event_test(PURE.at(bound + x)).p_value(seen, alpha) for x in distances])
    assert (by_eps[distances < 0] <= alpha).all()
    assert (by_eps[distances > 0] >= alpha * (1 - 1e-9)).all()
    assert (np.diff(by_eps) >= 0).all()
    assert by_eps[0] >= 0.01 * alpha
    assert by_eps[-1] == 1.0


COUNTS = st.tuples(st.integers(1, 400), st.integers(0, 400), st.integers(1, 400))
ALPHAS = st.sampled_from([0.4, 0.01, 1e-6])


@settings(max_examples=15)
@given(COUNTS, ALPHAS)
def test_more_hits_raise_the_bound_and_more_of_the_others_lower_it(counts, alpha):
    c1, c2, more = counts
    lower, runs = event_test(PURE).lower, c1 + c2 + more
    seen = Counts(c1, runs, c2, runs + more)
    bound = lower(seen, alpha)
    tolerance = 0.01 * (best_of(seen, PURE) - bound)  # the grid moves with the counts
    assert lower(replace(seen, c1=seen.c1 + 1), alpha) >= bound - tolerance
    assert lower(replace(seen, c2=seen.c2 + 1), alpha) <= bound + tolerance
    low, high = event_test(PURE).interval(seen, alpha)
    assert low == lower(seen, alpha / 2) <= bound
    assert low < math.log(frequencies(seen)[0] / max(float(frequencies(seen)[1]), 1e-300)) < high
    assert event_test(PURE).interval(seen.swapped, alpha) == (-high, -low)


def test_interval_is_two_bounds_at_half_of_alpha_each():
    seen = Counts(300, 1_000, 100, 1_000)
    ends = event_test(PURE).lower(seen, 0.05), -event_test(PURE).lower(seen.swapped, 0.05)
    assert event_test(PURE).interval(seen, 0.1) == ends
    low, high = event_test(GaussianDP(1.0)).interval(Counts(60, 100, 30, 100), 0.1)
    assert low == event_test(GaussianDP(1.0)).lower(Counts(60, 100, 30, 100), 0.05)
    far = clopper_pearson.upper(60, 100, 0.025), clopper_pearson.lower(30, 100, 0.025)
    assert high == pytest.approx(stats.norm.ppf(far[0]) - stats.norm.ppf(far[1]))


# sharpness


def test_never_below_clopper_pearson_where_that_proves_anything():
    rng = np.random.default_rng(2)
    compared = 0
    while compared < 40:
        n1, n2 = (int(10 ** rng.uniform(0, 6)) for _ in range(2))
        c1, c2 = (int(n ** rng.uniform(0, 1)) for n in (n1, n2))
        c1, c2 = (n - c + 1 if rng.random() < 0.2 else c for n, c in ((n1, c1), (n2, c2)))
        seen, alpha = Counts(c1, n1, c2 - (c2 == 1), n2), float(10 ** rng.uniform(-12, -0.3))
        if plain_bound(seen, alpha) > 0:
            compared += 1
            assert event_test(PURE).lower(seen, alpha) > plain_bound(seen, alpha), seen


# corners


@pytest.mark.usefixtures("coarse")
@of_claims
@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-200])
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
            bound = event_test(claim).lower(seen, alpha)
            p = event_test(claim).p_value(seen, alpha)
            assert not math.isnan(bound)
            assert 0 < p <= 1
            assert (bound > claim.claimed) == (p <= alpha), (seen, bound, p)


def test_nothing_is_proved_without_hits_below_the_smallest_level_or_without_a_grid(monkeypatch):
    for claim in (PURE, GaussianDP(1.0)):
        for seen, alpha in (
            (Counts(0, 10, 3, 10), 0.1),
            (Counts(10, 10, 0, 10), 1e-260),
        ):
            assert event_test(claim).lower(seen, alpha) == -math.inf
            assert event_test(claim).p_value(seen, alpha) == 1.0
    for inverse in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(region, inverse, lambda a, b, u: np.full(np.shape(u), np.nan))
    seen = Counts(50, 100, 10, 100)
    assert event_test(PURE).lower(seen, 0.1) == -math.inf
    assert event_test(PURE).p_value(seen, 0.1) == 1.0
