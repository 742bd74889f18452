"""The generators within a mechanism's reach: given, global or kept; seeded, and put back.

Seeds follow from the claim. Each stream of random numbers has a key, which no other stream has.

A generator that a mechanism keeps would give the same numbers in each process that it is copied
into. So generators are found, and all have streams of their own while a mechanism runs: one for a
chunk of work (`seed_randomness`), or one for every run (`RunStreams`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, Self

import numpy as np
from numpy.random import mtrand
from numpy.random.bit_generator import ISpawnableSeedSequence

from pytest_dp.basics.reach import GENERATORS, reach


@unique
class Purpose(IntEnum):
    """Purposes of samples: the first part of the key of each stream of random numbers."""

    TRIAL = 0
    """To see how a mechanism draws its random numbers."""
    SEARCH = 1
    """To learn attacks from, and to rank pairs."""
    TEST = 2
    """To be tested: no attack was learned from these samples."""
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
    """To choose which canaries are in the data, and to break ties between their scores."""
    OUTSIDE = 16
    """To be bet on, on pairs outside of the declared inputs."""


def claim_seed(name: str, mechanism: Any) -> int:
    """Return a seed that changes only with the claim's id (`name`) or the mechanism's source code.

    The same code thus gets the same verdict wherever it is audited. Code without a source file
    counts by its bytecode; an object without code by its name.
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
    """Return the seed sequence of one chunk of work; different keys give independent streams."""
    return np.random.SeedSequence(seed, spawn_key=(len(key), *key))


def child(sequence: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """Return item `number` of ``sequence.spawn``, in a third of the time."""
    return np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, number))


NUMPYS: np.random.RandomState = mtrand._rand  # noqa: SLF001
PYTHONS: random.Random = random._inst  # noqa: SLF001
"""The global generators of ``np.random`` and `random`."""
PYTHONS_NUMBER = 2
"""The number of `PYTHONS` among the sources of `RunStreams`; given by their order."""
SOURCE_CHILD = 6
"""Number of the child of a chunk's seed sequence for the first source; others use those before."""
Restart = Callable[[int], None]
"""Puts a source at the start of the stream of the run with this number."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The generators in a mechanism, and where it keeps them."""

    generators: tuple[Any, ...]
    places: tuple[str, ...]


NO_GENERATORS = Captured((), ())
"""Stands for the generators of a mechanism that has none, or in which none were looked for."""


def find_generators(*roots: Any) -> Captured:
    """Return the generators that `roots` reach by attributes, closures, globals and containers.

    The global generators, and those that draw on the operating system, are left out.
    """
    named = ((root, getattr(root, "__name__", "the mechanism")) for root in roots)
    kept = [
        (value, place)
        for value, place in reach(*named, foreign=True)
        if issubclass(type(value), GENERATORS)
        and value is not NUMPYS
        and value is not PYTHONS
        and not isinstance(value, random.SystemRandom)
    ]
    return Captured(tuple(value for value, _ in kept), tuple(place for _, place in kept))


