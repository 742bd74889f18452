"""Outputs of every kind."""

from __future__ import annotations

import functools
import math
import operator
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from searching import check, look
from zoo import Broken, BrokenMapping, Plain, Point, Readable, Unset, itself

from pytest_dp.counterexample import simplest_event
from pytest_dp.outputs.features import features
from pytest_dp.outputs.raised import Raised

pytestmark = pytest.mark.filterwarnings("error")

HELPERS = {
    "isnan": lambda x: isinstance(x, float) and math.isnan(x),
    # Plain addition: since Python 3.12, `sum` makes up for rounding.
    "mean": lambda xs: functools.reduce(operator.add, map(float, xs)) / len(xs),
    "nan": math.nan,
    "inf": math.inf,
    "array": np.array,
}


KINDS = {
    "float": lambda r: float(r.normal()),
    "int": lambda r: int(r.integers(5)),
    "huge int": lambda r: 10 ** int(r.integers(300, 400)) * (-1) ** int(r.integers(2)),
    "string": lambda r: "abc"[r.integers(3)],
    "tokens": lambda r: str(r.random()),
    "None": lambda r: None,
    "None or float": lambda r: None if r.random() < 0.3 else float(r.normal()),
    "special": lambda r: [math.nan, math.inf, -math.inf, 0.0, -0.0][r.integers(5)],
    "extreme": lambda r: [1.7e308, -1.7e308, 5e-324, 0.0][r.integers(4)] * r.random(),
    "list": lambda r: [float(r.normal())] * int(r.integers(4)),
    "nested": lambda r: [[1.0] * int(r.integers(3)), (float(r.normal()), [])],
    "dict": lambda r: {k: float(r.normal()) for k in "abc" if r.random() < 0.5},
    "namedtuple": lambda r: Point(float(r.normal()), None),
    "dataclass not set": lambda r: Unset(),
    "set of sets": lambda r: {frozenset("ab"), frozenset("c"), int(r.integers(3))},
    "vector": lambda r: r.normal(size=3),
    "object array": lambda r: np.array([None, "a", float(r.normal())], dtype=object),
    "empty array": lambda r: np.zeros((0, 3)),
    "Decimal specials": lambda r: [Decimal("NaN"), Decimal("sNaN"), Decimal("inf")][r.integers(3)],
    "class": lambda r: [int, Plain][r.integers(2)],
    "readable object": lambda r: Readable(int(r.integers(3))),
    "broken object": lambda r: Broken(),
    "broken mapping": lambda r: BrokenMapping(a=1),
    "itself": lambda r: itself,
    "lock": lambda r: threading.Lock(),
    "generator": lambda r: (i for i in range(3)),
    "Raised": lambda r: Raised("ValueError") if r.random() < 0.5 else 1.0,
    "frame": lambda r: pd.DataFrame({"a": r.normal(size=2), "b": ["x", None]}),
    "NA": lambda r: pd.NA if r.random() < 0.5 else 1.0,
    "columns of one name": lambda r: pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
}
READABLE = ("None or float", "special", "list", "dict", "vector", "string")
"""Kinds whose events are Python that needs nothing but `HELPERS`."""
EVERYTHING = list(KINDS.values())


def said_by_python(text, output):
    """Evaluate the text of an event; False if the event says nothing of the output."""
    try:
        return bool(eval(text, {"output": output, **HELPERS}))
    except (TypeError, IndexError, KeyError, ValueError, ZeroDivisionError):
        return False


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
    if kind in READABLE:
        for one in found:
            for output in outputs[:10]:
                assert said_by_python(str(one.event), output) == one.event(output), str(one.event)
    for one in found:
        simplest_event(one, table, first, lambda c1, c2: np.full(len(c1), 5.0))
