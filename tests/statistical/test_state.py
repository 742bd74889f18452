"""Mechanisms that keep something from run to run: no verdict of ours may be red because of it."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools

import numpy as np
import pytest
from states import RECORDS, fixed_seed, half_the_noise, verdict

from pytest_dp import MechanismError, audit

TRUTH_KEPT = np.exp(0.9) / (1 + np.exp(0.9))

pytestmark = pytest.mark.usefixtures("_without_blame")


# --- correct, as long as it is not asked twice ---


def memo():
    kept = {}

    def mechanism(data, rng):
        return kept.setdefault(len(data), sum(data) + rng.laplace())

    return mechanism


def cached():
    @functools.lru_cache
    def noise(n):
        return np.random.laplace()

    return lambda data: sum(data) + noise(len(data))


def memo_of_a_bit():
    kept = {}

    def mechanism(data, rng):
        truth = len(data) % 2
        return kept.setdefault(len(data), truth if rng.random() < 0.7 else 1 - truth)

    return mechanism


@pytest.mark.canary
@pytest.mark.parametrize(
    ("make", "method"),
    [
        (memo, "sequential"),
        (memo, "statdp"),
        (cached, "dpsniper"),
        (memo_of_a_bit, "sequential"),
        (memo_of_a_bit, "statdp"),
    ],
)
def test_a_memo_is_an_error_and_no_verdict(make, method):
    found = [verdict(make, method, seed) for seed in range(3 if make is memo_of_a_bit else 1)]
    assert "violated" not in found
    # By chance a bit may be the same on all inputs.
    assert found.count("error") >= (2 if make is memo_of_a_bit else 1)


def permanent_response():
    """RAPPOR: a bit is kept, and then randomised again for every answer."""
    kept = {}

    def mechanism(bit, rng):
        if bit not in kept:
            kept[bit] = bit if rng.random() < TRUTH_KEPT else 1 - bit
        return kept[bit] if rng.random() < 0.85 else 1 - kept[bit]

    return mechanism


@pytest.mark.parametrize("method", ["sequential", "dpsniper"])
def test_what_is_kept_and_then_randomised_again_is_an_error(method):
    pairs = {"pairs": [(0, 1)], "neighbors": None, "inputs": None}
    found = [verdict(permanent_response, method, seed, **pairs) for seed in range(5)]
    assert "violated" not in found
    assert found.count("error") >= 1


def test_the_reason_and_the_remedy_are_given():
    with pytest.raises(MechanismError, match=r"lambda.* keeps something .* Claim .* makes a new"):
        audit(cached(), eps=1.0, seed=1, n_jobs=1, **RECORDS)


ANSWERED: dict = {}


def remembers_in_its_module(data):
    if len(data) not in ANSWERED:
        ANSWERED[len(data)] = sum(data) + np.random.laplace()
    return ANSWERED[len(data)]


@pytest.mark.nightly
def test_a_memo_that_was_filled_before_is_told_by_another_process():
    for n in range(7):
        remembers_in_its_module([1] * n)
    assert verdict(lambda: remembers_in_its_module, "sequential", 1) == "error"


@pytest.mark.nightly
def test_what_an_earlier_audit_left_below_noise_is_no_violation():
    """Forks of the second audit have the kept answers in common."""
    kept = {}

    def below_noise(data, rng):
        return kept.setdefault(len(data), len(data) + rng.laplace()) + 0.3 * rng.laplace()

    pairs = {"neighbors": None, "inputs": None, "pairs": [([], [1])]}
    found = {verdict(lambda: below_noise, "sequential", seed, **pairs) for seed in range(2)}
    assert found == {"error"}


# --- real bugs, whatever they look like ---

AT_IMPORT = np.random.default_rng(5).laplace()


def drawn_at_import(data):
    """One noise value for all inputs that are ever asked about: it cancels in differences."""
    return sum(data) + AT_IMPORT


def caches_nothing_random(data, rng):
    return _total(len(data)) + rng.laplace(scale=0.4)


@functools.lru_cache
def _total(n):
    return n


def response(data, rng):
    return len(data) % 2 if rng.random() < 0.9 else 1 - len(data) % 2


@pytest.mark.canary
@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize(
    ("mechanism", "method"),
    [
        (fixed_seed, "sequential"),
        (drawn_at_import, "sequential"),
        (caches_nothing_random, "sequential"),
        (response, "sequential"),
        (fixed_seed, "statdp"),
        (half_the_noise, "dpsniper"),
    ],
)
def test_bugs_stay_violations(mechanism, method):
    assert verdict(lambda: mechanism, method, seed=1) == "violated"


# --- buffers ---


def test_a_buffer_is_no_violation():
    def make():
        buffer = []

        def pooled(data, rng):
            if not buffer:
                buffer.extend(rng.laplace(size=150))
            return sum(data) + buffer.pop()

        return pooled

    inputs = {"inputs": [[1] * n for n in range(1, 16)]}
    assert verdict(make, "sequential", 0, **inputs) in {"no violation", "inconclusive"}
