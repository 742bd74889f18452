"""Common random numbers, run by run: before each, every source of random numbers starts afresh.

Two inputs can then share their random numbers run by run, while different runs stay independent,
however many numbers each of them takes. This holds if an output depends on nothing but the input
and the stream, which is tried first, and looked at again and again while outputs are drawn. Both
happen on copies of the mechanism, so that what is audited never gets the same numbers twice.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

from pytest_dp.arrays import Outputs
from pytest_dp.limits import FEW, RERUN_SHARE
from pytest_dp.outputs.outcome import same
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.captured import Captured, reseed, restore, set_sequence, state_of
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.streams import child
from pytest_dp.sampling.twister import GLOBAL

Restart = Callable[[int], None]
"""Puts a source at the start of the stream of the run with this number."""

PYTHONS_GLOBAL = 2
"""The number of the source of `random`, given by the order of the sources of `Runs`."""
_FORTH = [(run, side) for side in (0, 1) for run in range(FEW)]
SCHEDULE = (*_FORTH, *((run, 1 - side) for run, side in reversed(_FORTH)))
"""Streams and inputs of a trial: each stream twice on either input, in another order than before,
so that an output that depends on earlier runs has other ones before it."""

CHECK_CHILD, ANEW_CHILD, SOURCE_CHILD = 4, 5, 6
"""Which child of a chunk's seed sequence decides what is checked, runs checks, and seeds the
sources; given by `seeded`, which uses the children before these."""


class CannotCouple(Exception):  # noqa: N818  a way out, not an error
    """Draws on two inputs must not share random numbers; the message says why."""


NOTHING_RANDOM = "nothing random within reach"
"""A reason that need not be told: more is gained by nothing else."""
DEPENDS_ON_EARLIER_RUNS = "its outputs depend on earlier runs (a buffer, a cache, a counter)"


class Runs:
    """The sources of random numbers of a mechanism, with a stream for every run.

    To be entered; at the end, all sources but `rng`, which is to be injected, are back where they
    were. `restart` puts all but the idle sources at the start of a run's stream. The idle ones,
    which the mechanism does not use, are given by their numbers: 0 is `rng`, 1 is ``np.random``, 2
    is ``random``, then come the captured ones.
    """

    def __init__(
        self, sequence: np.random.SeedSequence, count: int, captured: Captured, idle: frozenset[int]
    ) -> None:
        self.rng = np.random.Generator(
            np.random.Philox(_RunSequence(child(sequence, SOURCE_CHILD)))
        )
        self._sources = (
            self.rng,
            np.random.mtrand._rand,  # noqa: SLF001
            random._inst,  # noqa: SLF001
            *captured.generators,
        )
        self._sequence, self._count, self._idle = sequence, count, idle
        self._left_alone = False
        self.restart: Restart = _nothing

    def __enter__(self) -> Self:
        self._before = [self._state(k) for k in range(len(self._sources))]
        # Of `np.random` it is a value of its own, which takes time to write down.
        self._at = {k: _comparable(self._before[k]) for k in self._idle if k != 1}
        restarts = [
            _restarts(source, child(self._sequence, SOURCE_CHILD + k), self._count)
            for k, source in enumerate(self._sources)
            if k not in self._idle
        ]
        self.restart = restarts[0] if len(restarts) == 1 else _combined(restarts)
        return self

    def __exit__(self, *_: object) -> None:
        for k, source in enumerate(self._sources[1:], 1):
            if self._left_alone and k in self._idle:
                continue
            if source is GLOBAL.source:
                GLOBAL.restore(self._before[k])
            else:
                restore(source, self._before[k])

    def starts(self) -> list[Any]:
        """Where all sources are, right after a restart, for `ends`."""
        return [
            GLOBAL.words() or _comparable(state_of(source))
            if k == 1
            else _comparable(state_of(source))
            for k, source in enumerate(self._sources)
        ]

    def ends(self, starts: list[Any]) -> dict[int, Any]:
        """Where those sources are that were used since, as values to compare."""
        return {
            k: _comparable(state_of(self._sources[k]))
            for k, now in enumerate(self.starts())
            if now != starts[k]
        }

    def are_idle(self) -> bool:
        """Whether the mechanism left those alone that need no restart."""
        self._left_alone = all(map(self._is_idle, self._idle))
        return self._left_alone

    def _is_idle(self, k: int) -> bool:
        now = self._state(k)
        if k == 1:
            return now is self._before[k] or bool(_comparable(now) == _comparable(self._before[k]))
        return bool(_comparable(now) == self._at[k])

    def _state(self, k: int) -> Any:
        source = self._sources[k]
        return GLOBAL.state() if source is GLOBAL.source else state_of(source)


def _comparable(state: Any) -> Any:
    """A value that is equal exactly for equal states, and stays what it is."""
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
        return _run_sequence, (
            self.sequence,
            self.run,
            self._current and self._current.n_children_spawned,
        )


def _run_sequence(sequence: np.random.SeedSequence, run: int, spawned: int | None) -> _RunSequence:
    copied = _RunSequence(sequence)
    copied.restart(run)
    copied.current().spawn(spawned or 0)
    return copied


def _nothing(run: int) -> None:
    """Ahead of entering."""


def _combined(restarts: list[Restart]) -> Restart:
    def restart(run: int) -> None:
        for restart in restarts:
            restart(run)

    return restart


def _restarts(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """What restarts a source; the stream of a run depends on nothing but `sequence` and the run."""
    if not isinstance(source, np.random.Generator):
        return _restarts_numbers(source, sequence, count)
    bits = source.bit_generator
    spawning, legacy = _RunSequence(sequence), type(bits) is np.random.MT19937
    set_sequence(bits, spawning)
    numbers = _RESTARTS.get(type(bits), _restarts_bits)(bits, sequence, count)

    def restart(run: int) -> None:
        spawning.run, spawning._current = run, None  # noqa: SLF001  a call less
        numbers(run)
        if legacy:  # which forgets the sequence
            set_sequence(bits, spawning)

    return restart


def _restarts_numbers(source: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    seeds = _random_words(sequence, count)
    if isinstance(source, random.Random):
        numbers = [int.from_bytes(row.tobytes(), "little") for row in seeds]
        return lambda run: source.seed(numbers[run])
    if _is_twister(source):
        words = seeds.view(np.uint32)
        return lambda run: source.seed(words[run])
    return lambda run: reseed(source, np.random.SeedSequence(seeds[run].tolist()))


def _random_words(
    sequence: np.random.SeedSequence, count: int
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """128 random bits for each run."""
    return np.random.Philox(sequence).random_raw(2 * count).reshape(count, 2)


def _restarts_philox(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    """Each run has a random key of 128 bits, and with it all of the counter for jumps."""
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
    """Each run has a random state of 128 bits; they differ but for a chance of 2^-128 a pair."""
    inner = {"state": 0, "inc": type(bits)(sequence).state["state"]["inc"]}
    state = {"bit_generator": type(bits).__name__, "state": inner, "has_uint32": 0, "uinteger": 0}
    starts = [high << 64 | low for high, low in _random_words(sequence, count).tolist()]

    def restart(run: int) -> None:
        inner["state"] = starts[run]
        bits.state = state

    return restart


def _restarts_bits(bits: Any, sequence: np.random.SeedSequence, count: int) -> Restart:
    return _restarts_numbers(np.random.RandomState(bits), sequence, count)


_RESTARTS = {
    np.random.Philox: _restarts_philox,
    np.random.PCG64: _restarts_pcg,
    np.random.PCG64DXSM: _restarts_pcg,
}


def _is_twister(source: np.random.RandomState) -> bool:
    return type(source._bit_generator) is np.random.MT19937  # noqa: SLF001


def _rerun(call: Call, data: Any, runs: Runs, run: int) -> Any:
    return call.draw(data, 1, runs.rng, lambda _: runs.restart(run))[0]


def draw_per_run(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs:
    """The outputs of a chunk, each from the stream of its run, some of them checked on a copy.

    Raises CannotCouple if an output that was checked depends on more than the input and the stream.
    """
    if threading.current_thread() is not threading.main_thread():
        idle -= {PYTHONS_GLOBAL}  # others are at work in this process, and may use it at any time
    before, wasted = call.made.runs, 0
    for _ in range(FEW if idle else 1):
        wasted = call.made.runs - before
        outputs = _attempt(call, data, count, sequence, idle)
        if outputs is not None:
            call.made.runs -= wasted  # by others: how many samples there are does not depend on it
            return outputs
    # The mechanism uses a source that it did not use in the trial. Again, with new numbers.
    return draw_per_run(call, data, count, child(sequence, ANEW_CHILD), frozenset())


def _attempt(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs | None:
    """As `draw_per_run`; None if a source was used that should be idle."""
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    checked = choose.integers(count, size=int(RERUN_SHARE * count + 0.25 + choose.random()))
    with Runs(sequence, count, call.captured, idle) as runs:
        outputs = call.draw(data, count, runs.rng, runs.restart)
        if not runs.are_idle():
            return None
        if len(checked) and not call.captured.generators:
            copied, data = call.spare(data)  # which draws on the same sources
            _check(copied, data, outputs, checked.tolist(), runs)
            runs.are_idle()
    if len(checked) and call.captured.generators:
        copied, data = call.spare(data)
        with Runs(sequence, count, copied.captured, idle) as runs:
            _check(copied, data, outputs, checked.tolist(), runs)
    return outputs


def _check(call: Call, data: Any, outputs: Outputs, checked: list[int], runs: Runs) -> None:
    """Make some of the runs again: the outputs have to stay."""
    for run in checked:
        if not same(outputs[run], _rerun(call, data, runs, run)):
            raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)


def try_per_run(
    calls: Sequence[tuple[Call, Any]], sequence: np.random.SeedSequence, deadline: Deadline
) -> frozenset[int]:
    """Which sources are idle, if outputs depend on nothing but the input and the stream.

    As `coupling.try_coupling`; refuses as well what uses nothing that can be restarted.
    """
    captured = calls[0][0].captured
    touched: set[int] = set()
    draw: set[int] = set()
    seen: dict[tuple[int, int], tuple[Any, dict[int, Any]]] = {}
    with Runs(sequence, FEW, captured, frozenset()) as runs:
        for run, side in SCHEDULE:
            if deadline.remaining() <= 0:
                raise OutOfTime
            output, ends = _traced(*calls[side], runs, run)
            earlier, earlier_ends = seen.setdefault((run, side), (output, ends))
            if ends != earlier_ends or not same(output, earlier):
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)
            if not ends:  # whether a pure function draws at all depends on the input alone
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS if side in draw else NOTHING_RANDOM)
            draw.add(side)
            touched |= ends.keys()
    return frozenset(range(3 + len(captured.generators))) - touched


def _traced(call: Call, data: Any, runs: Runs, run: int) -> tuple[Any, dict[int, Any]]:
    """The output of a run, safe from later ones, and where it left the sources that it used."""
    runs.restart(run)
    starts = runs.starts()
    output = _rerun(call, data, runs, run)
    with contextlib.suppress(Exception):  # locks, files, connections
        output = copy.deepcopy(output)
    return output, runs.ends(starts)
