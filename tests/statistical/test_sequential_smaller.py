"""A broken claim is shown on a small pair: refuted there anew, and counted on held-out runs."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import audit
from pytest_dp.auditors import budget


def crowded(records, rng):
    """Half of the noise that is needed, but only where somebody is over 60."""
    return len(records) + rng.laplace(scale=0.5 if max(records, default=0) > 60 else 1.0)


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """However busy the machine is."""
    monkeypatch.setattr(budget, "SHOWN_SECONDS", 120.0)


EXAMPLES = [list(map(int, np.random.default_rng(k).integers(20, 90, 25))) for k in range(2)]


COMMON = {"eps": 1.0, "neighbors": "add_remove_one", "seed": 4, "n_jobs": 1, "max_seconds": 600}


@pytest.mark.canary
def test_it_is_shown_on_few_records():
    result = audit(crowded, inputs=EXAMPLES, **COMMON)
    example = result.counterexample
    assert max(len(example.d1), len(example.d2)) <= 2
    assert max(*example.d1, *example.d2) > 60
    assert result.lower > 1.0
    assert example.lower > 1.0


def test_a_mechanism_that_does_not_take_smaller_inputs_is_shown_on_what_it_takes():
    def needs_five(records, rng):
        if len(records) < 5:
            raise ValueError("too few records")
        return len(records) + rng.laplace(scale=0.5)

    example = audit(needs_five, inputs=[[1, 2] * 9], **COMMON).counterexample
    assert min(len(example.d1), len(example.d2)) == 5
