"""Where random numbers come from: seeds that follow from the claim, and streams that never meet."""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.random import mtrand

from pytest_dp.sampling.captured import Captured


def claim_seed(name: str, mechanism: Any) -> int:
    """A seed that changes only when the claim's id or the mechanism's source changes.

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
    """The function or class that says what it does: beneath wrappers, partials and objects."""
    inner = inspect.unwrap(mechanism)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    return inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner)


def stream(seed: int, *key: int) -> np.random.SeedSequence:
    """The seed sequence of one chunk of work; different keys give independent streams.

    A key starts with its length: that of no chunk is then a prefix of another's, and the children
    that `seeded` spawns from one can never be those of another.
    """
    return np.random.SeedSequence(seed, spawn_key=(len(key), *key))


def child(sequence: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """What ``sequence.spawn`` gives as number `number`, in a third of the time."""
    return np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, number))


_SPARE: list[np.random.MT19937] = []
"""Bit generators that stand in for that of ``np.random``, and are in no use now."""


@contextmanager
def seeded(sequence: np.random.SeedSequence, captured: Captured) -> Iterator[np.random.Generator]:
    """A generator for the mechanism, with all other reachable randomness seeded meanwhile.

    ``np.random``, ``random`` and the `captured` generators draw from streams of their own and get
    their earlier state back at the end.
    """
    injected, numpy_global, python_global = (child(sequence, k) for k in range(3))
    reseeded = captured.reseeded(child(sequence, 3)) if captured.generators else nullcontext()
    python_state = random.getstate()
    with reseeded, _numpy_seeded(numpy_global.generate_state(4)):
        random.seed(int.from_bytes(python_global.generate_state(4).tobytes(), "little"))
        try:
            yield np.random.default_rng(injected)
        finally:
            random.setstate(python_state)


@contextmanager
def _numpy_seeded(seed: Any) -> Iterator[None]:
    """Let ``np.random`` draw from another bit generator: to write back 624 words takes longer."""
    earlier = mtrand.get_bit_generator()
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    spare = _SPARE.pop() if _SPARE else np.random.MT19937(0)
    mtrand.set_bit_generator(spare)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        mtrand.set_bit_generator(earlier)  # as it was, but for half a pair of normal draws
        if before["has_gauss"]:
            np.random.set_state(before)  # noqa: NPY002
        _SPARE.append(spare)
