"""The search for leaks that are planted: each of the families finds its own, and is fast."""

from __future__ import annotations

import datetime as dt
import math
import time
import warnings

import numpy as np
import pytest
from searching import check, look, planted
from zoo import Broken, Colour, Plain, Point, Readable

from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- the five families, each with a leak that only it shows ---

N = 600


@pytest.fixture
def r():
    return np.random.default_rng(5)


def bits(r, p, n=6):
    return [bool(x) for x in r.random(n) < p]


def test_family_categories_of_fixed_length(r):
    one, two = ([bits(r, p) for _ in range(N)] for p in (0.5, 0.8))
    assert "output.count(" in planted(one, two)


def test_family_categories_of_fixed_length_by_hamming_distance(r):
    reference = [True, False] * 3

    def draw(flip):
        return [bool(b) ^ bool(r.random() < flip) for b in reference]

    one, two = [draw(0.5) for _ in range(N)], [draw(0.25) for _ in range(N)]
    found, table, first = look(one, two, references=[reference], most=40)
    check(found, table, first, one + two)
    best = next(f for f in found if "hamming" in str(f.event))
    assert best.rank == max(f.rank for f in found)


def test_family_categories_of_variable_length(r):
    one, two = ([["a", "b"] * int(r.poisson(m)) for _ in range(N)] for m in (2, 4))
    assert "len(output)" in planted(one, two)
    one = [[*"ab" * (i % 9), "x"] for i in range(N)]
    two = [[*"ab" * (i % 9), "y"] for i in range(N)]
    text = planted(one, two)
    assert "'x'" in text or "'y'" in text


def test_family_last_of_variable_length(r):
    def draw(last):
        return [bool(b) for b in r.random(r.integers(8, 14)) < 0.5] + [bool(r.random() < last)]

    one, two = [draw(0.05) for _ in range(N)], [draw(0.95) for _ in range(N)]
    assert "output[-1]" in planted(one, two)


def test_family_numbers_of_fixed_length(r):
    one, two = (list(r.normal(size=(N, 3)) + np.array([0, m, 0])) for m in (0, 3))
    assert "output[1]" in planted(one, two)
    one, two = (list(r.normal(size=(N, 40)) + m) for m in (0, 0.5))
    assert "mean(output)" in planted(one, two)
    one, two = r.normal(size=(N, 30)), r.normal(size=(N, 30))
    two[np.arange(N), r.integers(30, size=N)] += 4
    assert "max(output)" in planted(list(one), list(two))
    assert "min(output)" in planted(list(-one), list(-two))


def test_family_numbers_of_variable_length(r):
    one, two = ([list(r.normal(size=r.poisson(m))) for _ in range(N)] for m in (3, 6))
    found, table, first = look(one, two)
    assert any("len(output)" in str(f.event) and f.rank > 0.95 * found[0].rank for f in found)
    check(found, table, first, one + two)


def test_family_mixed(r):
    """False a number of times, then a number that leaks only after so many."""

    def draw(shift):
        length = int(r.integers(0, 4))
        number = r.normal() + (shift if length == 2 else 0)
        return [False] * length + [float(number)]

    one, two = [draw(0) for _ in range(4 * N)], [draw(3) for _ in range(4 * N)]
    text = planted(one, two)
    assert "output[2]" in text or ("len(output)" in text and "output[-1]" in text)


def test_family_mixed_in_a_context(r):
    """The number leaks in one direction among short outputs, in the other among long ones."""

    def draw(sign):
        kind = bool(r.integers(2))
        return [kind, float(r.normal() + sign * (2 if kind else -2))]

    one, two = [draw(1) for _ in range(4 * N)], [draw(-1) for _ in range(4 * N)]
    assert " and " in planted(one, two)


# --- planted leaks ---


