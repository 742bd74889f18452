"""Linear functions of many draws: what is traced is what is computed, and its loss is the truth."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from exact import call_of
from test_analytic import cases, loss

from pytest_dp.known import profiles
from pytest_dp.known.comparing import Case, largest_of
from pytest_dp.known.experiments import Moved
from pytest_dp.known.outcomes import outcomes_of
from pytest_dp.known.profiles import profile
from pytest_dp.known.replay import replayed
from pytest_dp.randomness.laws import LAPLACE, Law
from pytest_dp.sampling.deadline import Deadline

pytestmark = pytest.mark.slow

MATRIX = np.random.default_rng(5).normal(size=(4, 4))


def matrix_times(x, rng):
    return np.asarray(x) + MATRIX @ rng.laplace(scale=2, size=4)


def dot(x, rng):
    return np.dot(MATRIX, np.asarray(x) + rng.laplace(size=4))


def prefix(x, rng):
    return np.cumsum(np.asarray(x) + rng.laplace(size=4))


def loops(x, rng):
    noisy = [value + rng.laplace() for value in x]
    total = sum(noisy)
    return [total, *(total / 2 - each for each in noisy[1:])]


def shapes(x, rng):
    noise = rng.laplace(size=(2, 2))
    table = np.asarray(x).reshape(2, 2) + noise.T
    return np.hstack([table.sum(axis=0), table[0, 1], -table.ravel()[::3].mean()])


def slices(x, rng):
    out = rng.laplace(size=4)
    out[1:] += out[:-1].copy()
    out -= np.array(x) / 4
    return {"first": out[0], "rest": tuple(out[1:])}


TRACED = [matrix_times, dot, prefix, loops, shapes, slices]
ONE, OTHER = [0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("mechanism", TRACED, ids=lambda function: function.__name__)
def test_what_is_traced_is_what_is_computed(mechanism):
    call, deadline = call_of(mechanism), Deadline(20.0)
    assert replayed(call, ONE, outcomes_of(call, ONE, deadline), 3, deadline) == 3


def matrix_of(mechanism, data):
    (outcome,) = outcomes_of(call_of(mechanism), data, Deadline(20.0))
    matrix = [[leaf.terms.get(draw, 0.0) for draw in range(4)] for leaf in outcome.leaves]
    return np.array(matrix), np.array([leaf.constant for leaf in outcome.leaves])


@pytest.mark.parametrize("mechanism", TRACED, ids=lambda function: function.__name__)
def test_losses_by_brute_force(mechanism):
    matrix, constant = matrix_of(mechanism, ONE)
    matrix2, constant2 = matrix_of(mechanism, OTHER)
    far = np.array(list(product([-1e3, 1e3], repeat=4)))
    near = np.random.default_rng(1).laplace(scale=3, size=(10_000, 4))
    draws = np.concatenate([far, near])
    outputs = draws @ matrix.T + constant
    seen_from_other = np.linalg.solve(matrix2, (outputs - constant2).T).T
    losses = np.abs(seen_from_other).sum(axis=1) - np.abs(draws).sum(axis=1)
    assert loss(mechanism, ONE, OTHER) == pytest.approx(losses.max(), rel=1e-9)
    assert loss(mechanism, OTHER, ONE) == pytest.approx(-losses.min(), rel=1e-9)


def test_profile_of_several_laplace_draws():
    def vector(x, rng):
        return np.array(x) + rng.laplace(size=3)

    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(200_000, 3))
    d2 = np.array([0.5, -0.3, 1.0])
    losses = (np.abs(noise - d2) - np.abs(noise)).sum(axis=1)
    known = cases(vector, [0, 0, 0], d2.tolist())
    for eps in (0.0, 0.7, 1.5):
        beyond = -np.expm1(np.minimum(eps - losses, 0.0))
        low, high = profile(known, forward=True).delta(eps)
        off = 5 * beyond.std() / math.sqrt(len(losses))
        assert low - off <= beyond.mean() <= high + off
        assert high - low < 2e-3


def test_outputs_that_depend_on_each_other():
    def total_too(x, rng):
        noisy = np.asarray(x) + rng.laplace(size=2)
        return [*noisy, noisy.sum()]

    def clean_total(x, rng):
        noisy = np.asarray(x) + rng.laplace(size=2)
        return [*noisy, noisy.sum() + sum(x)]

    assert loss(total_too, [0, 0], [0, 1]) == pytest.approx(1.0)
    assert loss(clean_total, [0, 0], [0, 1]) == math.inf
    assert loss(clean_total, [1, 0], [0, 1]) == pytest.approx(2.0)


def test_no_false_infinity_by_rounding():
    def thirds(x, rng):
        noise = rng.laplace(scale=1e6)
        return [x / 3 * 1e9 + noise, x * 1e9 / 3 + 0.1 + 0.2 + noise]

    assert loss(thirds, 1.0, 1.1) == pytest.approx(1e8 / 3 / 1e6, rel=1e-6)


def test_coins_and_sums_of_the_same_draws_are_not_taken_for_independent():
    def both(x, rng):
        noise = rng.laplace(size=2)
        return [x + noise[0], noise[0] > 0, noise[1] > x]

    # the sign tells nothing that the sum does not tell where the answer is known
    assert largest_of(cases(both, 0, 1)).forward == math.inf
    # a sum of 0.5 has a sign of its draw that only one of the inputs allows
    low, high = profile(cases(lambda x, rng: rng.laplace() > x, 0, 1), forward=True).delta(0.0)
    assert low <= 0.5 - math.exp(-1) / 2 <= high


def moved(*shifts):
    return [Case(0.0, 0.0, [Moved(Law(LAPLACE), shift) for shift in shifts])]


@pytest.mark.spot(3)
@pytest.mark.parametrize("eps", [0.1, 0.4, 1.0])
def test_equal_parts_are_put_together_as_distinct_ones_are(eps):
    together = profile(moved(*[0.2] * 9, 0.0), forward=True).delta(eps)
    one_by_one = profile(moved(*(0.2 + 1e-12 * k for k in range(9))), forward=True).delta(eps)
    assert together == pytest.approx(one_by_one, abs=1e-9)


def test_of_very_many_parts_the_smallest_are_bounded(monkeypatch):
    monkeypatch.setattr(profiles, "MANY", 4)
    shifts = [0.3, *(1e-3 * (1 + k) for k in range(6))]
    every = profile(moved(*shifts), forward=True)
    lower, upper = every.delta(0.25)
    least, most = profile(moved(*shifts[:1], *shifts[-3:]), forward=True).delta(0.25)
    assert least - 1e-3 <= lower <= upper
    assert upper >= most - 1e-3
    assert upper < every.delta(0.24)[1] < 1
