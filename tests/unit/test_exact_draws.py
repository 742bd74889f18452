"""Whatever is drawn has the distribution that it should have, and the type."""

# ruff: noqa: NPY002

from __future__ import annotations

import math
import os
import random
import secrets
from typing import NamedTuple

import numpy as np
import pytest
import scipy
from exact import distribution, probabilities

from pytest_dp.oracles import branching

TOLERANCE = 1e-12


def evenly(values):
    return {value: 1 / len(values) for value in values}


SAMPLE = [0, 1, 2]
ORDERS = [(a, b, c) for a in SAMPLE for b in SAMPLE for c in SAMPLE if len({a, b, c}) == 3]


def shuffled(shuffle):
    values = [0, 1, 2]
    shuffle(values)
    return tuple(values)


DISCRETE = {
    "integers": (lambda x, rng: rng.integers(3), evenly(range(3))),
    "choice": (lambda x, rng: rng.choice(["a", "b"]), evenly(["a", "b"])),
    "choice(p)": (lambda x, rng: rng.choice(3, p=[0.5, 0.3, 0.2]), {0: 0.5, 1: 0.3, 2: 0.2}),
    "choice without replacement": (
        lambda x, rng: tuple(rng.choice(3, 3, replace=False).tolist()),
        evenly(ORDERS),
    ),
    "binomial": (
        lambda x, rng: rng.binomial(5, 0.3),
        {k: math.comb(5, k) * 0.3**k * 0.7 ** (5 - k) for k in range(6)},
    ),
    "multinomial": (
        lambda x, rng: tuple(rng.multinomial(2, [0.2, 0.3, 0.5]).tolist()),
        {
            (a, b, 2 - a - b): math.comb(2, a)
            * math.comb(2 - a, b)
            * 0.2**a
            * 0.3**b
            * 0.5 ** (2 - a - b)
            for a in range(3)
            for b in range(3 - a)
        },
    ),
    "permutation": (lambda x, rng: tuple(rng.permutation(3).tolist()), evenly(ORDERS)),
    "shuffle": (lambda x, rng: shuffled(rng.shuffle), evenly(ORDERS)),
    "legacy bytes": (lambda x: np.random.bytes(1)[0] % 4, evenly(range(4))),
    "random.randrange": (lambda x: random.randrange(0, 9, 3), evenly([0, 3, 6])),
    "random.choices": (lambda x: random.choices([5, 6], [1, 3])[0], {5: 0.25, 6: 0.75}),
    "random.getrandbits": (lambda x: random.getrandbits(3), evenly(range(8))),
    "the highest bits": (lambda x: random.getrandbits(50) >> 48, evenly(range(4))),
    "secrets.randbelow": (lambda x: secrets.randbelow(10**9) < 10**8, {True: 0.1, False: 0.9}),
    "os.urandom": (lambda x: os.urandom(1)[0] & 3, evenly(range(4))),
    "a seeded one": (lambda x: np.random.default_rng(4).integers(2), evenly([0, 1])),
    "an index": (lambda x, rng: "abcd"[int(rng.random() * 4)], evenly("abcd")),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws(name):
    mechanism, truth = DISCRETE[name]
    known = probabilities(mechanism)
    assert {key: float(weight) for key, weight in known.items()} == pytest.approx(
        truth, abs=TOLERANCE
    )


def of_law(law):
    return {k: float(law.cdf(k + 1) - law.cdf(k)) for k in range(-4, 5)}


CONTINUOUS = {
    "uniform": (lambda rng: rng.uniform(-2, 3), lambda: scipy.stats.uniform(-2, 5)),
    "laplace": (lambda rng: rng.laplace(0.5, 1.5), lambda: scipy.stats.laplace(0.5, 1.5)),
    "normal": (lambda rng: rng.normal(0.5, 1.5), lambda: scipy.stats.norm(0.5, 1.5)),
    "exponential": (lambda rng: rng.exponential(1.5), lambda: scipy.stats.expon(scale=1.5)),
    "gumbel": (lambda rng: rng.gumbel(0.5, 1.5), lambda: scipy.stats.gumbel_r(0.5, 1.5)),
    "logistic": (lambda rng: rng.logistic(0.5, 1.5), lambda: scipy.stats.logistic(0.5, 1.5)),
    "random.gauss": (lambda rng: random.gauss(0.5, 1.5), lambda: scipy.stats.norm(0.5, 1.5)),
    "random.expovariate": (lambda rng: random.expovariate(2), lambda: scipy.stats.expon(scale=0.5)),
    "affine": (
        lambda rng: 1 - np.float64(2.0) * rng.laplace() / 4,
        lambda: scipy.stats.laplace(1, 0.5),
    ),
    "abs": (lambda rng: abs(rng.normal()), lambda: scipy.stats.halfnorm()),
    "in an array": (lambda rng: (2 * rng.laplace(size=2))[1], lambda: scipy.stats.laplace(0, 2)),
    "with parameters in an array": (
        lambda rng: rng.laplace([0, 1])[1],
        lambda: scipy.stats.laplace(1),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_rounded_down(name):
    draw, law = CONTINUOUS[name]
    for floor in (math.floor, np.floor, lambda value: value // 1):
        known = probabilities(lambda x, rng, floor=floor: int(max(min(floor(draw(rng)), 5), -5)))
        for k, probability in of_law(law()).items():
            assert float(known.get(k, 0)) == pytest.approx(probability, abs=TOLERANCE)


def test_both_tails_of_noise_that_is_rounded():
    for rounded in (round, lambda value: int(np.round(value)), lambda value: int(np.rint(value))):
        known = probabilities(lambda x, rng, rounded=rounded: rounded(rng.laplace()))
        for k in (-25, -3, 0, 3, 25):
            truth = scipy.stats.laplace.sf(abs(k) - 0.5) - scipy.stats.laplace.sf(abs(k) + 0.5)
            assert float(known[k]) == pytest.approx(truth, rel=1e-3, abs=TOLERANCE)


def test_endless_support_leaves_a_residual():
    for draw, law in (
        (lambda x, rng: rng.geometric(0.4), scipy.stats.geom(0.4)),
        (lambda x, rng: rng.poisson(2.5), scipy.stats.poisson(2.5)),
    ):
        known = distribution(draw)
        assert law.sf(max(known.outcomes)) - 1e-15 <= known.residual < 1e-11
        for k, weight in zip(known.outcomes, known.weights, strict=True):
            assert float(weight) == pytest.approx(law.pmf(k), abs=TOLERANCE)


def test_isinstance_and_equality():
    def mechanism(x, rng):
        u = rng.random()
        assert isinstance(u, float)
        return u == 2, u != 2

    assert probabilities(mechanism) == {(False, True): 1}


FUNCTIONS = {
    "clip": lambda u: np.clip(8 * u, 2, 4) >= 3,
    "absolute": lambda u: np.abs(u - 0.5) < 0.25,
    "sign": lambda u: np.sign(u - 0.25) > 0,
    "subtract": lambda u: np.float64(1.0) - u <= 0.25,
    "in an array": lambda u: (np.array([0.25, 2.0]) < u)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_that_operators_make(name):
    truth = np.mean([FUNCTIONS[name]((k + 0.5) / 4096) for k in range(4096)])
    known = probabilities(lambda x, rng: bool(FUNCTIONS[name](rng.random())))
    assert float(known[True]) == pytest.approx(truth, abs=1e-3)


def test_rare_paths_are_left_out_and_counted():
    known = distribution(lambda x, rng: "rare" if rng.random() < 1e-14 else "common")
    assert known.outcomes == ("common",)
    assert 0.9e-14 < known.residual < 1.1e-14


def test_paths_that_are_given_up_are_counted(monkeypatch):
    monkeypatch.setattr(branching, "NEGLIGIBLE", 0.3)
    known = distribution(
        lambda x, rng: "one" if rng.random() < 0.5 else [bool(rng.random() < 0.5) for _ in "ab"]
    )
    assert known.outcomes == ("one",)
    assert known.residual == 0.5


class Point(NamedTuple):
    x: float
    y: bool


class Released:
    def __init__(self, value):
        self.value = value


CONTAINERS = (
    lambda rng: [rng.integers(100) // 50],
    lambda rng: {"a": (rng.integers(100) // 50,)},
    lambda rng: Point(np.floor(2 * rng.random()), False),
    lambda rng: Released(rng.integers(100) // 50),
    lambda rng: {rng.integers(100) // 50},
    lambda rng: np.array([rng.integers(100) // 50, 1]),
)


@pytest.mark.parametrize("draw", CONTAINERS)
def test_draws_in_containers(draw):
    known = distribution(lambda x, rng: draw(rng))
    assert list(map(float, known.weights)) == [0.5, 0.5]
    kinds = {type(outcome).__name__ for outcome in known.outcomes}  # of copied classes
    assert kinds == {type(draw(np.random.default_rng(1))).__name__}
