"""What nobody promised is no leak: inputs that a mechanism refuses, and those that cannot occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_dp import audit, queries

Rng = np.random.Generator


def not_empty(data: list[int], rng: Rng) -> float:
    if not data:
        raise ValueError("no data")
    return sum(data) + rng.laplace()


def has_a_first(data: list[int], rng: Rng) -> float:
    return 0 * data[0] + sum(data) + rng.laplace()


def at_most_five(data: list[int], rng: Rng) -> float:
    if len(data) > 5:
        raise ValueError("too many")
    return sum(data) + rng.laplace()


@pytest.mark.parametrize("mechanism", [not_empty, has_a_first, at_most_five])
def test_an_input_that_is_refused_is_not_played(mechanism: Any) -> None:
    inputs = [[1, 0, 1]]
    result = audit(
        mechanism,
        eps=1.0,
        neighbors="add_remove_one",
        inputs=inputs,
        seed=1,
        n_jobs=1,
        max_samples=20_000,
    )
    assert result.verdict == "no violation"


def test_counts_are_not_negative() -> None:
    def roots(counts: list[int], rng: Rng) -> Any:
        return np.sqrt(counts) + rng.laplace(scale=3.0, size=3)

    result = audit(roots, eps=1.0, inputs=queries(3), seed=1, n_jobs=1, max_samples=20_000)
    assert result.verdict == "no violation"


def test_what_is_shown_of_replaced_records_has_as_many_of_them() -> None:
    def mean(data: list[int], rng: Rng) -> float:
        return float(np.mean(data)) + rng.laplace(scale=0.1 / 1.5)

    result = audit(mean, eps=1.0, neighbors="replace_one", inputs=[[0, 1] * 5], seed=1, n_jobs=1)
    assert result.violated
    assert 1.0 < result.lower <= 1.5
    assert result.counterexample is not None
    assert len(result.counterexample.d1) == 10
