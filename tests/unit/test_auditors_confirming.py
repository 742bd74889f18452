"""What counts as an answer that is kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from pytest_dp.auditors.independence import (
    draw_same_values,
    may_repeat_by_chance,
    repeat_own_answers,
    run_dependence,
)


@pytest.mark.parametrize(
    ("answers", "runs", "chance"),
    [
        ((1, -1, -1), 2, True),
        (np.random.default_rng(1).laplace(size=2).tolist(), 2, False),
        ((1, -1, -1, 1), 16, False),
    ],
    ids=["a coin", "noise that comes twice", "a coin that falls alike sixteen times"],
)
def test_a_coin_may_repeat_itself_and_noise_does_not(answers, runs, chance):
    outputs = [[answer] * runs for answer in answers]
    assert repeat_own_answers(outputs)
    assert may_repeat_by_chance(outputs) == chance


@pytest.mark.parametrize(
    ("copies", "alike"),
    [
        (lambda rng: [[0.25, *rng.laplace(size=4).tolist()]] * 8, True),
        (lambda rng: [[rng.laplace(), 0.5, *rng.laplace(size=3).tolist()] for _ in range(8)], True),
        (lambda rng: (rng.random((24, 5)) < 0.9).tolist(), False),
        (lambda rng: [[1.0] * 5] * 24, False),
    ],
    ids=["bytes in reserve", "of the second run only", "a loaded coin", "no noise"],
)
def test_processes_that_draw_alike(copies, alike):
    assert all(draw_same_values(copies(np.random.default_rng(seed))) == alike for seed in range(20))


RUNS = 2_000


def noise(rng):
    return rng.laplace(size=RUNS)


INDEPENDENT = {
    "noise": lambda rng, n: (n + noise(rng)).tolist(),
    "noise on a grid": lambda rng, n: (n + np.round(noise(rng) * 1024) / 1024).tolist(),
    "a noisy sum over a noisy count": lambda rng, n: (
        (40 * n + rng.integers(0, 30, RUNS)) / rng.integers(7, 23, RUNS)
    ).tolist(),
    "bits": lambda rng, n: (rng.random(RUNS) < 0.2 + 0.3 * n).tolist(),
    "a dict": lambda rng, n: [{"n": 3, "sum": value} for value in n + noise(rng)],
    "one input without noise": lambda rng, n: (n + n * noise(rng)).tolist(),
}
DEPENDENT = {
    "an answer that is kept": lambda rng, n: [n + rng.laplace()] * RUNS,
    "an answer for each hundred": lambda rng, n: np.repeat(n + noise(rng)[::100], 100).tolist(),
    "a bit for each hundred": lambda rng, n: np.repeat(rng.random(RUNS // 20) < 0.5, 20).tolist(),
    "a pool": lambda rng, n: (n + noise(rng)[rng.integers(300, size=RUNS)]).tolist(),
    "a pool of large answers": lambda rng, n: (
        1e9 + n + noise(rng)[rng.integers(300, size=RUNS)]
    ).tolist(),
    "noise that fades": lambda rng, n: (n + lfilter([1], [1, -0.9], noise(rng))).tolist(),
    "an answer that is kept beside another": lambda rng, n: [
        {"kept": kept, "sum": value}
        for kept, value in zip(np.repeat(noise(rng)[:20], 100), n + noise(rng), strict=True)
    ],
}


@pytest.mark.parametrize("make", INDEPENDENT.values(), ids=INDEPENDENT)
def test_independent_runs_look_so(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        assert run_dependence((make(rng, 0), make(rng, 1)), None) == "", seed


@pytest.mark.parametrize("make", DEPENDENT.values(), ids=DEPENDENT)
def test_what_is_kept_is_seen(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        assert run_dependence((make(rng, 0), make(rng, 1)), None), seed
