"""The bound for outputs in pairs: against enumeration, simulation, exact special cases, itself."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, xlogy

from pytest_dp.evidence import clopper_pearson, paired, ratio, region

pytestmark = pytest.mark.slow

CASES = [
    (20, 3, 0),
    (0, 1, 0),
    (0, 40, 7),
    (3, 0, 5),
    (100, 12, 30),
    (45_000, 5_000, 30),
    (1_000_000, 10_000, 9_000),
    (100_000_000, 500, 0),
]
PLACES = np.unique(np.concatenate(([0.0, 1e-6, 1e-3, 0.999, 1 - 1e-6], np.linspace(0, 0.98, 50))))


def estimate(both: int, first: int, second: int) -> float:
    return math.log((both + first) / max(both + second, 0.5))


def log_ratio(a, b):
    with np.errstate(divide="ignore"):
        return np.log1p(-b) - np.log1p(-a)


def outcomes(total: int) -> np.ndarray:
    """Every (both, first, second) that adds up to `total`."""
    pairs = [(f, s) for f in range(total + 1) for s in range(total + 1 - f)]
    return np.array([(total - f - s, f, s) for f, s in pairs])


def chances(counts: np.ndarray, *shares: np.ndarray) -> np.ndarray:
    """Multinomial; one row for each place in `shares`, which are those of the counts' columns."""
    logs = gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1)
    for count, share in zip(counts.T, shares, strict=True):
        logs = logs + xlogy(count, np.maximum(share, 0)[:, None])
    return np.exp(logs)


def with_ratio(eps: float) -> tuple[np.ndarray, np.ndarray]:
    """(a, b) where the log ratio is `eps`."""
    a = 1 - (1 - PLACES) * math.exp(-eps)
    possible = (a >= 0) & (a + PLACES <= 1)
    return a[possible], PLACES[possible]


# validity


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(
    ("alpha", "epsilons"), [(0.01, (0, 1)), (0.05, (0.1,)), (0.2, (-1, 0, 0.1))]
)
def test_true_hypotheses_are_rejected_with_chance_alpha_at_most(alpha, epsilons):
    counts, sizes = outcomes(12), []
    for eps in epsilons:
        p = np.array([paired.p_value(*map(int, c), eps, alpha) for c in counts])
        for true in (eps, eps - 0.1, eps - 2):
            a, b = with_ratio(true)
            for level in (alpha, 0.1 * alpha, min(2 * alpha, 0.45)):
                size = (chances(counts, 1 - a - b, a, b) @ (p <= level)).max(initial=0)
                assert size <= level, (eps, true)
                sizes.append(size / level)
    assert max(sizes) >= 0.3


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("pairs", "alpha"), [(1, 0.2), (4, 0.01), (7, 0.2), (11, 0.05)])
def test_bound_exceeds_the_truth_with_chance_alpha_at_most(pairs, alpha):
    seen = np.concatenate([outcomes(total) for total in range(pairs + 1)])
    counts = np.column_stack((seen, pairs - seen.sum(axis=1)))
    bounds = np.array([paired.eps_lower(*map(int, c), alpha) for c in seen])

    def worst(a, b, truth, none):
        shares = 1 - a - b, a, b
        chance = chances(counts, *(share * (1 - none) for share in shares), np.full_like(a, none))
        return (chance * (bounds > truth[:, None])).sum(axis=1).max(initial=0)

    a, b = (x.ravel() for x in np.meshgrid(PLACES, PLACES))
    a, b = a[a + b < 1], b[a + b < 1]
    missed = [worst(a, b, log_ratio(a, b), none) for none in (0.0, 0.3, 0.95)]
    for below in np.unique(bounds[np.isfinite(bounds)]) - 1e-9:
        a, b = with_ratio(below)
        missed += [worst(a, b, np.full_like(a, below), none) for none in (0.0, 0.3, 0.95)]
    assert max(missed) <= alpha
    assert max(missed) >= (0.6 * alpha if pairs > 10 else 0)


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("pairs", "shares", "alpha"),
    [
        (1_000, (0.2, 0.3, 0.1, 0.4), 0.1),
        (1_000_000, (0.02, 0.01, 0.001, 0.969), 0.1),
        (1_000_000, (0.5, 1e-4, 0.0, 0.4999), 0.2),
    ],
)
def test_simulated_misses_at_large_counts(pairs, shares, alpha):
    times, eps = 150, float(np.log((shares[0] + shares[1]) / (shares[0] + shares[2])))
    counts = np.random.default_rng(12).multinomial(pairs, shares, times)[:, :3]
    bounds = np.array([paired.eps_lower(*map(int, c), alpha) for c in counts])
    allowed = alpha + 2 * math.sqrt(alpha * (1 - alpha) / times)
    assert alpha / 2 <= (bounds > eps).mean() <= allowed
    p1, p2 = shares[0] + shares[1], shares[0] + shares[2]
    predicted = float(paired.predicted(p1, p2, shares[0], pairs, alpha))
    assert predicted == pytest.approx(np.median(bounds), abs=4 * bounds.std() / math.sqrt(times))


