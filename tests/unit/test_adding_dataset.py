"""A type of dataset is added in one place: an entry among the types."""

from __future__ import annotations

from collections import deque
from itertools import chain

import pytest

import pytest_dp
from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import describe, types
from pytest_dp.data.types import DataType


class Deque(DataType):
    name, brackets = "deque", ("deque([", "])")

    def classes(self):
        return (deque,)

    def records(self, value):
        return list(value)

    def joined(self, datasets):
        return list(chain.from_iterable(datasets))

    def taken(self, rows, positions):
        return deque(rows[at] for at in positions)

    def rebuilt(self, example, records):
        return deque(records)

    def missing(self, example):
        return None


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setattr(types, "_TYPES", [*types._TYPES, Deque()])
    monkeypatch.setattr(types, "_BY_CLASS", {})


def count(data, rng, scale):
    assert type(data) is deque
    data.append(0)  # a deque of its own
    return len(data) + rng.laplace(scale=scale)


def audited(scale, max_samples=20_000):
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [deque([1, 0, 1])]}
    return pytest_dp.audit(count, **claim, params={"scale": scale}, max_samples=max_samples, seed=1)


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_pairs_are_derived_searched_and_shown():
    result = audited(0.4)
    assert result.verdict == "violated"
    example = result.counterexample
    assert {type(example.d1), type(example.d2)} == {deque}
    assert abs(len(example.d1) - len(example.d2)) == 1
    assert describe(example.d1).startswith("deque([")
    assert audited(1.0).verdict == "no violation"


def test_without_the_entry_it_is_no_dataset():
    with pytest.raises(ClaimError, match="deque"):
        audited(0.4, 100)
