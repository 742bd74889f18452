"""What is said of a learned score."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from pytest_dp.betting import additive
from pytest_dp.betting.scores import Attack
from pytest_dp.betting.telling import told_by
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate

RUNS = 1_500


def learned():
    r = np.random.default_rng(0)
    numbers = r.laplace(size=(2 * RUNS, 6))
    numbers[:RUNS, [1, 4]] += (0.8, -0.8)
    kinds = np.where(r.random(2 * RUNS) < np.repeat((0.8, 0.3), RUNS), "yes", "no")
    outputs = [[*row, str(kind)] for row, kind in zip(numbers.tolist(), kinds, strict=True)]
    table, on_d = tabulate(outputs), np.arange(2 * RUNS) < RUNS
    return Attack(additive.fit(table, on_d, features(table)), 1, 1.0), table


def test_a_score_names_what_it_looks_at_with_typical_values_of_both_sides():
    attack, table = learned()
    told = told_by(attack, table)
    assert {text.partition(":")[0] for text in told} == {f"output[{i}]" for i in (1, 4, 6)}
    assert "output[6]: 'yes' in S, 'no' outside" in told
    here, there = map(float, re.findall(r"[-\d.]+(?= in S| outside)", told_1(told)))
    assert here > there + 0.5
    assert told_by(replace(attack, threshold=99.0), table) == ()


def told_1(told):
    return next(text for text in told if text.startswith("output[1]"))