# the smallest over a continuum, against single points


def odds(q, b):
    """`(w2 / w1)²`."""
    return b / (1 - b) ** 2 / (q * (1 - q))


def on_points(both, first, second, alpha, q, b):
    """Z1, Z2, S and the log ratio by the definition, and m and the critical value."""
    beta = 0.01 * alpha
    m, z = stats.norm.isf(beta / 4), stats.norm.isf(alpha - beta)
    z1 = stats.norm.isf(stats.binom.sf(first - 1, first + both, q))
    z2 = stats.norm.isf(stats.binom.cdf(second, first + both + second, b))
    tangent = np.sqrt(odds(q, b))
    score = np.maximum(z1, -m) + tangent * np.maximum(z2, -m)
    return z1, z2, score / np.hypot(1, tangent), log_ratio(q * (1 - b), b), m, z


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alpha", [0.3, 1e-9])
def test_no_point_contradicts_the_bound_or_the_p_value(counts, alpha):
    both, first, second = counts
    m = stats.norm.isf(0.0025 * alpha)
    u, v = stats.norm.cdf(np.random.default_rng(both + first).uniform(-m, m, (2, 25_000)))
    q = stats.beta.ppf(u, max(first, 0.01), both + 1)
    b = stats.beta.ppf(v, second + 1, both + first)
    inside = (q > 1e-200) & (q < 1) & (b > 0) & (b < 1)
    z1, z2, score, ratios, m, z = on_points(*counts, alpha, q[inside], b[inside])
    possible = (z1 < m) & (z2 < m)
    bound = paired.eps_lower(*counts, alpha)
    kept = ratios[possible & (score < z)]
    slack = estimate(*counts) - bound
    assert bound <= kept.min() <= bound + 0.06 * slack  # the points come close to the edge
    for eps in (bound - 0.5 * slack, bound + 0.01 * slack, bound + 0.5 * slack):
        p = paired.p_value(*counts, eps, alpha)
        worst = score[possible & (ratios <= eps)].min(initial=np.inf)
        assert p >= 0.01 * alpha + stats.norm.sf(worst) or p == 1.0


@pytest.mark.spot(4)
@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("size", [1, 8, 64])
def test_blocks_bound_the_points_in_them(counts, size):
    rng, alpha = np.random.default_rng(size), 0.05
    grid = paired.Pairs(*counts, alpha)
    i, j = (rng.integers(0, cells, 400) for cells in grid.cells)
    i[:100] = np.maximum(np.searchsorted(grid.axis1.at, 0.5) - rng.integers(1, size + 1, 100), 0)
    end_i, end_j = grid.ends(i, j, size)
    for share, other in rng.random((20, 2, 400)):
        q = grid.axis1.at[i] * (1 - share) + grid.axis1.at[end_i] * share
        q[:100] = 0.5
        b = grid.axis2.at[j] * (1 - other) + grid.axis2.at[end_j] * other
        with np.errstate(all="ignore"):
            _, _, score, ratios, _, _ = on_points(*counts, alpha, q, b)
            (low, high), there = grid.odds(i, j, size), odds(q, b)
        inside = (grid.axis1.at[i] <= q) & (q < 1) & (q > 0) & (b > 0) & (b < 1)
        assert (low <= there * (1 + 1e-9))[inside].all()
        assert (there <= high * (1 + 1e-9))[inside].all()
        assert (grid.log_ratio(i, j, size) <= ratios)[inside].all()
        positive = inside & (grid.score(i, j, size) > 0)
        assert (grid.score(i, j, size) <= score)[positive].all()


