"""Paths are run in the order of their weights, of which none is lost."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from pytest_dp.oracles.paths import explored

HALF = Fraction(1, 2)


def until_heads(path):
    flips = 1
    while path.choose([Fraction(3, 4), Fraction(1, 4)]):
        flips += 1
    return flips


def test_what_is_left_of_an_endless_loop():
    for number, (path, flips, left) in enumerate(islice(explored(until_heads), 10), 1):
        assert flips == number
        assert path.weight == Fraction(3, 4) * Fraction(1, 4) ** (number - 1)
        assert left == Fraction(1, 4) ** number


def loaded(path):
    first = path.choose([Fraction(1, 10), Fraction(6, 10), Fraction(3, 10)])
    return first if first else (first, path.choose([HALF, HALF]))


def test_the_heaviest_first_and_all_of_it():
    weights = [path.weight for path, _, _ in explored(loaded)]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == 1


def test_no_way_without_weight_is_gone():
    assert [result for _, result, _ in explored(lambda path: path.choose([0.0, 1.0]))] == [1]
