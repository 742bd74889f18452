"""Losses of known mechanisms, to ten digits, in the ways in which people write them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from exact import distribution, loss

from pytest_dp.exact.distribution import NotExact

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


@pytest.mark.parametrize("k", [2, 3, 64])
@pytest.mark.parametrize(
    "mechanism", [uniform_compared, weighted_choice, integers, of_python, weighted_choices]
)
def test_randomised_response(mechanism, k):
    for eps in (0.1, 2.0):
        known = loss(mechanism, 0, 1, k=k, eps=eps)
        assert known.lower == pytest.approx(eps, abs=TOLERANCE)
        assert known.upper == pytest.approx(eps, abs=TOLERANCE)
        assert known.beside == 0
        assert len(known.marks) >= 1


def test_what_cannot_be_enumerated():
    def noisy(x, rng):
        return x + rng.laplace()

    with pytest.raises(NotExact, match="output holds a continuous draw"):
        distribution(noisy)
