"""The e-value of outputs against a known distribution: at most 1 on average, and it finds fault."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_dp.evidence.goodness_of_fit import log_e_value

pytestmark = pytest.mark.slow


def likelihood(counts, probabilities):
    ways = math.factorial(sum(counts))
    for count in counts:
        ways //= math.factorial(count)
    return ways * math.prod(p**c for p, c in zip(probabilities, counts, strict=True))


def counts_of(total, cells):
    for dividers in itertools.combinations(range(total + cells - 1), cells - 1):
        edges = (-1, *dividers, total + cells - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def mean(truth, known, residual, total):
    """Over all that may come in so many runs; the last cell is what was not enumerated."""
    return math.fsum(
        likelihood(counts, truth)
        * math.exp(log_e_value(np.array(counts[:-1]), np.array(known), counts[-1], residual))
        for counts in counts_of(total, len(truth))
        if likelihood(counts, truth) > 0
    )


@pytest.mark.parametrize("known", [(0.5, 0.5), (0.9, 0.1), (0.98, 0.01, 0.01), (1.0,)])
@pytest.mark.parametrize("total", [1, 7, 12])
def test_its_mean_is_one_if_the_distribution_is_known(known, total):
    assert mean((*known, 0.0), known, 0.0, total) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("truth", [(0.6, 0.4, 0.0), (0.5, 0.4, 0.1), (0.55, 0.4, 0.05)])
def test_it_is_at_most_one_wherever_the_residual_is(truth):
    assert mean(truth, (0.5, 0.4), 0.1, 8) <= 1 + 1e-9


def test_what_cannot_come_refutes():
    known = np.array([0.5, 0.5])
    assert math.isinf(log_e_value(np.array([10, 10]), known, 1, 0.0))
    assert log_e_value(np.array([10, 10]), known, 1, 1e-9) > math.log(1_000)


def test_it_grows_where_the_truth_is_another():
    known = np.array([0.5, 0.3, 0.2])
    assert log_e_value(np.array([1_000, 600, 400]), known, 0, 0.0) < 0
    assert log_e_value(np.array([860, 740, 400]), known, 0, 0.0) > math.log(1_000)
