"""A broken claim is shown on a small pair: refuted there anew, and counted on held-out runs."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import Sequential, audit
from pytest_dp.auditors import budget


def crowded(records: list[int], rng: np.random.Generator) -> float:
    """Half of the noise that is needed, but only where somebody is over 60."""
    return len(records) + rng.laplace(scale=0.5 if max(records, default=0) > 60 else 1.0)


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(budget, "SHOWN_SECONDS", 120.0)


EXAMPLES = [list(map(int, np.random.default_rng(k).integers(20, 90, 25))) for k in range(2)]


@pytest.mark.canary
@pytest.mark.parametrize("coupled", [True, False])
def test_it_is_shown_on_few_records(coupled: bool) -> None:
    result = audit(
        crowded,
        eps=1.0,
        neighbors="add_remove_one",
        inputs=EXAMPLES,
        method=Sequential(coupled=coupled),
        seed=4,
        n_jobs=1,
        max_seconds=600,
    )
    example = result.counterexample
    assert example is not None
    assert max(len(example.d1), len(example.d2)) <= 2
    assert max(*example.d1, *example.d2) > 60
    assert result.lower > 1.0
    assert example.lower > 1.0


def test_a_mechanism_that_does_not_take_smaller_inputs_is_shown_on_what_it_takes() -> None:
    def needs_five(records: list[int], rng: np.random.Generator) -> float:
        if len(records) < 5:
            raise ValueError("too few records")
        return len(records) + rng.laplace(scale=0.5)

    result = audit(
        needs_five,
        eps=1.0,
        neighbors="add_remove_one",
        inputs=[[1, 2] * 9],
        seed=4,
        n_jobs=1,
        max_seconds=600,
    )
    example = result.counterexample
    assert example is not None
    assert min(len(example.d1), len(example.d2)) == 5


def test_pairs_that_the_claim_names_are_shown_as_they_are() -> None:
    pair = ([61, 20, 30], [61, 20])
    result = audit(crowded, eps=1.0, pairs=[pair], seed=4, n_jobs=1)
    example = result.counterexample
    assert example is not None
    assert sorted([example.d1, example.d2]) == sorted(pair)
