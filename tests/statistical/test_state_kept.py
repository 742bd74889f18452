"""Answers that are kept from run to run are errors, not violations."""

from __future__ import annotations

import pytest
from states import verdict

PAIRS = {"neighbors": None, "inputs": None, "pairs": [([], [1])]}
pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.nightly
def test_what_an_earlier_audit_left_below_noise_is_no_violation():
    """Forks of the second audit have the kept answers in common."""
    kept = {}

    def below_noise(data, rng):
        return kept.setdefault(len(data), len(data) + rng.laplace()) + 0.3 * rng.laplace()

    found = {verdict(lambda: below_noise, "sequential", seed, **PAIRS) for seed in range(2)}
    assert found == {"error"}
