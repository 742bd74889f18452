"""What two distributions lose, against all sets of outcomes; known mechanisms, to ten digits."""

# ruff: noqa: NPY002

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from exact import call_of, loss

from benchmarks.mechanisms import bloom_filter, one_time_rappor, rappor, truncated_geometric
from pytest_dp import audit
from pytest_dp.oracles.enumerated import (
    compare_laws,
    delta_of,
    eps_at,
    group_outputs,
    pair_probabilities,
)
from pytest_dp.oracles.enumerating import factor_laws
from pytest_dp.privacy import HockeyStick
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument

RNG = np.random.default_rng(16)


def random_pair(outcomes, residual=0.0, disjoint=False):
    made = []
    for side in range(2):
        weights = RNG.dirichlet(np.full(outcomes, 0.7)) * (1 - residual)
        if disjoint and side:
            weights[0] = 0.0
        kept = [k for k in range(outcomes) if weights[k] > 0]
        made.append(group_outputs(kept, [float(weights[k]) for k in kept], residual, 0.0))
    return pair_probabilities(*made)


def sets(pair):
    for size in range(len(pair.p) + 1):
        for chosen in itertools.combinations(range(len(pair.p)), size):
            yield pair.p[list(chosen)].sum(), pair.q[list(chosen)].sum()


@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("disjoint", [False, True])
def test_against_all_sets(delta, disjoint):
    for _ in range(8):
        pair = random_pair(6, disjoint=disjoint)
        known = eps_at(delta, pair)
        worst = 0.0
        for p, q in sets(pair):
            if p > delta + 1e-12:
                worst = max(worst, math.log((p - delta) / q) if q > 0 else math.inf)
        assert known.lower == pytest.approx(worst, abs=1e-12)
        assert known.upper == pytest.approx(worst, abs=1e-12)
        for eps in (0.0, 0.5, 2.0):
            stick = HockeyStick(eps, 0.0)
            truth = max(p - math.exp(eps) * q for p, q in sets(pair))
            lower, upper = delta_of(stick, pair)
            assert lower == pytest.approx(truth, abs=1e-12)
            assert upper == pytest.approx(truth, abs=1e-12)


def test_bounds_are_sure_wherever_the_residual_is():
    for _ in range(50):
        outcomes, residual = 5, 0.02
        pair = random_pair(outcomes, residual)
        low, stick = eps_at(0.0, pair), HockeyStick(0.3, 0.0)
        lower, upper = delta_of(stick, pair)
        for _ in range(20):
            p = pair.p + residual * RNG.dirichlet(np.full(outcomes, 0.2))
            q = pair.q + residual * RNG.dirichlet(np.full(outcomes, 0.2))
            assert low.lower <= np.log(p / q).max() + 1e-12
            truth = np.maximum(p - math.exp(0.3) * q, 0).sum()
            assert lower - 1e-12 <= truth <= upper + 1e-12
            # What is stated is (upper, beside)-privacy.
            assert np.maximum(p - math.exp(low.upper) * q, 0).sum() <= low.extra_delta + 1e-12


def test_equal_outcomes_are_one():
    known = group_outputs([1, (2, 3), 1], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)], 0, 0.0)
    assert dict(zip(known.outcomes, known.weights, strict=True)) == {
        1: Fraction(3, 4),
        (2, 3): Fraction(1, 4),
    }


def test_an_outcome_of_one_input_alone():
    def mechanism(x, rng):
        return "only" if x and rng.random() < 0.01 else bool(rng.random() < 0.5)

    known = loss(mechanism, 0, 1)
    assert known.lower == math.inf
    # From 0 to 1, (0.5 - delta) / 0.495 and (1 - delta) / 0.99 are the candidates.
    known = loss(mechanism, 0, 1, delta=0.0100001)
    assert known.upper == pytest.approx(0.0, abs=1e-6)


def test_a_leak_of_just_delta_is_within_the_claim():
    """Though the share of the floats below 0.05 is more than 0.05 by an ulp."""

    def leaks(x, rng):
        return x if rng.random() < 0.05 else None

    result = audit(leaks, eps=0.5, delta=0.05, pairs=[(0, 1)], n_jobs=1, seed=1, max_samples=2_000)
    assert (result.strength, result.estimate.value) == ("exact", 0.0)


