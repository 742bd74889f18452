"""Claims of eps = 0 beside a delta: outputs on both inputs differ by no more than that in all."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import audit


def tells(chance):
    """Tells which input it got with this probability."""

    def mechanism(x, size, rng):
        told = rng.random(size) < chance
        return np.where(told, x, rng.integers(2, 4, size))

    return mechanism


@pytest.mark.canary
@pytest.mark.parametrize("method", ["sequential", "statdp", "dpsniper"])
@pytest.mark.parametrize("chance", [0.1, 0.3])
def test_audits_of_eps_0(method, chance):
    result = audit(
        tells(chance),
        pairs=[(1, 0)],
        vectorized="size",
        eps=0.0,
        delta=0.1,
        method=method,
        alpha=1e-3,
        max_samples=24_000,
        margin=1.5,
        seed=1,
        n_jobs=1,
    )
    assert result.violated == (chance > 0.1)
    assert str(result)
    assert result.lower == 0.0 if chance <= 0.1 else result.counterexample.delta_lower > 0.1
    assert (result.p_value <= 1e-3) == result.violated
