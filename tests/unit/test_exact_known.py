"""Losses of known mechanisms, to ten digits, in the ways in which people write them."""

# ruff: noqa: NPY002

from __future__ import annotations

import math
import os
import random
import secrets
import struct

import numpy as np
import pytest
from exact import distribution, loss, probabilities

from pytest_dp.known.enumerated import NotExact

TOLERANCE = 1e-10


def probability(k, eps):
    return math.exp(eps) / (math.exp(eps) + k - 1)


def uniform_compared(x, rng, k, eps):
    if rng.random() < probability(k, eps):
        return x
    others = [v for v in range(k) if v != x]
    return others[int(rng.random() * (k - 1))]


def weighted_choice(x, rng, k, eps):
    p = np.full(k, 1 / (math.exp(eps) + k - 1))
    p[x] = probability(k, eps)
    return rng.choice(k, p=p)


def integers(x, rng, k, eps):
    if rng.uniform() > probability(k, eps):
        other = rng.integers(k - 1)
        return other + (other >= x)
    return x


def of_python(x, k, eps):
    if random.random() <= probability(k, eps):
        return x
    other = random.randrange(k - 1)
    return other if other < x else other + 1


def weighted_choices(x, k, eps):
    p = probability(k, eps)
    return random.choices(range(k), [p if v == x else (1 - p) / (k - 1) for v in range(k)])[0]


def direct_encoding(x, k, eps):  # as pure-ldp writes it
    if np.random.rand() < probability(k, eps):
        return x
    other = x
    while other == x:
        other = np.random.randint(0, k)
    return other


def exactly(mechanism, data, data2, truth, /, **params):
    known = loss(mechanism, data, data2, **params)
    assert known.lower == pytest.approx(truth, abs=TOLERANCE)
    assert known.upper == pytest.approx(truth, abs=TOLERANCE)
    assert known.lower <= known.upper
    return known


@pytest.mark.parametrize("k", [2, 3, 64])
@pytest.mark.parametrize(
    "mechanism", [uniform_compared, weighted_choice, integers, of_python, weighted_choices]
)
def test_randomised_response(mechanism, k):
    for eps in (0.1, 2.0):
        known = exactly(mechanism, 0, 1, eps, k=k, eps=eps)
        assert known.extra_delta == 0


def test_an_endless_loop_that_hardly_goes_on():
    known = exactly(direct_encoding, 0, 1, 1.0, k=4, eps=1.0)
    assert 0 < known.extra_delta < 1e-11


def symmetric_unary(x, rng, bits, eps):
    one_hot = np.zeros(bits, int)
    one_hot[x] = 1
    keep = rng.random(bits) < 1 / (1 + math.exp(-eps / 2))
    return np.where(keep, one_hot, 1 - one_hot)


def optimised_unary(x, bits, eps):  # as pure-ldp writes it
    q = 1 / (math.exp(eps) + 1)
    vector = np.random.choice([1, 0], size=bits, p=[q, 1 - q])
    vector[x] = 1 if random.random() < 0.5 else 0
    return vector


def word_by_word(x, rng, bits, eps):
    p = 1 / (1 + math.exp(-eps / 2))
    return tuple(rng.random() < (p if bit == x else 1 - p) for bit in range(bits))


@pytest.mark.parametrize("mechanism", [symmetric_unary, optimised_unary, word_by_word])
def test_unary_encodings(mechanism):
    exactly(mechanism, 0, 2, 1.5, bits=5, eps=1.5)


def test_diffprivlib():
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    for state in (None, 1):
        binary = mechanisms.Binary(epsilon=0.7, value0="no", value1="yes", random_state=state)
        exactly(binary.randomise, "no", "yes", 0.7)

    def flip(utility):
        made = mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=list(utility))
        return made.randomise()

    # By the definition of McKenna and Sheldon, for two candidates.
    better = 0.5 + 0.5 * (1 - math.exp(-0.5))
    assert probabilities(flip, (1.0, 0.0))[0] == pytest.approx(better, abs=TOLERANCE)
    assert loss(flip, (1.0, 0.0), (0.0, 0.0)).lower == pytest.approx(
        -math.log(2 * (1 - better)), abs=TOLERANCE
    )
    utility = [["A", "B", 1.0], ["A", "C", 2.0], ["B", "C", 2.0]]
    categorical = mechanisms.ExponentialCategorical(epsilon=1.0, utility_list=utility)
    known = probabilities(categorical.randomise, "A")
    weights = {"A": 1.0, "B": math.exp(-0.25), "C": math.exp(-0.5)}
    for value, weight in weights.items():
        share = weight / sum(weights.values())
        assert known[value] == pytest.approx(share, abs=TOLERANCE)
    truncated = mechanisms.GeometricTruncated(epsilon=1.0, lower=0, upper=8)
    exactly(truncated.randomise, 3, 4, 1.0)
    geometric = mechanisms.Geometric(epsilon=1.0)
    known = loss(geometric.randomise, 3, 4)
    assert 1.0 - 1e-6 < known.lower < 1.0 + 1e-6
    assert known.extra_delta < 1e-11


def exact_bernoulli(n, d):
    """Bernoulli(exp(-n / d)), by Canonne, Kamath, Steinke, 2020."""
    k = 1
    while secrets.randbelow(d * k) < n:
        k += 1
    return k % 2


def discrete_laplace(x):
    while True:
        u = secrets.randbelow(3)
        if not exact_bernoulli(u, 3):
            continue
        v = 0
        while exact_bernoulli(1, 1):
            v += 1
        negative = secrets.randbelow(2)
        if not (negative and u + 3 * v == 0):
            return x + (1 - 2 * negative) * (u + 3 * v)


def local_hashing(x, rng):
    seed = rng.integers(1 << 32)
    return int(seed), hash((int(seed), x)) % 4


def hashed_uniform(x, rng):
    return hash((rng.random(), x)) % 4


def noisy(x, rng):
    return {"sum": [x + rng.laplace(), 1]}


def noisy_max(x, rng):
    return int(np.argmax([x + rng.gumbel(), rng.gumbel()]))


def two_added(x, rng):
    return x + rng.normal() + rng.normal() > 3


class Opaque:
    __slots__ = ()

    def __repr__(self):
        return object.__repr__(self)


def no_equality(x, rng):
    return Opaque() if rng.random() < 0.5 else x


def made_a_plain_float(x, rng):
    return struct.pack("d", rng.random())[0] < 3


REFUSED = {
    discrete_laplace: "rejection loop",
    hashed_uniform: "hash of a draw",
    noisy: "output holds a continuous draw",
    noisy_max: "two continuous draws compared",
    two_added: "arithmetic of two continuous draws",
    no_equality: "output without value equality",
    made_a_plain_float: "a continuous draw as a plain float",
}


@pytest.mark.parametrize("mechanism", REFUSED, ids=lambda mechanism: mechanism.__name__)
def test_refused_with_a_reason(mechanism):
    with pytest.raises(NotExact) as refused:
        distribution(mechanism)
    assert str(refused.value) == REFUSED[mechanism]


def test_local_hashing_is_refused():
    with pytest.raises(NotExact, match=r"hash of a draw|output holds"):
        distribution(local_hashing)


def test_what_no_stand_in_sees_looks_as_if_it_had_no_noise():
    def unseen(x):
        source = os.open("/dev/urandom", os.O_RDONLY)
        byte = os.read(source, 1)[0]
        os.close(source)
        return x if byte < 192 else 1 - x

    assert len(distribution(unseen).outcomes) == 1
