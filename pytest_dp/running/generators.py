"""The generators within a mechanism's reach: given, global or kept; seeded, and put back.

A mechanism may keep a generator: on an object, in a module, in a closure. Copied into several
processes, it would deal the same "random" numbers in each of them, and counts that look independent
would not be. So generators are looked for, and all have streams of their own while a mechanism
runs: one for a chunk of work (`seed_randomness`), or one for every run (`RunStreams`).
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import mtrand
from numpy.random.bit_generator import ISpawnableSeedSequence

from pytest_dp.basics.reach import GENERATORS, reach
from pytest_dp.running.streams import child

NUMPYS: np.random.RandomState = mtrand._rand  # noqa: SLF001
PYTHONS: random.Random = random._inst  # noqa: SLF001
"""The global generators of ``np.random`` and `random`."""
PYTHONS_NUMBER = 2
"""The number of `PYTHONS` among the sources of `RunStreams`; given by the order of these."""
SOURCE_CHILD = 6
"""Number of the child of a chunk's seed sequence that seeds the first source of `RunStreams`.

`seed_randomness` and the checks of shared draws use the children before it."""

Restart = Callable[[int], None]
"""Puts a source at the start of the stream of the run with this number."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The generators in a mechanism, and where it keeps them."""

    generators: tuple[Any, ...]
    places: tuple[str, ...]


NO_GENERATORS = Captured((), ())
"""Of a mechanism in which nobody looked yet, or that has none."""


def find(*roots: Any) -> Captured:
    """Look for generators reachable from `roots`: attributes, closures, globals, containers."""
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
    """Put a generator back to where it was."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state, sequence = state
        _set_sequence(generator.bit_generator, sequence)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)


def _set_sequence(bits: Any, sequence: Any) -> None:
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


# --- what comes back at the end ---


@contextmanager
def _put_back(captured: Captured) -> Iterator[None]:
    """Put all generators within reach back to where they were, at the end."""
    sources = (NUMPYS, PYTHONS, *captured.generators)
    kept = [(source, state_of(source)) for source in sources]
    try:
        yield
    finally:
        for source, state in kept:
            restore(source, state)


# --- a stream for a chunk ---


def states(rng: np.random.Generator, captured: Captured) -> list[Any]:
    """Return the states of all reachable sources and of `rng`, as values to compare."""
    return _states((rng, NUMPYS, PYTHONS, *captured.generators))


def _states(sources: tuple[Any, ...]) -> list[Any]:
    return [_comparable(state_of(source)) for source in sources]


@contextmanager
def seed_randomness(
    sequence: np.random.SeedSequence, captured: Captured
) -> Iterator[np.random.Generator]:
    """Seed all reachable randomness within the block, and yield a generator for the mechanism.

    ``np.random``, `random` and the `captured` generators draw from streams of their own.
    """
    injected, numpys, pythons = (child(sequence, k) for k in range(3))
    with _put_back(captured):
        NUMPYS.seed(numpys.generate_state(4))
        PYTHONS.seed(int.from_bytes(pythons.generate_state(4).tobytes(), "little"))
        own = child(sequence, 3).spawn(len(captured.generators))
        for generator, stream in zip(captured.generators, own, strict=True):
            reseed(generator, stream)
        yield np.random.default_rng(injected)


# --- a stream for every run ---


class RunStreams:
    """The sources of random numbers of a mechanism, with a stream for every run.

    To be entered; at the end, all sources but `rng`, which is to be injected, are back where they
    were. `restart` puts all but the idle sources at the start of a run's stream. The idle ones,
    which the mechanism does not use, are given by their numbers: 0 is `rng`, 1 is ``np.random``, 2
    is `random`, then come the captured ones.
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
        self.restart: Restart = _restart_all([])

    def __enter__(self) -> Self:
        self._stack.enter_context(_put_back(self._captured))
        self._before = {k: _comparable(state_of(self._sources[k])) for k in self._idle}
        restarts = [
            _restarts(source, child(self._sequence, SOURCE_CHILD + k), self._count)
            for k, source in enumerate(self._sources)
            if k not in self._idle
        ]
        self.restart = restarts[0] if len(restarts) == 1 else _restart_all(restarts)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def states(self) -> list[Any]:
        """Return the states of all sources, as values to compare."""
        return _states(self._sources)

    def used_since(self, states: list[Any]) -> dict[int, Any]:
        """Return the new states of the sources that were used since these `states`."""
        now = enumerate(self.states())
        return {k: state for k, state in now if state != states[k]}

    def are_idle(self) -> bool:
        """Return whether the mechanism used none of the sources that are not restarted."""
        return all(
            _comparable(state_of(self._sources[k])) == before for k, before in self._before.items()
        )


