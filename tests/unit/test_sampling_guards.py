"""What is noticed while a mechanism is measured in several processes."""

from __future__ import annotations

import time
from collections import deque

import numpy as np
import pytest
from measuring import draws_of, measure, moments, sampler, scalar

from pytest_dp.claim import expand
from pytest_dp.errors import MechanismError
from pytest_dp.outputs.outcome import Raised
from pytest_dp.sampling.calling import prepare
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.sampler import Draw, Sampler
from pytest_dp.sampling.sharing import UNIQUE_SURPRISE, fingerprint

pytestmark = pytest.mark.usefixtures("always_share", "stop_workers")


class Budget:
    """Works so many times, and never again."""

    def __init__(self, runs):
        self.left = runs

    def __call__(self, data, rng):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("used up")
        return rng.random()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_budget_that_is_used_up_is_noticed(n_jobs):
    with pytest.raises(
        MechanismError, match=r"worked .* and then raised RuntimeError in every run"
    ):
        measure(Budget(2_000), len, n_jobs, counts=(10_000, 10_000))


def test_a_guard_comes_before_the_function():
    def fails(outputs):
        if Raised in set(map(type, outputs)):
            raise ValueError("cannot be measured")
        return len(outputs)

    with pytest.raises(MechanismError, match="used up"):
        measure(Budget(512 * 8 - 300), fails, counts=(70_000,))


def test_now_and_then_raising_is_no_matter():
    def sometimes(data, rng):
        if rng.random() < 0.7:
            raise ValueError("no")
        return 1

    (one, _), _ = measure(sometimes, len, counts=(5_000, 5_000))
    assert sum(one) == 5_000


class OnlyLater:
    """Draws from a generator out of reach, but not when it is tried."""

    def __init__(self, at_most):
        self.held = deque([np.random.default_rng(3)])
        self.at_most = at_most

    def __call__(self, data, rng):
        if data[0] == 0:
            return rng.random()
        value = self.held[0].random()
        time.sleep(1e-4)
        return value if self.at_most is None else bool(value < self.at_most)


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize("at_most", [None, 0.5, 0.1])
def test_copies_of_a_generator_are_told_by_the_outputs_of_pieces(at_most):
    """What tells them travels back from the workers without the outputs."""
    claim = expand({"eps": 1.0, "pairs": [([1], [0])]})[0]
    for _ in range(5):  # it takes two processes, and the second may come late
        some = Sampler(prepare(OnlyLater(at_most), claim.arguments), 1, 2)
        given = [Input([0]), Input([1])]
        some.warm_up(given[0], Deadline(60))
        draws = [Draw(one, 8_000, (1, side)) for side, one in enumerate(given)]
        some.measure(draws, len, Deadline(60))
        if some.n_jobs == 1:
            break
    assert "out of reach" in some.notes[0]


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: bool(rng.random() < 0.5),
        lambda data, rng: 0.1234567890123 * rng.integers(300),
    ],
)
def test_outputs_of_few_values_raise_no_alarm(mechanism):
    results, some = measure(mechanism, len, 2, counts=(20_000, 20_000))
    assert sum(results[0]) == 20_000
    assert some.n_jobs == 2
    assert not some.notes


def test_the_same_draw_may_be_drawn_again():
    some, given = sampler(scalar, 2)
    first, again = (some.measure(draws_of(given, 3_000), moments, Deadline(60)) for _ in range(2))
    assert first == again
    assert some.n_jobs == 2


@pytest.mark.slow
def test_fingerprints_look_no_further_than_they_must():
    class Told:
        shown = 0

        def __init__(self, value):
            self.value = value

        def __repr__(self):
            Told.shown += 1
            return repr(self.value)

    rng = np.random.default_rng(0)
    for values, most in (
        (rng.random(512), 32),
        (rng.random(512) < 0.5, 128),
        (rng.random(512) < 0.001, 512),
    ):
        Told.shown = 0
        made = fingerprint([Told(value) for value in values.tolist()])
        assert Told.shown == most
        assert (made.surprise > UNIQUE_SURPRISE) == (most < 512)
        assert made == fingerprint(values.tolist())
        assert made != fingerprint([values[0], *values[:-1]])
    assert fingerprint([0.1 + 0.2] * 500).surprise == 0
    assert fingerprint(rng.random(4).tolist()).surprise > UNIQUE_SURPRISE
    assert fingerprint(rng.random((40, 30))).surprise > UNIQUE_SURPRISE
