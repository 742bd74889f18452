"""The search for leaks that are planted in outputs of every kind, each of which tells everything.

The types of outputs are those of `zoo`. Most leaks do not show in the numbers of an output.
"""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from counting import calls
from drawing import outputs
from searching import best_events, look, planted
from zoo import Child, Private, Slotted

from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.raised import Raised

N = 600


@pytest.fixture
def r():
    return np.random.default_rng(5)


def bits(r, p, n=6):
    return [bool(x) for x in r.random(n) < p]


def last(r, p):
    return bits(r, 0.5, int(r.integers(8, 14))) + bits(r, p, 1)


def keys(r, p):
    return {"a": float(r.normal()), **({"b": float(r.normal())} if r.random() < p else {})}


def anywhere(r, shift):
    return r.normal(size=30) + shift * (np.arange(30) == r.integers(30))


def after_so_many(r, shift):
    length = int(r.integers(0, 4))
    return [False] * length + [float(r.normal() + shift * (length == 2))]


def by_kind(r, sign):
    kind = bool(r.integers(2))
    return [kind, float(r.normal() + sign * (2 if kind else -2))]


def sometimes(r, other, p=0.2):
    return other if r.random() < p else float(r.normal())


FAMILIES = {
    "categories": (bits, 0.5, 0.8, ["output.count("]),
    "lengths": (lambda r, m: ["a", "b"] * int(r.poisson(m)), 2, 4, ["len(output)"]),
    "last of several lengths": (last, 0.05, 0.95, ["output[-1]"]),
    "numbers": (lambda r, m: r.normal(size=3) + np.array([0, m, 0]), 0, 3, ["output[1]"]),
    "mean": (lambda r, m: r.normal(size=40) + m, 0, 0.5, ["mean(output)"]),
    "max": (anywhere, 0, 4, ["max(output)"]),
    "mixed": (after_so_many, 0, 3, ["output[2]", "output[-1]"]),
    "in a context": (by_kind, 1, -1, [" and "]),
    "exception": (lambda r, p: sometimes(r, Raised("ValueError"), p), 0, 0.2, ["raise"]),
    "nan": (lambda r, p: sometimes(r, math.nan, p), 0, 0.2, ["isnan(output)"]),
    "key": (keys, 0.1, 0.9, ["output"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_of_events_finds_what_only_it_shows(r, name):
    draw, here, there, texts = FAMILIES[name]
    runs = 4 * N if name in ("mixed", "in a context") else N
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = planted([draw(r, here) for _ in range(runs)], [draw(r, there) for _ in range(runs)])
    assert any(wanted in text for wanted in texts), text


def token(r):
    """What differs every time, and says nothing."""
    return r.bytes(8).hex()


def raised(r, p, message):
    if r.random() < p:
        raise ValueError(message)
    return 1.0


def read_while_drawn(r, n, x):
    yield r.random()
    yield x


DAY = dt.datetime(2020, 1, 1)
KEYS = {3: ("a", "b"), 2: ("b", "a")}
TELLING = {
    # texts, bytes and messages
    "length of a text": lambda r, n, x: token(r) + "." * n,
    "beginning": lambda r, n, x: f"{n}/{token(r)}",
    "word": lambda r, n, x: f"{token(r)} {'many' if n > 2 else 'few'} {token(r)}",
    "number in a text": lambda r, n, x: f"{x:.6f} patients",
    "message": lambda r, n, x: raised(r, 0.5, f"{token(r)}: {n} records"),
    "number in a message": lambda r, n, x: raised(r, 0.5, f"{x:.4f} too large"),
    # moments, arrays, tables
    "moment": lambda r, n, x: DAY + dt.timedelta(seconds=x),
    # types and orders
    "type of a container": lambda r, n, x: {"a": (list if n == 3 else tuple)([r.laplace()])},
    "precision": lambda r, n, x: (np.float32 if n == 3 else np.float64)(np.float32(r.random())),
    "order of keys": lambda r, n, x: {key: r.laplace() for key in KEYS[n]},
    # whole numbers beyond floats
    "huge": lambda r, n, x: 10**30 + n,
    "last digit": lambda r, n, x: 10 * int.from_bytes(r.bytes(20)) + n,
    # iterators
    "endless": lambda r, n, x: itertools.cycle([r.random(), x]),
    "drawn while read": read_while_drawn,
    # objects
    **{kind.__name__: lambda r, n, x, kind=kind: kind(x) for kind in (Slotted, Private, Child)},
    "member of an enumeration": lambda r, n, x: enum.Enum("M", "FEW MANY").MANY if n > 2 else None,
    # pandas
    "index": lambda r, n, x: pd.Series([r.random()], index=[x]),
    "names of columns": lambda r, n, x: pd.DataFrame([[r.random()]], columns=[f"{n} {token(r)}"]),
    "dtype of a column": lambda r, n, x: pd.DataFrame(
        {"a": np.array([1.0]).astype(np.float32 if n == 3 else np.float64)}
    ),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", TELLING)
def test_what_few_quantities_show_is_found(name):
    def mechanism(data, rng):
        return TELLING[name](rng, len(data), sum(data) + rng.laplace(scale=0.01))

    runs = 60
    sides = [outputs(mechanism, runs, data) for data in ([3.27, 1.5, 2.41], [3.27, 1.5])]
    [found] = best_events(sides[0] + sides[1], all_features)
    assert min(found.c1, found.c2) == 0
    assert max(found.c1, found.c2) > runs * (0.3 if "message" in name else 0.9), str(found.event)


LARGE = {
    "array": (lambda r: r.normal(size=(600, 500)), 0.2),
    "texts": (lambda r: [["a", 1.0] * int(r.integers(250)) for _ in range(200)], 5),
}
"""How large outputs are made, and the calls for each value in them that are allowed."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_outputs_take_few_calls_for_each_value(r, name):
    make, allowed = LARGE[name]
    one, two = make(r), make(r)
    assert calls(lambda: look(one, two)) < allowed * sum(map(len, [*one, *two]))