@pytest.mark.parametrize("counts", [(50, 30, 10), (0, 10**6, 0), (0, 10**9, 3)])
def test_ratios_are_rounded_downwards(counts):
    grid = paired.Pairs(*counts, 0.05)
    k = np.arange(0, min(grid.cells) - 200, 5)
    with localcontext(prec=40):
        for at, rounded in zip(k, grid.log_ratio(k, k, 1), strict=True):
            q, b = Decimal(float(grid.axis1.at[at])), Decimal(float(grid.axis2.at[at + 1]))
            exact = (1 - b).ln() - (1 - q * (1 - b)).ln()
            assert 1e-13 < exact - Decimal(float(rounded)) < 2e-12


def test_scores_are_rounded_downwards():
    grid = paired.Pairs(50, 30, 10, 0.05)
    exact = stats.norm.isf(stats.binom.cdf(10, 90, grid.axis2.at))
    inner = np.abs(exact) < 3
    assert 5e-8 < (exact - grid.axis2.z)[inner].min() < 2e-7


def test_points_that_are_just_critical_are_not_rejected(monkeypatch):
    monkeypatch.setattr(paired.Pairs, "score", lambda grid, i, j, size: np.full(len(i), grid.z))
    assert math.isfinite(paired.eps_lower(50, 40, 10, 0.1))
    assert paired.p_value(50, 40, 10, 0.0, 0.1) == pytest.approx(0.1, rel=1e-12)


# p-value and bound belong together


@pytest.mark.spot(3)
@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-12])
def test_p_value_passes_alpha_where_the_bound_is(counts, alpha):
    bound = paired.eps_lower(*counts, alpha)
    assert math.isfinite(bound)
    slack = estimate(*counts) - bound
    shares = np.array([-2, -0.5, -0.01, -1e-9, 1e-9, 0.01, 0.2, 0.5, 1, 1.3, 2])
    distances = np.sort(np.append(shares * slack, (-30, 30)))
    by_eps = np.array([paired.p_value(*counts, bound + x, alpha) for x in distances])
    assert (by_eps[distances < 0] <= alpha).all()
    assert (by_eps[distances > 0] >= alpha * (1 - 1e-9)).all()
    assert (np.diff(by_eps) >= 0).all()
    assert by_eps[0] >= 0.01 * alpha
    assert by_eps[-1] == 1.0


COUNTS = st.tuples(st.integers(0, 300), st.integers(1, 300), st.integers(0, 300))


@settings(max_examples=25)
@given(COUNTS, st.sampled_from([0.4, 0.1, 0.01, 1e-6]))
def test_first_raises_the_bound_and_second_lowers_it(counts, alpha):
    both, first, second = counts
    bound = paired.eps_lower(*counts, alpha)
    tolerance = 0.01 * (estimate(*counts) - bound)  # the grid moves with the counts
    assert paired.eps_lower(both, first + 1, second, alpha) >= bound - tolerance
    assert paired.eps_lower(both, first, second + 1, alpha) <= bound + tolerance
    assert paired.eps_lower(both + 1, first - 1, second, alpha) <= bound + tolerance
    low, high = paired.interval(*counts, alpha)
    assert low == paired.eps_lower(*counts, alpha / 2) <= bound
    assert low < math.log((both + first) / max(both + second, 1e-300)) < high
    assert paired.interval(both, second, first, alpha) == (-high, -low)


# sharpness


@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-9])
@pytest.mark.parametrize(
    ("both", "first", "most"),
    [(300, 100, 1.09), (300_000, 1_000, 1.035), (500, 5_000, 1.06), (10**6, 10**6, 1.01)],
)
def test_nested_events_cost_little_more_than_clopper_pearson_on_the_share(both, first, most, alpha):
    known = -math.log1p(-clopper_pearson.lower(first, first + both, alpha))  # if b is 0 for sure
    slack = estimate(both, first, 0) - paired.eps_lower(both, first, 0, alpha)
    assert 1 < slack / (estimate(both, first, 0) - known) <= most


