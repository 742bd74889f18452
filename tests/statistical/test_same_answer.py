"""The same code with the same seed has the same answer, however fast the clock runs."""

from __future__ import annotations

import math
import re
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
}


class FastClock:
    """A clock that runs faster than another."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._clock, name)
        return (lambda: TIMES * value()) if callable(value) else value


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
    text = re.sub(r"[\d.]+ m?s\b", "", "\n".join([str(result), *result.notes]))
    counts = result.samples, result.pairs, result.screened, result.proposed
    return result.verdict, result.strength, counts, result.estimate, result.resolution, text


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (count, CLAIM),
        (response, CLAIM),
        (size, SEARCHED),
        (differences_of_gammas, CLAIM | {"max_samples": 4_000}),
    ],
    ids=["aligned", "exact", "searched", "by bets"],
)
def test_a_clock_that_runs_ten_times_as_fast_changes_nothing(monkeypatch, mechanism, claim):
    before = told(mechanism, claim)
    monkeypatch.setattr(clocks, "_clock", FastClock(clocks._clock))
    assert told(mechanism, claim) == before
