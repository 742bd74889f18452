"""Numbers that are equal but for rounding, and those that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dp.betting.feature_bins import bins_of, output_categories
from pytest_dp.outputs.event_search import search
from pytest_dp.outputs.events import OneOf
from pytest_dp.outputs.feature import Feature, leaf
from pytest_dp.outputs.features import features
from pytest_dp.outputs.rounding import (
    NO_ROOM,
    clusters,
    room,
    tolerance_of,
)
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.statistics.event_bets import rank_for

OUTPUT = leaf("output")


def noisy(values, seed=0, errors=3):
    """Values with errors of a few units in the last place."""
    off = np.random.default_rng(seed).integers(-errors, errors + 1, len(values))
    return values + off * np.spacing(np.abs(values).max())


def grid(step, shift=0.0, seed=0, n=4_000):
    return step * np.round(np.random.default_rng(seed).laplace(scale=3, size=n) / step) + shift


def events(table, first, limit):
    rank = rank_for(ApproximateDP(0.0), 0.0)(len(table) // 2)
    return [one.event for one in search(table, first, rank, features(table, first), limit=limit)]


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


@pytest.mark.parametrize("step", [0.1, 0.7])
@pytest.mark.parametrize("n", [400, 4_000])
def test_models_and_events_do_not_see_errors(step, n):
    values = grid(step, seed=4, n=n)
    table, first = tabulate(noisy(values).tolist()), np.arange(n) % 2 == 0
    again = tabulate(noisy(values, seed=9).tolist())
    column = bins_of(OUTPUT, table, 12)
    assert (column.codes(table) == column.codes(again)).all()
    found = events(table, first, limit=20)
    assert len(found) > 5
    for event in found:
        assert (event.mask(table) == event.mask(again)).all(), str(event)


def test_whole_outputs_are_compared_up_to_errors():
    values = grid(1.1, seed=5)
    rows = [[a, {"b": b}] for a, b in zip(np.clip(values, -2, 2), np.sign(values), strict=True)]
    off = [[float(noisy(np.array([a]), i)[0]), b] for i, (a, b) in enumerate(rows)]
    table, again = tabulate(rows), tabulate(off)
    known = output_categories(again, 50, 1.0)
    assert len(known.marks) == len(output_categories(table, 50, 1.0, exact=True).marks)
    assert (known.codes(table) == known.codes(again)).all()
    assert output_categories(again, 5, 1.0, exact=True) is None
    first = values > 0
    found = events(again, first, limit=30)
    assert any(isinstance(condition, OneOf) for one in found for condition in one.conditions)
    for event in found:
        assert (event.mask(table) == event.mask(again)).all(), str(event)
