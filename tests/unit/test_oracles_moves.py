"""How far draws move, by lines of code: the losses of lines add up to that of the pair."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest

from pytest_dp.oracles.alignment import align
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline

LEGAL, SALES = ("legal", 78_000), ("sales", 41_000)


def moves(mechanism, d1, d2):
    call = Call(mechanism, {}, "rng", None, pristine=Pristine((mechanism, {})))
    return align(call, (d1, d2), lambda _: False, 40, Deadline(60.0))


def exported(staff, rng):
    """Return noisy figures of two teams as CSV: clipped, rounded and written as text."""
    file = io.StringIO()
    for team in ("legal", "sales"):
        paid = [salary for own, salary in staff if own == team]
        people = len(paid) + rng.laplace(scale=4.0)
        salaries = sum(paid) + rng.laplace(scale=100_000)
        row = [round(people, 2), round(float(np.clip(salaries, 0, None)))]
        csv.writer(file).writerow(row)
    return file.getvalue()


def mixed(data, rng):
    first = len(data) + rng.laplace(scale=2.0)
    second = np.array([sum(data), 7.0]) + rng.normal(scale=4.0, size=2)
    return first, second


def test_losses_of_lines_add_up_to_that_of_the_pair():
    found = moves(exported, [LEGAL, SALES], [SALES, SALES])
    by_line = {}
    for move in found.moves:
        by_line.setdefault(move.stack[0].line, []).append(move)
    people, salaries = (by_line[line] for line in sorted(by_line))
    assert sum(move.loss.pure for move in people) == pytest.approx(2 / 4)
    assert sum(move.loss.pure for move in salaries) == pytest.approx(0.78 + 0.41)
    assert [abs(move.distances[0]) for move in salaries] == pytest.approx([78_000, 41_000])
    assert found.bound.pure == pytest.approx(0.5 + 0.78 + 0.41)
    assert found.bound.replay is None  # results keep no runs


def test_losses_of_both_kinds_of_noise_are_those_of_closed_forms():
    found = moves(mixed, [3, 5], [3])
    laplace, normal = found.moves
    assert laplace.loss.pure == pytest.approx(1 / 2)
    assert normal.loss.mu == pytest.approx(5 / 4)
    assert np.abs(normal.distances).tolist() == [5.0, 0.0]
    assert math.isclose(found.bound.pure, laplace.loss.pure)
    assert math.isclose(found.bound.mu, normal.loss.mu)


def test_draws_that_do_not_move_are_left_out():
    assert moves(mixed, [3, 5], [5, 3]).moves == ()
