"""What counts show of any claim: against single points, other bounds and itself."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from pytest_dp.evidence import clopper_pearson, paired, ratio
from pytest_dp.evidence.boundary import boundary
from pytest_dp.evidence.event_test import event_test
from pytest_dp.privacy import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

PURE = ApproximateDP(1.0)
CLAIMS = [
    ApproximateDP(0.0, 0.1),
    ApproximateDP(0.3, 1e-6),
    ApproximateDP(0.5, 0.05),
    GaussianDP(0.7),
    ZeroConcentratedDP(0.25),
    RenyiDP(((2.0, 0.5),)),
]
COUNTS = [
    (12, 30, 4, 50),
    (300, 1_000, 100, 1_000),
    (700, 1_000, 300, 1_000),
    (100, 100, 20, 100),
    (60, 1_000, 0, 1_000),
    (60_000, 100_000, 90_000, 200_000),
]


def of(claim):
    return str(claim)


# the smallest over a continuum, against single points


def on_points(counts, claim, alpha, p1, p2):
    """Z1, Z2 and S by the definition, and m and the critical value."""
    c1, n1, c2, n2 = counts
    m, z = stats.norm.isf(0.0025 * alpha), stats.norm.isf(0.99 * alpha)
    z1 = stats.norm.isf(stats.binom.sf(c1 - 1, n1, p1))
    z2 = stats.norm.isf(stats.binom.cdf(c2, n2, p2))
    w1, w2 = (np.sqrt(v) for v in boundary(claim).variances(p1, n1, p2, n2))
    plain = np.sqrt((1 - p1) / (n1 * p1) + (1 - p2) / (n2 * p2))
    w2 = w2 * np.exp(np.minimum(z / 6 * plain, 0.5))
    score = (w1 * np.maximum(z1, -m) + w2 * np.maximum(z2, -m)) / np.hypot(w1, w2)
    return z1, z2, score, m, z


def scattered(c1, n1, c2, n2, m):
    """Points near the edge of the confidence region, and anywhere in it."""
    u, v = stats.norm.cdf(np.random.default_rng(c1 + n2).uniform(-m, m, (2, 6_000)))
    p1 = stats.beta.ppf(u, c1, n1 - c1 + 1)
    p2 = stats.beta.ppf(v, c2 + 1, max(n2 - c2, 1))
    inside = (p1 > 0) & (p1 < 1) & (p2 > 0) & (p2 < 1)
    return p1[inside], p2[inside]


@pytest.mark.spot(3)
@pytest.mark.parametrize("k", range(len(COUNTS)))
@pytest.mark.parametrize("claim", CLAIMS, ids=of)
def test_no_point_contradicts_the_bound_or_the_p_value(k, claim):
    """All counts against every claim, and all claims at either alpha."""
    counts, alpha = COUNTS[k], (0.3, 1e-9)[(k + CLAIMS.index(claim)) % 2]
    p1, p2 = scattered(*counts, m=stats.norm.isf(0.0025 * alpha))
    z1, z2, score, m, z = on_points(counts, claim, alpha, p1, p2)
    possible = (z1 < m) & (z2 < m)
    values = event_test(claim).shows(p1, p2)
    bound = event_test(claim).lower(*counts, alpha)
    kept = values[possible & (score < z)]
    assert bound <= kept.min()
    c1, n1, c2, n2 = counts
    best = float(event_test(claim).shows(np.array(c1 / n1 - 1e-9), np.array((c2 + 0.5) / n2)))
    slack = best - bound if bound > 0 else 1.0
    assert max(kept.min(), 0) - max(bound, 0) <= 0.08 * slack + 0.02
    for value in (bound - 0.5 * slack, bound + 0.05 * slack, bound + 0.5 * slack):
        if value > 0.01:
            tried = claim.at(value)
            p = event_test(tried).p_value(*counts, alpha)
            score = on_points(counts, tried, alpha, p1, p2)[2]
            worst = score[possible & (values <= value)].min(initial=np.inf)
            assert p >= 0.01 * alpha + stats.norm.sf(worst) or p == 1.0


@pytest.mark.spot(2)
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("counts", "alpha"), list(zip(COUNTS, [0.4, 1e-12] * 3, strict=True)))
@pytest.mark.parametrize("claim", CLAIMS, ids=of)
def test_p_value_passes_alpha_where_the_bound_is(counts, claim, alpha):
    """What is allowed under ρ is known to a few 1e-4."""
    both = 3 * min(counts[0], counts[2]) // 4
    split = both, counts[0] - both, counts[2] - both, 2 * counts[3]
    for prefix, given in (("", counts), ("paired_", split)):

        def at(tried, what, prefix=prefix, given=given):
            return getattr(event_test(tried), prefix + what)(*given, alpha)

        first, answers = at(claim, "lower"), []
        for value in (0.5 * first, 0.9 * first, first, 1.1 * first, 1.5 * first, claim.claimed):
            tried = claim.at(max(value, 0.001))
            bound, p = at(tried, "lower"), at(tried, "p_value")
            assert p >= 0.01 * alpha
            if abs(bound - tried.claimed) > 1e-3 * tried.claimed:
                assert (p <= alpha) == (bound > tried.claimed)
                answers.append(p <= alpha)
        if first > 0.002:
            assert answers[0]
        assert not all(answers)


# for eps alone nothing is new


@pytest.mark.parametrize("alpha", [0.2, 1e-6])
def test_of_eps_alone_they_are_the_bounds_on_the_ratio(alpha):
    counts, split = (300, 1_000, 90, 2_000), (80, 220, 10, 1_000)
    assert event_test(PURE).lower(*counts, alpha) == ratio.eps_lower(*counts, alpha)
    assert event_test(PURE).p_value(*counts, alpha) == ratio.p_value(*counts, 1.0, alpha)
    assert event_test(PURE).paired_lower(*split, alpha) == paired.eps_lower(*split[:3], alpha)
    assert event_test(PURE).paired_p_value(*split, alpha) == paired.p_value(*split[:3], 1.0, alpha)
    chances = np.array([0.3, 0.5]), 1_000, np.array([0.1, 0.05]), 2_000
    theirs = ratio.predicted(*chances, alpha)
    assert (event_test(PURE).predicted(*chances, alpha) == theirs).all()
    together = np.array([0.3, 0.5]), np.array([0.1, 0.05]), np.array([0.09, 0.04]), 1_000
    theirs = paired.predicted(*together, alpha)
    assert (event_test(PURE).paired_predicted(*together, alpha) == theirs).all()


@pytest.mark.parametrize("counts", COUNTS)
def test_a_tiny_delta_costs_nothing(counts):
    tiny = ApproximateDP(1.0, 1e-12)
    straight = ratio.eps_lower(*counts, 1e-6)
    if counts[0] / counts[1] + counts[2] / counts[3] < 1:  # else the complement shows more
        found = max(event_test(tiny).lower(*counts, 1e-6), 0)
        assert found == pytest.approx(max(straight, 0), abs=2e-3)


# sharpness


@pytest.mark.parametrize("claim", CLAIMS, ids=of)
@pytest.mark.parametrize("counts", [COUNTS[1], COUNTS[2], (7_000, 10_000, 3_000, 10_000)])
def test_slack_as_a_share_of_two_clopper_pearson_bounds(counts, claim):
    c1, n1, c2, n2 = counts
    best = float(event_test(claim).shows(np.array(c1 / n1), np.array(c2 / n2)))
    ours = best - event_test(claim).lower(*counts, 1e-6)
    published = clopper_pearson.claim_lower(*counts, claim, 1e-6)
    if published > 0:
        assert 0.6 < ours / (best - published) < 0.9
    else:
        assert ours < best


@pytest.mark.parametrize("claim", [GaussianDP(0.1), ZeroConcentratedDP(0.005)], ids=of)
def test_pairs_that_agree_leave_little_doubt(claim):
    """Two nested events with few outputs between them, as of noise that is shared."""
    together = event_test(claim).paired_lower(50_000, 4_000, 0, 100_000, 1e-6)
    apart = event_test(claim).lower(54_000, 100_000, 50_000, 100_000, 1e-6)
    best = float(event_test(claim).shows(np.array(0.54), np.array(0.5)))
    # In units of µ: what is left of the distance to what the event shows.
    left = [math.sqrt(best) - math.sqrt(value) for value in (together, apart)]
    if claim.parameter == "mu":
        left = [best - together, best - apart]
    assert left[0] < 0.45 * left[1]


def test_outputs_outside_count_for_what_is_rare():
    """Of the same counts among more pairs, less is shown of µ, and less of ε beside a δ."""
    for claim in (GaussianDP(1.0), ApproximateDP(1.0, 1e-3)):
        bounds = [
            event_test(claim).paired_lower(50, 150, 0, pairs, 1e-3)
            for pairs in (200, 300, 10**4, 10**6)
        ]
        assert bounds == sorted(bounds, reverse=True) or claim.parameter == "mu"
        assert bounds[-1] < bounds[1]


# prediction


@pytest.mark.spot(4)
@pytest.mark.parametrize("claim", CLAIMS, ids=of)
@pytest.mark.parametrize("counts", [COUNTS[1], COUNTS[2], COUNTS[5]])
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_prediction_against_the_bound_at_the_expected_counts(counts, claim, alpha):
    c1, n1, c2, n2 = counts
    best = float(event_test(claim).shows(np.array(c1 / n1), np.array(c2 / n2)))
    bound = event_test(claim).lower(*counts, alpha)
    predicted = event_test(claim).predicted(c1 / n1, n1, c2 / n2, n2, alpha)
    # Rougher for ε where the complement shows about as much as the event.
    share = 0.1 if claim.eps is None or c1 + c2 < n1 else 0.25
    assert predicted == pytest.approx(bound, abs=share * (best - bound) + 1e-3)
    both = 3 * min(c1, c2) // 4
    bound = event_test(claim).paired_lower(both, c1 - both, c2 - both, n2, alpha)
    predicted = event_test(claim).paired_predicted(c1 / n2, c2 / n2, both / n2, n2, alpha)
    best = float(event_test(claim).shows(np.array(c1 / n2), np.array(c2 / n2)))
    # The weights of pairs follow ε, whatever the claim: the bound may be lower elsewhere.
    assert predicted == pytest.approx(bound, abs=0.6 * abs(best - bound) + 2e-3)


@pytest.mark.parametrize("claim", CLAIMS, ids=of)
def test_prediction_broadcasts_and_knows_its_limits(claim):
    p1, p2 = np.meshgrid([0.0, 1e-9, 0.3, 1.0], [1e-12, 0.2, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = event_test(claim).predicted(p1, 1_000, p2, 500, 1e-3)
        together = event_test(claim).paired_predicted(p1, p2, np.minimum(p1, p2), 500, 1e-3)
    for found in (apart, together):
        assert found.shape == p1.shape
        assert (found[p1 == 0] == -np.inf).all()
        assert not np.isnan(found).any()
        assert (found[p1 < p2] <= 0).all()
        assert found[0, 3] > 0


# corners


@pytest.mark.spot(3)
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("claim", CLAIMS, ids=of)
@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-200])
def test_corners_give_bounds_without_a_warning(claim, alpha):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n1, n2 in ((1, 1), (1, 1_000_000), (1_000_000, 1), (40, 40)):
            for c1 in {0, 1, n1 - 1, n1}:
                for c2 in {0, 1, n2 - 1, n2}:
                    bound = event_test(claim).lower(c1, n1, c2, n2, alpha)
                    p = event_test(claim).p_value(c1, n1, c2, n2, alpha)
                    assert not math.isnan(bound)
                    assert 0 < p <= 1
                    assert (bound > claim.claimed) == (p <= alpha), (c1, n1, c2, n2, bound, p)
        for split in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 37, 0), (40, 0, 0)):
            bound = event_test(claim).paired_lower(*split, 40, alpha)
            p = event_test(claim).paired_p_value(*split, 40, alpha)
            assert not math.isnan(bound)
            assert (bound > claim.claimed) == (p <= alpha)


def test_nothing_is_proved_without_hits_or_below_the_smallest_level():
    claim = GaussianDP(1.0)
    assert event_test(claim).lower(0, 10, 0, 10, 0.1) == -math.inf
    assert event_test(claim).p_value(0, 10, 0, 10, 0.1) == 1.0
    assert event_test(claim).lower(10, 10, 0, 10, 1e-260) == -math.inf
    assert event_test(claim).paired_lower(0, 0, 3, 10, 0.1) == -math.inf
    assert event_test(claim).paired_p_value(0, 0, 3, 10, 0.1) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: event_test(g).lower(11, 10, 0, 10, 0.1), "Invalid c1, 11"),
        (lambda g: event_test(g).p_value(1, 10, -1, 10, 0.1), "Invalid c2, -1"),
        (lambda g: event_test(g).lower(1, 10, 0, 10, 1.0), "Invalid alpha, 1.0"),
        (lambda g: event_test(g).predicted(0.5, 10, 0.1, 10, 0.0), "Invalid alpha, 0.0"),
        (lambda g: event_test(g).paired_lower(-1, 1, 0, 10, 0.1), "Invalid both, -1"),
        (
            lambda g: event_test(g).paired_p_value(5, 5, 1, 10, 0.1),
            "11: it must lie between 0 and runs",
        ),
        (lambda g: event_test(g).paired_predicted(0.5, 0.1, 0.1, 9, 2.0), "Invalid alpha, 2.0"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(GaussianDP(1.0))


# the boundary behind the weights


@pytest.mark.parametrize("claim", CLAIMS, ids=of)
def test_variances_are_those_of_the_terms(claim):
    """Where the boundary has no corner, on which the weights depend on the place of a knot."""
    edge = boundary(claim)
    p1, p2 = np.array([0.15, 0.3, 0.5, 0.9]), np.array([1e-3, 0.01, 0.05, 0.1])
    first, second = edge.variances(p1, 100, p2, 1_000)
    floor, step = claim.largest_probability(0.0), 1e-3 * p2
    rise = np.log(
        (claim.largest_probability(p2 + step) - floor)
        / (claim.largest_probability(p2 - step) - floor)
    ) / (2 * step)
    assert second == pytest.approx(p2 * (1 - p2) / 1_000 * rise**2, rel=0.05)
    known = p1 > floor + 1e-9
    assert first[known] == pytest.approx((p1 * (1 - p1) / (p1 - floor) ** 2 / 100)[known], rel=1e-9)
    assert edge.largest_probability_at(p2) == pytest.approx(claim.largest_probability(p2), rel=1e-3)


@pytest.mark.parametrize("claim", CLAIMS, ids=of)
def test_variances_fall_with_the_probabilities(claim):
    """As the search through blocks of cells takes for granted."""
    places = np.concatenate([[0.0], np.geomspace(1e-14, 0.5, 400), np.linspace(0.5, 1.0, 200)])
    for runs in (1, 1_000, 10**7):
        first, second = boundary(claim).variances(places, runs, places, runs)
        assert (np.diff(first) <= 1e-12 * first[:-1]).all()
        assert (np.diff(second) <= 1e-12 * second[:-1]).all()
        assert (first > 0).all()
        assert (second > 0).all()