def test_leak_half_integers(r):
    one, two = ([int(x) + 0.5 for x in r.laplace(m, 1, N)] for m in (0, 3))
    planted(one, two)
    assert planted([0.5, 1.5] * 300, [1.5, 2.5] * 300) in ("output == 0.5", "output == 2.5")


def test_leak_none_or_float(r):
    one = [float(r.normal()) for _ in range(N)]
    two = [None if r.random() < 0.3 else float(r.normal()) for _ in range(N)]
    assert planted(one, two) in ("output is None", "output is not None", "output is a number")


def test_leak_length(r):
    one, two = ([list(r.normal(size=2 + (r.random() < p))) for _ in range(N)] for p in (0, 0.3))
    assert "len(output)" in planted(one, two)


def test_leak_exception(r):
    one = [float(r.normal()) for _ in range(N)]
    two = [Raised("ValueError") if r.random() < 0.2 else float(r.normal()) for _ in range(N)]
    assert "raise" in planted(one, two)


@pytest.mark.parametrize("place", [0, 1, 37, 98, 99])
def test_leak_of_one_coordinate_of_a_hundred(r, place):
    one, two = r.normal(size=(N, 100)), r.normal(size=(N, 100))
    two[:, place] += 3
    assert f"output[{place}]" in planted(one, two)


def test_leak_of_one_coordinate_of_many_that_is_a_category(r):
    one, two = ([bits(r, 0.5, 150) for _ in range(N)] for _ in range(2))
    for output in two:
        output[77] = False
    assert "output[77]" in planted(one, two)


def test_leak_recurring_value(r):
    one = list(r.normal(size=N))
    two = [0.12345 if r.random() < 0.2 else float(r.normal()) for _ in range(N)]
    assert planted(one, two) == "output == 0.12345"


def test_leak_nan(r):
    one = list(r.normal(size=N))
    two = [math.nan if r.random() < 0.2 else float(r.normal()) for _ in range(N)]
    assert planted(one, two) == "isnan(output)"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda x: x, lambda x: str(x)),
        (lambda x: [x, 1.0], lambda x: (x, 1.0)),
        (lambda x: [x], lambda x: x),
        (lambda x: {"a": x}, lambda x: None),
        (lambda x: {"a": x}, lambda x: {"b": x}),
        (lambda x: np.array([x]), lambda x: [x]),
        (lambda x: Point(x, 1), lambda x: (x, 1)),
        (lambda x: Plain(), lambda x: Broken()),
        (lambda x: Readable(1), lambda x: Readable(2)),
        (lambda x: Colour.RED, lambda x: Colour.BLUE),
        (lambda x: True, lambda x: 1),
        (lambda x: dt.date(2020, 1, 1), lambda x: dt.date(2020, 1, 2)),
        (lambda x: (i for i in "ab"), lambda x: lambda: 3),
    ],
)
def test_leak_type(r, one, two):
    planted([one(float(x)) for x in r.normal(size=N)], [two(float(x)) for x in r.normal(size=N)])


def test_leak_key(r):
    def draw(p):
        return {"a": float(r.normal()), **({"b": float(r.normal())} if r.random() < p else {})}

    assert planted([draw(0.1) for _ in range(N)], [draw(0.9) for _ in range(N)])


# --- size ---


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "seconds"),
    [
        (lambda r: r.normal(size=(2_000, 1_000)), 4),
        (lambda r: [list(map(float, r.normal(size=r.integers(1000)))) for _ in range(1_000)], 5),
        (lambda r: [list(map(float, r.normal(size=1000))) for _ in range(500)], 4),
        (lambda r: [["a", 1.0] * int(r.integers(500)) for _ in range(1_000)], 5),
        (lambda r: [{str(k): 1.0 for k in range(100)} for _ in range(500)], 4),
    ],
)
def test_large_outputs_are_fast(r, make, seconds):
    one, two = make(r), make(r)
    started = time.process_time()
    found, _, _ = look(one, two)
    spent = time.process_time() - started
    found[0].event.mask(tabulate(one))
    assert spent < seconds
