"""What was traced is held against real outputs: correct traces pass, wrong ones do not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from exact import call_of
from test_analytic_linear import TRACED
from test_analytic_ways import fresh_answer, released, sparse_vector

from benchmarks.mechanisms import histogram, one_time_rappor, rappor
from pytest_dp.known.agreement import evidence_against
from pytest_dp.known.outcomes import outcomes_of
from pytest_dp.randomness.laws import GEOMETRIC, Law
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.deadline import Deadline

pytestmark = pytest.mark.slow

REFUTED = math.log(1_000)


def outputs(mechanism, data, count=3_000, seed=1):
    rng = np.random.default_rng(seed)
    return [mechanism(data, rng=rng) for _ in range(count)]


def traced(mechanism, data):
    return outcomes_of(call_of(mechanism), data, Deadline(20.0))


def geometric(x, rng):
    return x + rng.geometric(0.3) - rng.geometric(0.3)


def gaussian_sums(x, rng):
    return np.array([[1, 1, 0], [0, 1, 1]]) @ rng.normal(size=3) + x


def dependent(x, rng):
    noisy = x + rng.laplace(size=2)
    return [*noisy, noisy.sum()]


def both_coins(x, rng):
    first, second = rng.random(2) < 0.3
    return first, second ^ (rng.random() < 0.5 + x)


def clipped(x, rng):
    return max(0.0, x + rng.laplace())


def rounded_too(x, rng):
    return [round(x + rng.laplace()), bool(rng.choice(2, p=[0.25, 0.75])), x + rng.laplace()]


KINDS = [
    (rounded_too, 1),
    *((mechanism, [0.0, 1.0, 2.0, 3.0]) for mechanism in TRACED),
    (geometric, 4),
    (gaussian_sums, 1),
    (dependent, 2),
    (both_coins, 0.25),
    (sparse_vector, [0, 1, 2]),
    (fresh_answer, [1, 0, 2]),
    (one_time_rappor, 3),
    (rappor, 3),
]


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("mechanism", "data"), KINDS, ids=lambda each: getattr(each, "__name__", "")
)
def test_real_outputs_agree(mechanism, data):
    assert evidence_against(traced(mechanism, data), outputs(mechanism, data)) < REFUTED


def shared_draw(x, rng):
    return [x + rng.laplace()] * 2


def constant(x, rng):
    return [x, x]


def dependent_signs(x, rng):
    one, other = rng.laplace(size=2)
    return [x + one, x + abs(other) * np.sign(one)]


def vector(x, rng):
    return [x + rng.laplace(), x + rng.laplace()]


def wider(x, rng):
    return [x + rng.laplace(scale=1.2), x + rng.laplace()]


def moved(x, rng):
    return [x + rng.laplace(), x + 0.15 + rng.laplace()]


def now_and_then_nothing(x, rng):
    return None if rng.random() < 0.001 else vector(x, rng)


@pytest.mark.parametrize(
    "other", [shared_draw, constant, dependent_signs, wider, moved, now_and_then_nothing]
)
def test_other_outputs_do_not(other):
    assert evidence_against(traced(vector, 1), outputs(other, 1, 6_000)) >= REFUTED


def test_other_coins_do_not():
    def coins(x, rng):
        return rng.random(4) < 0.3

    def alike(x, rng):
        return rng.random(4) < 0.35

    assert evidence_against(traced(coins, 0), outputs(coins, 0)) < REFUTED
    assert evidence_against(traced(coins, 0), outputs(alike, 0)) >= REFUTED


def test_other_rounded_draws_do_not():
    def wider(x, rng):
        return [round(x + rng.laplace(scale=1.5)), *rounded_too(x, rng)[1:]]

    assert evidence_against(traced(rounded_too, 1), outputs(wider, 1)) >= REFUTED


def test_other_ways_do_not():
    def sooner(answers, rng):
        return sparse_vector(answers, rng, scale=1.0)

    assert evidence_against(traced(sparse_vector, [0, 0, 0]), outputs(sooner, [0, 0, 0])) >= REFUTED


def test_whole_numbers_are_checked():
    (known,) = traced(geometric, 4)
    laws = [replace(law, parameter=0.6) for law in known.laws]
    assert laws[0] == Law(GEOMETRIC, 0.6)
    wrong = replace(known, laws=laws)
    assert evidence_against([wrong], outputs(geometric, 4)) >= REFUTED
    assert evidence_against([known], [0.5]) == math.inf


def three_draws(x, rng):
    return x + rng.laplace() + rng.laplace() + rng.uniform()


def rare(x, rng):
    noise = rng.laplace()
    return noise if noise > 12 or x else None


def test_without_closed_form_by_simulation():
    for mechanism, data in ((three_draws, 1), (released, [1, 0, 1]), (clipped, 0.3)):
        assert evidence_against(traced(mechanism, data), outputs(mechanism, data)) < REFUTED
    moved = [value + 0.4 for value in outputs(three_draws, 1)]
    assert evidence_against(traced(three_draws, 1), moved) >= REFUTED
    other = outputs(released, [1, 1, 1])
    assert evidence_against(traced(released, [1, 0, 1]), other) >= REFUTED


def test_what_is_too_rare_to_simulate_is_refused():
    with pytest.raises(CannotInstrument, match="too rarely"):
        evidence_against(traced(rare, 0), [*outputs(rare, 0, 100), *[12.5] * 20])


def test_e_values_of_correct_traces():
    known = traced(lambda data, rng: histogram(data, 1.0, rng), [1, 2])
    found = [
        math.exp(
            evidence_against(
                known, outputs(lambda d, rng: histogram(d, 1.0, rng), [1, 2], 60, seed)
            )
        )
        for seed in range(100)
    ]
    assert np.mean(found) < 1 + 3 * np.std(found) / 10