def state_of(generator: Any) -> Any:
    """Return the state of a generator, with the seed sequence that it spawns from."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state, generator.bit_generator.seed_seq
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Put a generator back into a state that `state_of` returned."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state, sequence = state
        _set_sequence(generator.bit_generator, sequence)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)


def _set_sequence(bits: Any, sequence: Any) -> None:
    """Make a bit generator spawn from another sequence; do nothing with numpy below 2.0."""
    if bits.seed_seq is not sequence and type(bits.__getstate__()) is tuple:
        bits.__setstate__((bits.state, sequence))


def reseed(generator: Any, sequence: np.random.SeedSequence) -> None:
    """Put a generator at the start of the stream of a seed sequence."""
    if isinstance(generator, random.Random):
        generator.seed(int.from_bytes(sequence.generate_state(4).tobytes(), "big"))
    elif isinstance(generator, np.random.Generator):
        restore(generator, (type(generator.bit_generator)(sequence).state, sequence))
    else:
        bits = type(generator._bit_generator)  # noqa: SLF001
        restore(generator, bits(sequence).state)


@contextmanager
def _restoring(captured: Captured) -> Iterator[None]:
    """Restore all generators within reach to their states of before, at the end of the block."""
    sources = (NUMPYS, PYTHONS, *captured.generators)
    kept = [(source, state_of(source)) for source in sources]
    try:
        yield
    finally:
        for source, state in kept:
            restore(source, state)


def states(rng: np.random.Generator, captured: Captured) -> list[Any]:
    """Return the states of `rng`, the global and the captured generators, as values to compare."""
    sources = (rng, NUMPYS, PYTHONS, *captured.generators)
    return [_comparable(state_of(source)) for source in sources]


@contextmanager
def seed_randomness(
    sequence: np.random.SeedSequence, captured: Captured
) -> Iterator[np.random.Generator]:
    """Seed all reachable randomness within the block, and yield a generator for the mechanism.

    ``np.random``, `random` and the `captured` generators draw from streams of their own, and are
    restored afterwards.
    """
    injected, numpys, pythons = (child(sequence, k) for k in range(3))
    with _restoring(captured):
        NUMPYS.seed(numpys.generate_state(4))
        PYTHONS.seed(int.from_bytes(pythons.generate_state(4).tobytes(), "little"))
        own = child(sequence, 3).spawn(len(captured.generators))
        for generator, its_own in zip(captured.generators, own, strict=True):
            reseed(generator, its_own)
        yield np.random.default_rng(injected)


class RunStreams:
    """The sources of random numbers of a mechanism, with a stream for every run.

    A context manager; at its end, all sources but `rng`, which is passed to the mechanism, are
    restored. `restart` puts the sources at the start of the stream of a run, except for `idle`
    ones, which the mechanism does not use. Sources have numbers: 0 is `rng`, 1 is ``np.random``, 2
    is `random`, then come the captured generators.
    """

    def __init__(
        self, sequence: np.random.SeedSequence, count: int, captured: Captured, idle: frozenset[int]
    ) -> None:
        bits = np.random.Philox(_RunSequence(child(sequence, SOURCE_CHILD)))
        self.rng = np.random.Generator(bits)
        self._sources = (self.rng, NUMPYS, PYTHONS, *captured.generators)
        self._sequence, self._count = sequence, count
        self._captured, self._idle = captured, idle
        self._stack = ExitStack()
        self.restart: Restart = _joint_restart([])

    def __enter__(self) -> Self:
        self._stack.enter_context(_restoring(self._captured))
        self._before = {k: _comparable(state_of(self._sources[k])) for k in self._idle}
        restarts = [
            _source_restart(source, child(self._sequence, SOURCE_CHILD + k), self._count)
            for k, source in enumerate(self._sources)
            if k not in self._idle
        ]
        self.restart = restarts[0] if len(restarts) == 1 else _joint_restart(restarts)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def states(self) -> list[Any]:
        """Return the states of all sources, as values to compare."""
        return states(self.rng, self._captured)

    def used_since(self, states: list[Any]) -> dict[int, Any]:
        """Return the states of the sources that differ from `states`, by their numbers."""
        now = enumerate(self.states())
        return {k: state for k, state in now if state != states[k]}

    def are_idle(self) -> bool:
        """Return whether no source in `idle` was used since the start of the block."""
        return all(
            _comparable(state_of(self._sources[k])) == before for k, before in self._before.items()
        )


def _comparable(state: Any) -> Any:
    """Return a value that is equal for equal states of a generator only."""
    # Only those of `random` are tuples of numbers; in others are arrays, which == cannot compare.
    return state if type(state) is tuple and type(state[0]) is int else pickle.dumps(state)


class _RunSequence(ISpawnableSeedSequence):
    """The seed sequence of the current run, from which generators spawn others."""

    def __init__(self, sequence: np.random.SeedSequence) -> None:
        self.sequence, self.run = sequence, 0
        self._current: np.random.SeedSequence | None = None

    def restart(self, run: int) -> None:
        """Begin the sequence of another run."""
        self.run, self._current = run, None

    def current(self) -> np.random.SeedSequence:
        """Return the seed sequence of the current run."""
        if self._current is None:
            self._current = child(self.sequence, self.run)
        return self._current

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self.current().generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        return self.current().spawn(n_children)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.current(), name)

    def __reduce__(self) -> Any:
        spawned = self._current and self._current.n_children_spawned
        return _run_sequence, (self.sequence, self.run, spawned)


def _run_sequence(sequence: np.random.SeedSequence, run: int, spawned: int | None) -> _RunSequence:
    copied = _RunSequence(sequence)
    copied.restart(run)
    copied.current().spawn(spawned or 0)
    return copied


def _joint_restart(restarts: list[Restart]) -> Restart:
    """Return a function that calls several functions with the number of a run."""

    def restart(run: int) -> None:
        for restart in restarts:
            restart(run)

    return restart


def _source_restart(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that puts a source at the start of the stream of a run below `count`."""
    if not isinstance(source, np.random.Generator):
        return _legacy_restart(source, sequence, count)
    bits = source.bit_generator
    spawning = _RunSequence(sequence)
    _set_sequence(bits, spawning)
    restart_numbers = _RESTARTS.get(type(bits), _bits_restart)(bits, sequence, count)

    def restart(run: int) -> None:
        spawning.run, spawning._current = run, None  # noqa: SLF001  a call less
        restart_numbers(run)

    return restart


