"""Answers that are kept from run to run are errors, not violations."""

from __future__ import annotations

import pytest
from states import verdict

PAIRS = {"neighbors": None, "inputs": None, "pairs": [([], [1])]}
pytestmark = pytest.mark.usefixtures("_without_blame")


def in_a_file_for_a_while(folder):
    """Keeps an answer in a file for some runs, below noise: processes have it in common."""
    left = [0]

    def mechanism(data, rng):
        file = folder / str(len(data))
        left[0] -= 1
        if left[0] < 0 or not file.exists():
            left[0] = 100
            file.write_text(repr(len(data) + rng.laplace()))
        return float(file.read_text()) + rng.normal(scale=0.01)

    return mechanism


def test_what_is_kept_in_a_file_is_no_violation(tmp_path):
    assert verdict(lambda: in_a_file_for_a_while(tmp_path), "sequential", 1, **PAIRS) != "violated"


@pytest.mark.nightly
def test_what_an_earlier_audit_left_below_noise_is_no_violation():
    """Forks of the second audit have the kept answers in common."""
    kept = {}

    def below_noise(data, rng):
        return kept.setdefault(len(data), len(data) + rng.laplace()) + 0.3 * rng.laplace()

    found = {verdict(lambda: below_noise, "sequential", seed, **PAIRS) for seed in range(2)}
    assert found == {"error"}
