"""What nobody promised is no leak: inputs that a mechanism refuses, and those that cannot occur."""

from __future__ import annotations

import pytest

from pytest_dp import audit

EFFORT = {"eps": 1.0, "seed": 1, "n_jobs": 1, "max_samples": 20_000}


def not_empty(data, rng):
    if not data:
        raise ValueError("no data")
    return sum(data) + rng.laplace()


def has_a_first(data, rng):
    return 0 * data[0] + sum(data) + rng.laplace()


def at_most_five(data, rng):
    if len(data) > 5:
        raise ValueError("too many")
    return sum(data) + rng.laplace()


@pytest.mark.canary
@pytest.mark.parametrize("mechanism", [not_empty, at_most_five])
def test_an_input_that_is_refused_is_not_played(mechanism):
    result = audit(mechanism, neighbors="add_remove_one", inputs=[[1, 0, 1]], **EFFORT)
    assert result.verdict == "no violation"
    told = any("it always raises" in note and "on []" in note for note in result.notes)
    assert told == (mechanism is not at_most_five)


def at_least_two(data, rng):
    if len(data) < 2:
        raise ValueError("too few")
    return sum(data) + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "examples", "is_leak"),
    [
        (not_empty, [[0, 1], [1]], False),
        (not_empty, [[0, 1], [1], []], True),  # which the claim gives itself
        (has_a_first, [[0, 1], [1]], True),  # an accident is no check
        (at_least_two, [[0, 1], [1, 1, 0]], True),  # a threshold without noise
    ],
)
def test_an_error_about_no_records_is_passed_over_where_the_claim_does_not_give_them(
    mechanism, examples, is_leak
):
    result = audit(mechanism, neighbors="add_remove_one", inputs=examples, **EFFORT)
    assert result.violated == is_leak
    told = "it always raises ValueError: no data on [], which is inside the claim"
    assert any(note.startswith(told) for note in result.notes) == (not is_leak)


def unique_records(rows, rng):
    if len(set(rows)) < len(rows):
        raise ValueError("a record twice")
    return len(rows) + rng.laplace()


def unique_ids(rows, rng):
    if len({user for user, _ in rows}) < len(rows):
        raise ValueError("an id twice")
    return len(rows) + rng.laplace()


IDS = [[(1, 30), (2, 41), (3, 30)], [(1, 30), (2, 50)]]


@pytest.mark.parametrize(
    ("mechanism", "neighbors", "method"),
    [
        (unique_records, "replace_one", "dpsniper"),
        (unique_ids, "replace_one", "sequential"),
        (unique_ids, "add_remove_one", "sequential"),
    ],
)
def test_what_no_example_repeats_may_be_refused(mechanism, neighbors, method):
    result = audit(mechanism, neighbors=neighbors, inputs=IDS, method=method, **EFFORT)
    assert (result.verdict, result.beyond) == ("no violation", None)


def test_what_an_example_repeats_is_promised():
    inputs = [*IDS, [(1, 30), (1, 30)]]
    assert audit(unique_records, neighbors="add_remove_one", inputs=inputs, **EFFORT).violated
