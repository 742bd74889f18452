"""Quantities that several leaves make up, bits of floats, and traces that noise leaves behind."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import best_events, values

from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import all_features, bits_of, float_features, lowest_bit_of
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.noise_traces import find_remainders

pytestmark = pytest.mark.slow


leaves = st.one_of(
    st.integers(-3, 3), st.floats(-5, 5), st.sampled_from([math.inf, -math.inf, math.nan]),
    st.sampled_from([True, None, "a"]),
)  # fmt: skip
lists = st.lists(leaves, max_size=5)


def is_number(x):
    return type(x) in (int, float)


def alike(a, b):
    return a == b if is_number(a) and is_number(b) else type(a) is type(b) and a == b


def over_numbers(function):
    return lambda output, _: function(of) if (of := list(filter(is_number, output))) else None


def difference(output, places):
    i, j = (int(place[7:-1]) for place in places)
    both = i < len(output) and is_number(output[i]) and is_number(output[j])
    return output[i] - output[j] if both else None


BY_HAND = {
    "sum": over_numbers(sum),
    "mean": over_numbers(lambda of: sum(of) / len(of)),
    "min": over_numbers(lambda of: math.nan if any(map(math.isnan, of)) else min(of)),
    "max": over_numbers(lambda of: math.nan if any(map(math.isnan, of)) else max(of)),
    "len": lambda output, _: len(output),
    "count": lambda output, level: sum(alike(x, level[1]) for x in output),
    "difference": difference,
}
SUMMARIES = ("sum", "mean", "min", "max", "len")


@settings(max_examples=150, deadline=None)
@given(st.lists(lists, min_size=1, max_size=12))
def test_quantities_against_brute_force(outputs):
    found = all_features(tabulate(outputs))
    differences = [f.argument for f in found if f.kind == "difference"]
    assert differences == [
        (f"output[{i}]", f"output[{i - 1}]")
        for i in range(1, 5)
        if any(all(map(is_number, o[i - 1 : i + 1])) and len(o) > i for o in outputs)
    ]
    for feature in (*found, *(Feature(kind, kind) for kind in SUMMARIES)):
        if feature.kind not in BY_HAND:
            continue
        for output, got in zip(outputs, values(feature, outputs), strict=True):
            want = BY_HAND[feature.kind](output, feature.argument)
            if want is None or (math.isnan(want) and feature.kind != "difference"):
                assert got is None, (feature.text, output)
            else:
                assert got == pytest.approx(want, nan_ok=True), (feature.text, output)


@pytest.mark.parametrize("kind", ["sum", "mean", "min", "max"])
def test_a_summary_is_the_same_alone_and_among_others(kind):
    """A threshold can be a value that was seen, so not even the last bit may differ."""
    r = np.random.default_rng(0)
    outputs = [list(r.normal(size=r.integers(1, 40))) for _ in range(300)]
    feature = Feature(f"{kind}(output)", kind)
    assert values(feature, outputs) == [values(feature, [output])[0] for output in outputs]


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


PYTHON = {"nan": math.nan, "inf": math.inf, "isnan": math.isnan}


def sides(draw, runs, seed=0):
    """Outputs on D (1.0) and on D' (0.0), and which are on D."""
    rng = np.random.default_rng(seed)
    return [draw(d, rng) for d in (1.0, 0.0) for _ in range(runs)], np.arange(2 * runs) < runs


def traces(draw, runs, seed=0):
    """The relations and remainders that outputs call for."""
    outputs, first = sides(draw, runs, seed)
    found = all_features(tabulate(outputs), first)
    return [feature for feature in found if feature.kind in ("relation", "remainder")]


def best(draw, runs=16, seed=0):
    """The best event for such outputs; it counts 0 on one side, and reads as Python."""
    outputs, _ = sides(draw, runs, seed)
    [found] = best_events(outputs, all_features)
    assert (found.c1, found.c2) in ((runs, 0), (0, runs))
    fresh, _ = sides(draw, 200, seed + 1)
    mask = found.event.mask(tabulate(fresh))
    for output, inside in zip(fresh, mask.tolist(), strict=True):
        assert found.event(output) == inside
        if found.event.conditions[0].feature.kind in ("relation", "remainder"):
            assert eval(str(found.event), PYTHON | {"output": output}) == inside, str(found.event)
    return str(found.event), mask


