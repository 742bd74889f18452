"""Outputs of independent parts: by brute force, in closed form, and where parts are dependent."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from exact import call_of, distribution, loss

from benchmarks.mechanisms import bloom_filter, one_time_rappor, rappor
from pytest_dp.oracles.factors import compare, factored
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.stand_ins import CannotInstrument

pytestmark = pytest.mark.slow


def law(mechanism, data=0):
    return factored(call_of(mechanism), data, Deadline(60.0))


def pair(mechanism, one=0, other=1):
    return compare(law(mechanism, one), law(mechanism, other))


def four_bits(x, rng):
    """Two bits depend on each other."""
    first = bool(x) ^ (rng.random() < 0.2)
    second = first if rng.random() < 0.3 else bool(x)
    return {"a": [first, second], "b": (int(rng.integers(3)) + x) % 3, "c": "always"}


def test_laws_are_those_of_all_combinations():
    for x in (0, 1):
        parts = law(four_bits, x).parts
        assert sorted(map(len, parts)) == [1, 1, 2]
        whole = {}
        for combination in product(*(part.items() for part in parts.values())):
            places = [at for key in parts for at in key]
            values = [value for key, _ in combination for _, value in key]
            leaves = tuple(value for _, value in sorted(zip(places, values, strict=True)))
            whole[leaves] = math.prod(float(weight) for _, weight in combination)
        known = distribution(four_bits, x)
        expected = {
            (*map(bool, o["a"]), o["b"], o["c"]): float(w)
            for o, w in zip(known.outcomes, known.weights, strict=True)
        }
        assert whole == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_losses_are_those_of_all_combinations(delta):
    found, _ = pair(four_bits).eps_at(delta)
    assert found == pytest.approx(loss(four_bits, 0, 1, delta).upper, rel=1e-9)


@pytest.mark.parametrize(("mechanism", "kept"), [(one_time_rappor, (0.525, 0.475)), (rappor, None)])
def test_bits_that_are_flipped_one_by_one(mechanism, kept):
    if kept is None:  # 1 is kept with .625, and then 1 with .55 or .45
        kept = tuple(a * 0.55 + (1 - a) * 0.45 for a in (0.625, 0.375))
    differ = int((bloom_filter(0) != bloom_filter(1)).sum())
    value, error = pair(mechanism).eps_at(0.0)
    assert value == pytest.approx(differ * math.log(kept[0] / kept[1]), rel=1e-9)
    assert error < 1e-9


def running_parity(x, rng):
    """Each bit depends on all before it."""
    return np.cumsum(rng.random(20) < 0.3 + x / 10) % 2


def by_first(x, rng):
    """How likely the others are depends on the first."""
    first = rng.random() < 0.5
    return [first, *(rng.random(5) < (0.3 if first else 0.6))]


def ends_early(x, rng):
    out = []
    for _ in range(30):
        out.append(bool(rng.random() < 0.5))
        if sum(out) > 10:
            break
    return out


@pytest.mark.parametrize("mechanism", [by_first, running_parity, ends_early])
def test_outputs_without_independent_parts_are_refused(mechanism):
    with pytest.raises(CannotInstrument):
        law(mechanism)
