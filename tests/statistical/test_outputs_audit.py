"""Outputs of every kind: what tells the inputs apart is found, and correct mechanisms pass.

Every leak here has an infinite loss that the numbers of an output do not show.
"""

from __future__ import annotations

import functools

import leaks_of_objects  # noqa: F401
import pytest
from leaks import CORRECT, LEAKS, noisy

from pytest_dp import audit

D, NEIGHBOUR = [3.27, 1.5, 2.41], [3.27, 1.5]

pytestmark = pytest.mark.usefixtures("_without_blame")

# --- the audits ---

run = functools.partial(audit, eps=1.0, pairs=[(D, NEIGHBOUR)], n_jobs=1)
SELDOM = ("message_of_an_exception", "number_in_a_message")


@pytest.mark.spot(8)
@pytest.mark.parametrize("name", LEAKS)
def test_every_leak_is_found(name):
    result = run(LEAKS[name], seed=1, max_samples=4_000 if name in SELDOM else 1_000)
    assert result.verdict == "violated", str(result)


@pytest.mark.spot(4)
@pytest.mark.parametrize("name", CORRECT)
def test_correct_mechanisms_pass(name):
    result = run(CORRECT[name], seed=1, max_samples=1_000)
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
