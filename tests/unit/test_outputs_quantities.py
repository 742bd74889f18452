"""Quantities that several leaves make up, and those that a function of the user gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import values

from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow


def texts(found):
    return [feature.text for feature in found]


# --- sums, positions, differences ---

leaves = st.one_of(
    st.integers(-3, 3), st.floats(-5, 5), st.sampled_from([math.inf, -math.inf, math.nan]),
    st.sampled_from([True, None, "a"]),
)  # fmt: skip
lists = st.lists(leaves, max_size=5)


def is_number(x):
    return type(x) in (int, float)


def alike(a, b):
    return a == b if is_number(a) and is_number(b) else type(a) is type(b) and a == b


def position(output, best):
    """Where the largest or smallest number stands, the first of several that are nearly equal."""
    at = [i for i, x in enumerate(output) if is_number(x)]
    if not at or any(math.isnan(output[i]) for i in at):
        return next((i for i in at if math.isnan(output[i])), None)
    found = best(output[i] for i in at)
    size = max(abs(output[i]) for i in at)
    room = 2.0**-50 * size if math.isfinite(size) else 0.0
    return next(i for i in at if output[i] == found or abs(output[i] - found) <= room)


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
    "argmin": lambda output, _: position(output, min),
    "argmax": lambda output, _: position(output, max),
    "len": lambda output, _: len(output),
    "count": lambda output, level: sum(alike(x, level[1]) for x in output),
    "difference": difference,
}
SUMMARIES = ("sum", "mean", "min", "max", "argmin", "argmax", "len")


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


def test_positions_do_not_depend_on_last_digits():
    equal = [[0.1 + 0.2, 0.3, 0.2], [0.3, 0.1 + 0.2, 0.2]]
    assert values(Feature("argmax(output)", "argmax"), equal) == [0, 0]
    assert values(Feature("argmax(output)", "argmax"), [[0.3, 0.3 + 1e-12]]) == [1]


@pytest.mark.parametrize("kind", ["sum", "mean", "min", "max"])
def test_a_summary_is_the_same_alone_and_among_others(kind):
    """A threshold can be a value that was seen, so not even the last bit may differ."""
    r = np.random.default_rng(0)
    outputs = [list(r.normal(size=r.integers(1, 40))) for _ in range(300)]
    feature = Feature(f"{kind}(output)", kind)
    assert values(feature, outputs) == [values(feature, [output])[0] for output in outputs]


def test_of_many_differences_the_telling_ones_are_chosen():
    r = np.random.default_rng(0)
    steps = r.normal(size=(2_000, 500))
    steps[1_000:, 377] += 1.0
    outputs, first = steps.cumsum(axis=1), np.arange(2_000) < 1_000
    found = texts(f for f in all_features(tabulate(outputs), first) if f.kind == "difference")
    assert len(found) == 64
    assert "output[377] - output[376]" in found
    assert len(all_features(tabulate(outputs))) < 200
