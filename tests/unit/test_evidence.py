"""The statistics against brute force, closed forms and numerical optimisation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy

from pytest_dp.privacy import ApproximateDP, GaussianDP, PrivacyProfile, RenyiDP
from pytest_dp.statistics import clopper_pearson
from pytest_dp.statistics.count_tests import (
    chance_all_come_before,
    fisher_p_value,
    kolmogorov_smirnov_p_value,
    largest_rejected_eps,
    log_e_value,
    p_value_of_agreement,
    p_value_of_lag,
    statdp_p_value,
)
from pytest_dp.statistics.event_test import (
    NO_COUNTS,
    Bound,
    Counts,
    EventTest,
    PublishedTest,
    StatDPTest,
    unlucky_counts,
)

pytestmark = pytest.mark.slow

EPSILONS = (0.0, 1e-12, 1e-3, 0.1, 0.7, 1.5, 5.0, 30.0, 800.0)


def quantile_of_tails(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """The definition: ten times the 10 % quantile of the tail over the thinnings."""
    kept = np.arange(c1 + 1)
    weights = scipy.stats.binom.pmf(kept, c1, math.exp(-eps))
    tails = scipy.stats.hypergeom.sf(kept - 1, n1 + n2, n1, kept + c2)
    order = np.argsort(tails, stable=True)
    enough = np.cumsum(weights[order]) >= 0.1
    return min(1.0, 10.0 * float(tails[order][np.argmax(enough)]))


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (2, 2), (3, 8), (8, 3), (9, 9)])
def test_p_value_is_the_quantile_of_the_tails(n1, n2):
    for eps in EPSILONS:
        for c1 in range(n1 + 1):
            for c2 in range(n2 + 1):
                truth = quantile_of_tails(c1, n1, c2, n2, eps)
                p = statdp_p_value(c1, n1, c2, n2, eps)
                assert truth * (1 - 1e-14) <= p <= truth * (1 + 1e-11), (c1, c2, eps)


def test_p_value_at_moderate_counts_never_falls_below_the_truth():
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 80:
        n1, n2 = rng.integers(30, 3_000, 2).tolist()
        c1 = int(rng.integers(0, n1 + 1))
        c2 = int(rng.integers(0, min(n2, 2 * c1 + 2) + 1))
        eps = float(rng.exponential())
        truth = quantile_of_tails(c1, n1, c2, n2, eps)
        if truth > 1e-290:
            p = statdp_p_value(c1, n1, c2, n2, eps)
            assert truth * (1 - 1e-12) <= p <= truth * (1 + 1e-8), (c1, n1, c2, n2, eps)
            checked += 1


@pytest.mark.parametrize(("c1", "c2", "runs"), [(40, 5, 50), (0, 30, 100), (10_012, 1_351, 20_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_eps_lower_agrees_with_the_test(c1, c2, runs, alpha):
    bound = largest_rejected_eps(c1, runs, c2, runs, alpha)
    assert math.isfinite(bound)
    if bound > 0:
        assert statdp_p_value(c1, runs, c2, runs, bound) <= alpha
    assert statdp_p_value(c1, runs, c2, runs, bound + 2e-6) > alpha
    for eps in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0):
        assert (statdp_p_value(c1, runs, c2, runs, eps) <= alpha) == (bound >= eps - 1e-6)


@pytest.mark.parametrize("alpha", [0.3, 1e-12])
@pytest.mark.parametrize(
    ("count", "runs"), [(0, 9), (9, 9), (1, 9), (4, 9), (3, 10_000), (700, 1_000)]
)
def test_clopper_pearson_solves_its_defining_equations(count, runs, alpha):
    low = clopper_pearson.lower(count, runs, alpha)
    high = clopper_pearson.upper(count, runs, alpha)
    assert 0 <= low <= count / runs <= high <= 1
    if count > 0:
        assert scipy.stats.binom.sf(count - 1, runs, low) == pytest.approx(alpha, rel=1e-6)
    if count < runs:
        assert scipy.stats.binom.cdf(count, runs, high) == pytest.approx(alpha, rel=1e-6)


def test_clopper_pearson_interval_is_scipys():
    for count in (0, 1, 13, 40):
        theirs = scipy.stats.binomtest(count, 40).proportion_ci(0.95, method="exact")
        assert clopper_pearson.interval(count, 40, 0.05) == pytest.approx(tuple(theirs), abs=1e-12)


def test_dp_sniper_bound():
    low = clopper_pearson.lower(10_012, 20_000, 5e-7)
    high = clopper_pearson.upper(1_351, 20_000, 5e-7)
    bound = clopper_pearson.eps_lower(10_012, 20_000, 1_351, 20_000, 1e-6)
    assert bound == pytest.approx(math.log(low / high))
    with_delta = clopper_pearson.eps_lower(10_012, 20_000, 1_351, 20_000, 1e-6, delta=0.1)
    assert with_delta == pytest.approx(math.log((low - 0.1) / high))


def test_the_error_of_a_ratio_of_paired_runs_is_seldom_exceeded():
    """Over draws of pairs in which an event holds on both inputs, on either, or on neither."""
    rng, runs, cells = np.random.default_rng(1), 4_000, (0.15, 0.05, 0.03, 0.77)
    truth = math.log((cells[0] + cells[1]) / (cells[0] + cells[2]))
    outside = 0
    for both, only1, only2, _ in rng.multinomial(runs, cells, 4_000).tolist():
        ratio, error = clopper_pearson.paired_log_ratio(both + only1, both + only2, both, 0.05)
        outside += abs(ratio - truth) > error
    assert outside / 4_000 == pytest.approx(0.05, abs=0.012)
    assert clopper_pearson.paired_log_ratio(3, 0, 0, 0.05) == (math.inf, math.inf)


@pytest.mark.parametrize("hits", [(0, 0), (3, 9), (40, 2), (11, 20)])
def test_two_samples_are_compared_as_by_fisher(hits):
    runs = 40, 55
    table = [[hits[0], runs[0] - hits[0]], [hits[1], runs[1] - hits[1]]]
    tails = [
        scipy.stats.fisher_exact(table, alternative).pvalue for alternative in ("less", "greater")
    ]
    assert fisher_p_value(hits, runs) == pytest.approx(min(1.0, 2 * min(tails)))


@pytest.mark.parametrize("shift", [0.0, 0.2, 3.0])
def test_laws_of_samples_are_compared_as_by_scipy(shift):
    rng = np.random.default_rng(4)
    first, other = rng.laplace(size=300), np.round(rng.laplace(size=200) + shift, 1)
    exact = scipy.stats.ks_2samp(first, other, method="exact").pvalue
    assert exact <= kolmogorov_smirnov_p_value(first, other)
    assert math.log(kolmogorov_smirnov_p_value(first, other)) == pytest.approx(
        math.log(exact), rel=0.15, abs=0.15
    )


@pytest.mark.parametrize(("groups", "runs"), [(3, 2), (2, 4)])
def test_independent_runs_hardly_ever_seem_to_agree(groups, runs):
    """Over all ways to place as many hits, which independent runs make equally likely."""
    cells = groups * runs
    for hits in range(1, cells):
        found = []
        for chosen in itertools.combinations(range(cells), hits):
            inside = np.zeros(cells, dtype=bool)
            inside[list(chosen)] = True
            found.append(p_value_of_agreement(inside.reshape(groups, runs)))
        for level in (0.01, 0.05, 0.2):
            assert np.mean(np.array(found) <= level) <= level + 1e-12
        assert np.mean(found) > 0.5  # and of all levels there are, it attains each
        for p in set(found):
            assert np.mean(np.array(found) <= p + 1e-12) == pytest.approx(p)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_independent_runs_hardly_ever_seem_to_depend(lag):
    """Over all ways to place as many hits, which independent runs make equally likely."""
    runs = 4 * lag if lag < 3 else 6
    for hits in range(1, runs):
        found = []
        for chosen in itertools.combinations(range(runs), hits):
            inside = np.zeros(runs, dtype=bool)
            inside[list(chosen)] = True
            found.append(p_value_of_lag(inside, lag))
        for level in sorted(set(found)):
            assert np.mean(np.array(found) <= level + 1e-12) <= level + 1e-12


@pytest.mark.parametrize(
    ("inside", "lag"),
    [(np.tile([0, 1], 100), 1), (np.tile([0, 1], 100), 2)],
    ids=["alternating", "of period two"],
)
def test_runs_that_depend_on_those_before_are_seen(inside, lag):
    assert p_value_of_lag(inside.astype(bool), lag) < 1e-9


# the e-value of outputs against a known distribution


def likelihood(counts, probabilities):
    ways = math.factorial(sum(counts))
    for count in counts:
        ways //= math.factorial(count)
    return ways * math.prod(p**c for p, c in zip(probabilities, counts, strict=True))


def counts_of(total, cells):
    for dividers in itertools.combinations(range(total + cells - 1), cells - 1):
        edges = (-1, *dividers, total + cells - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def mean(truth, known, residual, total):
    """Over all that may come in so many runs; the last cell is what was not enumerated."""
    return math.fsum(
        likelihood(counts, truth)
        * math.exp(log_e_value(np.array(counts[:-1]), np.array(known), counts[-1], residual))
        for counts in counts_of(total, len(truth))
        if likelihood(counts, truth) > 0
    )


@pytest.mark.parametrize("known", [(0.5, 0.5), (0.98, 0.01, 0.01)])
def test_its_mean_is_one_if_the_distribution_is_known(known):
    assert mean((*known, 0.0), known, 0.0, 12) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("truth", [(0.6, 0.4, 0.0), (0.5, 0.4, 0.1), (0.55, 0.4, 0.05)])
def test_it_is_at_most_one_wherever_the_residual_is(truth):
    assert mean(truth, (0.5, 0.4), 0.1, 8) <= 1 + 1e-9


def test_what_cannot_come_refutes():
    known = np.array([0.5, 0.5])
    assert math.isinf(log_e_value(np.array([10, 10]), known, 1, 0.0))
    assert log_e_value(np.array([10, 10]), known, 1, 1e-9) > math.log(1_000)


@pytest.mark.parametrize(("last", "hits", "runs"), [(2, 2, 6), (3, 1, 7), (4, 3, 6)])
def test_that_no_hit_is_among_the_last_runs_by_all_orders(last, hits, runs):
    orders = list(itertools.combinations(range(runs), hits))
    early = [order for order in orders if max(order) < runs - last]
    by_all = len(early) / len(orders)
    assert chance_all_come_before(last, hits, runs) == pytest.approx(by_all, abs=1e-12)


APART = Counts(620, 1_000, 240, 1_000)
UNEVEN = Counts(310, 500, 700, 3_000)
PROOFS = [(EventTest, APART), (PublishedTest, UNEVEN), (StatDPTest, APART)]
PURE = ApproximateDP(0.1)
CLAIMS = [
    PURE,
    ApproximateDP(0.1, 0.01),
    GaussianDP(0.1),
    RenyiDP(((2.0, 0.02),)),
    PrivacyProfile(GaussianDP(0.1).delta_at),
]
of_proofs = pytest.mark.parametrize(("proof", "counts"), PROOFS)


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@of_proofs
def test_a_claim_is_refuted_exactly_if_it_is_below_the_bound(proof, counts, alpha):
    bound = proof(PURE).bound(counts, alpha).lower
    assert 0 < bound < math.log(620 / 240)
    for eps, refuted in ((bound - 1e-3, True), (bound + 1e-3, False)):
        assert (proof(PURE.at(eps)).bound(counts, alpha).p_value <= alpha) == refuted
        assert proof(PURE.at(eps)).refutes(counts, alpha) == refuted
    assert proof(PURE).bound(counts, alpha / 10).lower < bound


def test_delta_at_the_claimed_eps():
    claim = ApproximateDP(0.5, 0.01)
    found = EventTest(claim).bound(APART, 1e-3)
    low, high = found.intervals[0][0], found.intervals[1][1]
    assert found.delta_lower == pytest.approx(low - math.exp(0.5) * high)
    assert 0.01 < found.delta_lower < 0.62 - math.exp(0.5) * 0.24
    assert EventTest(claim).bound(APART.inputs_swapped, 1e-3).delta_lower == 0.0
    assert EventTest(GaussianDP(1.0)).bound(APART, 1e-3).delta_lower is None


def test_the_classical_p_value_is_valid_and_agrees_with_its_bound():
    runs = 12
    every = [Counts(a, runs, b, runs) for a in range(runs + 1) for b in range(runs + 1)]
    hits = np.arange(runs + 1)
    for eps in (0.1, 1.0, 3.0):
        claim = ApproximateDP(eps)
        p_values = np.array([StatDPTest(claim).p_value(c) for c in every])
        for p2 in (0.01, 0.1, 0.3, math.exp(-eps)):
            for p1 in (min(math.exp(eps) * p2, 1.0), p2, math.exp(-eps) * p2):
                one, two = (scipy.stats.binom.pmf(hits, runs, p) for p in (p1, p2))
                chance = np.outer(one, two).ravel()
                for level in np.unique(p_values):
                    assert chance[p_values <= level].sum() <= level * (1 + 1e-9)
        for alpha in (0.3, 0.01):
            clear = np.abs(p_values - alpha) > 1e-6
            rejected = np.array([StatDPTest(claim).lower(c, alpha) for c in every]) >= eps
            assert (rejected == (p_values <= alpha))[clear].all()


def test_turned_around_twice_is_the_same():
    other = UNEVEN.inputs_swapped
    assert other.four == (*UNEVEN.four[2:], *UNEVEN.four[:2])
    assert other.inputs_swapped == UNEVEN


def test_no_counts_prove_nothing():
    for claim in CLAIMS:
        nothing = Bound(NO_COUNTS, claim, 0.01)
        assert nothing.lower == nothing.eps_clopper_pearson == -math.inf
        assert nothing.intervals == ((0.0, 1.0), (0.0, 1.0))
        assert nothing.p_value == nothing.shown_p_value() == 1.0
        assert not nothing.delta_lower


def test_counts_show_less_than_unlucky_ones_once_in_a_hundred_times():
    """By the loss that their frequencies show, over draws of the law that they are made of."""
    rng, n, (p1, p2) = np.random.default_rng(1), 2_000, (0.5, 0.3)
    least = unlucky_counts(p1, n, p2, n)
    losses = np.log(rng.binomial(n, p1, 20_000) / rng.binomial(n, p2, 20_000))
    assert np.mean(losses < math.log(least.c1 / least.c2)) == pytest.approx(0.01, abs=0.006)


def test_the_resolution_is_where_unlucky_counts_just_refute():
    n, claim = 2_000, ApproximateDP(0.5)
    at = EventTest(claim).resolution(Counts(1_000, n, 500, n), 0.05)
    for share, refuted in ((0.98, False), (1.005, True)):
        seen = unlucky_counts(0.5, n, 0.5 * math.exp(-share * at), n)
        assert EventTest(claim).refutes(seen, 0.05) == refuted


def test_a_fixed_c_limits_what_can_be_shown_beside_a_delta():
    counts = Counts(900, 10_000, 100, 10_000)
    claims = [ApproximateDP(eps, 0.001) for eps in (0.5, 1.0, 4.6)]
    caught = [PublishedTest(claim).resolution(counts, 0.05, c=0.01) for claim in claims]
    assert 0.5 < caught[0] < caught[1] < 2
    assert math.isinf(caught[2])