@pytest.mark.parametrize(
    ("both", "first", "second", "least"),
    [(50, 10, 2, 0.87), (0, 60, 30, 0.96), (1_000, 140, 100, 0.94), (10**6, 10_300, 10_000, 0.98)],
)
def test_at_zero_about_as_sure_as_mcnemar_s_test(both, first, second, least):
    alpha = stats.binom.sf(first - 1, first + second, 0.5)
    ours = paired.p_value(both, first, second, 0.0, alpha)
    assert least * stats.norm.isf(alpha) <= stats.norm.isf(ours) <= stats.norm.isf(alpha)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-6])
@pytest.mark.parametrize(
    ("runs", "p1", "p2", "most"),
    [(1_000, 0.3, 0.1, 1.07), (10**6, 0.5, 0.1, 1.005), (10**8, 0.99, 0.98, 1.001)],
)
def test_no_worse_than_independent_samples_where_pairs_are_independent(runs, p1, p2, most, alpha):
    both = round(runs * p1 * p2)
    first, second = round(runs * p1) - both, round(runs * p2) - both
    apart = math.log(p1 / p2) - ratio.eps_lower(first + both, runs, second + both, runs, alpha)
    slack = math.log(p1 / p2) - paired.eps_lower(both, first, second, alpha)
    assert 0.97 <= slack / apart <= most


@pytest.mark.parametrize("counts", [(1_000, 100, 10), (300, 300, 900), (10**6, 40, 0), (0, 12, 3)])
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_prediction_against_the_bound_at_the_expected_counts(counts, alpha):
    both, first, second = counts
    slack = estimate(*counts) - paired.eps_lower(*counts, alpha)
    runs = 10 * sum(counts)
    p1, p2 = (both + first) / runs, (both + second) / runs
    found = paired.predicted([p1, p1, 0.0], [p2, p2, p2], both / runs, runs, alpha)
    assert found[0] == found[1]
    assert found[2] == -np.inf
    assert estimate(*counts) - found[0] == pytest.approx(slack, rel=0.03 if first >= 40 else 0.15)


# corners


@pytest.mark.spot(3)
@pytest.mark.parametrize("alpha", [0.9, 1e-12, 1e-240])
def test_corners_give_bounds_below_the_estimate(alpha):
    sizes = (0, 1, 10**9)
    for both, first, second in [(x, y, z) for x in sizes for y in sizes for z in sizes]:
        bound = paired.eps_lower(both, first, second, alpha)
        assert bound < (estimate(both, first, second) if both + first else math.inf)
        assert math.isfinite(bound) == (both + first > 0) or alpha < 1e-9
        if math.isfinite(bound):
            assert paired.p_value(both, first, second, bound - 1e-6, alpha) <= alpha


def test_nothing_is_proved_below_the_smallest_level_or_without_a_grid(monkeypatch):
    assert paired.eps_lower(50, 40, 0, 1e-310) == paired.eps_lower(0, 0, 9, 0.1) == -math.inf
    assert paired.p_value(50, 40, 0, -50.0, 1e-310) == paired.p_value(0, 0, 9, -50.0, 0.1) == 1.0
    for inverse in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(region, inverse, lambda a, b, u: np.full(np.shape(u), np.nan))
    assert paired.eps_lower(50, 40, 10, 0.1) == -math.inf
    assert paired.p_value(50, 40, 10, 0.0, 0.1) == 1.0


@pytest.mark.parametrize(
    ("name", "bad"),
    [("both", -1), ("only1", -1), ("only2", -1), ("alpha", 0.0), ("eps", math.inf)],
)
def test_impossible_arguments_are_refused(name, bad):
    arguments = {"both": 5, "only1": 5, "only2": 5, "alpha": 0.1, name: bad}
    eps = arguments.pop("eps", 0.0)
    with pytest.raises(ValueError, match=name):
        paired.p_value(**arguments, eps=eps)
    for bounded in () if name == "eps" else (paired.eps_lower, paired.interval):
        with pytest.raises(ValueError, match=name):
            bounded(**arguments)
