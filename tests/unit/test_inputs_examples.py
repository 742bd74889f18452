"""What is inside of a claim, and what is beyond the examples."""

from __future__ import annotations

from dataclasses import dataclass

import neighbours
import pandas as pd
import pytest

from pytest_dp import add_remove_one
from pytest_dp.claiming.keywords import read_keyword
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.examples import Examples

ADD, REPLACE = "add_remove_one", "replace_one"


@dataclass
class Visit:
    user: int
    age: int


def source(inputs, neighbors=ADD, **keywords):
    return neighbours.source(inputs=inputs, neighbors=neighbors, **keywords)


def rest(of):
    return list(iter(of.propose_pair, None))


@pytest.mark.parametrize(
    ("examples", "data", "said"),
    [
        ([[18, 90, 35]], [], ""),
        ([[18, 90, 35]], [18, 0], "0 (they have 18 to 90)"),
        ([[18, 90, 35]], [35, 18], "35 before 18 (they have another order)"),
        ([[1, 1, 1], [2]], [1] * 4, "4 times the record 1 (they have it 3 times at most)"),
        ([[(1, 0, 0), (0, 1, 0)]], [(0, 1, 1)], "record[2] = 1 (they have 0)"),
        ([["a", "b"]], ["admin"], "'admin' (they have 'a', 'b')"),
        ([[Visit(1, 18)]], [Visit(1, 0)], "age = 0 (they have 18)"),
        ([[(1, 5), (2, 6)], [(1, 7)]], [(1, 5), (1, 7)], "twice record[0] = 1 (they have it once)"),
        ([[{"a": {"b": 3}}, {"a": {"b": 9}}]], [{"a": {"b": 4}}], "a.b = 4 (they have 3 to 9)"),
        ([[None, 1.5, float("nan")]], [None, float("nan")], ""),
        ([pd.DataFrame({"age": [18]})], pd.DataFrame({"age": [0]}), "age = 0 (they have 18)"),
    ],
)
def test_what_is_beyond_is_said_in_words(examples, data, said):
    examples = Examples(examples, read_keyword("neighbors", ADD))
    assert examples.beyond(Pair(data, data)) == said
    assert examples.holds(data) == (not said)


WEEKS = [[("W1", 3), ("W1", 4)], [("W2", 3), ("W2", 4), ("W2", 4)]]
LENGTHS = [[[1, 2], [3, 4]], [[5, 6, 7]]]
DAYS = [[("a", "mo", 1), ("a", "tu", 2), ("b", "mo", 3)], [("b", "mo", 4)]]
MINUTES = [[(1, 5), (1, 9), (2, 0)], [(1, 7)]]


@pytest.mark.parametrize(
    ("examples", "data", "said"),
    [
        (WEEKS, [("W1", 3), ("W2", 3)], "record[0] = 'W2' beside 'W1' (each of them has one"),
        ([*WEEKS, [("W1", 3), ("W2", 3)]], [("W1", 3), ("W2", 4)], ""),
        (LENGTHS, [[1, 2], [5, 6, 7]], "fields [0, 1, 2] beside fields [0, 1] (each of them has"),
        (DAYS, [("a", "tu", 2), ("b", "mo", 4)], ""),
        (DAYS, [("b", "mo", 3), ("b", "mo", 4)], "twice record[0] = 'b' with record[1] = 'mo' ("),
        (MINUTES, [(1, 5), (1, 7), (2, 0)], ""),
        (MINUTES, [(1, 9), (1, 7), (2, 0)], "(1, 9) before (1, 7) (they have another order)"),
    ],
)
def test_what_holds_within_each_example_is_kept(examples, data, said):
    beyond = Examples(examples, read_keyword("neighbors", ADD)).beyond(Pair(data, data))
    assert beyond.startswith(said)
    assert bool(beyond) == bool(said)


USERS = [[("ann", 1), ("ann", 2), ("ann", 3), ("bob", 1)], [("bob", 1), ("bob", 4), ("eve", 5)]]
FRAMES = [pd.DataFrame(rows, columns=["user", "item"]) for rows in USERS]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("ann", 1), ("ann", 2), ("ann", 3)], ""),
        ([("bob", 1), ("eve", 5)], ""),
        ([], ""),
        ([("ann", 1), ("ann", 2)], "2 rows of record[0]='ann' (they have 3)"),
        ([("bob", 4)], "other rows of record[0]='bob' than in any of them"),
    ],
    ids=["all rows", "units of two examples", "none", "part", "other rows"],
)
def test_a_unit_has_all_rows_of_an_example_or_none(rows, said):
    examples = Examples(USERS, read_keyword("neighbors", add_remove_one(unit=0)))
    assert examples.beyond(Pair(rows, rows)) == said
    frame = pd.DataFrame(rows, columns=["user", "item"])
    examples = Examples(FRAMES, read_keyword("neighbors", add_remove_one(unit="user")))
    assert examples.beyond(Pair(frame, frame)) == said.replace("record[0]", "user")


def test_a_predicate_says_which_are_neighbours_not_which_datasets_there_are():
    of = source([[1, 2, 3], [4, 5]], lambda d1, d2: len(d1) == len(d2) + 1)
    assert of.given
    assert all(len(set(d)) == len(d) for pair in of.given for d in (pair.d1, pair.d2))
    assert "twice the record 1 (they have it once at most)" in [pair.beyond for pair in rest(of)]


def test_pairs_inside_come_first_and_others_say_what_is_beyond():
    of = source([[1, 0, 1]])
    assert sorted(pair.d2 for pair in of.given) == [[0, 1], [1, 0], [1, 1]]
    assert all(pair.beyond for pair in rest(of))
    assert not rest(source([[1, 0, 1]], beyond=False))


def test_the_number_of_records_is_that_of_the_examples_where_they_are_replaced():
    examples = Examples([[1, 2, 3], [4, 5]], read_keyword("neighbors", REPLACE))
    assert examples.beyond(Pair([1], [2])) == "1 records (they have 2 to 3)"
    assert examples.beyond(Pair([1, 2], [1, 5])) == ""
