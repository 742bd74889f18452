"""Shared random numbers, one draw a call: where two inputs can have them, and where not."""

# ruff: noqa: NPY002
from __future__ import annotations

import random
import weakref

import numpy as np
import pytest
from coupling import KEPT, KEY, Owner, Pair, assert_independent

from pytest_dp.running import generators
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generators import RunStreams, stream
from pytest_dp.running.sampler import SampleRequest

pytestmark = pytest.mark.slow


def rejects(data, rng):
    while True:
        noise = rng.normal()
        if noise > -1.5 + 0.2 * len(data):
            return sum(data) + noise


class OfTheStandardLibrary(Owner):
    def __call__(self, data):
        return sum(data) + self.source.gauss(0.0, 1.0)


def in_a_closure():
    source = np.random.default_rng(2)
    return lambda data: sum(data) + source.normal()


def odd_numbers_of_gauss(data):
    # each call leaves a spare value behind
    return sum(data) + random.gauss(0.0, 1.0)


def spawns(data, rng):
    children = rng.spawn(len(data))
    return sum(data) + children[0].laplace() + rng.spawn(1)[0].laplace() * 0


SHARING = [
    lambda data, rng: sum(data) + rng.laplace(),
    spawns,
    rejects,
    lambda data: sum(data) + KEPT.normal(),
    odd_numbers_of_gauss,
]


@pytest.mark.parametrize("mechanism", SHARING)
def test_one_draw_a_call_is_shared(mechanism):
    pair = Pair(mechanism)
    assert pair.can_couple()
    assert not any("not shared" in note for note in pair.sampler.notes)
    x, y = pair.draw()
    if mechanism is not rejects:
        assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}
    else:
        assert sum(round(a - b, 6) == 1.0 for a, b in zip(x, y, strict=True)) > 1_500
    assert len(set(x)) > 1_990
    assert_independent(x, y)


def test_kept_generators_are_restarted_and_put_back():
    for make in [
        in_a_closure,
        lambda: Owner(np.random.Generator(np.random.MT19937(3))),
        lambda: Owner(np.random.RandomState(3)),
        lambda: OfTheStandardLibrary(random.Random(3)),
    ]:
        mechanism = make()
        pair = Pair(mechanism)
        (source,) = pair.sampler.call.captured.generators
        before = str(generators.state_of(source))
        assert pair.can_couple()
        x, y = pair.draw()
        assert {round(a - b, 6) for a, b in zip(x, y, strict=True)} == {1.0}
        assert len(set(x)) == 2_000
        assert_independent(x, y)
        assert str(generators.state_of(source)) == before


@pytest.mark.parametrize("kept", [False, True])
def test_a_source_that_is_used_is_not_idle(kept):
    """A second normal variate, which was kept from an earlier draw, takes no word of the stream."""
    state = np.random.get_state(legacy=False)
    try:
        np.random.seed(1)
        np.random.normal(size=1 if kept else 2)
        before = np.random.get_state(legacy=False)
        for use in (np.random.normal, np.random.random, random.random):
            with RunStreams(
                stream(1, *KEY), 4, generators.Captured((), ()), frozenset({1, 2})
            ) as runs:
                runs.restart(0)
                runs.rng.random()
                assert runs.are_idle()
                use()
                assert not runs.are_idle()
            assert str(np.random.get_state(legacy=False)) == str(before)
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize("bits", [None, np.random.MT19937])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("how", ["spawn", "jumped", "spawn late"])
def test_derived_streams_never_meet_those_of_other_runs(bits, shared, how):
    """Whether draws are shared or not, and also where a trial did not see it."""
    kept = bits and np.random.Generator(bits(3))

    def derives(data, rng):
        source = kept or rng
        own = source.random()
        if how == "spawn late" and own > 0.5:
            return own, source.spawn(1)[0].random()
        if how == "jumped":
            return own, np.random.Generator(source.bit_generator.jumped()).random()
        return own, source.spawn(1)[0].random()

    pair = Pair(derives) if bits is None else Pair(lambda data: derives(data, None))
    if shared:
        assert pair.can_couple()
    x, _ = pair.draw(100 if how == "jumped" else 600, shared=shared)  # jumps take long
    values = [value for output in x for value in output]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("held", [(value for value in range(10)), weakref.ref(Owner)])
def test_what_cannot_be_copied_is_not_shared_and_never_run_again(held):
    numbers = []

    def mechanism(data, rng):
        assert held
        numbers.append(rng.random())
        return sum(data) + numbers[-1]

    pair = Pair(mechanism)
    assert "cannot be copied" in pair.sampler.call.pristine.reason
    pair.sampler.warm_up(pair.inputs[0], Deadline(30.0))
    assert not pair.can_couple()
    pair.sampler.draw([SampleRequest(pair.inputs[0], 500, KEY)], Deadline(9.0))
    assert len(set(numbers)) == len(numbers) == pair.sampler.runs
