"""Runs of one mechanism that look independent, and those that do not: both ways, by many seeds."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp.auditors.independence import dependence

RUNS = 2_000


def noise(rng):
    return rng.laplace(size=RUNS)


def faded(rng):
    values, last = [], 0.0
    for step in rng.laplace(size=RUNS):
        last = 0.9 * last + step
        values.append(last)
    return np.array(values)


def pooled(rng):
    return rng.laplace(size=300)[rng.integers(300, size=RUNS)]


INDEPENDENT = {
    "noise": lambda rng, n: (n + noise(rng)).tolist(),
    "whole numbers": lambda rng, n: (n + np.round(noise(rng))).tolist(),
    "noise on a grid": lambda rng, n: (n + np.round(noise(rng) * 1024) / 1024).tolist(),
    "tenths": lambda rng, n: [round(value, 1) for value in n + noise(rng)],
    "bits": lambda rng, n: (rng.random(RUNS) < 0.2 + 0.3 * n).tolist(),
    "single precision": lambda rng, n: (n + noise(rng)).astype(np.float32).astype(float).tolist(),
    "one of two values": lambda rng, n: [
        [0.123456789, 2.718281828][int(b)] for b in rng.random(RUNS) < (n + 1) / 3
    ],
    "a dict": lambda rng, n: [{"n": 3, "sum": value} for value in n + noise(rng)],
    "one input without noise": lambda rng, n: (n + n * noise(rng)).tolist(),
}
DEPENDENT = {
    "an answer that is kept": lambda rng, n: [n + rng.laplace()] * RUNS,
    "a bit that is kept": lambda rng, n: [n % 2 == 0] * RUNS,
    "an answer for each hundred": lambda rng, n: np.repeat(n + noise(rng)[::100], 100).tolist(),
    "a bit for each hundred": lambda rng, n: np.repeat(rng.random(RUNS // 20) < 0.5, 20).tolist(),
    "a pool": lambda rng, n: (n + pooled(rng)).tolist(),
    "noise that fades": lambda rng, n: (n + faded(rng)).tolist(),
    "antithetic noise": lambda rng, n: (n + np.ravel([[v, -v] for v in noise(rng)[::2]])).tolist(),
    "an answer that is kept beside another": lambda rng, n: [
        {"kept": kept, "sum": value}
        for kept, value in zip(np.repeat(noise(rng)[:20], 100), n + noise(rng), strict=True)
    ],
}


@pytest.mark.parametrize("make", INDEPENDENT.values(), ids=INDEPENDENT)
def test_independent_runs_look_so(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        assert dependence((make(rng, 0), make(rng, 1)), None) == "", seed


@pytest.mark.parametrize("make", DEPENDENT.values(), ids=DEPENDENT)
def test_what_is_kept_is_seen(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        assert dependence((make(rng, 0), make(rng, 1)), None), seed
