"""The test and bound for a ratio of probabilities: against single points and itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_dp.evidence import clopper_pearson, ratio, region

pytestmark = pytest.mark.slow

CASES = [
    (3, 100, 0, 100),
    (5, 1_000, 5, 1_000),
    (12, 30, 4, 50),
    (30, 1_000, 10, 1_000),
    (1, 1, 0, 1),
    (100, 100, 20, 100),
    (17, 20, 20, 20),
    (90_000, 3_000_000, 90_000, 3_000_000),
    (500, 1_000, 2, 100_000_000),
]


def estimate(c1: int, n1: int, c2: int, n2: int) -> float:
    return math.log(c1 / n1) - math.log(max(c2, 0.5) / n2)


def plain_bound(c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
    """Two Clopper-Pearson bounds, not raised to 0."""
    low = clopper_pearson.lower(c1, n1, alpha / 2)
    return math.log(low) - math.log(clopper_pearson.upper(c2, n2, alpha / 2))


# the smallest over a continuum, against single points


def on_points(c1, n1, c2, n2, alpha, p1, p2):
    """Z1, Z2 and S by the definition, and m and the critical value."""
    beta = 0.01 * alpha
    m, z = stats.norm.isf(beta / 4), stats.norm.isf(alpha - beta)
    z1 = stats.norm.isf(stats.binom.sf(c1 - 1, n1, p1))
    z2 = stats.norm.isf(stats.binom.cdf(c2, n2, p2))
    w1, w2 = np.sqrt((1 - p1) / (n1 * p1)), np.sqrt((1 - p2) / (n2 * p2))
    w2 = w2 * np.exp(np.minimum(z / 6 * np.hypot(w1, w2), 0.5))
    score = (w1 * np.maximum(z1, -m) + w2 * np.maximum(z2, -m)) / np.hypot(w1, w2)
    return z1, z2, score, m, z


def scattered(c1, n1, c2, n2, m):
    """Points near the edge of the confidence region, and anywhere in it."""
    rng = np.random.default_rng(c1 + n2)
    u, v = stats.norm.cdf(rng.uniform(-m, m, (2, 20_000)))
    p1 = stats.beta.ppf(u, c1, n1 - c1 + 1)
    p2 = stats.beta.ppf(v, c2 + 1, max(n2 - c2, 1))
    inside = (p1 > 0) & (p1 < 1) & (p2 > 0) & (p2 < 1)
    return p1[inside], p2[inside]


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alpha", [0.3, 1e-9])
def test_no_point_contradicts_the_bound_or_the_p_value(counts, alpha):
    p1, p2 = scattered(*counts, m=stats.norm.isf(0.0025 * alpha))
    z1, z2, score, m, z = on_points(*counts, alpha, p1, p2)
    possible = (z1 < m) & (z2 < m)
    ratios = np.log(p1 / p2)
    bound = ratio.eps_lower(*counts, alpha)
    kept = ratios[possible & (score < z)]
    assert bound <= kept.min()
    # The points come close to the edge, and so does the bound.
    slack = estimate(*counts) - bound
    assert kept.min() - bound <= 0.06 * slack + 0.02
    for eps in (bound - 0.5 * slack, bound + 0.01 * slack, bound + 0.5 * slack):
        p = ratio.p_value(*counts, eps, alpha)
        worst = score[possible & (ratios <= eps)].min(initial=np.inf)
        assert p >= 0.01 * alpha + stats.norm.sf(worst) or p == 1.0


@pytest.mark.spot(4)
@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alpha", [0.5, 0.1, 1e-12])
def test_a_finer_grid_hardly_raises_the_bound(counts, alpha, monkeypatch):
    bound = ratio.eps_lower(*counts, alpha)
    monkeypatch.setattr(region, "NODES", 4_096)
    finer = ratio.eps_lower(*counts, alpha)
    slack = estimate(*counts) - finer
    assert -1e-3 * slack <= finer - bound <= 0.03 * slack + 1e-3


# p-value and bound belong together


@pytest.mark.spot(2)
@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-12])
def test_p_value_passes_alpha_where_the_bound_is(counts, alpha):
    bound = ratio.eps_lower(*counts, alpha)
    assert math.isfinite(bound)
    slack = estimate(*counts) - bound
    shares = np.array([-2, -0.5, -0.01, -1e-9, 1e-9, 0.01, 0.2, 0.5, 1, 1.3, 2])
    distances = np.sort(np.append(shares * slack, (-30, 30)))
    by_eps = np.array([ratio.p_value(*counts, bound + x, alpha) for x in distances])
    assert (by_eps[distances < 0] <= alpha).all()
    assert (by_eps[distances > 0] >= alpha * (1 - 1e-9)).all()
    assert (np.diff(by_eps) >= 0).all()
    assert by_eps[0] >= 0.01 * alpha
    assert by_eps[-1] == 1.0


COUNTS = st.tuples(
    st.integers(1, 400), st.integers(1, 400), st.integers(0, 400), st.integers(1, 400)
).map(lambda t: (min(t[0], t[1]), t[1], min(t[2], t[3]), t[3]))
ALPHAS = st.sampled_from([0.4, 0.1, 0.01, 1e-6])


@settings(max_examples=60)
@given(COUNTS, ALPHAS)
def test_more_hits_raise_the_bound_and_more_of_the_others_lower_it(counts, alpha):
    c1, n1, c2, n2 = counts
    bound = ratio.eps_lower(c1, n1, c2, n2, alpha)
    assert math.isfinite(bound)
    tolerance = 0.01 * (estimate(c1, n1, c2, n2) - bound)  # the grid moves with the counts
    if c1 < n1:
        assert ratio.eps_lower(c1 + 1, n1, c2, n2, alpha) >= bound - tolerance
    if c2 < n2:
        assert ratio.eps_lower(c1, n1, c2 + 1, n2, alpha) <= bound + tolerance


@settings(max_examples=40)
@given(COUNTS, st.floats(-8, 8), st.floats(0, 3), ALPHAS)
def test_p_value_rises_with_eps(counts, eps, more, alpha):
    small, large = (ratio.p_value(*counts, e, alpha) for e in (eps, eps + more))
    assert 0.01 * alpha <= small <= large <= 1.0


# sharpness


@pytest.mark.parametrize(
    ("counts", "alpha", "share"),
    [
        ((90_000, 3_000_000, 90_000, 3_000_000), 0.1, 0.57),
        ((90_000, 3_000_000, 90_000, 3_000_000), 0.05, 0.61),
        ((90_000, 3_000_000, 90_000, 3_000_000), 1e-6, 0.70),
        ((300, 10_000, 100, 10_000), 0.1, 0.60),
        ((30, 1_000, 10, 1_000), 0.1, 0.63),
        ((30, 1_000, 10, 1_000), 1e-6, 0.73),
        ((5, 1_000, 5, 1_000), 0.1, 0.71),
    ],
)
def test_slack_as_a_share_of_two_clopper_pearson_bounds(counts, alpha, share):
    ours = estimate(*counts) - ratio.eps_lower(*counts, alpha)
    assert 0 < ours <= share * (estimate(*counts) - plain_bound(*counts, alpha))


def test_never_below_clopper_pearson_where_that_proves_anything():
    rng = np.random.default_rng(2)
    compared = 0
    while compared < 80:
        n1, n2 = (int(10 ** rng.uniform(0, 6)) for _ in range(2))
        c1, c2 = (int(n ** rng.uniform(0, 1)) for n in (n1, n2))
        c1, c2 = (n - c + 1 if rng.random() < 0.2 else c for n, c in ((n1, c1), (n2, c2)))
        alpha = float(10 ** rng.uniform(-12, -0.3))
        plain = plain_bound(c1, n1, c2 - (c2 == 1), n2, alpha)
        if plain > 0:
            compared += 1
            assert ratio.eps_lower(c1, n1, c2 - (c2 == 1), n2, alpha) > plain, (c1, n1, c2, n2)


# corners


@pytest.mark.spot(2)
@pytest.mark.parametrize("alpha", [0.9, 0.1, 1e-12, 1e-240])
def test_corners_give_finite_bounds(alpha):
    for n1, n2 in [(1, 1), (1, 10**8), (10**8, 1), (50, 50), (10**8, 10**8)]:
        for c1 in {1, n1 // 2 + 1, n1}:
            for c2 in {0, 1, n2 // 2, n2}:
                bound = ratio.eps_lower(c1, n1, c2, n2, alpha)
                assert math.isfinite(bound)
                assert bound < estimate(c1, n1, c2, n2) + 1
                assert ratio.p_value(c1, n1, c2, n2, bound - 1e-6, alpha) <= alpha


def test_nothing_is_proved_without_hits_or_below_the_smallest_level():
    for c2 in (0, 3, 10):
        assert ratio.eps_lower(0, 10, c2, 10, 0.1) == -math.inf
        assert ratio.p_value(0, 10, c2, 10, -50.0, 0.1) == 1.0
    assert ratio.eps_lower(9, 10, 0, 10, 1e-310) == -math.inf
    assert ratio.p_value(9, 10, 0, 10, -50.0, 1e-310) == 1.0


def test_no_hits_of_the_second_input_leave_poisson_s_limit():
    """With p1 as good as known, the bound is that of a single Clopper-Pearson bound on p2."""
    bound = ratio.eps_lower(50_000_000, 100_000_000, 0, 10_000, 0.05)
    assert bound == pytest.approx(math.log(0.5 * 10_000 / -math.log(0.05)), abs=0.01)
    bound = ratio.eps_lower(40, 10_000, 50_000_000, 100_000_000, 0.05)
    assert bound == pytest.approx(math.log(2 * clopper_pearson.lower(40, 10_000, 0.05)), abs=0.01)


def test_what_scipy_cannot_invert_costs_the_bound_but_not_validity(monkeypatch):
    for inverse in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(region, inverse, lambda a, b, u: np.full(np.shape(u), np.nan))
    assert ratio.eps_lower(50, 100, 10, 100, 0.1) == -math.inf
    assert ratio.p_value(50, 100, 10, 100, 0.0, 0.1) == 1.0


@pytest.mark.parametrize("alpha", [1e-12, 1e-20, 1e-60, 1e-200])
def test_tiny_levels_cost_no_more_than_their_standard_errors(alpha):
    bound = ratio.eps_lower(100_000, 1_000_000, 50_000, 1_000_000, alpha)
    error = math.sqrt(0.9 / 100_000 + 0.95 / 50_000)
    assert math.log(2) - bound == pytest.approx(stats.norm.isf(alpha) * error, rel=0.06)


def test_interval_is_two_bounds_and_turns_with_the_inputs():
    low, high = ratio.interval(300, 1_000, 100, 1_000, 0.1)
    assert low == ratio.eps_lower(300, 1_000, 100, 1_000, 0.05)
    assert high == -ratio.eps_lower(100, 1_000, 300, 1_000, 0.05)
    assert low < math.log(3) < high
    assert ratio.interval(100, 1_000, 300, 1_000, 0.1) == (-high, -low)
    assert ratio.interval(0, 10, 0, 10, 0.1) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, 10, 0, 10, 0.1), "c1"),
        ((11, 10, 0, 10, 0.1), "c1"),
        ((5, 10, 11, 10, 0.1), "c2"),
        ((5, 10, -1, 10, 0.1), "c2"),
        ((0, 0, 0, 10, 0.1), "runs"),
        ((5, 10, 0, 0, 0.1), "runs"),
        ((5, 10, 0, 10, 0.0), "alpha"),
        ((5, 10, 0, 10, 1.0), "alpha"),
        ((5, 10, 0, 10, math.nan), "alpha"),
    ],
)
def test_impossible_arguments_are_refused(arguments, name):
    c1, n1, c2, n2, alpha = arguments
    with pytest.raises(ValueError, match=name):
        ratio.eps_lower(*arguments)
    with pytest.raises(ValueError, match=name):
        ratio.p_value(c1, n1, c2, n2, 0.0, alpha)
    with pytest.raises(ValueError, match=name):
        ratio.interval(*arguments)


@pytest.mark.parametrize("eps", [math.nan, math.inf, -math.inf])
def test_eps_must_be_finite(eps):
    with pytest.raises(ValueError, match="eps"):
        ratio.p_value(5, 10, 0, 10, eps, 0.1)


# planning


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@pytest.mark.parametrize(
    ("n1", "p1", "n2", "p2"),
    [
        (10**8, 0.01, 10**8, 0.005),
        (3_000_000, 0.03, 3_000_000, 0.03),
        (1_000_000, 0.5, 10_000, 0.4),
        (1_000, 0.3, 1_000, 0.1),
        (1_000, 0.3, 1_000, 0.003),
        (1_000, 0.99, 1_000, 0.01),
        (1_000, 0.3, 1_000, 0.0),
        (1_000, 0.05, 1_000, 0.003),
        (1_000, 0.03, 1_000, 0.01),
        (1_000, 0.01, 1_000, 0.01),
        (1_000, 0.01, 1_000, 0.0),
        (1_000, 0.003, 1_000, 0.003),
        (1_000, 0.003, 1_000, 0.0),
        (10**8, 3e-8, 10_000, 0.3),
    ],
)
def test_prediction_against_the_bound_at_the_expected_counts(n1, p1, n2, p2, alpha):
    c1, c2 = round(n1 * p1), round(n2 * p2)
    slack = estimate(c1, n1, c2, n2) - ratio.eps_lower(c1, n1, c2, n2, alpha)
    found = estimate(c1, n1, c2, n2) - float(ratio.predicted(p1, n1, p2, n2, alpha))
    assert found == pytest.approx(slack, rel=0.05 if c1 >= 10 else 0.15)


def test_prediction_against_the_median_of_samples():
    n1, p1, n2, p2, alpha = 20_000, 0.01, 20_000, 0.002, 0.05
    rng = np.random.default_rng(4)
    counts = zip(rng.binomial(n1, p1, 150), rng.binomial(n2, p2, 150), strict=True)
    median = np.median([ratio.eps_lower(int(a), n1, int(b), n2, alpha) for a, b in counts])
    slack = math.log(p1 / p2) - float(ratio.predicted(p1, n1, p2, n2, alpha))
    assert slack == pytest.approx(math.log(p1 / p2) - median, rel=0.12)  # s.e. 0.05


def test_prediction_broadcasts_and_knows_its_limits():
    p1, p2 = np.array([0.0, 0.2, 0.5, 1.0])[:, None], np.array([0.0, 1e-4, 0.3, 1.0])
    found = ratio.predicted(p1, 1_000, p2, np.array([500, 1_000, 1_000, 2_000]), 0.01)
    assert found.shape == (4, 4)
    assert (found[0] == -np.inf).all()
    assert np.isfinite(found[1:]).all()
    assert (found[1:, 0] < np.log(p1[1:, 0] * 500 / -math.log(0.01)) + 0.01).all()
    assert (np.diff(found[1:], axis=0) > 0).all()
    assert ratio.predicted(0.5, 100, 0.1, 100, 0.1) == ratio.predicted([0.5], 100, 0.1, 100, 0.1)
    with pytest.raises(ValueError, match="alpha"):
        ratio.predicted(0.5, 100, 0.1, 100, 0.0)