def noise(rng, size=None):
    return rng.laplace(scale=20, size=size)


SHARED = {
    "sum and count": lambda d, z, e: {"sum": 3.3 + d + z, "count": 2 + 2 * d + z},
    "nested": lambda d, z, e: ((d + z, e[0]), {"x": [e[1], {"y": 3 * d - z}]}),
    "single precision": lambda d, z, e: np.array([d + z, e[0], 7.7 + z], dtype=np.float32),
    "one of hundreds": lambda d, z, e: np.concatenate([e, [d + z], np.tile(e, 3)[5:] * z, [z]]),
}


@pytest.mark.parametrize("name", SHARED)
def test_noise_that_is_shared_is_taken_off(name):
    def draw(d, rng):
        return SHARED[name](d, noise(rng), noise(rng, 40))

    text, mask = best(draw)
    assert set(mask[:200].tolist()) | set(mask[200:].tolist()) == {True, False}
    assert max(mask[:200].mean(), mask[200:].mean()) == 1
    assert min(mask[:200].mean(), mask[200:].mean()) < 0.02, text


@pytest.mark.parametrize(
    "draw",
    [
        lambda d, rng: (d + noise(rng), 2 * d + noise(rng)),
        lambda d, rng: [2 * (x := d + noise(rng)) + 1, x],  # computed from one noisy answer
        lambda d, rng: {"n": 5.0, "x": d + noise(rng)},
        lambda d, rng: 7 + d + round(noise(rng)),
        lambda d, rng: noise(rng, 70) + d,
        lambda d, rng: float("nan") if rng.random() < 0.5 else math.inf,
    ],
)
@pytest.mark.parametrize("runs", [12, 200])
def test_outputs_that_show_no_trace_get_no_features(draw, runs):
    assert [traces(draw, runs, seed) for seed in range(2)] == [[]] * 2


@pytest.mark.parametrize("decimals", [0, 2, 6])
@pytest.mark.parametrize("offset", [3.27 + 1.5 + 2.41, -41.877, 12.0])
def test_noise_that_is_rounded_leaves_one_remainder(decimals, offset):
    def draw(d, rng):
        return offset + 0.31 * 10**-decimals * d + round(noise(rng), decimals)

    text, mask = best(draw)
    assert sorted([mask[:200].mean(), mask[200:].mean()]) == [0, 1], text
    assert "%" in text or decimals == 0


def test_rounded_noise_with_exceptions_leaves_one_remainder():
    def draw(d, rng):
        return 10 * int(rng.integers(10**6)) + 3 * int(rng.random() < (0.85 if d else 0.15))

    outputs, first = sides(draw, 64)
    found = all_features(tabulate(outputs), first)
    assert any(" % 10.0, 1)" in feature.text for feature in found)


def test_continuous_numbers_leave_no_remainder():
    rng = np.random.default_rng(0)
    for draw in (rng.laplace, rng.normal, rng.random, rng.standard_cauchy):
        for rows in (12, 60):
            assert (
                find_remainders(["x"] * 400, draw(size=(rows, 400)), draw(size=(rows, 400))) == []
            )
    assert find_remainders(["x"], np.zeros((1, 1)), np.zeros((2, 1))) == []
    singles = rng.laplace(size=(24, 300)).astype(np.float32).astype(np.float64)
    assert find_remainders(["x"] * 300, singles[:12], singles[12:]) == []


def test_random_names_that_both_inputs_share_are_not_counted():
    rng = np.random.default_rng(0)
    names = [f"seed {number}" for number in rng.integers(2**60, size=50)]
    outputs = [(name, bit) for bit in ("yes", "no") for name in names]
    features = [feature.text for feature in all_features(tabulate(outputs), np.arange(100) < 50)]
    assert [text for text in features if ".count(" in text] == [
        "output.count('yes')",
        "output.count('no')",
    ]
