"""Losses on a pair of inputs that are known without a sample, and why they may be wrong.

What is derived may be wrong, as of code that treats numbers differently that are traced. So it is
held against outputs of real runs before anybody is told.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.basics.reach import reach
from pytest_dp.oracles.aligned_pair import AlignedPair
from pytest_dp.oracles.enumerated import EnumeratedPair
from pytest_dp.privacy import Guarantee
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.generators import seed_randomness

ROUNDING = 1e-9
"""Relative error after a few operations. Larger: a leak of more than delta counts as one of delta;
smaller: rounding makes a difference."""

KnownPair = EnumeratedPair | AlignedPair
"""The loss between the outputs on D and on D', as far as it is known."""


def parameter_of(known: KnownPair, guarantee: Guarantee) -> tuple[float, float]:
    """Return the parameter of a guarantee on a pair, and its error.

    Raises CannotInstrument if it is unknown.
    """
    if isinstance(known, AlignedPair):
        return known.parameter_of(guarantee), 0.0
    if guarantee.parameter != "eps":
        raise CannotInstrument(f"a claim of {guarantee.parameter}")
    value, error = known.eps_at(guarantee.delta)
    if guarantee.delta and value > guarantee.claimed:  # a leak of delta may round to more
        value, error = known.eps_at(guarantee.delta * (1 + ROUNDING))
    return value, error


# What a mechanism keeps from run to run: later runs may differ from those that were traced

RUNS = 2
"""Runs of the copy that is looked at. With one, what only the second run changes goes unseen."""
KEEPS = "it keeps something from run to run"


def doubt_about(call: Call, data: Any, deadline: Deadline) -> str:
    """Return why traced runs may not tell what later ones do; empty if nothing speaks for it.

    Raises what the mechanism raises, and OutOfTime if the deadline passes.
    """
    copied, (on_copy,) = call.copied(data)
    copied = replace(copied, made=Made())  # these are no samples
    before = content_of(copied)
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seed_randomness(sequence, copied.captured) as rng:
        for _ in range(RUNS):
            copied.one(on_copy, rng)
    has_cached = any(cache.cache_info().currsize for cache in _caches(copied))
    if has_cached or content_of(copied) != before:
        return KEEPS
    return ""


def content_of(call: Call) -> bytes:
    """Return a mechanism and its parameters as text: the same as long as nothing changes."""
    return Pristine((call.mechanism, call.params)).content


def _caches(call: Call) -> Iterator[Any]:
    for value, _ in reach((call.mechanism, "")):
        if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001
            yield value
