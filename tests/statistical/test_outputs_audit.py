"""Outputs of every kind: what tells the inputs apart is found, and correct mechanisms pass.

Every leak here has an infinite loss that the numbers of an output do not show.
"""

from __future__ import annotations

import functools

import pytest

from pytest_dp import audit

D, NEIGHBOUR = [3.27, 1.5, 2.41], [3.27, 1.5]


def token(rng):
    """What differs every time, and says nothing."""
    return rng.bytes(8).hex()


LEAKS = {}
CORRECT = {}


def leak(mechanism):
    LEAKS[mechanism.__name__] = mechanism
    return mechanism


def correct(mechanism):
    CORRECT[mechanism.__name__] = mechanism
    return mechanism


def noisy(data, rng):
    """An ε of 1."""
    return len(data) + rng.laplace()


# --- texts and exceptions ---


@leak
def length_of_a_string(data, rng):
    return token(rng) + "." * len(data)


@leak
def beginning_of_a_string(data, rng):
    return f"{len(data)}/{token(rng)}"


@leak
def word_in_a_string(data, rng):
    return f"{token(rng)} {'many' if len(data) > 2 else 'few'} {token(rng)}"


@leak
def number_in_a_string(data, rng):
    return f"{sum(data) + rng.laplace(scale=0.01):.6f} patients"


@leak
def length_of_bytes(data, rng):
    return rng.bytes(4 + len(data))


@leak
def beginning_of_bytes(data, rng):
    return bytes([len(data)]) + rng.bytes(8)


@leak
def message_of_an_exception(data, rng):
    if rng.random() < 0.5:
        raise ValueError(f"{token(rng)}: {len(data)} records")
    return noisy(data, rng)


@leak
def number_in_a_message(data, rng):
    draw = sum(data) + rng.laplace(scale=0.01)
    if rng.random() < 0.1:
        raise ValueError(f"{draw:.4f} too large")
    return noisy(data, rng)


@correct
def noise_in_a_string(data, rng):
    return f"{noisy(data, rng):.4f} patients"


@correct
def random_strings(data, rng):
    return token(rng) * int(1 + rng.integers(3))


@correct
def noise_in_a_message(data, rng):
    draw = noisy(data, rng)
    if draw > len("abc"):
        raise ValueError(f"{draw:.4f} too large")
    return draw


# --- the audits ---

run = functools.partial(audit, eps=1.0, pairs=[(D, NEIGHBOUR)], n_jobs=1)


@pytest.mark.parametrize("name", LEAKS)
def test_every_leak_is_found(name):
    result = run(LEAKS[name], seed=1, max_samples=4_000)
    assert result.verdict == "violated", str(result)


@pytest.mark.parametrize("name", CORRECT)
def test_correct_mechanisms_pass(name):
    result = run(CORRECT[name], seed=1, max_samples=3_000)
    assert result.verdict != "violated", str(result)
    assert not any("cannot be read" in note for note in result.notes)


# --- what cannot be read ---


class Queryable:
    """Can be asked, but does not show what it holds."""

    def __init__(self, data, rng):
        answer = noisy(data, rng)
        self.ask = lambda: answer

    def __call__(self):
        return self.ask()


@pytest.mark.parametrize("method", ["sequential", "statdp", "dpsniper"])
def test_outputs_that_cannot_be_read_are_named(method):
    result = run(Queryable, seed=1, max_samples=2_000, method=method)
    assert result.verdict == "inconclusive"
    said = "outputs of type Queryable cannot be read: return plain values, or use features="
    assert said in result.notes
    assert not any("same" in note for note in result.notes)


def test_with_features_they_can_be():
    passed = run(Queryable, seed=1, max_samples=2_000, features=lambda output: output())
    assert passed.verdict == "no violation"
    assert not any("cannot be read" in note for note in passed.notes)
