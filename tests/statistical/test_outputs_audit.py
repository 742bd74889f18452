"""Audits of outputs of several kinds, whose leaks the numbers of an output do not show."""

from __future__ import annotations

import functools

import pytest
from zoo import Public

from benchmarks.odd_outputs import ODD
from pytest_dp import audit

pytestmark = pytest.mark.usefixtures("_without_blame")

run = functools.partial(
    audit, eps=1.0, pairs=[([3.27, 1.5, 2.41], [3.27, 1.5])], n_jobs=1, seed=1, max_samples=1_000
)


def token(rng):
    """What differs every time, and says nothing."""
    return rng.bytes(8).hex()


def noisy(data, rng):
    """An ε of 1."""
    return len(data) + rng.laplace()


def message(data, rng):
    if rng.random() < 0.5:
        raise ValueError(f"{token(rng)}: {len(data)} records")
    return noisy(data, rng)


@pytest.mark.canary
def test_a_leak_in_a_message_is_found():
    assert run(message, max_samples=4_000).violated


REUSED = Public(0.0)


def used_again(data, rng):
    REUSED.value = noisy(data, rng)
    return REUSED


def in_a_message(data, rng):
    draw = noisy(data, rng)
    if draw > 3:
        raise ValueError(f"{draw:.4f} too large")
    return draw


def types_and_orders(data, rng):
    keys = ["a", "b"] if rng.random() < 0.5 else ["b", "a"]
    draw = int(noisy(data, rng))
    return {key: draw if rng.random() < 0.5 else float(draw) for key in keys}


@pytest.mark.canary
@pytest.mark.parametrize("correct", [used_again, in_a_message, types_and_orders])
def test_correct_mechanisms_pass(correct):
    result = run(correct)
    assert not result.violated, str(result)
    assert not any("cannot be read" in note for note in result.notes)


class Queryable:
    """Can be asked, but does not show what it holds."""

    def __init__(self, data, rng):
        answer = noisy(data, rng)
        self.ask = lambda: answer

    def __call__(self):
        return self.ask()


@pytest.mark.parametrize("method", ["sequential", "statdp"])
def test_outputs_that_cannot_be_read_are_named(method):
    result = run(Queryable, max_samples=2_000, method=method)
    assert result.verdict == "inconclusive"
    said = "outputs of type Queryable cannot be read: return plain values, or use features="
    assert said in result.notes
    assert not any("same" in note for note in result.notes)


def test_with_features_they_can_be():
    passed = run(Queryable, max_samples=2_000, features=lambda output: output())
    assert passed.verdict == "no violation"
    assert not any("cannot be read" in note for note in passed.notes)


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", ODD, ids=lambda mechanism: mechanism.__name__)
def test_each_odd_output_is_found(mechanism):
    found = audit(
        mechanism,
        eps=1.0,
        pairs=[(0, 1)],
        vectorized="size",
        margin=None,
        seed=1,
        n_jobs=1,
        max_samples=40_000,
    )
    assert found.violated