EPS = 1.5


def kept(k):
    """How often randomised response among so many values tells the truth."""
    return math.exp(EPS) / (math.exp(EPS) + k - 1)


def uniform_compared(x, rng, k):
    if rng.random() < kept(k):
        return x
    others = [v for v in range(k) if v != x]
    return others[int(rng.random() * (k - 1))]


def endless_loop(x, k):  # as pure-ldp writes it
    other = x
    while other == x:
        other = np.random.randint(0, k)
    return x if np.random.rand() < kept(k) else other


def optimised_unary(x, k):  # as pure-ldp writes it
    q = 1 / (math.exp(EPS) + 1)
    vector = np.random.choice([1, 0], size=k, p=[q, 1 - q])
    vector[x] = 1 if random.random() < 0.5 else 0
    return vector


@pytest.mark.parametrize(
    ("mechanism", "k"), [(uniform_compared, 64), (endless_loop, 4), (optimised_unary, 5)]
)
def test_local_mechanisms(mechanism, k):
    known = loss(mechanism, 0, 1, k=k)
    assert known.lower <= known.upper
    assert (known.lower, known.upper) == pytest.approx((EPS, EPS), abs=1e-10)
    assert (0 < known.extra_delta < 1e-11) == (mechanism is endless_loop)


def test_geometric_noise_by_one_of_many_whole_numbers():
    """Compared with a table: as in DPEST's evaluation."""
    known = loss(truncated_geometric, 0, 1, eps=0.5)
    assert known.upper == pytest.approx(math.log1p(2.0**-2), rel=1e-9)


def law(mechanism, data=0):
    return factor_laws(call_of(mechanism), data, Deadline(60.0))


def pair(mechanism, one=0, other=1):
    return compare_laws(law(mechanism, one), law(mechanism, other))


def four_bits(x, rng):
    """Two bits depend on each other."""
    first = bool(x) ^ (rng.random() < 0.2)
    second = first if rng.random() < 0.3 else bool(x)
    return {"a": [first, second], "b": (int(rng.integers(3)) + x) % 3, "c": "always"}


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_losses_are_those_of_all_combinations(delta):
    found, _ = pair(four_bits).eps_at(delta)
    assert found == pytest.approx(loss(four_bits, 0, 1, delta).upper, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "kept"),
    [(one_time_rappor, 0.525), (rappor, 0.625 * 0.55 + 0.375 * 0.45)],  # 1 is kept with .625
)
def test_bits_that_are_flipped_one_by_one(mechanism, kept):
    differ = int((bloom_filter(0) != bloom_filter(1)).sum())
    value, error = pair(mechanism).eps_at(0.0)
    assert value == pytest.approx(differ * math.log(kept / (1 - kept)), rel=1e-9)
    assert error < 1e-9


def running_parity(x, rng):
    """Each bit depends on all before it."""
    return np.cumsum(rng.random(20) < 0.3 + x / 10) % 2


def by_first(x, rng):
    """How likely the others are depends on the first."""
    first = rng.random() < 0.5
    return [first, *(rng.random(5) < (0.3 if first else 0.6))]


def now_and_then(x, rng):
    """The second bit is the first, unless a draw that is not released says otherwise."""
    linked, first = rng.integers(5) == 0, bool(rng.random() < 0.5)
    return [first, first and bool(linked)]


def as_they_are_if_unanimous(x, rng):
    """What is likely shows the dependence: all 20 noisy answers are 1 in .12 of the runs."""
    answers = [x] + [1] * 19
    noisy = [answer if rng.random() < 0.9 else 1 - answer for answer in answers]
    return answers if all(noisy) else noisy


def as_they_are_if_nobody(x, rng):
    noisy = [int(rng.random() < 0.1) for _ in range(20)]
    return noisy if any(noisy) else [1 - x] + [0] * 19


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [by_first, running_parity, now_and_then, as_they_are_if_unanimous, as_they_are_if_nobody],
)
def test_outputs_without_independent_parts_are_refused(mechanism):
    with pytest.raises(CannotInstrument):
        law(mechanism)
