"""Bets on the area under the ROC curve, against all outcomes of small batches and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_dp.statistics.guessing_bounds import AreaBets, area_resolution, estimate_area

LAWS = (
    # of scores 0, 1, 2 with the record and without
    ((0.1, 0.2, 0.7), (0.5, 0.3, 0.2)),
    ((0.0, 0.4, 0.6), (0.6, 0.4, 0.0)),
    ((0.25, 0.5, 0.25), (0.25, 0.5, 0.25)),
    ((0.7, 0.0, 0.3), (0.1, 0.0, 0.9)),
)


def area_of(inside: tuple[float, ...], outside: tuple[float, ...]) -> float:
    return sum(
        p * q * ((i > j) + 0.5 * (i == j))
        for (i, p), (j, q) in itertools.product(enumerate(inside), enumerate(outside))
    )


def mean_wealth(law: tuple[tuple[float, ...], ...], batches: tuple[int, ...]) -> list[float]:
    """What bets against the true area at most, and at least, make of 1 on average, by outcomes."""
    inside, outside = law
    truth, count = area_of(*law), sum(batches)
    total = np.zeros(2)
    for scores in itertools.product(range(3), repeat=2 * count):
        x, y = scores[:count], scores[count:]
        chance = math.prod([inside[i] for i in x] + [outside[j] for j in y])
        if chance:
            bets, opposed, at = AreaBets(truth), AreaBets(1 - truth), 0
            for size in batches:
                part = slice(at, at + size)
                for one in (bets, opposed):
                    one.settle(np.array(x[part], float), np.array(y[part], float))
                    one.begin_anew()
                at += size
            wealth = bets.log_wealth[0, bets.claim], opposed.log_wealth[1, opposed.claim]
            total += chance * np.exp(wealth)
    return total.tolist()


@pytest.mark.slow
def test_bets_win_nothing_on_average_at_the_true_area():
    for batches in [(1,), (2,), (1, 1)]:
        for law in LAWS:
            assert mean_wealth(law, batches) == pytest.approx([1, 1], abs=1e-12)


def test_the_area_and_its_error_are_those_of_all_pairs():
    rng = np.random.default_rng(2)
    inside, outside = rng.integers(0, 9, 40) + 1.0, rng.integers(0, 9, 25) + 0.0
    above = np.sign(inside[:, None] - outside) / 2 + 0.5
    variance = above.mean(1).var(ddof=1) / 40 + above.mean(0).var(ddof=1) / 25
    assert estimate_area(inside, outside) == pytest.approx((above.mean(), math.sqrt(variance)))
    mean, error = estimate_area(np.ones(10), np.zeros(10))
    assert mean == 1
    assert 0.05 < error < 0.2


def refuted(rng: np.random.Generator, truth: float, pairs: int, alpha: float) -> bool:
    """Whether bets against 0.6 win on pairs of which a share of `truth` is won."""
    bets = AreaBets(0.6)
    for start in range(0, pairs, 20):
        size = min(20, pairs - start)
        won = (rng.random(size) < truth).astype(float)
        bets.settle(won, np.full(size, 0.5))
    return bets.p_value <= alpha


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [150, 600])
def test_what_would_be_caught_is_caught_nineteen_times_in_twenty(pairs):
    caught = area_resolution(0.6, pairs, 1e-6)
    assert 0.6 < caught < 0.9
    rng = np.random.default_rng(4)
    often = np.mean([refuted(rng, caught, pairs, 1e-6) for _ in range(100)])
    seldom = np.mean([refuted(rng, (0.6 + caught) / 2, pairs, 1e-6) for _ in range(20)])
    assert often >= 0.9
    assert seldom < 0.5
