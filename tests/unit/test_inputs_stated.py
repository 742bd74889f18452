"""Pairs and inputs of functions, of generators, and by their names."""

from __future__ import annotations

import pytest
from neighbours import ADD_REMOVE, pairs, refusal

from pytest_dp.claim import expand
from pytest_dp.inputs import resolved

STATED = [([1], []), ([1, 0], [0])]


def endless(make):
    number = 0
    while True:
        number += 1
        yield make(number)


@pytest.mark.parametrize("relation", [None, ADD_REMOVE])
def test_pairs_come_from_wherever_inputs_do(modules, relation):
    root = modules(
        dpi_pairs=f"stated = {STATED}\ndef made(): return stated\ndef each(): yield from stated"
    )
    expected = pairs(pairs=STATED, neighbors=relation)
    assert pairs(pairs=lambda: STATED, neighbors=relation) == expected
    assert pairs(pairs=lambda: iter(STATED), neighbors=relation) == expected
    assert pairs(pairs=iter(STATED), neighbors=relation) == expected
    for name in ("stated", "made", "each"):
        assert pairs(root, pairs=f"dpi_pairs:{name}", neighbors=relation) == expected
    examples = pairs(inputs=[[1], [1, 0]], neighbors=ADD_REMOVE)
    assert pairs(inputs=lambda: iter([[1], [1, 0]]), neighbors=ADD_REMOVE) == examples


def test_what_generators_yield_without_end_is_taken_in_part():
    def stated():
        return endless(lambda number: ([number], []))

    def made():
        return endless(lambda number: [number])

    for keywords, said in (
        ({"pairs": stated}, "only the first 512 pairs that pairs="),
        ({"inputs": made, "neighbors": ADD_REMOVE}, "only the first 64 datasets that inputs="),
    ):
        notes = []
        promise = resolved(expand({"eps": 1.0, **keywords})[0].promise, None, notes)
        assert len(promise.pairs or promise.inputs) == (512 if "pairs" in keywords else 64)
        assert notes[0].startswith(said)
        assert "yields" in notes[0]
    message = refusal(pairs=endless(lambda number: ([number], [])))
    assert "yields more than 512 pairs. Write the function itself" in message


def raising():
    yield ([1], [])
    raise OSError("no such table")


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        (lambda: 3, "the function returned 3, of type int. Allowed: a non-empty list of pairs"),
        (lambda: [(1, 2, 3)], "Allowed: a non-empty list of pairs (D, D')"),
        (list, "Allowed: a non-empty list of pairs"),
        (lambda: 1 / 0, "raised ZeroDivisionError: division by zero. It is called without"),
        (raising, "pairs=raising: the function raised OSError: no such table"),
        ("nowhere:pairs", "pairs='nowhere:pairs': there is no module 'nowhere'"),
        ("json:pears", "pairs='json:pears': there is no 'pears'"),
        ("pairs", "Invalid pairs='pairs'. Allowed: \"module:attribute\""),
        (lambda: [([1], [1])], "pairs[0] is not a pair of neighbours"),
        (lambda: [([1], []), ([1, 2, 3], [])], "pairs[1] is not a pair of neighbours"),
    ],
)
def test_pairs_that_cannot_be_taken(given_as, message):
    assert message in refusal(pairs=given_as, neighbors=ADD_REMOVE)
