"""Outputs that a later run changes are copied, wherever they hold what changes."""

from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np
import pandas as pd
import pytest

from pytest_dp import audit
from pytest_dp.running.calling import Call

BUFFER = np.zeros(2)
LIST = [0.0, 0.0]


@dataclasses.dataclass(frozen=True)
class Frozen:
    values: object


class Slotted:
    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


FORMS = {
    "itself": lambda: BUFFER,
    "deep tuple": lambda: (1.0, ({"x": (BUFFER, 2)},)),
    "list in a dict in a list": lambda: [{"a": LIST}],
    "frozen dataclass": lambda: Frozen({"a": BUFFER}),
    "slots": lambda: Slotted([BUFFER]),
    "frame": lambda: pd.DataFrame({"a": BUFFER}, copy=False),
    "deque": lambda: {"a": deque([BUFFER])},
    "iterator": lambda: iter([BUFFER]),
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
    texts = set(map(repr, outputs)) if form != "slots" else {repr(o.values) for o in outputs}
    assert len(texts) == 40


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("form", ["deep tuple", "frozen dataclass"])
def test_a_leak_in_it_is_found(form):
    result = audit(released(form), eps=1.0, pairs=[([1, 1], [1])], n_jobs=1, max_samples=3_000)
    assert result.violated


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
