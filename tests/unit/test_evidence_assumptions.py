"""Whether runs are independent, and of a known law: by enumeration, against scipy, both ways."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy

from pytest_dp.statistics.assumptions import (
    all_come_before,
    log_e_value,
    pairs_agree,
    runs_depend,
    same_law,
    two_samples,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("hits", [(0, 0), (3, 9), (40, 2), (11, 20)])
def test_two_samples_are_compared_as_by_fisher(hits):
    runs = 40, 55
    table = [[hits[0], runs[0] - hits[0]], [hits[1], runs[1] - hits[1]]]
    tails = [
        scipy.stats.fisher_exact(table, alternative).pvalue for alternative in ("less", "greater")
    ]
    assert two_samples(hits, runs) == pytest.approx(min(1.0, 2 * min(tails)))


@pytest.mark.parametrize("shift", [0.0, 0.2, 3.0])
def test_laws_of_samples_are_compared_as_by_scipy(shift):
    rng = np.random.default_rng(4)
    first, other = rng.laplace(size=300), np.round(rng.laplace(size=200) + shift, 1)
    exact = scipy.stats.ks_2samp(first, other, method="exact").pvalue
    assert exact <= same_law(first, other)
    assert math.log(same_law(first, other)) == pytest.approx(math.log(exact), rel=0.15, abs=0.15)


@pytest.mark.parametrize(("groups", "runs"), [(3, 2), (2, 4)])
def test_independent_runs_hardly_ever_seem_to_agree(groups, runs):
    """Over all ways to place as many hits, which independent runs make equally likely."""
    cells = groups * runs
    for hits in range(1, cells):
        found = []
        for chosen in itertools.combinations(range(cells), hits):
            inside = np.zeros(cells, dtype=bool)
            inside[list(chosen)] = True
            found.append(pairs_agree(inside.reshape(groups, runs)))
        for level in (0.01, 0.05, 0.2):
            assert np.mean(np.array(found) <= level) <= level + 1e-12
        assert np.mean(found) > 0.5  # and of all levels there are, it attains each
        for p in set(found):
            assert np.mean(np.array(found) <= p + 1e-12) == pytest.approx(p)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_independent_runs_hardly_ever_seem_to_depend(lag):
    """Over all ways to place as many hits, which independent runs make equally likely."""
    runs = 4 * lag if lag < 3 else 6
    for hits in range(1, runs):
        found = []
        for chosen in itertools.combinations(range(runs), hits):
            inside = np.zeros(runs, dtype=bool)
            inside[list(chosen)] = True
            found.append(runs_depend(inside, lag))
        for level in sorted(set(found)):
            assert np.mean(np.array(found) <= level + 1e-12) <= level + 1e-12


@pytest.mark.parametrize(
    ("inside", "lag"),
    [(np.tile([0, 1], 100), 1), (np.tile([0, 1], 100), 2)],
    ids=["alternating", "of period two"],
)
def test_runs_that_depend_on_those_before_are_seen(inside, lag):
    assert runs_depend(inside.astype(bool), lag) < 1e-9


# the e-value of outputs against a known distribution


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


@pytest.mark.parametrize("known", [(0.5, 0.5), (0.98, 0.01, 0.01)])
def test_its_mean_is_one_if_the_distribution_is_known(known):
    assert mean((*known, 0.0), known, 0.0, 12) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("truth", [(0.6, 0.4, 0.0), (0.5, 0.4, 0.1), (0.55, 0.4, 0.05)])
def test_it_is_at_most_one_wherever_the_residual_is(truth):
    assert mean(truth, (0.5, 0.4), 0.1, 8) <= 1 + 1e-9


def test_what_cannot_come_refutes():
    known = np.array([0.5, 0.5])
    assert math.isinf(log_e_value(np.array([10, 10]), known, 1, 0.0))
    assert log_e_value(np.array([10, 10]), known, 1, 1e-9) > math.log(1_000)


@pytest.mark.parametrize(("last", "hits", "runs"), [(2, 2, 6), (3, 1, 7), (4, 3, 6)])
def test_that_no_hit_is_among_the_last_runs_by_all_orders(last, hits, runs):
    orders = list(itertools.combinations(range(runs), hits))
    early = [order for order in orders if max(order) < runs - last]
    by_all = len(early) / len(orders)
    assert all_come_before(last, hits, runs) == pytest.approx(by_all, abs=1e-12)
