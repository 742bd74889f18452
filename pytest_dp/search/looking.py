"""What a few runs of a copy show of an input: its way through the code, its noise, its answer.

None of these runs is a sample. They are made with the same few streams on every input, so that
what differs between two inputs is due to them.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.datasets import key
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.outputs.outcome import Raised
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.captured import Captured, reseed, restore, state_of
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy, Pristine
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.streams import child, stream
from pytest_dp.search.sizes import is_too_large
from pytest_dp.search.tracing import Step, Tracer

LOOK_KEY = 9
"""First part of the keys of streams."""
STREAMS = 2
SLOW, SLOW_SECONDS = 20.0, 0.25
"""An input is not proposed if a run on it takes so many times as long as the quickest and so many
seconds: an audit that is given it might never end."""
COMPUTED = 0.8
"""Share of that time for which a run has to compute to count as slow at once. On a busy machine it
may wait for its turn as well: then it is given the time again, and more of it."""
MORE_TIME = (1, 2, 4)
"""How many times as much each try is given."""
MAX_NUMBERS = 1_000
"""Numbers of an output that are looked at."""
DIGITS = 3
"""To which noise is compared."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of an input.

    Attributes
    ----------
    way : frozenset of Step
        All instructions that runs took.
    form : hashable
        Types of the outputs, and their names where they have some, or how they raised.
    noise : hashable
        How outputs on two streams differ; empty where that is unknown.
    first : ndarray or None
        The numbers of the output on the first stream, ``spread`` their distance from those on the
        second, on average.
    raised : bool
        Whether any run raised.
    """

    way: frozenset[Step] = frozenset()
    form: Any = ()
    noise: tuple[float, ...] = ()
    first: Floats | None = None
    spread: float = 0.0
    raised: bool = False


class Clock:
    """Time for a search, from which is taken what it spends.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._since = seconds, math.inf

    @property
    def remaining(self) -> float:
        """Seconds."""
        return self._seconds - max(time.perf_counter() - self._since, 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take the time that passes; inside of itself, once."""
        if self._since < math.inf:
            yield
            return
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._seconds, self._since = self.remaining, math.inf


class Lookout:
    """Looks at inputs, each once.

    Parameters
    ----------
    call : Call
    seed : int
    clock : Clock
    """

    def __init__(self, call: Call, seed: int, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Any, Seen | None] = {}
        self._tracer = Tracer()
        self._quickest, self._waits = math.inf, False
        self.looks = 0
        self._call: Call | None = None
        try:
            thing, _ = Pristine((call.mechanism, call.params)).fresh()
            self._call = call.of(*thing)
            self._streams = _Streams(seed, self._call.captured)
        except CannotCopy:  # then nothing can be looked at
            pass

    @property
    def blind(self) -> bool:
        """Whether nothing more can be seen."""
        return not self.sees or self._clock.remaining <= 0

    @property
    def sees(self) -> bool:
        """Whether the mechanism can be copied, and so be looked at, given time."""
        return self._call is not None

    def look(self, data: Any) -> Seen | None:
        """What there is to see; None if the mechanism does not cope with the input."""
        content = hash(key(data))
        if content not in self._known:
            with self._clock.running():
                self._known[content] = self._looked(data)
        return self._known[content]

    def _looked(self, data: Any) -> Seen | None:
        assert self._call is not None
        self.looks += 1
        given, outputs = Input(data), []
        steps: set[Step] = set()
        with self._streams.entered():
            if is_too_large(data, lambda smaller: self._run(Input(smaller), 0)):
                return None
            for number in range(STREAMS):
                started = time.perf_counter()
                try:
                    outputs.append(self._run(given, number))
                except OutOfTime:
                    return None
                except (ClaimError, MechanismError) as error:
                    outputs.append(Raised(type(error).__name__, "", ""))
                self._quickest = min(self._quickest, time.perf_counter() - started)
                steps |= self._tracer.steps or set()
        raised = [isinstance(output, Raised) for output in outputs]
        numbers = [_numbers(output) for output in outputs]
        forms = frozenset(map(_form, outputs))
        if any(raised) or len(numbers[0]) != len(numbers[1]) or not len(numbers[0]):
            return Seen(frozenset(steps), forms, raised=any(raised))
        with np.errstate(all="ignore"):
            apart = np.abs(numbers[0] - numbers[1])
        noise = tuple(float(f"{one:.{DIGITS}g}") for one in apart[:8])
        return Seen(frozenset(steps), forms, noise, numbers[0], float(np.mean(apart)))

    def _run(self, given: Input, number: int) -> Any:
        """An output, on the stream of this number.

        Raises
        ------
        OutOfTime
            If it takes too long, by the processor's clock as far as the mechanism does not wait.
        """
        least = self._quickest if math.isfinite(self._quickest) else 1.0
        seconds = max(SLOW * least, SLOW_SECONDS)
        for times in MORE_TIME:
            before = time.thread_time()
            try:
                return self._run_within(seconds * times, given.fresh(), number)
            except OutOfTime:
                slow = time.thread_time() - before >= COMPUTED * seconds
                if slow or self._waits or self._clock.remaining < seconds:
                    raise
        self._waits = True  # by itself, as for an answer: no more time is lost by that
        raise OutOfTime

    def _run_within(self, seconds: float, data: Any, number: int) -> Any:
        call = self._call
        assert call is not None
        generator = self._streams.restarted(number)
        with (
            np.errstate(all="ignore"),
            interruptible(Deadline(seconds), None),
            self._tracer.tracing(),
        ):
            if call.size is None:
                return call.draw(data, 1, generator)[0]
            return call.rows(data, 2, generator)[0]


class _Streams:
    """The same few streams again and again, for all sources of random numbers."""

    def __init__(self, seed: int, captured: Captured) -> None:
        own = np.random.mtrand._rand, random._inst  # noqa: SLF001
        self._sources = (*own, *captured.generators)
        self._seed = seed
        self._starts: dict[int, list[Any]] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put all sources back in the end to where they are."""
        before = [state_of(source) for source in self._sources]
        try:
            yield
        finally:
            for source, state in zip(self._sources, before, strict=True):
                restore(source, state)

    def restarted(self, number: int) -> np.random.Generator:
        """A generator at the start of a stream, as all other sources are."""
        sequence = stream(self._seed, LOOK_KEY, number)
        if number not in self._starts:
            for at, source in enumerate(self._sources, 1):
                reseed(source, child(sequence, at))
            self._starts[number] = [state_of(source) for source in self._sources]
        for source, state in zip(self._sources, self._starts[number], strict=True):
            restore(source, state)
        return np.random.default_rng(sequence)


def _form(output: Any) -> tuple[str, Any]:
    if isinstance(output, Raised):
        return "raised", output.kind
    names = frozenset(map(repr, output)) if isinstance(output, dict) else None
    return type(output).__name__, names


def _numbers(output: Any) -> Floats:
    """The numbers in an output, in order."""
    if isinstance(output, np.ndarray | np.generic | int | float):
        flat = np.ravel(np.asarray(output))[:MAX_NUMBERS]
        return flat.astype(float) if flat.dtype.kind in "iuf" else np.empty(0)
    found: list[float] = []
    for leaf in _leaves(output, 0):
        found.append(leaf)
        if len(found) >= MAX_NUMBERS:
            break
    return np.array(found, dtype=float)


def _leaves(output: Any, depth: int) -> Iterator[float]:
    if depth > 5:
        return
    if isinstance(output, dict):
        for name in sorted(output, key=repr):
            yield from _leaves(output[name], depth + 1)
    elif isinstance(output, list | tuple):
        for one in output:
            yield from _leaves(one, depth + 1)
    elif isinstance(output, np.ndarray):
        yield from _numbers(output)
    elif isinstance(output, int | float | np.number) and not isinstance(output, bool):
        yield float(output)
