"""What is drawn from strategies: the same for each seed, corners, mutations, shrunk values."""

from __future__ import annotations

import math
from itertools import islice

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from pytest_dp import audit
from pytest_dp.pairs import drawing
from pytest_dp.pairs.drawing import Drawn, choices_work, draws, remade
from pytest_dp.pairs.simplifying import simplify

NUMBERS = st.lists(st.integers(-50, 1_000))


def shrunk(strategy, drawn, still_fails, seconds):
    def remake(requests):
        made = remade(strategy, [choices for (choices,) in requests])
        return [one and Drawn(one.value, (one.choices,)) for one in made]

    given = Drawn(drawn.value, (drawn.choices,))
    found = simplify(remake, given, still_fails, seconds)
    return drawn if found is given else found


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
def test_values_are_shrunk_inside_of_their_strategy():
    drawn = next(one for one in draws(NUMBERS, 1) if one and sum(one.value) > 700)
    assert shrunk(NUMBERS, drawn, lambda numbers: sum(numbers) > 700, 10.0).value == [701]
    drawn = next(one for one in draws(NUMBERS, 1) if one and len(one.value) > 5)
    assert shrunk(NUMBERS, drawn, lambda numbers: len(numbers) > 1, 10.0).value == [0, 0]
    assert shrunk(NUMBERS, drawn, lambda numbers: False, 10.0) is drawn


def test_what_a_strategy_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        values(st.integers().map(lambda n: 1 // 0))
    with pytest.raises(InvalidArgument):
        values(st.integers(5, 1))


@pytest.mark.slow
def test_an_audit_says_that_another_version_of_hypothesis_loses_mutation(monkeypatch):
    def of_another_version(*args):
        raise AttributeError("ConjectureData has no such attribute")

    def moved(number, rng):
        return number + rng.laplace()

    pairs = st.integers(0, 9).map(lambda number: (number, number + 1))
    claim = {"eps": 1.0, "pairs": pairs, "max_samples": 200}
    usual = audit(moved, **claim)
    assert not any("Hypothesis" in str(note) for note in usual.notes)
    monkeypatch.setattr(drawing, "remade", of_another_version)
    choices_work.cache_clear()
    try:
        result = audit(moved, **claim)
    finally:
        monkeypatch.undo()
        choices_work.cache_clear()
    (note,) = [str(note) for note in result.notes if "Hypothesis" in str(note)]
    assert note.startswith(f"with Hypothesis {hypothesis.__version__}, what strategies yield is ")
