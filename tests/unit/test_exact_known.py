"""Losses of known mechanisms, to ten digits, in the ways in which people write them."""

# ruff: noqa: NPY002

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from exact import loss, probabilities

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


@pytest.mark.parametrize("k", [2, 64])
@pytest.mark.parametrize(
    "mechanism", [uniform_compared, weighted_choice, integers, weighted_choices]
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
    binary = mechanisms.Binary(epsilon=0.7, value0="no", value1="yes", random_state=1)
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
    geometric = mechanisms.Geometric(epsilon=1.0)
    known = loss(geometric.randomise, 3, 4)
    assert 1.0 - 1e-6 < known.lower < 1.0 + 1e-6
    assert known.extra_delta < 1e-11
