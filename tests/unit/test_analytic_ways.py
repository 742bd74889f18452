"""Mechanisms that compare draws: the sparse vector technique, noisy maxima, coins."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from exact import call_of
from scipy.integrate import quad
from scipy.stats import laplace, norm
from test_analytic import cases, loss

from pytest_dp.known.comparing import largest_of
from pytest_dp.known.conditioned import log_weight
from pytest_dp.known.outcomes import outcomes_of
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.deadline import Deadline

pytestmark = pytest.mark.slow


def sparse_vector(answers, rng, scale=2.0):
    threshold = 0.5 + rng.laplace(scale=1.0)
    out = []
    for answer in answers:
        above = answer + rng.laplace(scale=scale) >= threshold
        out.append(above)
        if above:
            break
    return out


def released(answers, rng):
    threshold = 0.5 + rng.laplace(scale=1.0)
    for answer in answers:
        noisy = answer + rng.laplace(scale=2.0)
        if noisy >= threshold:
            return noisy
    return None


def no_query_noise(answers, rng):
    threshold = 0.5 + rng.laplace()
    return [answer >= threshold for answer in answers]


def fresh_answer(answers, rng):
    threshold = 0.5 + rng.laplace(scale=1.0)
    for number, answer in enumerate(answers):
        if answer + rng.normal(scale=2.0) >= threshold:
            return number, answer + rng.laplace(scale=3.0)
    return None


def integral(function, kinks):
    """Over the noise of the threshold."""
    edges = [-60.0, *sorted(kinks), 60.0]
    parts = (quad(function, a, b, epsabs=1e-14, epsrel=1e-12) for a, b in pairwise(edges))
    return sum(value for value, _ in parts)


def probability(answers, stop, law=laplace, scale=2.0):
    """Of FALSE until `stop`, and TRUE there if there is an answer."""

    def density(rho):
        value = laplace.pdf(rho)
        for number, answer in enumerate(answers[: stop + 1]):
            gap = 0.5 + rho - answer
            value *= law.sf(gap, scale=scale) if number == stop else law.cdf(gap, scale=scale)
        return value

    return integral(density, {0.0, *(answer - 0.5 for answer in answers)})


ANSWERS = [([1, 1, 1], [2, 0, 2]), ([0, 0, 0], [1, 1, 1]), ([1, 0, 1], [0, 1, 0])]


@pytest.mark.spot(3)
@pytest.mark.parametrize(("one", "other"), ANSWERS)
def test_sparse_vector_by_quadrature(one, other):
    ratios = [math.log(probability(one, k) / probability(other, k)) for k in range(4)]
    largest = largest_of(cases(sparse_vector, one, other))
    assert largest.forward == pytest.approx(max(*ratios, 0), abs=1e-9)
    assert largest.backward == pytest.approx(max(*(-ratio for ratio in ratios), 0), abs=1e-9)


def test_probabilities_of_ways_add_up():
    for mechanism in (sparse_vector, fresh_answer):
        outcomes = outcomes_of(call_of(mechanism), [1, 0, 2, 1], Deadline(20.0))
        assert len(outcomes) == 5
        total = 0.0
        for outcome in outcomes:
            parts = [part for part in outcome.parts if part.conditions]
            total += math.exp(sum(log_weight(outcome, part) for part in parts))
        assert total == pytest.approx(1.0, abs=1e-12)


def test_an_answer_with_noise_of_its_own():
    one, other = [1, 1], [0, 2]
    ratios = [math.log(probability(one, k, norm) / probability(other, k, norm)) for k in range(3)]
    # the released answer moves by 1, with noise of scale 3
    expected = [ratios[0] + 1 / 3, ratios[1] + 1 / 3, ratios[2]]
    assert largest_of(cases(fresh_answer, one, other)).forward == pytest.approx(
        max(expected), abs=1e-9
    )


def density(answers, y):
    """Of a released answer: the sum over where it was released."""
    total = 0.0
    for stop, answer in enumerate(answers):

        def inner(rho, stop=stop):
            before = [laplace.cdf(0.5 + rho - q, scale=2.0) for q in answers[:stop]]
            return laplace.pdf(rho) * math.prod(before) * (0.5 + rho <= y)

        total += integral(inner, {0.0, y - 0.5, *(q - 0.5 for q in answers)}) * laplace.pdf(
            y, answer, 2.0
        )
    return total


def test_a_released_answer_by_quadrature():
    one, other = [0, 1], [1, 0]
    grid = [-30.0, -3.0, 0.0, 0.5, 1.0, 4.0, 30.0]
    ratios = [math.log(density(one, y) / density(other, y)) for y in grid]
    none = math.log(probability(one, 2) / probability(other, 2))
    largest = largest_of(cases(released, one, other))
    assert largest.forward == pytest.approx(max(*ratios, none), abs=1e-6)
    assert largest.backward == pytest.approx(max(-min(ratios), -none), abs=1e-6)


def test_what_only_one_input_can_lead_to():
    assert loss(no_query_noise, [0, 1], [1, 0]) == math.inf
    # the likeliest difference: TRUE on both only below 0, against below 1
    assert loss(no_query_noise, [0, 0], [1, 1]) == pytest.approx(
        math.log(laplace.cdf(0.5) / laplace.cdf(-0.5))
    )


@pytest.mark.parametrize("draw", ["laplace", "exponential"])
def test_the_place_of_the_largest(draw):
    def place(answers, rng):
        return int(np.argmax(np.asarray(answers) + getattr(rng, draw)(scale=2.0, size=3)))

    law = {"laplace": laplace, "exponential": __import__("scipy.stats").stats.expon}[draw]

    def chance(answers, k):
        def inner(x):
            others = [law.cdf(x - q, scale=2.0) for i, q in enumerate(answers) if i != k]
            return law.pdf(x - answers[k], scale=2.0) * math.prod(others)

        return integral(inner, set(answers))

    one, other = [1, 1, 1], [2, 0, 0]
    ratios = [math.log(chance(one, k) / chance(other, k)) for k in range(3)]
    assert loss(place, one, other) == pytest.approx(max(map(abs, ratios)), abs=1e-9)


def test_the_largest_value():
    def largest(answers, rng):
        return np.max(np.asarray(answers) + rng.laplace(scale=2.0, size=3))

    assert loss(largest, [1, 1, 1], [0, 0, 0], searched=True) == pytest.approx(1.5, abs=1e-6)


def test_branches_on_one_draw():
    def lazy(x, rng):
        return x + rng.laplace() if rng.random() < 0.5 else None

    def clipped_below(x, rng):
        noisy = x + rng.laplace()
        return noisy if noisy > 0 else 0.0

    def absolute(x, rng):
        return abs(x + rng.laplace())

    assert loss(lazy, 0, 1) == pytest.approx(1.0, abs=1e-9)
    assert loss(clipped_below, 0, 1) == pytest.approx(1.0, abs=1e-9)
    assert loss(clipped_below, 2, 5) == pytest.approx(3.0, abs=1e-9)
    # folded: the largest ratio is at 0, or far out
    folded = math.log(1.0 / math.exp(-1.0))
    far = math.log(2 / (math.e + 1 / math.e))
    assert loss(absolute, 0, 1, searched=True) == pytest.approx(max(folded, -far), abs=1e-6)


def test_too_many_ways():
    def many(x, rng):
        return [rng.laplace() > x + rng.laplace() for _ in range(6)]

    with pytest.raises(CannotInstrument, match="more than 20 ways"):
        outcomes_of(call_of(many), 0, Deadline(20.0), max_paths=20)
