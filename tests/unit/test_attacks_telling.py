"""What is said of a learned score."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from results import BROKEN, FOUND

from pytest_dp.betting import additive
from pytest_dp.betting.scores import Attack
from pytest_dp.betting.telling import digits_for, told_by, typical_outputs
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate
from pytest_dp.report.violation import violation

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


def test_the_threshold_has_digits_enough_to_read_apart_from_the_scores_beside_it():
    attack = replace(learned()[0], threshold=3.1240004)
    assert digits_for(attack, np.array([4.0, -1.0])) == 4
    digits = digits_for(attack, np.array([4.0, 3.1240013]))
    assert str(replace(attack, digits=digits)) == "score(output) > 3.124"
    assert f"{3.1240013:.{digits}g}" == "3.124001"


def test_outputs_of_both_sides_are_typical_and_their_scores_apart():
    attack, table = learned()
    inside, outside = (
        [table.raw[row] for row in typical_outputs(attack, table, rows)] for rows in (True, False)
    )
    assert all(attack.score(output) > 1.1 for output in inside)
    assert all(attack.score(output) < 0.9 for output in outside)
    event = replace(attack, told_by=told_by(attack, table))
    found = replace(FOUND, event=event, examples=(tuple(inside), tuple(outside)))
    lines = violation(replace(BROKEN, counterexample=found)).splitlines()
    assert [line for line in lines if line.startswith("       mostly by  output[")]
    assert max(map(len, lines)) <= 76
