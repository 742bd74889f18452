"""What is drawn from strategies: the same for each seed, corners, and nothing that they forbid."""

from __future__ import annotations

import math
from itertools import islice

import hypothesis
import pytest
from hypothesis import strategies as st

from pytest_dp import audit
from pytest_dp.pairs import drawing
from pytest_dp.pairs.drawing import choices_work, draws


def values(strategy, number=1, count=100, constants=()):
    drawn = islice(draws(strategy, number, constants), count)
    return [one.value for one in drawn if one is not None]


@pytest.mark.slow
def test_the_same_is_drawn_for_each_seed():
    strategy = st.lists(st.tuples(st.floats(), st.text(max_size=3)))
    assert repr(values(strategy)) == repr(values(strategy))
    assert repr(values(strategy)) != repr(values(strategy, 2))


@pytest.mark.slow
def test_corners_are_drawn_of_any_strategy():
    found = values(st.lists(st.integers(-7, 10**9)))
    assert [] in found
    assert {-7, 0, 10**9} <= {n for numbers in found for n in numbers}
    assert any(len(numbers) > 3 and len(set(numbers)) == 1 for numbers in found)
    floats = [x for numbers in values(st.lists(st.floats())) for x in numbers]
    assert any(map(math.isnan, floats))
    assert {math.inf, -math.inf, 0.0} <= set(floats)


@pytest.mark.slow
def test_what_a_strategy_does_not_allow_is_not_drawn():
    floats = st.floats(-1.5, 2.5) | st.sampled_from([7.0, 8.0])
    for numbers in values(st.lists(floats, max_size=4), constants=[99.0, 2.25, -3]):
        assert len(numbers) <= 4
        assert all(-1.5 <= x <= 2.5 or x in (7.0, 8.0) for x in numbers)
    unique = values(st.lists(st.integers(0, 9), unique=True))
    assert all(len(set(numbers)) == len(numbers) for numbers in unique)
    assert all(n % 2 == 0 for n in values(st.integers().filter(lambda n: n % 2 == 0)))


def test_what_is_rejected_is_none():
    assert values(st.integers().filter(lambda n: False)) == []
    assert values(st.nothing()) == []


@pytest.mark.slow
def test_an_audit_says_that_another_version_of_hypothesis_loses_mutation(monkeypatch):
    def of_another_version(*args):
        raise AttributeError("ConjectureData has no such attribute")

    def notes():
        pairs = st.integers(0, 9).map(lambda number: (number, number + 1))
        result = audit(lambda x, rng: x + rng.laplace(), eps=1.0, pairs=pairs, max_samples=200)
        return [str(note) for note in result.notes if "Hypothesis" in str(note)]

    assert notes() == []
    monkeypatch.setattr(drawing, "remade", of_another_version)
    choices_work.cache_clear()
    try:
        (note,) = notes()
    finally:
        monkeypatch.undo()
        choices_work.cache_clear()
    assert note.startswith(f"with Hypothesis {hypothesis.__version__}, what strategies yield is ")
