"""Lines to blame: each kind where it holds, and a twin in which it must not be said."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from pytest_dp.blame import blamed
from pytest_dp.privacy import ApproximateDP, ZeroConcentratedDP
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.copies import Pristine

HERE = Path(__file__)
ROWS, FEWER = [3, 5, 9, 2], [3, 5, 9]


def look(mechanism, pair=(ROWS, FEWER), claim=None, lower=1.2, **params):
    takes_rng = "rng" in inspect.signature(mechanism).parameters
    pristine = Pristine((mechanism, params))
    call = Call(mechanism, params, "rng" if takes_rng else None, pristine=pristine)
    return blamed(call, pair, claim or ApproximateDP(1.0), lower, 3.0, HERE.parents[2])


def marked(mechanism):
    """The line with the mark."""
    lines, first = inspect.getsourcelines(mechanism)
    return first + next(i for i, line in enumerate(lines) if "# here" in line)


def half_the_noise(data, rng):
    return {"n": len(data) + rng.laplace(scale=0.5), "m": 3}  # here


def a_seed(data):
    rng = np.random.default_rng(7)  # here
    return len(data) + rng.laplace(scale=1.0)


def no_noise(data, rng):
    count = len(data)  # here
    mean = sum(min(x, 9) for x in data) / 10 + rng.laplace()
    return count, mean


def rounded_noise(data, rng):
    return sum(data) / 7 + round(rng.laplace(scale=10.0))  # here


def one_draw(data, rng):
    noise = rng.laplace(scale=9)  # here
    return len(data) + noise, sum(data) + noise


def scale_of_data(data, rng):
    scale = 1 + max(data)
    return len(data) + rng.laplace(scale=scale)  # here


def true_size(data, rng):
    total = sum(data) + rng.laplace(scale=9.0)  # here
    return total / len(data)


def bounded(data, rng):
    return len(data) + rng.uniform(-10, 10)  # here


def geometric(data, rng):
    return len(data) + rng.geometric(0.9) - rng.geometric(0.9)  # here


CASES = [
    (half_the_noise, "too little noise", "output['n'] moves by 1.0 between D and D', and all its"),
    (a_seed, "seeded", "the generator is seeded with 7 here"),
    (no_noise, "no noise", "output[0] depends on no random draw: it is 4.0 on D and 3.0 on D'"),
    (rounded_noise, "coarse noise", "only moves output by whole numbers"),
    (one_draw, "shared noise", "output[0] and output[1] share the draw rng.laplace(scale=9)"),
    (scale_of_data, "noise depends on data", "the scale of rng.laplace here is 10.0 on D and 6.0"),
    (true_size, "noise depends on data", "counts 0.25 times in output on D, and 0.3333 times"),
    (bounded, "too little noise", "outputs"),
    (geometric, "too little noise", "a loss of 2.303 for 1.0 claimed"),
]


@pytest.mark.parametrize(("mechanism", "kind", "said"), CASES, ids=[c[0].__name__ for c in CASES])
def test_the_line_is_named(mechanism, kind, said):
    pair = ([3, 5, 9], [3, 5]) if mechanism is scale_of_data else (ROWS, FEWER)
    (one,) = look(mechanism, pair)
    assert one.kind == kind
    assert said in one.message
    assert one.place == f"tests/unit/test_blame.py:{marked(mechanism)}"
    assert one.function == mechanism.__name__


def enough_noise(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def rounded_answer(data, rng):
    return round(sum(data) / 7 + rng.laplace(scale=10.0))


def two_draws(data, rng):
    return len(data) + rng.laplace(scale=9), sum(data) + rng.laplace(scale=9)


def told_twice(data, rng):
    noisy = len(data) + rng.laplace(scale=1.0)
    return noisy, round(noisy), 2 * noisy


def noisy_size(data, rng):
    total = sum(data) + rng.laplace(scale=18.0)
    return total / max(len(data) + rng.laplace(scale=2.0), 1)


def always_the_same(data, rng):
    return {"version": 3, "n": len(data) + rng.laplace()}


@pytest.mark.parametrize(
    "mechanism",
    [enough_noise, rounded_answer, two_draws, told_twice, noisy_size, always_the_same],
)
def test_nothing_is_said_where_nothing_holds(mechanism):
    assert look(mechanism) == ()


def by_parameter(data, rng, epsilon):
    return len(data) + rng.laplace(scale=1 / epsilon)


def test_a_claim_below_what_the_code_is_written_for_blames_no_line():
    assert look(by_parameter, epsilon=2.0, lower=1.9) == ()
    (one,) = look(by_parameter, epsilon=1.0, claim=ApproximateDP(0.5), lower=1.5)
    assert "a loss of 1.0 for 0.5 claimed" in one.message


def gaussian(data, rng):
    return len(data) + rng.normal(scale=0.5)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (ZeroConcentratedDP(1.0), "rho = 2.0 for 1.0 claimed"),
        (ApproximateDP(1.0, 1e-6), "delta = 0.51 at eps = 1.0 for 1e-06 claimed"),
        (ApproximateDP(1.0), "Gaussian noise keeps no eps without a delta"),
    ],
)
def test_gaussian_noise_in_the_words_of_the_claim(claim, said):
    (one,) = look(gaussian, claim=claim)
    assert said in one.message
    assert look(gaussian, claim=ZeroConcentratedDP(2.0)) == ()
