"""Whole audits with DP-Sniper: its bound and power, pairs with shared noise, what is said."""

from __future__ import annotations

import math
from functools import partial

import boundary
import pytest
from boundary import audited, consistent

from pytest_dp import DPSniper

pytestmark = pytest.mark.usefixtures("_without_blame")
sniped = partial(audited, method="dpsniper", max_samples=100_000)
run = partial(boundary.run, method="dpsniper", max_samples=100_000)


def sum_is_fixed(records, rng, size):
    noise = rng.normal(size=(size, 6))
    return noise - noise.mean(axis=1, keepdims=True) + len(records) * 0.5


def lies(records, rng, size):
    """The same coin makes both inputs lie: no pair agrees."""
    return (rng.random(size) < 0.3) ^ bool(records)


BROKEN = {
    "sum": (sum_is_fixed, {}, 5.0, math.inf),
    "excluding each other": (lies, {"eps": 0.7}, 0.7, math.log(7 / 3)),
}


@pytest.mark.canary
@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_are_caught(name):
    mechanism, keywords, lowest, truth = BROKEN[name]
    result = sniped(mechanism, **keywords)
    assert result.violated
    assert consistent(result)
    assert lowest < result.eps_lower <= truth


def test_the_loss_is_that_of_the_strongest_attack():
    result = run("geometric", 1.2, 1.0, 1)
    low, high = result.loss
    assert low <= 1.0 + 1e-9
    assert high > 0.97
    assert high - low < 0.3
    assert result.eps_lower <= high
    assert f"a loss of {low:.3g} to {high:.3g}" in result.strongest
    assert " runs on D, " in result.strongest


def test_an_event_that_is_too_likely_says_so():
    result = run("laplace", 1.0, 1.0, 1, method=DPSniper(c=0.6), max_samples=20_000)
    assert result.verdict == "inconclusive"
    assert any("cannot show a loss above 0.51" in note for note in result.notes)
