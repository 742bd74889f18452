"""What counts on held-out samples prove: at the level that is asked for, and no other."""

from __future__ import annotations

import math

import pytest

from pytest_dp.evidence import clopper_pearson, combined, paired, ratio
from pytest_dp.evidence.counts import (
    NO_COUNTS,
    Bound,
    Counts,
    as_published,
    classical,
    resolution,
    sharp,
)

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


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@pytest.mark.parametrize(("prove", "counts"), PROOFS)
def test_a_claim_is_refuted_exactly_if_it_is_below_the_bound(prove, counts, alpha):
    bound = prove("event", counts, 0.1, alpha).eps_lower
    assert 0 < bound < math.log(620 / 240)
    assert prove("event", counts, bound - 1e-3, alpha).p_value <= alpha
    assert prove("event", counts, bound + 1e-3, alpha).p_value > alpha
    assert prove("event", counts, 0.1, alpha / 10).eps_lower < bound


def test_each_proof_is_by_the_bound_of_its_name():
    assert sharp("", APART, 0.1, 0.01).eps_lower == ratio.eps_lower(620, 1_000, 240, 1_000, 0.01)
    assert sharp("", IN_PAIRS, 0.1, 0.01).eps_lower == paired.eps_lower(230, 390, 10, 0.01)
    published = clopper_pearson.eps_lower(620, 1_000, 240, 1_000, 0.01)
    assert as_published("", APART, 0.1, 0.01).eps_lower == published
    assert classical("", APART, 0.1, 0.01).eps_lower == combined.eps_lower(620, 240, 1_000, 0.01)


@pytest.mark.parametrize("counts", [APART, UNEVEN, IN_PAIRS])
def test_turned_around_twice_is_the_same(counts):
    other = counts.swapped()
    assert other.four == (*counts.four[2:], *counts.four[:2])
    assert other.equal == counts.equal[::-1]
    both, first, second = counts.in_pairs
    assert other.in_pairs == (both, second, first)
    assert other.swapped() == counts


@pytest.mark.parametrize(("prove", "counts"), PROOFS)
def test_the_likelier_side_is_the_first(prove, counts):
    assert prove("event", counts.swapped(), 0.1, 0.01).loss[1] < 0
    if prove is not classical:  # which looks both ways
        assert prove("event", counts.swapped(), 0.1, 0.01).eps_lower <= 0


def test_no_counts_prove_nothing():
    nothing = Bound("event", NO_COUNTS, 0.01)
    assert nothing.eps_lower == nothing.eps_clopper_pearson == -math.inf
    assert nothing.intervals == ((0.0, 1.0), (0.0, 1.0))
    assert nothing.p_value == nothing.shown_p_value(1.0) == 1.0


def test_what_pairs_would_have_shown_follows_the_claim_and_their_number():
    def shown(eps, times=1):
        c1, c2, both, n = (times * count for count in (500, 300, 250, 1_000))
        return resolution(Counts(c1, n, c2, n, (c1, c2), n, both), eps, 0.05)

    assert 0.5 < shown(0.5) < shown(0.7) < shown(0.9) < 2.0
    assert 0.5 < shown(0.5, times=16) < shown(0.5, times=4) < shown(0.5)
