"""What counts on held-out samples prove: at the level that is asked for, and no other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp.privacy import ApproximateDP, GaussianDP, PrivacyProfile, RenyiDP
from pytest_dp.statistics.counts import NO_COUNTS, Counts
from pytest_dp.statistics.proofs import CLASSICAL, PUBLISHED, SHARP, Bound, unlucky

pytestmark = pytest.mark.slow

APART = Counts(620, 1_000, 240, 1_000)
UNEVEN = Counts(310, 500, 700, 3_000)
PROOFS = [(SHARP, APART), (PUBLISHED, UNEVEN), (CLASSICAL, APART)]
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
    bound = proof.bound(counts, PURE, alpha).lower
    assert 0 < bound < math.log(620 / 240)
    for eps, refuted in ((bound - 1e-3, True), (bound + 1e-3, False)):
        assert (proof.bound(counts, PURE.at(eps), alpha).p_value <= alpha) == refuted
        assert proof.refutes(counts, PURE.at(eps), alpha) == refuted
    assert proof.bound(counts, PURE, alpha / 10).lower < bound


def test_delta_at_the_claimed_eps():
    claim = ApproximateDP(0.5, 0.01)
    found = SHARP.bound(APART, claim, 1e-3)
    low, high = found.intervals[0][0], found.intervals[1][1]
    assert found.delta_lower == pytest.approx(low - math.exp(0.5) * high)
    assert 0.01 < found.delta_lower < 0.62 - math.exp(0.5) * 0.24
    assert SHARP.bound(APART.swapped, claim, 1e-3).delta_lower == 0.0
    assert SHARP.bound(APART, GaussianDP(1.0), 1e-3).delta_lower is None


def test_the_classical_p_value_is_valid_and_agrees_with_its_bound():
    runs = 12
    every = [Counts(a, runs, b, runs) for a in range(runs + 1) for b in range(runs + 1)]
    hits = np.arange(runs + 1)
    for eps in (0.1, 1.0, 3.0):
        claim = ApproximateDP(eps)
        p_values = np.array([CLASSICAL.proved(c, claim, 0.5)[1] for c in every])
        for p2 in (0.01, 0.1, 0.3, math.exp(-eps)):
            for p1 in (min(math.exp(eps) * p2, 1.0), p2, math.exp(-eps) * p2):
                one, two = (scipy.stats.binom.pmf(hits, runs, p) for p in (p1, p2))
                chance = np.outer(one, two).ravel()
                for level in np.unique(p_values):
                    assert chance[p_values <= level].sum() <= level * (1 + 1e-9)
        for alpha in (0.3, 0.01):
            clear = np.abs(p_values - alpha) > 1e-6
            rejected = np.array([CLASSICAL.proved(c, claim, alpha)[0] for c in every]) >= eps
            assert (rejected == (p_values <= alpha))[clear].all()


def test_turned_around_twice_is_the_same():
    other = UNEVEN.swapped
    assert other.four == (*UNEVEN.four[2:], *UNEVEN.four[:2])
    assert other.swapped == UNEVEN


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
    least = unlucky(p1, n, p2, n)
    losses = np.log(rng.binomial(n, p1, 20_000) / rng.binomial(n, p2, 20_000))
    assert np.mean(losses < math.log(least.c1 / least.c2)) == pytest.approx(0.01, abs=0.006)


def test_the_resolution_is_where_unlucky_counts_just_refute():
    n, claim = 2_000, ApproximateDP(0.5)
    at = SHARP.resolution(Counts(1_000, n, 500, n), claim, 0.05)
    for share, refuted in ((0.98, False), (1.005, True)):
        seen = unlucky(0.5, n, 0.5 * math.exp(-share * at), n)
        assert SHARP.refutes(seen, claim, 0.05) == refuted


def test_a_fixed_c_limits_what_can_be_shown_beside_a_delta():
    counts = Counts(900, 10_000, 100, 10_000)
    claims = [ApproximateDP(eps, 0.001) for eps in (0.5, 1.0, 4.6)]
    caught = [PUBLISHED.resolution(counts, claim, 0.05, c=0.01) for claim in claims]
    assert 0.5 < caught[0] < caught[1] < 2
    assert math.isinf(caught[2])
