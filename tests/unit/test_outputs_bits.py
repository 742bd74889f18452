"""Bits of floating-point numbers, which can tell what noise was added to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dp.outputs.features import bits_of, float_features, lowest_bit_of
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow

awkward = st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 2.0**-1023, 1.7976931348623157e308, math.inf, math.nan]
)
floats = st.one_of(st.floats(), awkward, st.integers(-1000, 1074).map(lambda k: 2.0**-k))


def brute_lowest_bit(x):
    """The largest k such that x / 2**k is a whole number."""
    whole, power = abs(Fraction(x).numerator), -int(math.log2(Fraction(x).denominator))
    while whole % 2 == 0:
        whole, power = whole // 2, power + 1
    return power


@settings(max_examples=300, deadline=None)
@given(st.lists(floats, min_size=1, max_size=8))
def test_lowest_bit_against_brute_force(numbers):
    got, codes = lowest_bit_of("output").columns(tabulate(numbers))
    for x, k, code in zip(numbers, got, codes, strict=True):
        if x == 0 or not math.isfinite(x):
            assert math.isnan(k)
            assert code == ABSENT
        else:
            assert k == brute_lowest_bit(x)
            assert code == NUMBER
            scaled = Fraction(x) / Fraction(2) ** int(k)
            assert scaled.denominator == 1
            assert scaled.numerator % 2 == 1


@pytest.mark.parametrize("width", [20, 200])
def test_of_many_numbers_the_telling_ones_have_their_bits_looked_at(width):
    r = np.random.default_rng(0)
    outputs = r.laplace(scale=1.0, size=(2_000, width))
    at = width - 3
    outputs[1_000:, at] = np.round(outputs[1_000:, at], 3)
    first = np.arange(2_000) < 1_000
    found = float_features(tabulate(outputs), first)
    lowest = [feature for feature in found if feature.kind == "lowest bit"]
    assert len(lowest) == min(width, 64)
    assert lowest_bit_of(f"output[{at}]") in lowest
    assert len(found) == len(lowest) + 8 * 64
    assert set(bits_of(f"output[{at}]")) <= set(found)
    assert len(float_features(tabulate(outputs))) == len(found)
