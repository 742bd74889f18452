"""Lines to blame: each kind where it holds, and a twin in which it must not be said."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from blaming import FEWER, ROWS, look, marked

from pytest_dp import audit
from pytest_dp.privacy import ApproximateDP, ZeroConcentratedDP

pytestmark = pytest.mark.slow

CASES = []


def case(kind, said, pair=(ROWS, FEWER), remedy=""):
    """What is to be told of a mechanism, and of the line with the mark."""

    def added(mechanism):
        CASES.append(pytest.param(mechanism, kind, said, pair, remedy, id=mechanism.__name__))
        return mechanism

    return added


@case("too little noise", "to hide a difference of 1.0 in output['n']. The loss is up to 2.0")
def half_the_noise(data, rng):
    return {"n": len(data) + rng.laplace(scale=0.5), "m": 3}  # here


@case("seeded", "the generator is seeded with 7 here")
def a_seed(data):
    rng = np.random.default_rng(7)  # here
    return len(data) + rng.laplace(scale=1.0)


@case("no noise", "output[0] is released without noise: it is 4.0 on D and 3.0 on D'")
def no_noise(data, rng):
    count = len(data)  # here
    mean = sum(min(x, 9) for x in data) / 10 + rng.laplace()
    return count, mean


@case("too little noise", "The loss has no bound", remedy="use noise that can give every output")
def bounded(data, rng):
    return len(data) + rng.uniform(-10, 10)  # here


@case("passing", "runs on D or D' reach this line, `return len(data)")
def gate(data, rng):
    if rng.random() < 0.2:
        return len(data)  # here
    return rng.integers(9)


@case(
    "no noise",
    "raises ZeroDivisionError: division by... in all of 200 runs. On D it has",
    ([3], []),
    remedy="return a number with noise in place of the exception",
)
def mean_of_all(data, rng):
    return sum(data) / len(data) + rng.laplace()  # here


def named_too_soon(data, rng):
    limit = 2

    found = {}
    for x in sorted(set(data)):
        noisy = data.count(x) + rng.laplace()
        if noisy > limit:  # here
            found[x] = noisy
    return found


@case("no noise", "output['n'] has no noise when it is a number: it is 4.0 on D (in")
def exact_if_many(data, rng):
    noisy = len(data) + rng.laplace()
    found = {"version": 3}
    if noisy > 3:
        found["n"] = len(data)  # here
    return found


def in_a_helper(data, rng):
    return len(data) + noise_of(rng, 0.25)  # here


def noise_of(rng, scale):
    return rng.laplace(scale=scale)


@case("shared noise", "both use the same random numbers, such as rng.laplace(scale=9)")
def one_draw(data, rng):
    noise = rng.laplace(scale=9)  # here
    return len(data) + noise, sum(data) + noise


@case("shared noise", "False, True, ... in 1", (ROWS, [4, 4, 8, 3]))
def one_threshold(data, rng):
    limit = 4 + rng.laplace()  # here
    return [x > limit for x in data]


@pytest.mark.parametrize(("mechanism", "kind", "said", "pair", "remedy"), CASES)
def test_the_line_is_named(mechanism, kind, said, pair, remedy):
    one, *_ = look(mechanism, pair)
    assert one.kind == kind
    assert said in one.message
    assert remedy in one.remedy
    assert one.place == f"tests/unit/test_blame.py:{marked(mechanism)}"
    assert one.function == mechanism.__name__


def test_where_the_noise_comes_from_is_named_as_well():
    one, called = look(in_a_helper)
    assert one.function == "noise_of"
    assert called.place == f"tests/unit/test_blame.py:{marked(in_a_helper)}"
    assert called.message == f"this line asks for the noise of line {one.line}, in noise_of"


def test_a_generator_that_is_sometimes_new_is_not_called_seeded():
    def new(data, rng):
        seed = int(rng.integers(2**32)) if rng.random() < 0.05 else 7
        return len(data) + random.Random(seed).gauss(0, 0.1)

    assert "seeded" not in [one.kind for one in look(new)]


def test_an_output_of_one_input_is_blamed_unless_delta_allows_it():
    assert "too far apart" in {one.kind for one in look(named_too_soon)}
    others = look(named_too_soon, claim=ApproximateDP(1.0, 0.2))
    assert "too far apart" not in {one.kind for one in others}


def test_more_noise_is_tried_where_nothing_else_is_known(monkeypatch):
    """The sine of a noisy number: no move of the draw undoes the difference."""

    def sine(data, rng):
        return math.sin(max(data) % 4 / 9 + rng.laplace(scale=0.002)) * (1 + len(data) / 99)

    monkeypatch.setattr("pytest_dp.explain.counted.MANY_RUNS", 200)
    pair = [3, 1], [3]
    (one,) = look(sine, pair, event=lambda output: output > 0.335)
    assert one.message.startswith(
        "with four times the noise of rng.laplace(scale=0.002) here, S comes in"
    )
    assert look(sine, pair, event=lambda output: output > -50) == ()


def test_a_failure_inside_leaves_the_violation_as_it_is(monkeypatch):
    claim = {"eps": 1.0, "pairs": [(ROWS, FEWER)], "seed": 1, "n_jobs": 1}
    whole = audit(half_the_noise, **claim)
    assert [one.kind for one in whole.blame] == ["too little noise"]

    def fails(*_):
        raise ValueError

    monkeypatch.setattr("pytest_dp.explain.runs.PairRuns.run_both", fails)
    bare = audit(half_the_noise, **claim)
    assert (bare.blame, bare.verdict, bare.e_value) == ((), "violated", whole.e_value)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: np.random.Generator.laplace(rng) + len(data),
        lambda data: len(data) + time.perf_counter_ns() % 7,
        lambda data, rng: np.full(3_000, len(data) + rng.laplace(scale=0.1)),
        lambda data, rng: len(data) + rng.laplace(scale=1.0),
    ],
    ids=["past its methods", "not by random numbers", "too long", "enough noise"],
)
def test_nothing_is_said_where_nothing_holds_or_can_be_seen(mechanism):
    assert look(mechanism) == ()


def test_a_claim_below_what_the_code_is_written_for_blames_no_line():
    def by_parameter(data, rng, epsilon):
        return len(data) + rng.laplace(scale=1 / epsilon)

    def with_half(data, rng, epsilon):
        return len(data) + rng.laplace(scale=0.5 / epsilon)

    assert look(by_parameter, epsilon=2.0, lower=1.9) == ()
    (one,) = look(with_half, epsilon=1.0, claim=ApproximateDP(0.5), lower=1.5)
    assert "The loss is up to 2.0; the claim allows 0.5" in one.message


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (ZeroConcentratedDP(1.0), "Rho is up to 2.0; the claim allows 1.0"),
        (ApproximateDP(1.0, 1e-6), "Delta is up to 0.51; the claim allows 1e-06 at eps = 1.0"),
        (ApproximateDP(1.0), "Gaussian noise keeps no eps without a delta"),
    ],
)
def test_gaussian_noise_in_the_words_of_the_claim(claim, said):
    def gaussian(data, rng):
        return len(data) + rng.normal(scale=0.5)

    (one,) = look(gaussian, claim=claim)
    assert said in one.message
    assert look(gaussian, claim=ZeroConcentratedDP(2.0)) == ()


@pytest.mark.parametrize(("share", "is_told"), [(0.5, False), (0.76, False), (0.9, True)])
def test_a_value_that_comes_too_often_is_counted_with_room_for_chance(monkeypatch, share, is_told):
    """0.76 is 1.5 times 0.5, and 600 runs cannot tell it from 1.22 times with room for chance."""

    def coin(data, rng):
        return bool(rng.random() < (0.9 if len(data) > 3 else 0.5))

    def count(runs, outcomes, many):
        yield 0, (("output",), (("bool", True),)), round(share * many), many // 2

    monkeypatch.setattr("pytest_dp.explain.counted._count_outcomes", count)
    blame = look(coin, claim=ApproximateDP(0.2))
    assert ("too far apart" in [one.kind for one in blame]) is is_told
