"""Calling convention, generators that are given, global or kept, replaying, and seeds."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools
import random
import time

import numpy as np
import pytest
from counting import calls
from drawing import InClass, Keeper, both_globals, by_name, outputs, sampler

from pytest_dp.basics.errors import ClaimError
from pytest_dp.running import generators
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.sampler import SampleRequest

pytestmark = pytest.mark.slow


def test_a_generator_is_injected():
    for mechanism, keywords in [
        (by_name, {}),
        (lambda data, **given: given["gen"].random(), {"rng": "gen"}),
        (functools.partial(lambda scale, data, rng: scale * rng.random(), 2.0), {}),
        (Keeper().method, {}),
        (lambda data, scale, rng=None: scale * rng.random(), {"params": {"scale": 2.0}}),
    ]:
        drawn = outputs(mechanism, **keywords)
        assert len(set(drawn)) == 40
        assert drawn == outputs(mechanism, **keywords)
        assert drawn != outputs(mechanism, seed=2, **keywords)


def test_a_claim_that_does_not_fit_the_signature():
    for mechanism, keywords, message in [
        (by_name, {"rng": "gen"}, "no such parameter"),
        (by_name, {"params": {"scale": 1}}, "scale"),
        (lambda data, other: 0, {}, "params="),
        (3, {}, "not callable"),
    ]:
        with pytest.raises(ClaimError, match=message):
            sampler(mechanism, **keywords)


def test_generators_are_restored_after_errors():
    keeper = Keeper()

    def hangs(data):
        both_globals(data), keeper(data)
        time.sleep(60)

    def interrupted(data):
        both_globals(data), keeper(data)
        raise KeyboardInterrupt

    def states():
        return str((np.random.get_state(), random.getstate(), keeper.rng.bit_generator.state))

    before = states()
    with pytest.raises(OutOfTime):
        outputs(hangs, seconds=0.1)
    with pytest.raises(KeyboardInterrupt):
        outputs(interrupted)
    assert states() == before


MODULE_RNG = np.random.default_rng(7)


def in_containers():
    held = {"a": [({"b": np.random.Generator(np.random.Philox(3))},)]}
    return lambda data: held["a"][0][0]["b"].random()


KEEPERS = [
    Keeper(),
    InClass(),
    lambda data: MODULE_RNG.random(),
    in_containers(),
    functools.partial(lambda data, source: source.random(), source=np.random.default_rng(1)),
]


@pytest.mark.parametrize("mechanism", KEEPERS)
def test_kept_generators_are_found_reseeded_and_restored(mechanism):
    some = sampler(mechanism)
    (generator,) = some.call.captured.generators
    before = str(generators.state_of(generator))
    given = Input([1])
    first = some.draw([SampleRequest(given, 100, (1, 0, 0))], Deadline(30))[0]
    again = some.draw([SampleRequest(given, 100, (1, 0, 0))], Deadline(30))[0]
    other = some.draw([SampleRequest(given, 100, (1, 1, 0))], Deadline(30))[0]
    assert first == again
    assert not set(first) & set(other)
    assert len(set(first)) == 100
    assert str(generators.state_of(generator)) == before
    assert "reseeded" in some.notes[0]
    some.warm_up(given, Deadline(30))
    assert some.replayable


class Node:
    """Part of a graph in which everything leads to everything."""


def graph(size=30_000):
    nodes = [Node() for _ in range(size)]
    for number, node in enumerate(nodes):
        node.left, node.right = nodes[2 * number % size], nodes[(2 * number + 1) % size]
        node.table = {k: (nodes[7 * number % size], [k]) for k in range(3)}
    return nodes[1]


def test_the_search_for_generators_is_bounded():
    thing = graph()
    assert calls(lambda: generators.find_generators(lambda data: thing, {})) < 400_000
