"""Outputs are taken apart many at once, to the same end as one by one."""

from __future__ import annotations

import collections
import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from zoo import (
    Answer,
    Backwards,
    Colour,
    Empty,
    Faker,
    Nothing,
    Plain,
    Point,
    Private,
    Public,
    Row,
    Sized,
    Slotted,
    Unset,
    itself,
)

from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import concatenate, tabulate


def _with_attrs(series, **attrs):
    series.attrs.update(attrs)
    return series


EXAMPLES = [
    (1.5, {"output": 1.5}),
    ([1.0, (2, "a")], {"output[0]": 1.0, "output[1][0]": 2.0, "output[1][1]": ("str", "a")}),
    ({"b": 1, "a": [True]}, {"output['a'][0]": ("bool", True), "output['b']": 1.0}),
    ([1, []], {"output[0]": 1.0, "output[1]": ("list", "[]")}),
    ([], {}),
    (Point(1, Point(2, 3)), {"output.x": 1.0, "output.y.x": 2.0, "output.y.y": 3.0}),
    (Answer(1, [2]), {"output.value": 1.0, "output.parts[0]": 2.0}),
    ([{5, 4}], {"sorted(output[0])[0]": 4.0, "sorted(output[0])[1]": 5.0}),
    ({"a": np.eye(1)}, {"output['a'][0, 0]": 1.0}),
    ([np.array(3.0)], {"output[0]": 3.0}),
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
    (Faker(), {"output[0]": 1.0}),
    (Public([2.0]), {"output.value[0]": 2.0}),
    (Private(3.0), {"output._Private__value": 3.0}),
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


leaves = st.one_of(
    st.booleans(),
    st.floats(),
    st.integers(-3, 3),
    st.integers(),
    st.none(),
    st.sampled_from(["a", "b", "", b"a", Raised("KeyError"), Raised("ValueError")]),
    st.sampled_from([np.True_, np.False_, np.float64(1.5), np.float32(0.1), np.int64(3)]),
    st.sampled_from([np.float16(0.1), np.uint64(2**64 - 1), np.int8(-3), np.str_("a")]),
    st.sampled_from([10**400, -(10**400), Decimal("sNaN"), Decimal("0.1"), Fraction(1, 3)]),
)
ODD = [
    Colour.RED,
    dt.datetime(2020, 1, 1),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    1j,
    np.complex64(2j),
    np.complex128(1),
    int,
    range(3),
    collections.deque([1]),
    {1, 2},
    frozenset(),
    Sized(1.0),
    Unset(),
    Nothing(),
    Empty(),
    Backwards(1, 2),
    tuple.__new__(Point, (1,)),
    Row([1.0]),
    itself,
    Faker(),
    np.array(1.0),
    np.array([(1, 2.0)], dtype="i4,f8"),
    np.array([(1, 2.0)], dtype="i4,f8")[0],
    *(np.array([0], dtype=kind) for kind in (np.longdouble, np.float16, np.int32, np.int64)),
    np.array(["a", "b"]),
    np.array([b"a"]),
    np.array([None, [1.0], []], dtype=object),
    np.zeros((2, 0)),
    np.zeros(0),
    np.ma.array([1.0]),
    np.array([1j]),
    np.array(["2020-01-01"], dtype="M8[D]"),
    collections.OrderedDict(a=1),
    {1: 2.0},
    {True: 2.0},
    {1.0: 2.0},
    {np.str_("a"): 1.0},
    {(1, 2): 3.0},
    {None: 1, "a": 2},
    dt.time(1),
    dt.date(2020, 1, 1),
    Answer(Point(1, 2), [Public(1.0)]),
    Public([Slotted(1.0), Plain()]),
    Private((1.0,)),
    pd.Series([1.0, None], index=[1, 2], name="a"),
    pd.DataFrame([[1.0, "b"]], columns=["a", "a"]),
]
odd = st.integers(0, len(ODD) - 1).map(lambda i: ODD[i])  # some have no repr
arrays = st.one_of(
    st.lists(st.floats(), max_size=3).map(np.array),
    st.lists(st.booleans(), max_size=3).map(lambda x: np.array(x, dtype=bool)),
    st.lists(st.floats(width=32), max_size=3).map(lambda x: np.array(x, dtype=np.float32)),
    st.lists(st.integers(0, 2**64 - 1), max_size=3).map(lambda x: np.array(x, dtype=np.uint64)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)).map(np.ones),
)


def containers(inner):
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["b", "a", "c", 1, b"a", None]), inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Answer, inner, inner),
    )


anything = st.recursive(leaves | arrays | odd, containers, max_leaves=8)
thorough = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def test_odd_outputs_alone_and_inside():
    for thing in ODD:
        check([thing])
        check([[[thing], 1.0], [[thing], None]])


@pytest.mark.slow
@thorough
@given(st.lists(anything, max_size=6))
@example([])
@example([[]])
@example([[[]]])
@example([[[[]]], [[], []], ([],)])
@example([([False, False, 3.2], [False, True]), ([1.0], []), ([], [])])
@example([Raised("ValueError"), ([True], [1.0]), None])
@example([None, [], "a"])
@example([{}, {"a": []}, {"b": 1, "a": 2}, {"a": 2, "b": 1}, []])
@example([Answer([], [1]), Answer(1, 2), Point(1, 2), Point([], ())])
@example([[{"a": 1.0}], [[1.0]], [Point(1, 2)], [Answer(1, 2)]])
def test_anything(outputs):
    check(outputs)


def test_what_holds_itself_ends():
    loop = Public(1.0)
    loop.parent, loop.children = loop, [Public(2.0), loop]
    table = tabulate([loop])
    assert 1.0 in table.numbers
    assert 2.0 in table.numbers
    assert len(table.codes) == 4  # of the two references to itself nothing more is read
    wide: list[Any] = [1.0]
    wide += [wide] * 100
    assert len(tabulate([wide]).codes) == 101
