"""Numbers that are equal but for rounding, and those that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_dp.outputs.feature import Feature, leaf
from pytest_dp.outputs.rounding import (
    NO_ROOM,
    clusters,
    room,
    tolerance_of,
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
    around = tolerance_of(noisy(values, seed))
    found, counts = clusters(*np.unique(noisy(values, seed), return_counts=True), around)
    steps, exact = np.unique(np.round((values - shift) / step), return_counts=True)
    assert len(found.values) == len(steps)
    assert (counts == exact).all()
    assert (found.index(noisy(values, seed + 1)) == found.index(values)).all()


def test_whole_numbers_and_bits_have_no_errors():
    assert tolerance_of(np.array([1.0, 2e15, 2e15 + 1, 3.0])) == NO_ROOM
    table = tabulate([0.1, 0.2, 0.30000000000000004] * 5)
    assert room(Feature("log2(lowest bit of output)", "lowest bit", "output"), table) == NO_ROOM
    assert room(replace(OUTPUT, exact=True), table) == NO_ROOM
    assert room(OUTPUT, table) != NO_ROOM
