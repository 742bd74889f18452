"""Outputs are taken apart many at once, to the same end as one by one."""

from __future__ import annotations

import collections
import datetime as dt
import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zoo

from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import concatenate, hashes, tabulate


def _with_attrs(series, **attrs):
    series.attrs.update(attrs)
    return series


EXAMPLES = [
    (1.5, {"output": 1.5}),
    ([1.0, (2, "a")], {"output[0]": 1.0, "output[1][0]": 2.0, "output[1][1]": ("str", "a")}),
    ({"b": 1, "a": [True]}, {"output['a'][0]": ("bool", True), "output['b']": 1.0}),
    ([], {}),
    (zoo.Point(1, zoo.Point(2, 3)), {"output.x": 1.0, "output.y.x": 2.0, "output.y.y": 3.0}),
    (zoo.Answer(1, [2]), {"output.value": 1.0, "output.parts[0]": 2.0}),
    ([{5, 4}], {"sorted(output[0])[0]": 4.0, "sorted(output[0])[1]": 5.0}),
    ({"a": np.eye(1)}, {"output['a'][0, 0]": 1.0}),
    ([1j], {"output[0].real": 0.0, "output[0].imag": 1.0}),
    ({(1, "a"): 2, None: 3}, {"output[None]": 3.0, "output[(1, 'a')]": 2.0}),
    ([2**53, np.int64(2**53 + 1), 10**400, 0.5], {
        "output[0]": ("int", 2**53), "output[1]": ("int", 2**53 + 1),
        "output[2]": ("int", 10**400), "output[3]": 0.5,
    }),
    (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), {
        "output.timestamp()": 1577836800.0, "output.tzinfo": ("str", "UTC"),
    }),
    (dt.timedelta(1), {"output.total_seconds()": 86400.0}),
    (np.datetime64(7, "s"), {"output.astype(int)": 7.0, "output.dtype": ("str", "datetime64[s]")}),
    (np.array((1, 2.0), dtype="i4,f8"), {"output['f0']": 1.0, "output['f1']": 2.0}),
    (zoo.Private(3.0), {"output._Private__value": 3.0}),
    (pd.NA, {"output": ("NAType", "<NA>")}),
    (_with_attrs(pd.Series([1.0]), rows=3), {"output.iloc[0]": 1.0, "output.attrs['rows']": 3.0}),
]  # fmt: skip


@pytest.mark.parametrize(("output", "leaves"), EXAMPLES)
def test_where_leaves_stand(output, leaves):
    table = tabulate([output])
    stands = zip(table.numbers.tolist(), named(table), strict=True)
    read = [number if name is None else name for number, name in stands]
    assert dict(zip(table.structures[0].places, read, strict=True)) == leaves


def named(table):
    """The leaves' categories by name; None for numbers."""
    names = {NUMBER: None} | {code: level for level, code in table.levels.items()}
    assert len(names) == len(table.levels) + 1
    return [names[code] for code in table.codes.tolist()]


def types(table):
    """The types of the leaves that are numbers."""
    names = [table.types.names[i] for i in table.types.which.tolist()]
    return [name if of is None else None for name, of in zip(names, named(table), strict=True)]


def forms(table):
    return [table.forms.names[i] for i in table.forms.which.tolist()]


