"""What counts on held-out samples prove: at the level that is asked for, and no other."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.optimize import brentq

from pytest_dp.evidence import clopper_pearson
from pytest_dp.evidence.counts import (
    NO_COUNTS,
    Bound,
    Counts,
    as_published,
    classical,
    resolution,
    sharp,
)
from pytest_dp.evidence.event_test import Apart, InPairs, event_test
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    PrivacyProfile,
    RenyiDP,
    ZeroConcentratedDP,
)

pytestmark = pytest.mark.slow

APART = Counts(620, 1_000, 240, 1_000, (620, 240), 1_000)
UNEVEN = Counts(310, 500, 700, 3_000, (310, 115), 500)
IN_PAIRS = Counts(620, 1_000, 240, 1_000, (620, 240), 1_000, both=230)
PROOFS = [
    (sharp, APART),
    (sharp, UNEVEN),
    (sharp, IN_PAIRS),
    (as_published, APART),
    (as_published, UNEVEN),
    (classical, APART),
]


PURE = ApproximateDP(0.1)
CLAIMS = [
    PURE,
    ApproximateDP(0.1, 0.01),
    GaussianDP(0.1),
    ZeroConcentratedDP(0.01),
    RenyiDP(((2.0, 0.02),)),
    PrivacyProfile(GaussianDP(0.1).delta_at),
]


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@pytest.mark.parametrize(("prove", "counts"), PROOFS)
def test_a_claim_is_refuted_exactly_if_it_is_below_the_bound(prove, counts, alpha):
    bound = prove("event", counts, PURE, alpha).lower
    assert 0 < bound < math.log(620 / 240)
    assert prove("event", counts, PURE.at(bound - 1e-3), alpha).p_value <= alpha
    assert prove("event", counts, PURE.at(bound + 1e-3), alpha).p_value > alpha
    assert prove("event", counts, PURE, alpha / 10).lower < bound


@pytest.mark.spot(3)
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("claim", CLAIMS[1:5], ids=str)
@pytest.mark.parametrize(("prove", "counts"), PROOFS)
def test_claims_of_other_kinds_are_refuted_if_the_bound_exceeds_them(prove, counts, claim):
    alpha = 1e-3
    best = float(claim.shown_by(counts.c1 / counts.n1, counts.c2 / counts.n2))
    answers = []
    for share in (0.05, 0.4, 0.7, 1.0):
        found = prove("event", counts, claim.at(share * best), alpha)
        refuted = found.lower > share * best
        assert (found.p_value <= alpha) == refuted
        answers.append(refuted)
        assert found.lower < best
        assert found.loss[0] < best < found.loss[1]
        assert prove("event", counts, claim.at(share * best), alpha / 10).lower < found.lower
    assert answers[0]
    assert not answers[-1]


def test_a_profile_is_refuted_as_the_guarantee_that_it_describes():
    mu, profile = CLAIMS[2], CLAIMS[5]
    assert sharp("event", APART, profile, 1e-3).lower > 2
    assert sharp("event", APART, profile, 1e-3).p_value < 1e-3
    near = PrivacyProfile(mu.at(1.2).delta_at)
    for counts in (APART, IN_PAIRS):
        p, exact = (event_test(claim).p_value(counts.seen, 1e-3) for claim in (near, mu.at(1.2)))
        assert p == pytest.approx(exact, rel=0.02)
        assert p > 1e-3


def test_delta_at_the_claimed_eps():
    claim = ApproximateDP(0.5, 0.01)
    found = sharp("event", APART, claim, 1e-3)
    low, high = found.intervals[0][0], found.intervals[1][1]
    assert found.delta_lower == pytest.approx(low - math.exp(0.5) * high)
    assert 0.01 < found.delta_lower < 0.62 - math.exp(0.5) * 0.24
    assert sharp("event", APART.swapped(), claim, 1e-3).delta_lower == 0.0
    assert sharp("event", APART, GaussianDP(1.0), 1e-3).delta_lower is None


def test_each_proof_is_by_the_bound_of_its_name():
    for counts, seen in (
        (APART, Apart(620, 1_000, 240, 1_000)),
        (IN_PAIRS, InPairs(230, 390, 10, 1_000)),
    ):
        assert sharp("", counts, PURE, 0.01).lower == event_test(PURE).lower(seen, 0.01)
    for claim in CLAIMS[:2]:
        published = clopper_pearson.eps_lower(620, 1_000, 240, 1_000, 0.01, claim.delta)
        assert as_published("", APART, claim, 0.01).lower == published
        assert sharp("", APART, claim, 0.01).eps_clopper_pearson == published
    assert (
        classical("", APART, PURE, 0.01).lower
        == event_test(PURE).classical(620, 240, 1_000, 0.01)[0]
    )


@pytest.mark.parametrize("claim", CLAIMS[:5], ids=str)
def test_classical_looks_both_ways(claim):
    one, other = (classical("", c, claim, 0.01) for c in (APART, APART.swapped()))
    assert one.lower == other.lower > claim.claimed
    assert one.p_value == other.p_value <= 0.01
    assert one.alpha == other.alpha == 0.005
    assert other.counts == APART.swapped()


@pytest.mark.parametrize("counts", [APART, UNEVEN, IN_PAIRS])
def test_turned_around_twice_is_the_same(counts):
    other = counts.swapped()
    assert other.four == (*counts.four[2:], *counts.four[:2])
    assert other.equal == counts.equal[::-1]
    assert other.seen == counts.seen.swapped
    assert other.swapped() == counts


@pytest.mark.spot(2)
@pytest.mark.parametrize(("prove", "counts"), PROOFS)
def test_the_likelier_side_is_the_first(prove, counts):
    for claim in CLAIMS[:4]:
        assert prove("event", counts.swapped(), claim, 0.01).loss[1] < 0
        if prove is not classical:  # which looks both ways
            assert prove("event", counts.swapped(), claim, 0.01).lower <= 0


def test_no_counts_prove_nothing():
    for claim in CLAIMS:
        nothing = Bound("event", NO_COUNTS, claim, 0.01)
        assert nothing.lower == nothing.eps_clopper_pearson == -math.inf
        assert nothing.intervals == ((0.0, 1.0), (0.0, 1.0))
        assert nothing.p_value == nothing.shown_p_value() == 1.0
        assert not nothing.delta_lower


def test_what_pairs_would_have_shown_follows_the_claim_and_their_number():
    def caught(eps, times=1):
        c1, c2, both, n = (times * count for count in (500, 300, 250, 1_000))
        return resolution(Counts(c1, n, c2, n, (c1, c2), n, both), ApproximateDP(eps), 0.05)

    assert 0.5 < caught(0.5) < caught(0.7) < caught(0.9) < 2.0
    assert 0.5 < caught(0.5, times=16) < caught(0.5, times=4) < caught(0.5)


@pytest.mark.spot(3)
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("claim", CLAIMS[1:5], ids=str)
@pytest.mark.parametrize("both", [None, 240, 120])
def test_what_other_claims_would_have_shown(claim, both):
    """It shrinks towards the claim with more samples, and an event like that is in fact caught."""
    found = []
    for times in (1, 10, 100):
        c1, c2, n = 500 * times, 450 * times, 1_000 * times
        joint = None if both is None else both * times
        counts = Counts(c1, n, c2, n, (c1, c2), n, joint)
        found.append(resolution(counts, claim, 0.05))
        if math.isfinite(found[-1]):
            p2 = float(brentq(lambda q, r=found[-1]: claim.shown_by(0.5, q) - r, 1e-9, 0.4999))
            hits = round(n * p2)
            together = None if both is None else round(min(both / 450, 1) * hits)
            caught = replace(counts, c2=hits, equal=(c1, hits), both=together)
            assert sharp("", caught, claim, 0.05).lower > claim.claimed
    assert claim.claimed < found[2] < found[1] < found[0]
    assert math.isinf(resolution(Counts(0, 10, 0, 10, (0, 0), 10), claim, 0.05))


def test_a_fixed_c_limits_what_can_be_shown_beside_a_delta():
    counts = Counts(900, 10_000, 100, 10_000, (900, 100), 10_000)
    caught = [resolution(counts, ApproximateDP(eps, 0.001), 0.05, c=0.01) for eps in (0.5, 1.0)]
    assert 0.5 < caught[0] < caught[1] < 2
    assert math.isinf(resolution(counts, ApproximateDP(4.6, 0.001), 0.05, c=0.01))
