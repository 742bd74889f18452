"""The bound on guesses about coins: against the best of all mechanisms, and against formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy

from pytest_dp.privacy import read_guarantee
from pytest_dp.privacy.guarantees import HockeyStick
from pytest_dp.statistics import guessing_bounds


def stick(eps: float, delta: float = 0.0) -> tuple[HockeyStick]:
    return (HockeyStick(eps, delta),)


def best_of_all(guesses: int, canaries: int, reach: int, *sticks: HockeyStick) -> float:
    """The largest chance of `reach` right guesses over all mechanisms, by a linear program.

    Its variables are the chance of each answer under each outcome of the coins, and by how much
    each exceeds ``exp(eps)`` times that of a neighbour.
    """
    coins = list(itertools.product((0, 1), repeat=canaries))
    open_or_not = itertools.product((0, 1, None), repeat=canaries)
    answers = [answer for answer in open_or_not if canaries - answer.count(None) == guesses]
    n, k = len(coins), len(answers)
    flips = [
        (s, t, *stick)
        for s, t in itertools.product(range(n), repeat=2)
        if sum(map(np.not_equal, coins[s], coins[t])) == 1
        for stick in sticks
    ]
    size = n * k + len(flips) * k
    gain = np.zeros(size)
    for s, a in itertools.product(range(n), range(k)):
        if sum(c == g for c, g in zip(coins[s], answers[a], strict=True)) >= reach:
            gain[s * k + a] = -1 / n
    over = scipy.sparse.lil_array((len(flips) * (k + 1), size))
    most = np.zeros(len(flips) * (k + 1))
    for at, (s, t, eps, delta) in enumerate(flips):
        for a in range(k):
            row, excess = at * k + a, n * k + at * k + a
            over[row, s * k + a], over[row, t * k + a] = 1.0, -math.exp(eps)
            over[row, excess] = -1.0
            over[len(flips) * k + at, excess] = 1.0
        most[len(flips) * k + at] = delta
    sums = scipy.sparse.lil_array((n, size))
    for s in range(n):
        sums[s, s * k : (s + 1) * k] = 1.0
    solved = scipy.optimize.linprog(gain, over.tocsr(), most, sums.tocsr(), np.ones(n))
    return -float(solved.fun)


def test_the_chances_are_those_of_the_best_of_all_mechanisms():
    for eps, delta in [(0.5, 0.0), (1.5, 0.0), (1.0, 0.01), (0.0, 0.02)]:
        for guesses, canaries in [(1, 1), (2, 2), (3, 3), (1, 3), (2, 3), (1, 2)]:
            allowed = guessing_bounds.tail_chances(guesses, canaries, stick(eps, delta))
            for reach in range(1, guesses + 1):
                best = best_of_all(guesses, canaries, reach, *stick(eps, delta))
                assert allowed[reach] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("guesses", "canaries"), [(3, 3), (2, 3)])
@pytest.mark.parametrize(
    "sticks", [((0.0, 0.3), (1.0, 0.05)), ((0.2, 0.2), (0.9, 0.1), (2.0, 0.0))]
)
def test_no_mechanism_that_keeps_several_promises_guesses_more(guesses, canaries, sticks):
    sticks = tuple(HockeyStick(*each) for each in sticks)
    allowed = guessing_bounds.tail_chances(guesses, canaries, sticks)
    for reach in range(1, guesses + 1):
        best = best_of_all(guesses, canaries, reach, *sticks)
        assert best <= allowed[reach] + 1e-9
        assert allowed[reach] <= best + 0.1


def test_chances_are_below_those_that_were_published_where_much_is_right():
    """Those of Steinke, Nasr and Jagielski, 2023, Theorem 3.1."""
    guesses, canaries = 20_000, 100_000
    eps, delta, q = 1.0, 1e-6, 1 / (1 + math.exp(-1.0))
    f = scipy.stats.binom.sf(np.arange(-1, guesses), guesses, q)
    for deviations in (1, 3, 5):
        v = int(guesses * q + deviations * math.sqrt(guesses * q * (1 - q)))
        v = min(v, guesses)
        i = np.arange(1, v + 1)
        published = f[v] + 2 * canaries * delta * np.max((f[v - i] - f[v]) / i)
        assert (
            f[v] < guessing_bounds.tail_chances(guesses, canaries, stick(eps, delta))[v] < published
        )


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.0), (3.0, 1e-6)])
def test_what_refutes_and_what_the_bound_says_agree(eps, delta):
    claim = read_guarantee({"eps": eps, "delta": delta})
    right = guessing_bounds.fewest_right_guesses(100, 200, stick(eps, delta), 0.01)
    bounds = [guessing_bounds.lower_bound(right + step, 100, 200, claim, 0.01) for step in (-1, 0)]
    assert bounds[0] < eps <= bounds[1] * 1.001
    assert guessing_bounds.lower_bound(50, 100, 200, claim, 0.01) == 0.0
    assert guessing_bounds.fewest_right_guesses(3, 200, stick(eps, delta), 0.001) is None


def test_a_bound_exceeds_the_truth_no_more_often_than_allowed():
    """Of randomised response, which attains the bound: by all outcomes, without a sample."""
    eps, r = 1.3, 80
    chances = scipy.stats.binom.pmf(range(r + 1), r, 1 / (1 + math.exp(-eps)))
    claim = read_guarantee({"eps": 1.0})
    above = [guessing_bounds.lower_bound(v, r, r, claim, 0.05) > eps for v in range(r + 1)]
    wrong = float(np.sum(chances[above]))
    assert 0.02 < wrong <= 0.05


def test_right_guesses_of_several_runs_are_added_up():
    """Of eps alone as many coins at once; beside a delta as draws of the law of one run."""
    at_once = guessing_bounds.tail_chances(120, 120, stick(1.3))
    assert guessing_bounds.tail_chances(40, 40, stick(1.3), 3) == pytest.approx(at_once, rel=1e-6)
    one = guessing_bounds.tail_chances(20, 50, stick(1.0, 1e-3))
    law = -np.diff(np.append(one, 0.0))
    drawn = np.random.default_rng(1).choice(21, (100_000, 3), p=law).sum(axis=1)
    allowed = guessing_bounds.tail_chances(20, 50, stick(1.0, 1e-3), 3)
    for right in (40, 48, 53):
        assert np.mean(drawn >= right) == pytest.approx(allowed[right], abs=0.006)


def test_as_many_runs_are_asked_for_as_refute_what_hides_nothing():
    needed = guessing_bounds.runs_needed(10, 100, stick(1.0), 1e-6)
    for runs, is_enough in ((needed, True), (needed - 1, False)):
        most = guessing_bounds.tail_chances(10, 100, stick(1.0), runs)[-1]
        assert (most <= 1e-6 / runs) == is_enough
    assert math.isinf(guessing_bounds.runs_needed(1, 100, stick(1.0, 0.5), 1e-6))


def test_as_many_are_guessed_as_can_show_something_and_no_more_than_there_are():
    guesses = sum(guessing_bounds.plan_guesses(1_000, stick(2.0), 1e-6))
    assert (
        guessing_bounds.fewest_right_guesses(guesses, 1_000, stick(2.0), 1e-6)
        < guesses
        < guessing_bounds.max_guesses(1_000)
    )
    assert sum(guessing_bounds.plan_guesses(50, stick(4.0), 1e-6)) == guessing_bounds.max_guesses(
        50
    )
