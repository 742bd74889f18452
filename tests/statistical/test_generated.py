"""Leaks that only some inputs show, found from a strategy; their corrected twins pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from pytest_dp import audit

VISITS = st.lists(st.tuples(st.integers(0, 120), st.sampled_from(["a", "b", "c", "rare"])))
INCOMES = st.lists(st.floats(-1e6, 1e6) | st.just(math.nan))


pytestmark = pytest.mark.usefixtures("_verdict_only", "few_pairs")


def noisy(answer, size, rng, scale=1.0):
    return answer + rng.laplace(scale=scale, size=size)


def rare(records, rng, size, broken):
    bonus = 4 * any(kind == "rare" for _, kind in records) if broken else 0
    return noisy(len(records) + bonus, size, rng)


def clipped(incomes, rng, size, broken):
    clean = [0.0 if math.isnan(income) else income for income in incomes]
    switched_off = broken and len(incomes) > 0 and math.isnan(min(incomes, key=math.isfinite))
    total = sum(clean) if switched_off else sum(np.clip(clean, 0, 1))
    return noisy(total, size, rng)


def one_parameter(records, k, rng, size, broken):
    return noisy(len(records), size, rng, 0.2 if broken and k == 7 else 1.0)


CASES = [
    (rare, {"inputs": VISITS}),
    (clipped, {"inputs": INCOMES}),
    (one_parameter, {"inputs": VISITS, "params": {"k": st.integers(1, 10)}}),
]
EFFORT = {"eps": 1.0, "neighbors": "add_remove_one", "vectorized": "size", "n_jobs": 1}


def audited(mechanism, claim, seed, samples, *, broken):
    def mechanism_of(data, rng, size, **params):
        return mechanism(data, rng=rng, size=size, broken=broken, **params)

    return audit(mechanism_of, seed=seed, max_samples=samples, **EFFORT, **claim)


@pytest.mark.spot(3)
@pytest.mark.parametrize(("mechanism", "claim"), CASES, ids=[case[0].__name__ for case in CASES])
def test_what_leaks_for_some_inputs_only_is_found_and_its_twin_passes(mechanism, claim):
    """False alarms themselves are counted where audits take less time."""
    result = audited(mechanism, claim, 0, 100_000, broken=True)
    assert result.violated, result
    result = audited(mechanism, claim, 0, 2_000, broken=False)
    assert not result.violated, result


@pytest.mark.spot(2)
@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_other_auditors_look_at_the_pairs_up_front(method):
    claim = {"inputs": VISITS, "method": method}
    assert audited(rare, claim, 1, 30_000, broken=True).violated
    assert not audited(rare, claim, 1, 10_000, broken=False).violated
