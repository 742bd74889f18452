"""Vectorised calls, inputs and outputs that are changed, and exceptions."""

from __future__ import annotations

import dataclasses
import sys
from collections import deque

import numpy as np
import pandas as pd
import pytest
from drawing import outputs, sampler

from pytest_dp.basics.arrays import copy_data
from pytest_dp.basics.errors import ClaimError
from pytest_dp.running.calling import Call, has_few_distinct_rows, is_noise_shared
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import SampleRequest


def drawn_vectorized(mechanism, count=100):
    return outputs(mechanism, count, vectorized="size")


def antithetic(data, rng, size):
    noise = rng.normal(size=(-(-size // 2), 2))
    return 3.7 + np.stack([noise, -noise], axis=1).reshape(-1, 2)[:size]


def test_vectorized_mechanisms_that_are_wrong():
    for mechanism, message in [
        (lambda data, rng, size: rng.random(size + 1), "101 outputs|26|outputs for"),
        (lambda data, rng, size: rng.random(), "a single value"),
        (lambda data, rng, size: np.full(size, rng.random()), "share their noise"),
        (lambda data, rng, size: np.repeat(rng.random(-(-size // 2)), 2)[:size], "share their"),
        (lambda data, rng, size: [(x, "a") for x in [*rng.random(size // 2)] * 2], "share"),
        (antithetic, "mirror"),
    ]:
        with pytest.raises(ClaimError, match=message):
            drawn_vectorized(mechanism)


def test_vectorized_mechanisms_that_are_right():
    for mechanism in [
        lambda data, size: np.zeros(size),
        lambda data, rng, size: rng.random(size) < 0.001,
        lambda data, rng, size: [[rng.random()] * int(rng.integers(3)) for _ in range(size)],
        lambda data, rng, size: rng.integers(2, size=size),
        lambda data, rng, size: rng.geometric(0.5, size) - rng.geometric(0.5, size),
    ]:
        assert len(drawn_vectorized(mechanism, 3000)) == 3000


def adds_in_place(data, rng):
    data += 1
    return data.sum() + rng.random()


def test_a_table_that_is_only_read_is_not_called_changed():
    table = pd.DataFrame({"user": [1, 1, 2], "cost": [0.5, 2.0, 3.0], "name": ["a", "b", "a"]})
    table.insert(1, "day", pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-03"]))
    some = sampler(lambda data, rng: len(data.values) + rng.random())
    some.draw([SampleRequest(Input(table), 40, (1, 0, 0))], Deadline(30))
    assert some.notes == []


def test_a_changed_input_is_given_afresh():
    for mechanism, make in [
        (lambda d, rng: d.pop() + len(d) + rng.random(), lambda: [1, 2, 3]),
        (adds_in_place, lambda: np.arange(3.0)),
        (lambda d, rng: d[0].append(1) or len(d[0]) + rng.random(), lambda: ([],)),
        (lambda d, rng: d.setdefault("n", len(d)) + rng.random(), lambda: {"a": 1}),
    ]:
        data = make()
        some = sampler(mechanism)
        given = Input(data)
        drawn = some.draw(
            [SampleRequest(given, 200, (1, 0, 0)), SampleRequest(given, 40, (1, 1, 0))],
            Deadline(30),
        )
        whole = {int(output) for part in drawn for output in part}
        assert len(whole) == 1
        assert some.notes == ["changes its input: every run was given a fresh copy"]
        assert str(data) == str(make())
        fresh = mechanism(make(), np.random.default_rng(0))
        assert whole == {int(fresh)}


def test_exceptions_on_some_runs_are_outputs():
    def sometimes(data, rng):
        draw = rng.integers(4)
        if draw == 0:
            raise ValueError("no")
        if draw == 1:
            sys.exit(1)
        return float(draw)

    seen = {repr(output) for output in outputs(sometimes, 200)}
    assert seen == {"raises ValueError: no", "raises SystemExit: 1", "2.0", "3.0"}


@pytest.mark.parametrize("values", [2, 30, 3_000])
def test_rows_that_agree_by_chance_are_never_refused(values):
    rng = np.random.default_rng(values)
    calls = [rng.integers(-values, values + 1, size=200).astype(float) for _ in range(400)]
    assert any(map(has_few_distinct_rows, calls)) == (values < 3_000)
    assert not any(is_noise_shared(calls[k : k + 8]) for k in range(0, 400, 8))


def test_a_row_of_a_structured_array_is_copied():
    table = np.zeros(1, dtype=[("count", float), ("sum", float)])
    kept = copy_data(table[0])
    table["count"] = 7.0
    assert kept["count"] == 0.0


BUFFER = np.zeros(2)
LIST = [0.0, 0.0]


@dataclasses.dataclass(frozen=True)
class Frozen:
    values: object


FORMS = {
    "deep tuple": lambda: (1.0, ({"x": (BUFFER, 2)},)),
    "list in a dict in a list": lambda: [{"a": LIST}],
    "frozen dataclass": lambda: Frozen({"a": BUFFER}),
    "frame": lambda: pd.DataFrame({"a": BUFFER}, copy=False),
    "deque": lambda: {"a": deque([BUFFER])},
}


def released(form):
    def mechanism(data, rng):
        noise = sum(data) + rng.laplace(scale=0.5)
        BUFFER[:] = LIST[:] = noise, 0.0
        return FORMS[form]()

    return mechanism


@pytest.mark.parametrize("form", FORMS)
def test_what_is_filled_anew_is_copied(form):
    outputs = Call(released(form), {}, "rng").draw([1], 40, np.random.default_rng(0))
    assert len(set(map(repr, outputs))) == 40


def test_vectorised_calls_may_reuse_what_is_deep_inside():
    rows = [{"a": np.zeros(1)} for _ in range(30)]

    def mechanism(data, rng, size):
        for row in rows[:size]:
            row["a"][0] = rng.laplace()
        return rows[:size]

    call = Call(mechanism, {}, "rng", "size")
    generator = np.random.default_rng(0)
    kept = [call.draw([1], 30, generator) for _ in range(2)]
    assert len({float(row["a"][0]) for rows in kept for row in rows}) == 60