def _comparable(state: Any) -> Any:
    """Return a value that is equal exactly for equal states, and stays what it is."""
    # Only those of `random` are tuples of numbers; in others are arrays, which == cannot compare.
    return state if type(state) is tuple and type(state[0]) is int else pickle.dumps(state)


class _RunSequence(ISpawnableSeedSequence):
    """The seed sequence of whichever run is under way, for those who spawn from it."""

    def __init__(self, sequence: np.random.SeedSequence) -> None:
        self.sequence, self.run = sequence, 0
        self._current: np.random.SeedSequence | None = None

    def restart(self, run: int) -> None:
        self.run, self._current = run, None

    def current(self) -> np.random.SeedSequence:
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


def _restart_all(restarts: list[Restart]) -> Restart:
    def restart(run: int) -> None:
        for restart in restarts:
            restart(run)

    return restart


def _restarts(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts a source.

    The stream depends on `sequence` and the run only.
    """
    if not isinstance(source, np.random.Generator):
        return _restarts_numbers(source, sequence, count)
    bits = source.bit_generator
    spawning, legacy = _RunSequence(sequence), type(bits) is np.random.MT19937
    _set_sequence(bits, spawning)
    if type(bits) in _RESTARTS:
        numbers = _RESTARTS[type(bits)](bits, sequence, count)
    else:
        numbers = _restarts_numbers(np.random.RandomState(bits), sequence, count)

    def restart(run: int) -> None:
        spawning.run, spawning._current = run, None  # noqa: SLF001  a call less
        numbers(run)
        if legacy:  # which forgets the sequence
            _set_sequence(bits, spawning)

    return restart


def _restarts_numbers(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    seeds = _random_words(sequence, count)
    if isinstance(source, random.Random):
        numbers = [int.from_bytes(row.tobytes(), "little") for row in seeds]
        return lambda run: source.seed(numbers[run])
    if type(source._bit_generator) is np.random.MT19937:  # noqa: SLF001
        words = seeds.view(np.uint32)
        return lambda run: source.seed(words[run])
    return lambda run: reseed(source, np.random.SeedSequence(seeds[run].tolist()))


def _random_words(
    sequence: np.random.SeedSequence, count: int
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return 128 random bits for each run."""
    return np.random.Philox(sequence).random_raw(2 * count).reshape(count, 2)


def _restarts_philox(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return each run has a random key of 128 bits, and with it all of the counter for jumps."""
    inner = {"counter": [0, 0, 0, 0], "key": [0, 0]}
    state: dict[str, Any] = {**bits.state, "state": inner, "has_uint32": 0, "uinteger": 0}
    # Python numbers are read twice as fast as arrays.
    state |= {"buffer": [0] * 4, "buffer_pos": 4}
    keys = _random_words(sequence, count).tolist()

    def restart(run: int) -> None:
        inner["key"] = keys[run]
        bits.state = state

    return restart


def _restarts_pcg(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Return a function that restarts each run at a random state of 128 bits.

    Two runs have the same state with probability 2^-128.
    """
    inner = {"state": 0, "inc": type(bits)(sequence).state["state"]["inc"]}
    state = {"bit_generator": type(bits).__name__, "state": inner, "has_uint32": 0, "uinteger": 0}
    starts = [high << 64 | low for high, low in _random_words(sequence, count).tolist()]

    def restart(run: int) -> None:
        inner["state"] = starts[run]
        bits.state = state

    return restart


_RESTARTS = {
    np.random.Philox: _restarts_philox,
    np.random.PCG64: _restarts_pcg,
    np.random.PCG64DXSM: _restarts_pcg,
}
