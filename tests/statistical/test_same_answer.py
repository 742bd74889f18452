"""The same code with the same seed has the same answer, however fast the clock runs."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import pytest

from pytest_dp import audit
from pytest_dp.basics import clocks

TIMES = 10.0
CLAIM: dict[str, Any] = {"eps": 1.0, "pairs": [(0, 1)], "seed": 1, "n_jobs": 1}
SEARCHED: dict[str, Any] = {
    "eps": 1.0,
    "neighbors": "add_remove_one",
    "inputs": [[1, 2, 3]],
    "seed": 1,
    "n_jobs": 1,
    "max_seconds": 600,
}


class FastClock:
    """A clock that runs faster than another; in one way, as a trace may meet it and say more."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._clock, name)
        return lambda: TIMES * read()


def count(x, rng):
    return x + rng.laplace()


def response(x, rng):
    return bool(x) ^ (rng.random() < 1 / (1 + math.e))


def size(records, rng):
    return round(len(records) + rng.laplace(), 1)


def differences_of_gammas(x, rng):
    return x + rng.gamma(1) - rng.gamma(1)


def told(mechanism, claim):
    """Return what an audit says, without seconds."""
    result = audit(mechanism, **claim)
    shown = str(result.counterexample)
    text = re.sub(r"[\d.]+ m?s\b", "", "\n".join([str(result), *result.notes, shown]))
    counts = result.samples, result.pairs, result.proposed, result.lower
    return result.verdict, result.strength, counts, result.estimate, result.resolution, text


def too_little_noise(x, rng):
    return x + rng.laplace(scale=0.4)


def gaussian(x, rng):
    return x + rng.normal(scale=0.5)


def long_output(records, rng):
    return [len(records) + rng.laplace(), *rng.laplace(scale=0.4, size=6) + sum(records[:1])]


class WithLock:
    """A mechanism that cannot be copied, so that it starts afresh in other processes."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x, rng):
        with self.lock:
            return x + rng.laplace(scale=0.3)


@pytest.mark.canary
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (count, CLAIM),
        (response, CLAIM),
        (size, SEARCHED),
        (differences_of_gammas, CLAIM | {"max_samples": 4_000}),
        (too_little_noise, CLAIM),
        (gaussian, {**CLAIM, "eps": None, "rho": 0.5}),
        (long_output, SEARCHED),
        (WithLock(), CLAIM),
    ],
    ids=[
        *("aligned", "exact", "searched", "by bets", "too little noise"),
        *("a divergence", "a smaller pair", "forked"),
    ],
)
@pytest.mark.usefixtures("_without_blame")
def test_a_clock_that_runs_ten_times_as_fast_changes_nothing(monkeypatch, mechanism, claim):
    """Nothing is planned by time; none of these audits is cut off by it."""
    monkeypatch.setattr("pytest_dp.auditors.budget.SHOWN_SECONDS", 60.0)
    before = told(mechanism, claim)
    monkeypatch.setattr(clocks, "_clock", FastClock(clocks._clock))
    assert told(mechanism, claim) == before
