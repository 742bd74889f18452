"""Fields that change nothing: found where that is seen, and said of no other."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pytest_dp.data.neighbours import Pair
from pytest_dp.explain.idle import idle_fields
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine

ROWS = [{"who": f"u{i}", "spent": i, "city": "ab"[i % 2], "age": 30} for i in range(6)]
OTHER = [*ROWS[:3], {"who": "x", "spent": 50, "city": "z", "age": 31}, *ROWS[4:]]


def spent(rows: Any, rng: Any) -> Any:
    return sum(row["spent"] for row in rows) + rng.laplace()


def spent_by_city(rows: Any, rng: Any) -> Any:
    noise = rng.laplace(size=3)
    return {row["city"]: row["spent"] + noise[0] for row in rows}


def count(rows: Any, rng: Any) -> Any:
    return len(rows) + rng.laplace()


def product(rows: Any, rng: Any) -> Any:
    """Either of two alone makes no difference, and both do."""
    row = rows[3]
    return (row["spent"] != 3) * (row["age"] != 30) * (row["city"] != "z") + rng.laplace()


def unseeded(rows: Any, rng: Any) -> Any:
    return spent(rows, rng) + uuid.uuid4().int


def idle(mechanism: Any, d1: Any, d2: Any, *examples: Any, seconds: float = 20.0) -> set[Any]:
    call = Call(mechanism, {}, "rng", pristine=Pristine((mechanism, {})))
    return set(idle_fields(call, Pair(d1, d2), examples, seconds))


@pytest.mark.parametrize(
    ("mechanism", "d1", "d2", "found"),
    [
        (spent, ROWS, OTHER, {"who", "city", "age"}),
        (spent_by_city, ROWS, [*ROWS[:5], OTHER[3]], {"who", "age"}),
        (spent, ROWS, ROWS[:5], {"who", "city"}),  # all are of one age
        (spent, ROWS[:5], ROWS, {"who", "city"}),
        (count, ROWS, ROWS[:5], {"who", "spent", "city"}),
        (count, ROWS * 4_000, (ROWS * 4_000)[1:], set()),  # too many to look for them
        (count, {"a": 1}, {"a": 2}, set()),
        (count, ROWS, OTHER, set()),  # nothing tells them apart
        (spent, ROWS, [*OTHER[:5], {**ROWS[5], "age": 0}], set()),  # two records
        (unseeded, ROWS, OTHER, set()),
        (lambda rows, rng: sum(rows) + rng.laplace(), [1, 2], [1, 3], set()),
    ],
)
def test_fields_that_change_nothing(mechanism: Any, d1: Any, d2: Any, found: set[str]) -> None:
    assert idle(mechanism, d1, d2) == found


def test_they_change_nothing_together() -> None:
    found = idle(product, ROWS, [*ROWS[:3], {**ROWS[3], "spent": 50, "age": 31}, *ROWS[4:]])
    assert len(found) == 1