def _legacy_restart(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts a generator of `random`, or a RandomState of numpy."""
    seeds = _random_words(sequence, count)
    if isinstance(source, random.Random):
        numbers = [int.from_bytes(row.tobytes(), "little") for row in seeds]
        return lambda run: source.seed(numbers[run])
    if type(source._bit_generator) is np.random.MT19937:  # noqa: SLF001
        words = seeds.view(np.uint32)
        return lambda run: source.seed(words[run])
    return lambda run: reseed(source, np.random.SeedSequence(seeds[run].tolist()))


def _bits_restart(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts a bit generator of any type."""
    seeds, make = _random_words(sequence, count).tolist(), type(bits)
    return lambda run: setattr(bits, "state", make(np.random.SeedSequence(seeds[run])).state)


def _random_words(
    sequence: np.random.SeedSequence, count: int
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return 128 random bits for each run, as two words."""
    return np.random.Philox(sequence).random_raw(2 * count).reshape(count, 2)


def _philox_restart(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts Philox: each run has a random key of 128 bits."""
    inner = {"counter": [0, 0, 0, 0], "key": [0, 0]}
    state: dict[str, Any] = {**bits.state, "state": inner, "has_uint32": 0, "uinteger": 0}
    # Python numbers are read twice as fast as arrays.
    state |= {"buffer": [0] * 4, "buffer_pos": 4}
    keys = _random_words(sequence, count).tolist()

    def restart(run: int) -> None:
        inner["key"] = keys[run]
        bits.state = state

    return restart


def _pcg_restart(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts PCG64: each run has a random state of 128 bits."""
    inner = {"state": 0, "inc": type(bits)(sequence).state["state"]["inc"]}
    state = {"bit_generator": type(bits).__name__, "state": inner, "has_uint32": 0, "uinteger": 0}
    starts = [high << 64 | low for high, low in _random_words(sequence, count).tolist()]

    def restart(run: int) -> None:
        inner["state"] = starts[run]
        bits.state = state

    return restart


_RESTARTS = {
    np.random.Philox: _philox_restart,
    np.random.PCG64: _pcg_restart,
    np.random.PCG64DXSM: _pcg_restart,
}
