"""Shrinking keeps what matters; explanations fit their case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_dp.counterexample import diagnose
from pytest_dp.outputs.event_search import one_of
from pytest_dp.outputs.events import Between, Equals, Event
from pytest_dp.outputs.feature import LEN, Feature, leaf
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.rounding import WholeOutputs
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.noise_traces import NoiseRelation, Remainder

OUTPUT = leaf("output")


def said(condition, counts=(500, 100), runs=10_000, searched=()):
    tables = [tabulate(outputs) for outputs in searched]
    return tuple(diagnose(Event((condition,)), counts, (runs, runs), tables))


SOME = Between(OUTPUT, low=1.0)


def of(output):
    table = tabulate([output])
    return one_of(table, [0], WholeOutputs.of_table(table))


@pytest.mark.parametrize(
    ("condition", "beginning"),
    [
        (of(Raised("ValueError")), "The exception itself"),
        (of(None), "A missing value"),
        (Equals(OUTPUT, math.nan), "A missing value"),
        (Equals(LEN, 3.0), "The length"),
    ],
)
def test_what_kind_of_leak(condition, beginning):
    assert said(condition)[0].startswith(beginning)


def test_constant():
    (only,) = said(SOME, (10_000, 0), searched=([2.0] * 9, [0.0] * 9))
    assert "same value in all of its runs on each input" in only
    assert "same value" not in str(said(SOME, (10_000, 0), searched=([2.0] * 9, [0.0, 0.5])))


def test_what_noise_left_behind_is_named():
    def said(condition, *outputs):
        event = Event((condition,))
        return next(diagnose(event, (50, 0), (99, 99), tuple(map(tabulate, outputs))))

    three = NoiseRelation(("x", "y", "z"), (1.0, -1.0, -1.0), digits=6)
    shared = said(Equals(Feature(str(three), "relation", three), 1.5))
    assert shared == (
        "Three numbers of the output share their noise: it cancels out in round(x - y - z, 6). "
        "Draw new noise for each number."
    )
    grid = Remainder("output", 1, 0.0)
    assert "a grid with steps of 0.1, and the data shift" in said(
        Equals(Feature("", "remainder", grid), 0.1)
    )
    recurs = [7.18] * 20 + np.random.default_rng(0).laplace(size=480).tolist()
    released = said(Equals(leaf("output"), 7.18), recurs, recurs[20:])
    assert released.startswith("One output comes again and again")
