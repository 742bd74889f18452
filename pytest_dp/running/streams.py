"""Where random numbers come from: seeds that follow from the claim, and streams that never meet."""

from __future__ import annotations

import functools
import hashlib
import inspect
from enum import IntEnum, unique
from typing import Any

import numpy as np


@unique
class Purpose(IntEnum):
    """Purposes of samples: the first part of the key of each stream of random numbers.

    No two purposes have random numbers in common, as their keys begin with another number.
    """

    TRIAL = 0
    """To see how a mechanism draws its random numbers."""
    SEARCH = 1
    """To learn attacks from, and to rank pairs."""
    TEST = 2
    """To be tested: none of them was ever searched."""
    CHOICE = 3
    """To place the threshold of an attack."""
    POWER = 4
    """To estimate the power of an attack."""
    BET = 5
    """To be bet on."""
    RESTART = 6
    """To be bet on anew, after random numbers turned out not to be shared."""
    DIVERGENCE = 8
    """To bound a divergence."""
    SMALLER = 9
    """To be bet on, on smaller pairs; each pair gets the same random numbers."""
    COPY = 10
    """To be drawn by copies of the mechanism that start afresh."""
    HIDDEN = 12
    """For generators that are found nowhere but in the memory of a process."""
    COINS = 14
    """By which canaries are in the data or not, and ties between their scores are broken."""
    OUTSIDE = 16
    """To be bet on, on pairs outside of the declared inputs."""


def claim_seed(name: str, mechanism: Any) -> int:
    """Return a seed that changes only when the claim's id or the mechanism's source changes.

    The same code thus gets the same verdict wherever and whenever it is audited, and running it
    again until it turns green cannot work.
    """
    inner = definition_of(mechanism)
    try:
        source = inspect.getsource(inner)
    except (OSError, TypeError):
        code = getattr(inner, "__code__", None)
        source = repr((code.co_code, code.co_names)) if code else inner.__qualname__
    digest = hashlib.sha256(f"{name}\0{source}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def definition_of(mechanism: Any) -> Any:
    """Return the function or class that defines a mechanism, inside of wrappers and partials."""
    inner = inspect.unwrap(mechanism)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    return inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner)


def stream(seed: int, *key: int) -> np.random.SeedSequence:
    """Return the seed sequence of one chunk of work; different keys give independent streams.

    A key starts with its length: that of no chunk is then a prefix of another's, and the children
    that `seeded` spawns from one can never be those of another.
    """
    return np.random.SeedSequence(seed, spawn_key=(len(key), *key))


def child(sequence: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """Return item `number` of ``sequence.spawn``, in a third of the time."""
    return np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, number))
