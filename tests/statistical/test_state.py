"""Mechanisms that keep something from run to run: no verdict of ours may be red because of it."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools

import numpy as np
import pytest
from states import METHODS, RECORDS, NoCopy, fixed_seed, half_the_noise, missing, verdict

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


class CachedOnTheClass:
    kept: dict = {}  # noqa: RUF012

    def __call__(self, data, rng):
        if len(data) not in self.kept:
            self.kept[len(data)] = sum(data) + int(rng.geometric(0.63) - rng.geometric(0.63))
        return self.kept[len(data)]


def cached_on_the_class():
    CachedOnTheClass.kept.clear()
    return CachedOnTheClass()


def memo_of_a_bit():
    kept = {}

    def mechanism(data, rng):
        truth = len(data) % 2
        return kept.setdefault(len(data), truth if rng.random() < 0.7 else 1 - truth)

    return mechanism


@pytest.mark.canary
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [memo, cached, cached_on_the_class, memo_of_a_bit])
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


@pytest.mark.parametrize("method", METHODS)
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


SCALES = {"laplace": 0.5}


def looks_a_constant_up(data):
    return sum(data) * SCALES["laplace"]


@pytest.mark.nightly
def test_a_memo_that_was_filled_before_is_told_by_another_process():
    for n in range(7):
        remembers_in_its_module([1] * n)
    assert verdict(lambda: remembers_in_its_module, "sequential", 1) == "error"
    assert verdict(lambda: looks_a_constant_up, "sequential", 1, eps=0.3) == "violated"


class Service:
    """Which two claims of a session are on; it may hold what cannot be copied."""

    def __init__(self, held=None):
        self.kept, self.held = {}, held

    def total(self, data, rng):
        return self.kept.setdefault(len(data), sum(data) + rng.laplace())

    def half(self, data, rng, times=1):
        return times * self.kept.setdefault(len(data), 2 * sum(data) + 2 * rng.laplace()) / 2


@pytest.mark.parametrize("held", [None, NoCopy()])
def test_what_an_audit_left_in_an_object_makes_no_alarm_in_the_next(held):
    service = Service(held)
    assert verdict(lambda: service.total, "sequential", 1) == "error"
    assert verdict(lambda: service.half, "sequential", 2, params={"times": 1}) == "error"


# --- real bugs, whatever they look like ---

AT_IMPORT = np.random.default_rng(5).laplace()


def seeds_the_globals(data):
    np.random.seed(3)
    return sum(data) + np.random.laplace()


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
        (missing, "sequential"),
        (fixed_seed, "sequential"),
        (seeds_the_globals, "sequential"),
        (drawn_at_import, "sequential"),
        (caches_nothing_random, "sequential"),
        (half_the_noise, "sequential"),
        (response, "sequential"),
        (fixed_seed, "statdp"),
        (caches_nothing_random, "statdp"),
        (seeds_the_globals, "dpsniper"),
        (half_the_noise, "dpsniper"),
    ],
)
def test_bugs_stay_violations(mechanism, method):
    assert verdict(lambda: mechanism, method, seed=1) == "violated"


# --- buffers ---


@pytest.mark.parametrize("size", [150, 1_000])
def test_a_buffer_is_no_violation(size):
    def make():
        buffer = []

        def pooled(data, rng):
            if not buffer:
                buffer.extend(rng.laplace(size=size))
            return sum(data) + buffer.pop()

        return pooled

    inputs = {"inputs": [[1] * n for n in range(1, 16)]}
    assert verdict(make, "sequential", 0, **inputs) in {"no violation", "inconclusive"}


# --- samples ---
