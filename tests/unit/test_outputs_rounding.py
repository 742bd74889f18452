"""Numbers that are equal but for rounding, right noise, and choosing one of many places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from searching import look

from pytest_dp.outputs.feature import Feature, leaf
from pytest_dp.outputs.features import MAX_PLACES, all_features, choose_places, features
from pytest_dp.outputs.leaves import category, without_last_digits
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.rounding import (
    EXACT,
    cluster_numbers,
    feature_tolerance,
    tolerance_of_numbers,
)
from pytest_dp.outputs.table import tabulate

OUTPUT = leaf("output")


def noisy(values, seed=0, errors=3):
    """Values with errors of a few units in the last place."""
    off = np.random.default_rng(seed).integers(-errors, errors + 1, len(values))
    return values + off * np.spacing(np.abs(values).max())


def grid(step, shift=0.0, seed=0, n=4_000):
    return step * np.round(np.random.default_rng(seed).laplace(scale=3, size=n) / step) + shift


@given(
    st.sampled_from([0.1, 0.25, 1 / 3, 0.7, np.pi / 10, 1e-6]),
    st.sampled_from([0.0, 1.0, 12345.6]),
    st.integers(0, 5),
)
def test_errors_are_merged_and_steps_are_not(step, shift, seed):
    values = grid(step, shift, seed)
    around = tolerance_of_numbers(noisy(values, seed))
    found, counts = cluster_numbers(*np.unique(noisy(values, seed), return_counts=True), around)
    steps, exact = np.unique(np.round((values - shift) / step), return_counts=True)
    assert len(found.values) == len(steps)
    assert (counts == exact).all()
    assert (found.index(noisy(values, seed + 1)) == found.index(values)).all()


def test_whole_numbers_and_bits_have_no_errors():
    assert tolerance_of_numbers(np.array([1.0, 2e15, 2e15 + 1, 3.0])) == EXACT
    table = tabulate([0.1, 0.2, 0.30000000000000004] * 5)
    bits = Feature("log2(lowest bit of output)", "lowest bit", "output")
    assert feature_tolerance(bits, table) == EXACT
    assert feature_tolerance(replace(OUTPUT, exact=True), table) == EXACT
    assert feature_tolerance(OUTPUT, table) != EXACT


def test_last_digits_go():
    for text, shorter in [
        ("3.3000000000000003", "3.3"),
        ('{"mean": 0.30000000000000004, "n": 12}', '{"mean": 0.3, "n": 12}'),
        ("-1.7999999999999998 days", "-1.8 days"),
        ("[0.7999999999999999, 12.299999999999999]", "[0.8, 12.3]"),
        ("1.2000000000000002e-07", "1.2e-07"),
        ("4.440892098500626e-16", "0.0"),
        ("-8.326672684688674e-17", "0.0"),
        ("0.10000000000036380", "0.1"),
        ("100.00000000000001", "100.0"),
    ]:
        assert without_last_digits(text) == shorter
        assert category(text) == category(shorter)
        assert category(text.encode()) == category(shorter.encode())
        assert category(Raised("ValueError", message=text)) == category(
            Raised("ValueError", message=shorter)
        )


@pytest.mark.parametrize("make", [np.asarray, "dicts"])
def test_of_thousands_of_places_the_one_that_moves_is_learned_from(make):
    rng = np.random.default_rng(5)
    noise = rng.laplace(size=(24, 3_000))
    numbers = np.concatenate([noise, noise])
    first = np.arange(48) < 24
    numbers[first, 1_234] += 1
    if make == "dicts":
        outputs = [{f"bin {i}": x for i, x in enumerate(row)} for row in numbers.tolist()]
        place = "output['bin 1234']"
    else:
        outputs, place = make(numbers), "output[1234]"
    table = tabulate(outputs)
    assert choose_places(table, first, 24).chosen == [place]
    found = all_features(table, first, 24)
    assert [f.text for f in found if f.kind == "leaf"] == [place]
    assert {f.kind for f in found} >= {"mean", "sum"}
    assert len(found) < 20
    assert len([f for f in features(table, first) if f.kind == "leaf"]) == MAX_PLACES // 2


RUNS = 6_000
EDGE = 0.025
"""Probability of the tail in which the other part is released with too little noise."""


def right(z, value, noise):
    return value + np.where(z > np.log(1 / (2 * EDGE)), 1.5, 1.0) * noise


def outputs(mechanism, value, seed):
    rng = default_rng(seed)
    z, noise = rng.laplace(size=(2, RUNS))
    released = mechanism(z, value, noise)
    return [[float(a), float(b)] for a, b in zip(z, released, strict=True)]


@pytest.mark.parametrize("seed", range(2))
def test_ranks_no_event_of_a_right_mechanism_as_a_violation(seed):
    found, *_ = look(outputs(right, 0.0, 2 * seed), outputs(right, 1.0, 2 * seed + 1), eps=1.0)
    assert all(each.rank <= 0 for each in found)
