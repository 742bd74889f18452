"""Whole audits with DP-Sniper: its bound and power, pairs with shared noise, what is said."""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module

import boundary
import numpy as np
import pytest
from boundary import audited, consistent, laplace, randomized_response

from benchmarks import vectorized
from pytest_dp import DPSniper, queries, values

pytestmark = pytest.mark.usefixtures("_without_blame")
sniped = partial(audited, method="dpsniper", max_samples=100_000)
run = partial(boundary.run, method="dpsniper", max_samples=100_000)


# -- Power ----------------------------------------------------------------------------------------


def sometimes_nan(records, rng, size):
    return np.where(rng.random(size) < 0.02 * len(records), np.nan, rng.laplace(size=size))


def lengths(records, rng, size):
    # Longer on one input; the numbers in it say nothing.
    counts = 1 + rng.binomial(4, 0.3 + 0.2 * len(records), size)
    return [rng.laplace(size=k).tolist() for k in counts.tolist()]


def sum_is_fixed(records, rng, size):
    noise = rng.normal(size=(size, 6))
    return noise - noise.mean(axis=1, keepdims=True) + len(records) * 0.5


def broken_histogram(counts, rng, size):
    return vectorized.histogram_inverted(counts, 0.5, rng, size)


def answer_beside_noise(records, rng, size):
    return np.column_stack([rng.laplace(size=size), np.full(size, -len(records))])


def lies(records, rng, size):
    """The same coin makes both inputs lie: no pair agrees."""
    return (rng.random(size) < 0.3) ^ bool(records)


def shuffles(records, rng, size):
    return len(records) + rng.laplace(size=size)[rng.permutation(size)]


BROKEN = {
    "half the scale": (laplace, {"params": {"scale": 0.5}}, 1.8, 2.0),
    "nan": (sometimes_nan, {}, 1.0, math.inf),
    "length": (lengths, {"eps": 0.5, "max_samples": 60_000}, 0.5, 3.0),
    "sum": (sum_is_fixed, {}, 5.0, math.inf),
    "scale eps": (
        broken_histogram,
        {"inputs": queries(5), "neighbors": "one_query"},
        1.5,
        2.0,
    ),
    "the answer itself": (answer_beside_noise, {"max_samples": 20_000}, 4.0, math.inf),
    "the answer, by a line": (
        answer_beside_noise,
        {"max_samples": 20_000, "method": DPSniper(classifier="logistic")},
        4.0,
        math.inf,
    ),
    "hardly ever lies": (
        randomized_response,
        {"params": {"keep": 0.999}, "inputs": values([0, 1])},
        0.85 * math.log(999),
        math.log(999),
    ),
    "excluding each other": (lies, {"eps": 0.7}, 0.7, math.log(7 / 3)),
    "shuffled": (shuffles, {"eps": 0.3}, 0.3, 1.0),
}


@pytest.mark.canary
@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_are_caught(name):
    mechanism, keywords, lowest, truth = BROKEN[name]
    result = sniped(mechanism, **keywords)
    assert result.violated
    assert consistent(result)
    assert lowest < result.eps_lower <= truth
    if name == "shuffled":
        assert any("not shared between inputs" in note for note in result.notes)


OF_SKLEARN = {
    "forest": ("ensemble", "RandomForestClassifier", {"n_estimators": 10, "max_depth": 5}),
    "bayes": ("naive_bayes", "GaussianNB", {}),
}


@pytest.mark.parametrize("classifier", ["additive", "logistic", "mlp", *OF_SKLEARN])
def test_every_classifier_tells_something(classifier):
    """Also where it errs in the tails: to a linear model far-off outputs tell ever more."""
    if classifier in OF_SKLEARN:
        module, name, settings = OF_SKLEARN[classifier]
        classifier = getattr(import_module(f"sklearn.{module}"), name)(**settings)
    result = run("laplace", 2.0, 1.0, 1, method=DPSniper(classifier=classifier))
    assert 0.5 < result.eps_lower <= 1.0
    assert result.loss[1] > 0.9


def parity_leaks(records, rng, size):
    bits = rng.integers(0, 100, size=(size, 4))
    odd = rng.random(size) < (0.8 if records else 0.2)
    bits[:, 3] += (bits.sum(axis=1) % 2) != odd
    return bits


def test_a_feature_of_the_user_finds_what_nothing_else_does():
    def parity(output):
        return sum(int(x) for x in output) % 2

    assert not sniped(parity_leaks, max_samples=10_000).violated
    result = sniped(parity_leaks, max_samples=20_000, features=parity)
    assert result.violated
    assert 1.2 < result.eps_lower <= math.log(4)


NUMBERS = {"pairs": [(0.0, 1.0)]}


def naive(answer, rng, size):
    return answer + rng.laplace(scale=10, size=size)


def on_a_grid(answer, rng, size):
    step = 2.0**-20
    return np.round((answer + rng.laplace(scale=10, size=size)) / step) * step


@pytest.mark.nightly
def test_the_bits_of_naive_noise_betray_it_and_those_of_rounded_noise_do_not():
    attacked = sniped(naive, 0.1, **NUMBERS, floating_point=True)
    assert attacked.violated
    assert attacked.eps_lower > 0.5
    assert sniped(naive, 0.1, **NUMBERS).verdict == "no violation"
    rounded = sniped(on_a_grid, 0.1, **NUMBERS, floating_point=True)
    assert rounded.verdict == "no violation"
    assert rounded.eps_lower > 0.03


# -- What a result says ---------------------------------------------------------------------------


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
