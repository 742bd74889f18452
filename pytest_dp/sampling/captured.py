"""Captured generators: those that a mechanism keeps, on an object, in a module, in a closure.

Copied into several processes, such a generator would deal the same "random" numbers in each of
them, and counts that look independent would not be. So they are looked for, and given a stream of
their own before every chunk of work.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.reach import GENERATORS, reach


@dataclass(frozen=True, slots=True)
class Captured:
    """The generators in a mechanism, and where it keeps them."""

    generators: tuple[Any, ...]
    places: tuple[str, ...]

    @contextmanager
    def reseeded(self, sequence: np.random.SeedSequence) -> Iterator[None]:
        """Give each generator a stream of its own; its earlier state comes back at the end."""
        before = [state_of(generator) for generator in self.generators]
        children = sequence.spawn(len(self.generators)) if self.generators else []
        for generator, child in zip(self.generators, children, strict=True):
            reseed(generator, child)
        try:
            yield
        finally:
            for generator, state in zip(self.generators, before, strict=True):
                restore(generator, state)


NO_GENERATORS = Captured((), ())
"""Of a mechanism in which nobody looked yet, or that has none."""


def find(*roots: Any) -> Captured:
    """Look for generators reachable from `roots`: attributes, closures, globals, containers."""
    known = {id(random._inst), id(np.random.mtrand._rand)}  # noqa: SLF001
    named = ((root, getattr(root, "__name__", "the mechanism")) for root in roots)
    kept = [
        (value, place)
        for value, place in reach(*named, foreign=True)
        if issubclass(type(value), GENERATORS)
        and id(value) not in known
        and not isinstance(value, random.SystemRandom)
    ]
    return Captured(tuple(value for value, _ in kept), tuple(place for _, place in kept))


def state_of(generator: Any) -> Any:
    """The state of a generator, with the seed sequence that it spawns from."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state, generator.bit_generator.seed_seq
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Put a generator back to where it was."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state, sequence = state
        set_sequence(generator.bit_generator, sequence)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)


def set_sequence(bits: Any, sequence: Any) -> None:
    """Let a bit generator spawn from another sequence, where this numpy can (from 2.0)."""
    if bits.seed_seq is not sequence and type(bits.__getstate__()) is tuple:
        bits.__setstate__((bits.state, sequence))


def reseed(generator: Any, sequence: np.random.SeedSequence) -> None:
    """Give such a generator a stream of its own."""
    if isinstance(generator, random.Random):
        generator.seed(int.from_bytes(sequence.generate_state(4).tobytes(), "big"))
    elif isinstance(generator, np.random.Generator):
        restore(generator, (type(generator.bit_generator)(sequence).state, sequence))
    else:
        bits = type(generator._bit_generator)  # noqa: SLF001
        restore(generator, bits(sequence).state)
