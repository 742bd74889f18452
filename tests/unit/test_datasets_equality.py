"""What makes two inputs one, and what makes two records equal."""

from __future__ import annotations

import enum
import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from zoo import Colour

from pytest_dp import audit, values
from pytest_dp.claiming.claim import expand
from pytest_dp.data.equality import digest, equality_key, key
from pytest_dp.pairs import pairs_of


@dataclass(eq=False)
class Tagged:
    value: float
    tag: str = ""

    def __eq__(self, other: object) -> bool:
        return self.value == other.value

    def __hash__(self) -> int:
        return 7


class ById:
    """All are equal, as all have the same id."""

    def __init__(self, rest):
        self.rest = rest

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class Small(enum.IntEnum):
    ONE = 1


class Named(NamedTuple):
    a: str


def frame(*columns, index=None):
    return pd.DataFrame(dict(columns), index=index)


CLOSE = (
    (-1, -2),  # which share Python's hash
    (0.0, -0.0),
    (1, True, 1.0, np.int8(1), np.int64(1), np.float32(1), np.float64(1), Small.ONE, 1 + 0j),
    (Decimal(1), Decimal("1.0"), Decimal("1.00"), Fraction(1)),
    (0, False, 0.0, -0.0, None, "", b"", (), [], {}, set(), frozenset(), np.zeros(0)),
    (math.nan, math.inf, None, "nan"),
    ("a", b"a", bytearray(b"a"), ["a"], ("a",), {"a"}, Named("a"), np.str_("a")),
    ([1, 2], (1, 2), {1, 2}, frozenset([1, 2]), deque([1, 2]), [1, 2.0], [True, 2], [2, 1]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1, b=2), Counter(a=1, b=2)),
    ({1: 0}, {1.0: 0}, {True: 0}, defaultdict(int, {1: 0})),
    tuple(np.ones(2, kind) for kind in ("i1", "<i4", ">i4", "u4", "f4", "f8", "?", "O")),
    (np.zeros(2), -np.zeros(2), np.zeros((2, 1)), np.zeros((1, 2)), np.zeros(2).tolist()),
    (np.zeros(2, "i4,i4"), np.zeros(2, [("a", "i4"), ("b", "i4")])),
    (pd.Series([1, 2]), pd.Series([1, 2], index=[1, 0]), pd.Series([1, 2], name="a"),
     pd.Series([1, 2], dtype="int8"), pd.Series([1.0, 2.0]), pd.Series([1, 2], dtype=object),
     pd.Series([1, 2], dtype="category")),
    (frame(("a", [1]), ("b", [2])), frame(("b", [2]), ("a", [1])), frame(("a", [1]), ("b", [2.0])),
     frame(("a", [1]), ("b", [2]), index=["x"]), frame(("a", [1]), ("c", [2]))),
    (date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC),
     datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2020, 1, 1, fold=1),
     pd.Timestamp(2020, 1, 1), np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "s")),
    (Tagged(1), Tagged(1, "x"), Tagged(1.0), Tagged(True)),
    (ById(1), ById(2), ById([1])),
    (SimpleNamespace(a=1), SimpleNamespace(a=True), SimpleNamespace(b=1)),
    (Colour.RED, Colour.BLUE, Colour.RED.value, Colour),
    (0, 1, 2**61 - 2, 2**61 - 1, 2**61, -(2**61) + 1),  # the modulus of hashes of numbers
    (pd.NA, pd.NaT, math.nan, None),
)  # fmt: skip


@pytest.mark.parametrize("group", CLOSE, ids=lambda group: repr(group[0])[:20])
def test_what_differs_in_type_or_content_is_not_one(group):
    for wrap in (lambda v: v, lambda v: [v], lambda v: ("x", {"k": v})):
        assert len({key(wrap(value)) for value in group}) == len(group)
        assert len({digest(wrap(value)) for value in group}) == len(group)


def test_equal_records_are_one_to_relations():
    assert equality_key([1, True, 0.0]) == equality_key([1.0, 1, -0.0])
    for pairs in (
        [(np.array([1, 2]), np.array([1.0]))],
        [(pd.Series([1, None]), pd.Series([1]))],
        [([1, 0.5], [1.0])],
    ):
        (claim,) = expand({"eps": 1.0, "pairs": pairs, "neighbors": "add_remove_one"})
        assert len(pairs_of(claim.promise)) == 1


def test_equal_values_of_other_content_are_neighbours():
    for pair in [(0.0, -0.0), (1, True), (1.0, 1), (Decimal(1), Decimal("1.0"))]:
        for neighbors in ["replace_one", "any_two", None]:
            stated = ([[pair[0], 5], [pair[1], 5]]) if neighbors == "replace_one" else pair
            (claim,) = expand({"eps": 1.0, "pairs": [stated], "neighbors": neighbors})
            assert len(pairs_of(claim.promise)) == 1


def shifted(data):
    yield [data[0] + 1]


@pytest.mark.slow
@pytest.mark.spot(4)
@pytest.mark.parametrize(
    "claim",
    [
        {"inputs": values([-1, -2, 0])},
        {"inputs": values([1, True, 1.0])},
        {"inputs": [[-1], [-2], [0]], "neighbors": lambda a, b: (a == [0]) != (b == [0])},
        {"inputs": [np.zeros(1), -np.zeros(1), np.zeros(1, "f4")], "neighbors": shifted},
        {"inputs": values([Tagged(1), Tagged(1, "x"), Tagged(2)])},
    ],
)
def test_each_pair_is_audited(claim):
    """Whatever hashes and equality say of the inputs."""
    claim = {"eps": 1.0, "max_samples": 2_000, "search": (), **claim}
    seen = set()

    def mechanism(data, rng):
        seen.add(key(data))
        return rng.laplace()

    (parsed,) = expand(claim)
    inside = [pair for pair in pairs_of(parsed.promise) if not pair.beyond]
    expected = {key(side) for pair in inside for side in pair.inputs}
    result = audit(mechanism, seed=1, n_jobs=1, **claim)
    assert result.pairs == (len(inside), len(inside))
    assert expected <= seen
    assert len(expected) >= 3