def check_same(one, other):
    """Two tables are the same, but for how they number categories."""
    assert len(set(one.structures)) == len(one.structures)
    assert {one.structures[i] for i in one.structure.tolist()} == set(one.structures)
    assert one.structures == other.structures
    assert named(one) == named(other)
    assert types(one) == types(other)
    assert forms(one) == forms(other)
    assert np.signbit(one.numbers).tolist() == np.signbit(other.numbers).tolist()
    for name in ("structure", "offsets", "numbers"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    np.testing.assert_array_equal(hashes(one), hashes(other))


STRANGER = {"other": [0, ()]}
"""Among such, nothing is taken apart in a quicker way."""


def check(outputs):
    """Outputs are taken apart together as they are alone, in parts, and among others."""
    table, n = tabulate(outputs), len(outputs)
    assert len(table) == n
    if not n:
        return
    check_same(table, concatenate([tabulate([output]) for output in outputs]))
    even = np.arange(n) % 2 == 0
    np.testing.assert_array_equal(hashes(table.rows(even)), hashes(table)[even])
    check_same(
        table,
        concatenate(
            [tabulate(part) for part in (outputs[: n // 2], outputs[n // 2 :]) if len(part)]
        ),
    )
    among = tabulate([*outputs, STRANGER])
    assert among.structures[: len(table.structures)] == table.structures
    leaves = len(table.codes)
    assert (named(among)[:leaves], types(among)[:leaves]) == (named(table), types(table))
    assert forms(among)[:n] == forms(table)
    for name, size in (("structure", n), ("offsets", n + 1), ("numbers", leaves)):
        np.testing.assert_array_equal(getattr(among, name)[:size], getattr(table, name))
    np.testing.assert_array_equal(hashes(among)[:n], hashes(table))


ODD = [
    zoo.Colour.RED,
    dt.datetime(2020, 1, 1),
    np.datetime64("2020-01-01"),
    1j,
    int,
    range(3),
    collections.deque([1]),
    {1, 2},
    zoo.Sized(1.0),
    zoo.Unset(),
    zoo.Nothing(),
    zoo.Empty(),
    zoo.Backwards(1, 2),
    tuple.__new__(zoo.Point, (1,)),
    zoo.Row([1.0]),
    zoo.itself,
    zoo.Faker(),
    np.array(1.0),
    np.array([(1, 2.0)], dtype="i4,f8")[0],
    *(np.array([0], dtype=kind) for kind in (np.longdouble, np.float16, np.int32, np.int64)),
    np.array(["a", "b"]),
    np.array([None, [1.0], []], dtype=object),
    np.zeros((2, 0)),
    np.ma.array([1.0]),
    np.array([1j]),
    np.array(["2020-01-01"], dtype="M8[D]"),
    {1: 2.0},
    {1.0: 2.0},
    {np.str_("a"): 1.0},
    {(1, 2): 3.0},
    {None: 1, "a": 2},
    dt.time(1),
    zoo.Answer(zoo.Point(1, 2), [zoo.Public(1.0)]),
    zoo.Public([zoo.Slotted(1.0), zoo.Plain()]),
    zoo.Private((1.0,)),
    pd.Series([1.0, None], index=[1, 2], name="a"),
    pd.DataFrame([[1.0, "b"]], columns=["a", "a"]),
]
LEAVES = [
    *(True, False, 0, -3, 2**70, 1.5, -0.0, math.nan, None, "a", "b", "", b"a", Raised("KeyError")),
    *(Raised("ValueError"), np.True_, np.float64(1.5), np.float32(0.1), np.float16(0.1)),
    *(np.int8(-3), np.uint64(2**64 - 1), np.str_("a"), 10**400, Decimal("sNaN"), Fraction(1, 3)),
    *(np.array([1.0, 2.0]), np.array([True]), np.array([0.1], np.float32), np.ones((2, 1))),
]
MAKERS = [list, tuple, lambda inner: dict(zip(["b", "a", 1], inner, strict=False))]
MAKERS += [lambda inner: zoo.Point(inner[:1], inner), lambda inner: zoo.Answer(inner, inner[:2])]


def mixed(r, depth=2):
    """Draw an output: odd, plain, or a container of a few outputs."""
    if r.random() < 0.4 or not depth:
        return r.choice(LEAVES if r.random() < 0.8 else ODD)
    return r.choice(MAKERS)([mixed(r, depth - 1) for _ in range(r.randrange(4))])


def test_odd_outputs_alone_and_inside():
    for thing in ODD:
        check([thing])
        check([[[thing], 1.0], [[thing], None]])


@pytest.mark.slow
def test_anything():
    r = random.Random(1)
    for _ in range(300):
        check([mixed(r) for _ in range(r.randrange(6))])
    check([([False, False, 3.2], [False, True]), ([1.0], []), ([], [])])
    check([{}, {"a": []}, {"b": 1, "a": 2}, {"a": 2, "b": 1}, []])
    check([[{"a": 1.0}], [[1.0]], [zoo.Point(1, 2)], [zoo.Answer(1, 2)]])


def test_what_holds_itself_ends():
    loop = zoo.Public(1.0)
    loop.parent, loop.children = loop, [zoo.Public(2.0), loop]
    table = tabulate([loop])
    assert 1.0 in table.numbers
    assert 2.0 in table.numbers
    assert len(table.codes) == 4  # of the two references to zoo.itself nothing more is read
    wide: list[Any] = [1.0]
    wide += [wide] * 100
    assert len(tabulate([wide]).codes) == 101
