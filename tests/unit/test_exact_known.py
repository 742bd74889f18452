"""Losses of known mechanisms, to ten digits, in the ways in which people write them."""

# ruff: noqa: NPY002

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from exact import loss, probabilities

EPS = 1.5


def kept(k):
    """How often randomised response among so many values tells the truth."""
    return math.exp(EPS) / (math.exp(EPS) + k - 1)


def uniform_compared(x, rng, k):
    if rng.random() < kept(k):
        return x
    others = [v for v in range(k) if v != x]
    return others[int(rng.random() * (k - 1))]


def weighted_choice(x, rng, k):
    p = np.full(k, (1 - kept(k)) / (k - 1))
    p[x] = kept(k)
    return rng.choice(k, p=p)


def integers(x, rng, k):
    if rng.uniform() > kept(k):
        other = rng.integers(k - 1)
        return other + (other >= x)
    return x


def weighted_choices(x, k):
    shares = [kept(k) if v == x else (1 - kept(k)) / (k - 1) for v in range(k)]
    return random.choices(range(k), shares)[0]


def endless_loop(x, k):  # as pure-ldp writes it
    other = x
    while other == x:
        other = np.random.randint(0, k)
    return x if np.random.rand() < kept(k) else other


HALF = 1 / (1 + math.exp(-EPS / 2))


def symmetric_unary(x, rng, k):
    one_hot = np.zeros(k, int)
    one_hot[x] = 1
    return np.where(rng.random(k) < HALF, one_hot, 1 - one_hot)


def optimised_unary(x, k):  # as pure-ldp writes it
    q = 1 / (math.exp(EPS) + 1)
    vector = np.random.choice([1, 0], size=k, p=[q, 1 - q])
    vector[x] = 1 if random.random() < 0.5 else 0
    return vector


def word_by_word(x, rng, k):
    return tuple(rng.random() < (HALF if bit == x else 1 - HALF) for bit in range(k))


@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        *((uniform_compared, k) for k in (2, 64)),
        *((weighted_choice, k) for k in (2, 64)),
        *((integers, k) for k in (2, 64)),
        *((weighted_choices, k) for k in (2, 64)),
        (endless_loop, 4),
        *((unary, 5) for unary in (symmetric_unary, optimised_unary, word_by_word)),
    ],
)
def test_local_mechanisms(mechanism, k):
    known = loss(mechanism, 0, 1, k=k)
    assert known.lower <= known.upper
    assert (known.lower, known.upper) == pytest.approx((EPS, EPS), abs=1e-10)
    assert (0 < known.extra_delta < 1e-11) == (mechanism is endless_loop)


def test_diffprivlib():
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    binary = mechanisms.Binary(epsilon=0.7, value0="no", value1="yes", random_state=1)
    assert loss(binary.randomise, "no", "yes").upper == pytest.approx(0.7, abs=1e-10)

    def flip(utility):
        made = mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=list(utility))
        return made.randomise()

    # By the definition of McKenna and Sheldon, for two candidates.
    better = 0.5 + 0.5 * (1 - math.exp(-0.5))
    assert probabilities(flip, (1.0, 0.0))[0] == pytest.approx(better, abs=1e-10)
    assert loss(flip, (1.0, 0.0), (0.0, 0.0)).lower == pytest.approx(-math.log(2 * (1 - better)))
    known = loss(mechanisms.Geometric(epsilon=1.0).randomise, 3, 4)
    assert known.lower == pytest.approx(1.0, abs=1e-6)
    assert known.extra_delta < 1e-11
