"""The search for events in the tails of a number, where another number leaks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from searching import look

RUNS = 6_000
EDGE = 0.025
"""Probability of the tail in which the other part is released with too little noise."""


def beyond_either_end(z, value, noise):
    return value + np.where(np.abs(z) > np.log(1 / EDGE), 0.1, 1.0) * noise


def above(z, value, noise):
    return value + np.where(z > np.log(1 / (2 * EDGE)), 0.1, 1.0) * noise


def below(z, value, noise):
    return value + np.where(z < -np.log(1 / (2 * EDGE)), 0.1, 1.0) * noise


def of_whole_numbers(z, value, noise):
    return np.round(above(z, 4 * value, 4 * noise))


def right(z, value, noise):
    return value + np.where(z > np.log(1 / (2 * EDGE)), 1.5, 1.0) * noise


def outputs(mechanism, value, seed):
    rng = default_rng(seed)
    z, noise = rng.laplace(size=(2, RUNS))
    released = mechanism(z, value, noise)
    return [[float(a), float(b)] for a, b in zip(z, released, strict=True)]


@pytest.mark.parametrize("mechanism", [above, below, beyond_either_end, of_whole_numbers])
def test_finds_what_leaks_only_where_another_number_is_far_out(mechanism):
    found, *_ = look(outputs(mechanism, 0.0, 1), outputs(mechanism, 1.0, 2), eps=1.0)
    assert found[0].rank > 5


@pytest.mark.parametrize("seed", range(3))
def test_ranks_no_event_of_a_right_mechanism_as_a_violation(seed):
    found, *_ = look(outputs(right, 0.0, 2 * seed), outputs(right, 1.0, 2 * seed + 1), eps=1.0)
    assert all(each.rank <= 0 for each in found)
