"""Enumeration where draws are compared with one that they share, by integrals of closed forms."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy
from exact import distribution, probabilities
from scipy.integrate import quad

from pytest_dp.running.generator_stand_ins import CannotInstrument

pytestmark = pytest.mark.slow

LAWS = {"laplace": "laplace", "normal": "norm", "exponential": "expon"}
"""How scipy names them."""


def sparse_vector(answers, rng, draw="laplace", shared="laplace"):
    threshold = 0.5 + getattr(rng, shared)(scale=1.0)
    out = []
    for answer in answers:
        above = answer + getattr(rng, draw)(scale=2.0) >= threshold
        out.append(above)
        if above:
            break
    return out


def probability(answers, stop, draw="laplace", shared="laplace"):
    """Return that of FALSE until `stop`, and of TRUE there if there is an answer."""

    def density(rho):
        value = getattr(scipy.stats, LAWS[shared]).pdf(rho)
        for number, answer in enumerate(answers[: stop + 1]):
            gap, law = 0.5 + rho - answer, getattr(scipy.stats, LAWS[draw])
            value *= law.sf(gap, scale=2.0) if number == stop else law.cdf(gap, scale=2.0)
        return value

    edges = [-60.0, *sorted({0.0, *(answer - 0.5 for answer in answers)}), 60.0]
    parts = (quad(density, a, b, epsabs=1e-14, epsrel=1e-12) for a, b in pairwise(edges))
    return sum(value for value, _ in parts)


def outcome(answers, stop):
    return [False] * stop + [True] * (stop < len(answers))


@pytest.mark.parametrize("shared", ["laplace", "normal"])
@pytest.mark.parametrize("draw", LAWS)
def test_probabilities_of_sparse_vectors(draw, shared):
    answers = [0.25, -2, 3]
    known = distribution(sparse_vector, answers, draw=draw, shared=shared)
    assert len(known.outcomes) == len(answers) + 1
    assert known.residual < 1e-12
    found = {
        tuple(map(bool, o)): float(w) for o, w in zip(known.outcomes, known.weights, strict=True)
    }
    for stop in range(len(answers) + 1):
        expected = probability(answers, stop, draw, shared)
        assert found[tuple(outcome(answers, stop))] == pytest.approx(expected, rel=1e-9)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)


def test_answers_that_are_scaled_turned_around_and_compared_twice():
    def between(x, rng):
        centre = 2 * rng.laplace()
        noisy = 1 - (x + rng.laplace(scale=3)) / 2
        return bool(noisy > centre), bool(3 - noisy <= 2 - centre)

    def density(rho):  # noisy > centre where the noise is below 3 * cut
        return scipy.stats.laplace.pdf(rho) * scipy.stats.laplace.cdf((2 - 4 * rho - 1) / 3)

    def second(rho):  # noisy >= 1 + centre
        return scipy.stats.laplace.pdf(rho) * scipy.stats.laplace.cdf((-4 * rho - 1) / 3)

    above, higher = (
        sum(quad(f, a, b, epsabs=1e-13)[0] for a, b in pairwise([-40, -0.25, 0, 0.25, 40]))
        for f in (density, second)
    )
    known = {key: float(weight) for key, weight in probabilities(between, 1).items()}
    assert known == pytest.approx(
        {(False, False): 1 - above, (True, False): above - higher, (True, True): higher}, abs=1e-9
    )


def test_sums_and_the_larger_of_two():
    known = probabilities(lambda x, rng: bool(x + rng.normal() + rng.normal() > 3), 1)
    assert float(known[True]) == pytest.approx(scipy.stats.norm.sf(2, scale=math.sqrt(2)), rel=1e-9)
    known = probabilities(lambda x, rng: int(np.argmax([x + rng.gumbel(), rng.gumbel()])), 1)
    assert float(known[0]) == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-9)


def test_other_functions_of_draws_are_refused():
    for mechanism in [
        lambda x, rng: x + rng.laplace() if rng.laplace() < rng.laplace() else 0,
        lambda x, rng: bool(rng.laplace() < (x + rng.laplace()) ** 2),
        lambda x, rng: bool(rng.laplace() + rng.laplace() < x + rng.laplace()),
    ]:
        with pytest.raises(CannotInstrument):
            distribution(mechanism, 1)
