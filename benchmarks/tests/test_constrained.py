"""The zoo of constrained records: what it says of its mechanisms is true, without samples."""

from __future__ import annotations

import itertools
import random

import pytest

from benchmarks.constrained import ZOO
from benchmarks.constrained_random import kind
from benchmarks.constrained_truth import inside, loss
from pytest_dp.claiming.keywords import read_keyword
from pytest_dp.data import rebuild, records_of

NAMES = [twins.name for twins in ZOO]


def test_there_are_enough_of_them():
    assert len(set(NAMES)) == len(NAMES) >= 24


@pytest.mark.parametrize("twins", ZOO, ids=NAMES)
def test_a_mechanism_keeps_its_claim_exactly_inside_and_breaks_it_beyond(twins):
    right = twins.make(False)
    pairs = list(inside(twins))
    assert max(loss(twins, right, *pair) for pair in pairs) == pytest.approx(1.0)
    assert loss(twins, right, *twins.beyond) > 1.2
    relation = read_keyword("neighbors", twins.neighbors)
    assert not relation.fault(*twins.beyond)
    assert not any(relation.fault(*pair) for pair in pairs)
    if twins.order is None:
        mixed = random.Random(1)
        for data, _ in pairs:
            records = records_of(data)
            shuffled = rebuild(data, mixed.sample(records, len(records)))
            assert loss(twins, right, data, shuffled) == pytest.approx(0.0)


@pytest.mark.parametrize("twins", ZOO, ids=NAMES)
def test_its_twin_breaks_the_claim_on_neighbours_of_the_examples(twins):
    wrong = twins.make(True)
    assert max(loss(twins, wrong, *pair) for pair in inside(twins, stated=True)) >= 2


@pytest.mark.parametrize("seed", range(40))
def test_the_mechanism_of_a_random_kind_keeps_its_claim_inside_and_its_twin_does_not(seed):
    drawn = kind(seed)
    right, wrong = drawn.make(False), drawn.make(True)
    pairs = list(itertools.islice(inside(drawn), 500))
    assert max(loss(drawn, right, *pair) for pair in pairs) <= 1
    assert not all(loss(drawn, wrong, *pair) < 2 for pair in inside(drawn, stated=True))
