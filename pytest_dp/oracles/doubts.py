"""What a mechanism keeps from run to run: later runs may differ from those that were traced."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.basics.reach import functions_of, names_in, reach
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generators import seed_randomness
from pytest_dp.running.modules import are_originals

RUNS = 2
"""Runs of the copy that is looked at. With one, what only the second run changes goes unseen."""
KEEPS = "it keeps something from run to run"


def doubt_about(call: Call, data: Any, deadline: Deadline) -> str:
    """Return why traced runs may not tell what later ones do; empty if nothing speaks for it.

    Raises what the mechanism raises, and OutOfTime if the deadline passes.
    """
    if not are_originals():
        return "functions that draw were replaced"
    copied, (on_copy,) = call.copied(data)
    copied = replace(copied, made=Made())  # these are no samples
    before, around = content_of(copied), _around(copied)
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seed_randomness(sequence, copied.captured) as rng:
        for _ in range(RUNS):
            copied.one(on_copy, rng)
    has_cached = any(cache.cache_info().currsize for cache in _caches(copied))
    if has_cached or content_of(copied) != before or _around(copied) != around:
        return KEEPS
    return ""


def content_of(call: Call) -> bytes:
    """What a mechanism and its parameters hold, as text: the same as long as nothing changes."""
    return Pristine((call.mechanism, call.params)).content


def _around(call: Call) -> dict[str, dict[str, int]]:
    """What stands in modules that the mechanism's code names, and may write into."""
    named = {
        id(module): module
        for function in functions_of(call.mechanism)
        for name in names_in(function.__code__)
        if isinstance(module := function.__globals__.get(name), types.ModuleType)
    }
    return {
        module.__name__: {name: id(value) for name, value in vars(module).items()}
        for module in named.values()
    }


def _caches(call: Call) -> Iterator[Any]:
    for value, _ in reach((call.mechanism, "")):
        if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001
            yield value
