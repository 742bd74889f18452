"""Neighbours that differ in all rows of a unit, in null records, or in groups."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neighbours import pairs, refusal

from pytest_dp import add_remove_one, queries, replace_one, replace_special
from pytest_dp.data import key, kind_of, records_of
from pytest_dp.data.relations import AddRemoveOne, ReplaceOne, ReplaceSpecial

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=4)


def frame(records):
    return pd.DataFrame({"user": [r[0] for r in records], "v": [r[1] for r in records]}, dtype=int)


def structured(records):
    return np.array(records, dtype=[("user", int), ("v", int)])


MAKERS = {
    "tuples": (list, 0),
    "frame": (frame, "user"),
    "polars": (lambda records: pl.from_pandas(frame(records)), "user"),
    "structured": (structured, "user"),
    "columns": (lambda r: {"user": [u for u, _ in r], "v": [v for _, v in r]}, "user"),
}


def bag(records):
    """Records of any form, as a multiset of (user, v)."""
    plain = [tuple(r.values()) if isinstance(r, dict) else tuple(r) for r in records]
    return frozenset(Counter(plain).items())


def by_user(records):
    users = {}
    for record in records:
        users.setdefault(record[0], []).append(record)
    return users


@pytest.mark.slow
@given(rows, rows, st.sampled_from(sorted(MAKERS)))
def test_units_come_and_go(own, other, how):
    make, unit = MAKERS[how]
    relation = AddRemoveOne(unit=unit)
    found = list(relation.pairs(make(own), records_of(make(other))))
    users, new = by_user(own), by_user(other)
    expected = {bag([r for r in own if r[0] != user]) for user in users}
    expected |= {bag([*own, *new[user]]) for user in new if user not in users}
    assert {bag(records_of(pair.d2)) for pair in found} == expected
    check(relation, found, make(own))


@pytest.mark.slow
@given(rows, rows, st.sampled_from(sorted(MAKERS)))
def test_units_are_replaced(own, other, how):
    make, unit = MAKERS[how]
    relation = ReplaceOne(unit=unit)
    found = list(relation.pairs(make(own), records_of(make(other))))
    users, new = by_user(own), by_user(other)
    expected = set()
    for user, coming in product(users, new):
        rest = [r for r in own if r[0] != user]
        expected.add(bag([*rest, *((user, v) for _, v in new[coming])]))
        if coming not in users:
            expected.add(bag([*rest, *new[coming]]))
    assert {bag(records_of(pair.d2)) for pair in found} == expected - {bag(own)}
    check(relation, found, make(own))


def check(relation, found, dataset):
    assert len({pair.content for pair in found}) == len(found)
    for pair in found:
        assert relation.fault(pair.d1, pair.d2) == ""
        assert relation.fault(pair.d2, pair.d1) == ""
        assert relation.pair(pair.d1, pair.d2).difference == pair.difference
        assert relation.pair(pair.d2, pair.d1).difference == pair.reverse().difference
        assert pair.reverse().reverse().difference == pair.difference
        assert kind_of(pair.d2) == kind_of(dataset)
        assert key(pair.d1) == key(dataset)


class Visit(NamedTuple):
    user: int
    paid: int


@dataclass(frozen=True)
class Stay:
    user: int
    paid: int


class Plain:
    def __init__(self, user, paid):
        self.user, self.paid = user, paid


@pytest.mark.parametrize("make", [Visit, Stay, Plain, lambda u, p: [u, p]])
@pytest.mark.parametrize("how", ["name", "function"])
def test_records_of_any_form_have_units(make, how):
    records = [make(1, 5), make(1, 6), make(2, 7)]
    name = 0 if isinstance(records[0], list) else "user"
    unit = name
    if how == "function":
        unit = lambda r: r[0] if name == 0 else r.user  # noqa: E731
    found = pairs(inputs=[records], neighbors=add_remove_one(unit=unit))
    assert sorted(len(pair.d2) for pair in found) == [1, 2]
    replaced = pairs(inputs=[records], neighbors=replace_one(unit=unit)) if how == "name" else []
    assert all(type(record) is type(records[0]) for pair in replaced for record in pair.d2)
    assert len(replaced) == (2 if how == "name" else 0)


@pytest.mark.slow
@given(st.lists(st.integers(0, 2), max_size=3), st.lists(st.integers(0, 2), max_size=2))
def test_null_records_against_brute_force(own, other):
    for make in (
        list,
        tuple,
        lambda n: pd.Series(n, dtype="Int64"),
        lambda n: pl.Series(n, dtype=pl.Int8),
    ):
        relation = ReplaceSpecial()
        null = pd.NA if isinstance(make([]), pd.Series) else None
        with_null = [*own, null]
        for dataset in (own, with_null):
            found = list(relation.pairs(make(dataset), other))
            expected = {
                multiset([*own[:at], *own[at + 1 :], None, *[None] * (dataset is with_null)])
                for at in range(len(own))
            }
            if dataset is with_null:
                expected |= {multiset([*own, one]) for one in other}
            assert {multiset(records_of(pair.d2)) for pair in found} == expected
            check(relation, found, make(dataset))


def multiset(records):
    return frozenset(Counter(None if r is pd.NA else r for r in records).items())


def test_missing_values_are_null():
    for dataset, null in [
        ([1], None),
        (np.array([[1.0, 2.0]]), [math.nan, math.nan]),
        (np.array([(1.0, None)], dtype=[("a", "f4"), ("b", "O")]), (math.nan, None)),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), (math.nan, math.nan)),
        (pd.DataFrame({"a": pd.array([1], dtype="Int64")}), (pd.NA,)),
        (pl.DataFrame({"a": [1], "b": ["x"]}), (None, None)),
        (pa.table({"a": [1]}), (None,)),
        ({"a": np.array([1.0]), "b": ["x"]}, (math.nan, None)),
    ]:
        (pair,) = ReplaceSpecial().pairs(dataset)
        assert key(records_of(pair.d2)[0]) == key(null)
        assert pair.difference == "one record nulled"
        assert pair.reverse().difference == "one record restored"


def test_types_without_missing_values():
    for dataset, said in [
        (np.array([1]), "the dtype int64 has none. Write"),
        (pd.DataFrame({"a": [1], "b": [2]}), "replace_special({'a': 0, 'b': 0})"),
        ("abc", "replace_special('-')"),
        (pa.table([[1]], pa.schema([pa.field("a", pa.int8(), False)])), "the column 'a' has none"),
    ]:
        message = refusal(inputs=[dataset], neighbors="replace_special")
        assert "cannot hold missing values" in message
        assert said in message


def test_a_null_record_of_ones_own():
    visits = frame([(1, 5), (2, 7)])
    for null in ({"v": 0, "user": -1}, (-1, 0)):
        found = pairs(inputs=[visits], neighbors=replace_special(null))
        assert {bag(records_of(pair.d2)) for pair in found} == {
            bag([(-1, 0), (2, 7)]),
            bag([(1, 5), (-1, 0)]),
        }
    found = pairs(inputs=[visits], neighbors=replace_special((-1, 0), unit="user"))
    assert {pair.difference for pair in found} == {
        "the one row of user=1 nulled",
        "the one row of user=2 nulled",
    }
    assert "does not fit" in refusal(inputs=[visits], neighbors=replace_special((0.5, "a")))
    assert replace_special({"a": 1}) == replace_special({"a": 1}) != replace_special({"a": 2})


def test_what_does_not_go_together():
    for keywords, message in [
        ({"inputs": [[1]], "neighbors": add_remove_one(rows=3)}, "needs unit="),
        (
            {"inputs": queries(3), "neighbors": add_remove_one(unit="a")},
            "neighbors=add_remove_one(unit='a') does not fit inputs=queries(3): write "
            "neighbors='all_queries' or neighbors='one_query'.",
        ),
        ({"inputs": [[1]], "neighbors": add_remove_one(group=0)}, "Invalid group=0. Allowed: a wh"),
        ({"inputs": [[1]], "neighbors": add_remove_one}, "add_remove_one(unit='user_id', rows=3)"),
        ({"inputs": [[1]], "neighbors": add_remove_one(unit=2.5)}, "Invalid unit=2.5"),
        ({"inputs": [[1]], "neighbors": add_remove_one(unit=lambda r: r.user)}, "raised Attrib"),
        ({"inputs": [[1, 2]], "neighbors": add_remove_one(unit="user")}, "no such entry"),
        ({"inputs": [frame([(1, 2)])], "neighbors": replace_one(unit="usr")}, "mean 'user'"),
        (
            {"inputs": [frame([(1, 2)]).set_index("user")], "neighbors": replace_one(unit="user")},
            "Its columns: 'v'. The index is not data: write frame.reset_index",
        ),
        (
            {"inputs": [frame([(7, 2), (7, 3)])], "neighbors": replace_one(unit="user", rows=1)},
            "user=7 has 2 rows, more than rows=1",
        ),
        ({"inputs": [[1]], "neighbors": 3}, "Invalid neighbors=3. Valid choices: 'add_remove_one'"),
    ]:
        assert message in refusal(**keywords)
