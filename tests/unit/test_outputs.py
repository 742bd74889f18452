"""Outputs of every kind: tables, features, events, their texts and thresholds."""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
import threading
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import check, look
from zoo import Answer, Broken, BrokenMapping, Colour, Plain, Point, Readable, Unset, itself

from pytest_dp.counterexample import simplest
from pytest_dp.outputs.features import features
from pytest_dp.outputs.outcome import Raised


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


HELPERS = {
    "isnan": lambda x: isinstance(x, float) and math.isnan(x),
    # Plain addition: since Python 3.12, `sum` makes up for rounding.
    "mean": lambda xs: functools.reduce(operator.add, map(float, xs)) / len(xs),
    "nan": math.nan,
    "inf": math.inf,
    "array": np.array,
}


# --- outputs of every kind ---


KINDS = {
    "floats": lambda r: r.normal(),
    "float": lambda r: float(r.normal()),
    "int": lambda r: int(r.integers(5)),
    "huge int": lambda r: 10 ** int(r.integers(300, 400)) * (-1) ** int(r.integers(2)),
    "bool": lambda r: bool(r.integers(2)),
    "string": lambda r: "abc"[r.integers(3)],
    "tokens": lambda r: str(r.random()),
    "None": lambda r: None,
    "None or float": lambda r: None if r.random() < 0.3 else float(r.normal()),
    "special": lambda r: [math.nan, math.inf, -math.inf, 0.0, -0.0][r.integers(5)],
    "infinite": lambda r: [math.inf, -math.inf][r.integers(2)],
    "extreme": lambda r: [1.7e308, -1.7e308, 5e-324, 0.0][r.integers(4)] * r.random(),
    "list": lambda r: [float(r.normal())] * int(r.integers(4)),
    "mixed list": lambda r: [True, None, "a", 1.5, math.nan][: r.integers(6)],
    "nested": lambda r: [[1.0] * int(r.integers(3)), (float(r.normal()), [])],
    "dict": lambda r: {k: float(r.normal()) for k in "abc" if r.random() < 0.5},
    "dict of keys": lambda r: {(1, "a"): 1, 2: float(r.normal()), None: "x"},
    "namedtuple": lambda r: Point(float(r.normal()), None),
    "dataclass": lambda r: Answer(float(r.normal()), [1] * int(r.integers(3))),
    "dataclass not set": lambda r: Unset(),
    "set": lambda r: set("abcd"[: r.integers(5)]),
    "set of sets": lambda r: {frozenset("ab"), frozenset("c"), int(r.integers(3))},
    "vector": lambda r: r.normal(size=3),
    "matrix": lambda r: r.normal(size=(2, 2)),
    "object array": lambda r: np.array([None, "a", float(r.normal())], dtype=object),
    "empty array": lambda r: np.zeros((0, 3)),
    "ragged arrays": lambda r: r.normal(size=r.integers(3)),
    "complex": lambda r: complex(r.normal(), 1),
    "Decimal": lambda r: Decimal(int(r.integers(10))) / 3,
    "Decimal specials": lambda r: [Decimal("NaN"), Decimal("sNaN"), Decimal("inf")][r.integers(3)],
    "Fraction": lambda r: Fraction(int(r.integers(10)), 3),
    "enum": lambda r: [Colour.RED, Colour.BLUE][r.integers(2)],
    "datetime": lambda r: dt.datetime(2020, 1, 1 + int(r.integers(3))),
    "object": lambda r: Plain(),
    "readable object": lambda r: Readable(int(r.integers(3))),
    "broken object": lambda r: Broken(),
    "broken mapping": lambda r: BrokenMapping(a=1),
    "itself": lambda r: itself,
    "lock": lambda r: threading.Lock(),
    "class": lambda r: [int, Plain][r.integers(2)],
    "generator": lambda r: (i for i in range(3)),
    "Raised": lambda r: Raised("ValueError") if r.random() < 0.5 else 1.0,
    "series": lambda r: pd.Series(r.normal(size=r.integers(3))),
    "frame": lambda r: pd.DataFrame({"a": r.normal(size=2), "b": ["x", None]}),
    "NA": lambda r: pd.NA if r.random() < 0.5 else 1.0,
    "columns of one name": lambda r: pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
}
EVERYTHING = list(KINDS.values())


@pytest.mark.spot(3)
@pytest.mark.parametrize("kind", [*KINDS, "anything"])
def test_any_output_works(kind):
    r = np.random.default_rng(3)

    def draw():
        make = KINDS.get(kind) or EVERYTHING[r.integers(len(EVERYTHING))]
        return make(r)

    outputs = [draw() for _ in range(400)]
    found, table, first = look(outputs[:200], outputs[200:])
    check(found, table, first, outputs)
    if kind == "anything":
        return
    assert len(found) > 0
    assert all(one.rank < 10 for one in found), str(found)  # the sides are alike
    for feature in features(table):
        numbers, codes = feature.columns(table)
        assert len(numbers) == len(codes) == 400
    for one in found:
        simplest(one, table, first, lambda c1, c2: np.full(len(c1), 5.0))


numbers = st.one_of(st.integers(-5, 5), st.floats(-5, 5).map(lambda x: round(x, 2)))
of_one_kind = st.one_of(
    st.lists(numbers, min_size=1, max_size=5),
    st.lists(st.one_of(numbers, st.just(math.nan)), min_size=1, max_size=3),
    st.lists(st.sampled_from([None, 1.5, "a"]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=2),
    st.lists(st.lists(numbers, max_size=3), min_size=1, max_size=5),
    st.lists(st.lists(st.sampled_from(["a", "b"]), max_size=3), min_size=1, max_size=5),
    st.lists(st.fixed_dictionaries({"a": numbers}, optional={"b": numbers}), min_size=1),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(of_one_kind, st.randoms(use_true_random=False))
def test_events_mean_what_they_say(values, random):
    outputs = [random.choice(values) for _ in range(40)]
    found, _, _ = look(outputs[:20], outputs[20:], most=30)
    for one in found:
        text = str(one.event)
        if " is a number" in text:
            continue
        for output in outputs[:10]:
            if "repr(" in text and "0" in repr(output):
                continue  # 0.0 and -0.0 are one output
            try:
                said = bool(eval(text, {"output": output, **HELPERS}))
            except (TypeError, IndexError, KeyError, ValueError, ZeroDivisionError):
                said = False  # an output of which the event does not speak
            assert said == one.event(output), (text, output)
