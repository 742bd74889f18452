"""What was traced is held against real outputs: correct traces pass, wrong ones do not."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

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


def vector(x, rng, scale=1.0, moved=0.0):
    return [x + rng.laplace(scale=scale), x + moved + rng.laplace()]


def dependent_signs(x, rng):
    one, other = rng.laplace(size=2)
    return [x + one, x + abs(other) * np.sign(one)]


def coins(x, rng, p=0.3):
    return rng.random(4) < p


OTHERS = {
    "a shared draw": (vector, 1, lambda x, rng: [x + rng.laplace()] * 2),
    "a constant": (vector, 1, lambda x, rng: [x, x]),
    "dependent signs": (vector, 1, dependent_signs),
    "wider": (vector, 1, partial(vector, scale=1.2)),
    "moved": (vector, 1, partial(vector, moved=0.15)),
    "now and then nothing": (
        vector,
        1,
        lambda x, rng: None if rng.random() < 0.001 else vector(x, rng),
    ),
    "other coins": (coins, 0, partial(coins, p=0.35)),
    "other rounded draws": (
        rounded_too,
        1,
        lambda x, rng: [round(x + rng.laplace(scale=1.5)), *rounded_too(x, rng)[1:]],
    ),
    "other ways": (sparse_vector, [0, 0, 0], partial(sparse_vector, scale=1.0)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_outputs_do_not(name):
    mechanism, data, other = OTHERS[name]
    assert evidence_against(traced(mechanism, data), outputs(mechanism, data)) < REFUTED
    assert evidence_against(traced(mechanism, data), outputs(other, data, 6_000)) >= REFUTED


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
