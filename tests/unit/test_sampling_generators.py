"""Calling convention, generators that are given, global or kept, replaying, and seeds."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools
import random
import sys
import time
import types

import numpy as np
import pytest
from counting import calls
from drawing import InClass, Keeper, both_globals, by_name, outputs, sampler

from pytest_dp.basics.errors import ClaimError
from pytest_dp.running import generators
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.sampler import Draw

pytestmark = pytest.mark.slow

# --- rng injection ---


class CallableWithRng:
    def __call__(self, data, rng):
        return rng.random()


def closed_over():
    factor = 1.0
    return lambda data, rng: factor * rng.random()


@pytest.mark.parametrize(
    ("mechanism", "keywords"),
    [
        (by_name, {}),
        (lambda data, gen: gen.random(), {"rng": "gen"}),
        (lambda data, **given: given["gen"].random(), {"rng": "gen"}),
        (functools.partial(lambda scale, data, rng: scale * rng.random(), 2.0), {}),
        (functools.partial(by_name, rng=np.random.default_rng(0)), {}),
        (CallableWithRng(), {}),
        (Keeper().method, {}),
        (closed_over(), {}),
        (lambda data, scale, rng=None: scale * rng.random(), {"params": {"scale": 2.0}}),
    ],
)
def test_a_generator_is_injected(mechanism, keywords):
    drawn = outputs(mechanism, **keywords)
    assert len(set(drawn)) == 40
    assert drawn == outputs(mechanism, **keywords)
    assert drawn != outputs(mechanism, seed=2, **keywords)


@pytest.mark.parametrize(
    ("mechanism", "keywords", "message"),
    [
        (by_name, {"rng": "gen"}, "no such parameter"),
        (by_name, {"vectorized": "size"}, "no such parameter"),
        (by_name, {"params": {"scale": 1}}, "scale"),
        (lambda data, other: 0, {}, "params="),
        (3, {}, "not callable"),
    ],
)
def test_a_claim_that_does_not_fit_the_signature(mechanism, keywords, message):
    with pytest.raises(ClaimError, match=message):
        sampler(mechanism, **keywords)


# --- global generators ---


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


# --- generators that the mechanism keeps ---

MODULE_RNG = np.random.default_rng(7)

config = types.ModuleType("dp_test_config")
config.rng = np.random.default_rng(8)
config.inner = types.ModuleType("dp_test_config.inner")
config.inner.source = np.random.RandomState(9)
sys.modules["dp_test_config"] = config


def of_module(data):
    return MODULE_RNG.random()


def of_other_module(data):
    return config.rng.random()


def of_default(data, source=np.random.default_rng(2)):  # noqa: B008
    return source.random()


def in_closure():
    generator = np.random.Generator(np.random.MT19937(3))
    return lambda data: generator.random()


def in_containers():
    held = {"a": [({"b": np.random.Generator(np.random.Philox(3))},)]}
    return lambda data: held["a"][0][0]["b"].random()


KEEPERS = [
    Keeper(),
    Keeper().__call__,
    InClass(),
    of_module,
    of_other_module,
    of_default,
    in_closure(),
    in_containers(),
    functools.partial(lambda data, source: source.random(), source=np.random.default_rng(1)),
]


@pytest.mark.parametrize("mechanism", KEEPERS)
def test_kept_generators_are_found_reseeded_and_restored(mechanism):
    some = sampler(mechanism)
    (generator,) = some.call.captured.generators
    before = str(generators.state_of(generator))
    given = Input([1])
    first = some.draw([Draw(given, 100, (1, 0, 0))], Deadline(30))[0]
    again = some.draw([Draw(given, 100, (1, 0, 0))], Deadline(30))[0]
    other = some.draw([Draw(given, 100, (1, 1, 0))], Deadline(30))[0]
    assert first == again
    assert not set(first) & set(other)
    assert len(set(first)) == 100
    assert str(generators.state_of(generator)) == before
    assert "reseeded" in some.notes[0]
    some.warm_up(given, Deadline(30))
    assert some.replayable


class Node:
    """Part of a graph in which everything leads to everything."""


class Foreign(Node):
    """The same, in a package that somebody else wrote."""

    __module__ = "compiler.nodes"


@pytest.fixture
def compiler(monkeypatch):
    """An installed package, as a compiler of functions is."""
    module = types.ModuleType("compiler")
    module.__file__ = "/somewhere/site-packages/compiler/__init__.py"
    monkeypatch.setitem(sys.modules, "compiler", module)


def graph(kind, size=30_000):
    nodes = [kind() for _ in range(size)]
    for number, node in enumerate(nodes):
        node.left, node.right = nodes[2 * number % size], nodes[(2 * number + 1) % size]
        node.table = {k: (nodes[7 * number % size], [k]) for k in range(3)}
    return nodes[1]


def several_large_containers():
    rows = [[i, {i: (i, [i])}] for i in range(100_000)]
    floats = [float(i) for i in range(300_000)]
    table = {i: {i: []} for i in range(100_000)}
    return lambda data: len(rows) + len(floats) + len(table)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "things",
    [lambda: graph(Node), lambda: graph(Foreign), several_large_containers],
    ids=["ours", "of a library", "containers"],
)
def test_the_search_for_generators_is_bounded_whatever_there_is_to_search(things):
    thing = things()
    assert calls(lambda: generators.find(lambda data: thing, {})) < 400_000
