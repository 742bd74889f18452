"""What a pass is worth where no attack comes near the claim, and what empty outputs ask for."""

from __future__ import annotations

import math

import pytest

from pytest_dp import audit
from pytest_dp.report.violation import headline

PAIR = {"pairs": [([0], [1])], "seed": 1, "n_jobs": 1}


def laplace(rng, scale, size=None):
    """Laplace noise whose loss nobody can compute from its draws."""
    return scale * (rng.gamma(1.0, size=size) - rng.gamma(1.0, size=size))


def value(scale):
    return lambda data, rng: data[0] + laplace(rng, scale)


@pytest.mark.parametrize(
    ("method", "scale", "is_far"),
    [("sequential", 1.5, False), ("sequential", 5.0, True), ("dpsniper", 5.0, True)],
)
def test_what_would_be_caught_is_not_extrapolated_from_attacks_far_below_the_claim(
    method, scale, is_far
):
    result = audit(value(scale), eps=1.0, method=method, max_samples=60_000, **PAIR)
    assert result.verdict == "no violation"
    assert (result.far_below is not None) == is_far
    assert math.isinf(result.resolution) == is_far
    if is_far:
        assert result.strength == "weak"
        assert 1 / scale <= result.far_below < 1 / 3
        assert "more noise than needed, or the audit overlooks the feature" in result.reason
        assert "strongest attack 0." in headline(result)
    else:
        assert result.strength in ("strong", "fair")


def test_groups_that_are_never_released_ask_for_larger_ones():
    def counts_above_a_limit(data, rng):
        noisy = {group: data.count(group) + laplace(rng, 1.0) for group in sorted(set(data))}
        return {group: count for group, count in noisy.items() if count > 12.0}

    pairs = [([1, 1, 2], [1, 1])]
    result = audit(counts_above_a_limit, eps=1.0, delta=1e-3, pairs=pairs, seed=1, n_jobs=1)
    assert result.verdict != "violated"
    assert "returned an empty answer ({}) in " in result.reason
    assert "larger than the threshold" in result.reason
    assert "missing noise" not in result.reason
    assert "features=" not in result.reason
