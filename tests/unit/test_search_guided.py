"""Inputs that take another way at a comparison, by how far each is from it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import strategies as st

from pytest_dp.claiming.claim import Arguments
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.proposers.comparisons import Distances
from pytest_dp.proposers.guided import Guided
from pytest_dp.proposers.turns import matching_texts
from pytest_dp.running.calling import prepare
from pytest_dp.running.deadline import Deadline

NAMES = ("ann", "robert")


def more_than_ten(data, rng):
    return sum(data) > 10


def equals_seven(data, rng):
    return [value == 7 for value in data]


def is_among_names(data, rng):
    return data in NAMES


def any_above(data, rng):
    return bool((np.asarray(data) > 4).any())


def after_a_test(data, rng):
    return data[0] < 3 and data[1] >= 5


class Secret:
    def __init__(self):
        self.__limit = 10

    def above(self, data, rng, key=lambda record: record, *, least: int = 0):
        return key(sum(data)) > self.__limit

    def above_zero(self, data, rng, key=lambda record: record, *, least: int = 0):
        return [key(value) > least for value in data]


COMPARED = [
    pytest.param(Secret().above, [3], {}, id="private-name"),
    pytest.param(Secret().above_zero, [-3, -4], {True: 3.0}, id="method-with-defaults"),
    pytest.param(more_than_ten, [3, 4], {True: 3.0}, id="sum-below"),
    pytest.param(equals_seven, [1, 5, 20], {True: 2.0}, id="closest-of-a-loop"),
    pytest.param(is_among_names, "anna", {True: 1.0}, id="letters"),
    pytest.param(any_above, [1, 2.5], {True: 1.5}, id="array"),
    pytest.param(after_a_test, [5, 1], {True: 2.0}, id="not-asked"),
]


@pytest.mark.parametrize(("mechanism", "data", "expected"), COMPARED)
def test_runs_tell_how_far_each_comparison_is_from_its_other_way(mechanism, data, expected):
    distances = Distances()
    code = getattr(mechanism, "__func__", mechanism).__code__
    runner = NoiselessRunner(prepare(mechanism, Arguments()), rewrite=distances.record_in)
    with runner.in_place(Deadline(60.0)):
        runner.run(data)
    open_ways = {way[-1]: distance for way, distance in distances.least.items() if distance}
    assert open_ways == expected
    assert getattr(mechanism, "__func__", mechanism).__code__ is code


def count(records, rng):
    return len(records) + rng.laplace()


def leaking_if(is_gate):
    def noisy_count(records, rng):
        return count(records, rng) if not is_gate(records) else float(len(records))

    return noisy_count


ROWS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=6)
THREE = st.lists(st.floats(0, 1e6), min_size=3, max_size=3)


def behind_a_line(records):
    return any(3 * a - 7 * b == 41 and b > 10 for a, b in records)


def with_a_total(records):
    return sum(a for a, _ in records) == 777


def far_apart(numbers):
    return numbers[0] - numbers[1] > 9e5 and numbers[2] < 1


def leap_day(days):
    return any(day.month == 2 and day.day == 29 for day in days)


GATES = [
    pytest.param(ROWS, behind_a_line, id="behind-a-line"),
    pytest.param(ROWS, with_a_total, id="total"),
    pytest.param(THREE, far_apart, id="floats"),
    pytest.param(st.lists(st.dates(), min_size=1, max_size=3), leap_day, id="leap-day"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "is_gate"), GATES)
def test_gates_are_opened_that_draws_hardly_meet(inputs, is_gate):
    guided = Guided(inputs, prepare(leaking_if(is_gate), Arguments()), 1)
    opened = [drawn.value for drawn, _ in guided.find_openings()]
    assert any(map(is_gate, opened))
    again = Guided(inputs, prepare(leaking_if(is_gate), Arguments()), 1)
    assert [drawn.value for drawn, _ in again.find_openings()] == opened


TEMPORARY = re.compile(r"^x-\d+\.a$")


def with_patterns(names, rng):
    """Read [names] (and count)."""
    plates = [name for name in names if re.fullmatch(r"[A-C]{2}\d{3}", name)]
    return len(plates) + sum(1 for name in names if TEMPORARY.match(name)) + rng.laplace()


def test_texts_match_the_regular_expressions_of_the_code():
    texts = matching_texts(with_patterns, {}, 1)
    assert any(re.fullmatch(r"[A-C]{2}\d{3}", text) for text in texts)
    assert any(TEMPORARY.match(text) for text in texts)
