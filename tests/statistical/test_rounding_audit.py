"""Last digits of floats: no alarm unless they are asked for, and grids are still seen.

All of the correct mechanisms add rounded noise to a rounded answer, which keeps the claim over real
numbers. Over doubles, sums that are equal come out with other last digits on either input.
"""

from __future__ import annotations

import json
from itertools import accumulate

import numpy as np
import pytest

from pytest_dp import audit

LONG, SHORT = [0.3, 0.6, 1.1, 0.1], [0.1, 0.2, 0.7]
TWO_PAIRS = {"pairs": [(LONG, LONG[:-1]), (SHORT, SHORT[:-1])]}
FINE = {"neighbors": "add_remove_one", "inputs": [[3.27, 1.5, 2.41]]}


pytestmark = pytest.mark.usefixtures("_without_blame", "_by_samples")


def tenths(records, rng, size):
    return np.round(sum(records), 1) + np.round(rng.laplace(scale=1.3, size=size), 1)


def single_precision(records, rng, size):
    noise = np.round(rng.laplace(scale=1.3, size=size), 1).astype(np.float32)
    return np.float32(np.round(sum(records), 1)) + noise


def noise_first(records, rng):
    *_, total = accumulate(records, initial=round(rng.laplace(scale=1.3), 1))
    return total


def as_json(records, rng):
    return json.dumps({"mean": noise_first(records, rng), "unit": "days"})


CORRECT = [tenths, single_precision, noise_first, as_json]
OFTEN = {"alpha": 1e-3, "samples": 3_000}
"""Where all digits are compared, the first three alarm after some 1,500 samples."""


def audited(mechanism, inputs, samples, **keywords):
    vectorized = "size" if "size" in mechanism.__code__.co_varnames else None
    return audit(
        mechanism,
        eps=1.0,
        **inputs,
        vectorized=vectorized,
        max_samples=samples,
        max_seconds=600,  # however busy the machine is
        margin=None,
        n_jobs=1,
        seed=2,
        **keywords,
    )


@pytest.mark.canary
@pytest.mark.parametrize("mechanism", CORRECT, ids=lambda m: m.__name__)
def test_equal_decimals_are_equal(mechanism):
    assert not audited(mechanism, TWO_PAIRS, **OFTEN).violated


@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize("mechanism", [tenths, noise_first], ids=lambda m: m.__name__)
def test_unless_their_bits_are_asked_for(mechanism):
    assert audited(mechanism, TWO_PAIRS, **OFTEN, floating_point=True).violated


@pytest.mark.parametrize(
    ("kind", "step"), [(np.float64, 0.1), (np.float32, 0.1), (np.float64, 1.0)]
)
def test_grids_that_the_data_shift_are_seen(kind, step):
    def noise_is_rounded(records, rng, size):
        noise = step * np.round(rng.laplace(scale=20, size=size) / step)
        return kind(sum(records)) + noise.astype(kind)

    result = audited(noise_is_rounded, FINE, 30_000)
    assert result.violated
    assert "%" in str(result.counterexample.event)
