"""Whatever is drawn has the distribution that it should have, and the type."""

from __future__ import annotations

import copy
import math
import os
import random
import secrets
import socket
import struct
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
import scipy
from exact import distribution, probabilities

from pytest_dp.oracles import branching
from pytest_dp.oracles.branching import explore_paths
from pytest_dp.running import laws
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.laws import Law

TOLERANCE = 1e-12


def evenly(values):
    return {value: 1 / len(values) for value in values}


DISCRETE = {
    "integers": (lambda x, rng: rng.integers(3), evenly(range(3))),
    "choice": (lambda x, rng: rng.choice(["a", "b"]), evenly(["a", "b"])),
    "choice(p)": (lambda x, rng: rng.choice(3, p=[0.5, 0.3, 0.2]), {0: 0.5, 1: 0.3, 2: 0.2}),
    "random.randrange": (lambda x: random.randrange(0, 9, 3), evenly([0, 3, 6])),
    "random.getrandbits": (lambda x: random.getrandbits(3), evenly(range(8))),
    "secrets.randbelow": (lambda x: secrets.randbelow(10**9) < 10**8, {True: 0.1, False: 0.9}),
    "a share of a whole draw": (
        lambda x, rng: (rng.integers(1000) / 1000 < 0.731, 1 - rng.integers(500) >= -249),
        {(True, True): 0.731 * 251 / 500, (True, False): 0.731 * 249 / 500}
        | {(False, True): 0.269 * 251 / 500, (False, False): 0.269 * 249 / 500},
    ),
    "many at once": (
        lambda x, rng: (3 + int(rng.integers(256, size=1)[0])) % 256 < 64,
        {True: 0.25, False: 0.75},
    ),
    "one of many": (lambda x, rng: rng.integers(1, 1001) == 7, {True: 0.001, False: 0.999}),
    "os.urandom": (lambda x: os.urandom(1)[0] & 3, evenly(range(4))),
    "a seeded one": (lambda x: np.random.default_rng(4).integers(2), evenly([0, 1])),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws(name):
    mechanism, truth = DISCRETE[name]
    known = probabilities(mechanism)
    found = {key: float(weight) for key, weight in known.items()}
    assert found == pytest.approx(truth, abs=TOLERANCE)


CONTINUOUS = {
    "uniform": (lambda rng: rng.uniform(-2, 3), lambda: scipy.stats.uniform(-2, 5)),
    "laplace": (lambda rng: rng.laplace(0.5, 1.5), lambda: scipy.stats.laplace(0.5, 1.5)),
    "normal": (lambda rng: rng.normal(0.5, 1.5), lambda: scipy.stats.norm(0.5, 1.5)),
    "exponential": (lambda rng: rng.exponential(1.5), lambda: scipy.stats.expon(scale=1.5)),
    "gumbel": (lambda rng: rng.gumbel(0.5, 1.5), lambda: scipy.stats.gumbel_r(0.5, 1.5)),
    "affine": (
        lambda rng: 1 - np.float64(2.0) * rng.laplace() / 4,
        lambda: scipy.stats.laplace(1, 0.5),
    ),
    "abs": (lambda rng: abs(rng.normal()), lambda: scipy.stats.halfnorm()),
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
        for k in range(-4, 5):
            truth = law().cdf(k + 1) - law().cdf(k)
            assert float(known.get(k, 0)) == pytest.approx(truth, abs=TOLERANCE)


def test_both_tails_of_noise_that_is_rounded():
    for rounded in (round, lambda value: int(np.round(value)), lambda value: int(np.rint(value))):
        known = probabilities(lambda x, rng, rounded=rounded: rounded(rng.laplace()))
        for k in (-25, -3, 0, 3, 25):
            truth = scipy.stats.laplace.sf(abs(k) - 0.5) - scipy.stats.laplace.sf(abs(k) + 0.5)
            assert float(known[k]) == pytest.approx(truth, rel=1e-3, abs=TOLERANCE)


def test_endless_support_leaves_a_residual():
    def trials(x, rng):
        count = 1
        while rng.random() >= 0.4:
            count += 1
        return count

    known, law = distribution(trials), scipy.stats.geom(0.4)
    assert law.sf(max(known.outcomes)) - 1e-15 <= known.residual < 1e-11
    for k, weight in zip(known.outcomes, known.weights, strict=True):
        assert float(weight) == pytest.approx(law.pmf(k), abs=TOLERANCE)


def test_paths_that_are_given_up_are_counted(monkeypatch):
    monkeypatch.setattr(branching, "NEGLIGIBLE", 0.3)
    known = distribution(
        lambda x, rng: "one" if rng.random() < 0.5 else [bool(rng.random() < 0.5) for _ in "ab"]
    )
    assert known.outcomes == ("one",)
    assert known.residual == 0.5


class Released:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(
    "put",
    [lambda draw: {"a": (draw,)}, Released, lambda draw: np.array([draw, 1])],
    ids=["dict", "object", "array"],
)
def test_draws_in_containers(put):
    known = distribution(lambda x, rng: put(rng.integers(100) // 50))
    assert list(map(float, known.weights)) == [0.5, 0.5]
    kinds = {type(outcome).__name__ for outcome in known.outcomes}  # of copied classes
    assert kinds == {type(put(1)).__name__}


def swallows(x, rng):
    try:
        return hash(rng.random())
    except BaseException:
        return 0


class Opaque:
    __slots__ = ()

    def __repr__(self):
        return object.__repr__(self)


def asks_a_service(x, rng):
    with socket.socket() as connection:
        return bool(connection.connect_ex(("127.0.0.1", 1)))


REFUSED = {
    "starts a process that may draw": lambda x, rng: os.system("true"),
    "asks a service that may draw": asks_a_service,
    "it uses rng.bit_generator": lambda x, rng: (
        np.random.Generator(rng.bit_generator).random() < 0.5
    ),
    "it copies rng": lambda x, rng: copy.deepcopy(rng).random() < 0.5,
    "rng.standard_gamma is not enumerated": lambda x, rng: rng.standard_gamma(2.0) > 1,
    "rng.geometric is not enumerated": lambda x, rng: rng.geometric(0.5),
    "np.isnan of a draw": lambda x, rng: np.isnan(rng.random()),
    "one of 2e\\+19 whole numbers": lambda x: random.getrandbits(64) >> 62,
    "np.sin of a draw": lambda x, rng: np.sin(rng.random()) < 0.5,
    "10,000 draws at once": lambda x, rng: bool((rng.random((100, 100)) < 0.5).all()),
    "hash of a draw": swallows,
    "the scale of a draw depends": lambda x, rng: rng.laplace(scale=1 + rng.random()) > 0,
    "too many paths": lambda x, rng: tuple(rng.integers(2, size=40).tolist()),
    "output holds a continuous draw": lambda x, rng: {"sum": [x + rng.laplace(), 1]},
    "draws are compared with each other in more than one way": lambda x, rng: np.argmax(
        [rng.gumbel(), x + rng.gumbel(), x + rng.gumbel()]
    ),
    "output without value equality": lambda x, rng: Opaque() if rng.random() < 0.5 else x,
    "a continuous draw as a plain float": lambda x, rng: struct.pack("d", rng.random())[0] < 3,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_with_a_reason(reason):
    with pytest.raises(CannotInstrument, match=reason):
        distribution(REFUSED[reason])


def test_exceptions_are_outputs_where_they_are_the_mechanisms():
    def raises(x, rng):
        if rng.random() < 0.25:
            raise ValueError("no budget")
        return 1

    known = distribution(raises)
    assert [repr(outcome) for outcome in known.outcomes] == ["1", "raises ValueError: no budget"]
    assert [float(weight) for weight in known.weights] == [0.75, 0.25]


def test_what_is_left_of_an_endless_loop():
    def until_heads(path):
        flips = 1
        while path.choose([Fraction(3, 4), Fraction(1, 4)]):
            flips += 1
        return flips

    for number, (path, flips, left) in enumerate(islice(explore_paths(until_heads), 10), 1):
        assert flips == number
        assert path.weight == Fraction(3, 4) * Fraction(1, 4) ** (number - 1)
        assert left == Fraction(1, 4) ** number


def test_the_heaviest_first_and_all_of_it():
    def loaded(path):
        first = path.choose([Fraction(1, 10), Fraction(6, 10), Fraction(3, 10)])
        return first if first else (first, path.choose([Fraction(1, 2)] * 2))

    weights = [path.weight for path, _, _ in explore_paths(loaded)]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == 1


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (Law(laws.LAPLACE), lambda: scipy.stats.laplace()),
        (Law(laws.NORMAL), lambda: scipy.stats.norm()),
        (Law(laws.LOGISTIC), lambda: scipy.stats.logistic()),
        (Law(laws.GUMBEL), lambda: scipy.stats.gumbel_r()),
        (Law(laws.EXPONENTIAL), lambda: scipy.stats.expon()),
        (Law(laws.UNIFORM), lambda: scipy.stats.uniform()),
        (Law(laws.GEOMETRIC, 0.7), lambda: scipy.stats.geom(0.3, loc=-1)),
        (Law(laws.INTEGERS, 4), lambda: scipy.stats.randint(0, 4)),
    ],
    ids=lambda law: getattr(law, "family", ""),
)
def test_laws_are_those_of_scipy(law, same):
    same = same()
    x = np.array([-9.0, -2.0, -0.75, 0.0, 0.25, 1.0, 2.5, 6.0, 30.0])
    below, between = np.exp(law.log_below(x)), np.exp(law.log_between(x[:-1], x[1:]))
    assert below == pytest.approx(same.cdf(x), rel=1e-9, abs=1e-300)
    assert np.exp(law.log_above(x)) == pytest.approx(same.sf(x), rel=1e-9, abs=1e-15)
    assert between == pytest.approx(np.diff(same.cdf(x)), rel=1e-9, abs=1e-15)
    if not law.lattice:
        assert law.log_density(x) == pytest.approx(same.logpdf(x), rel=1e-12)
