"""Observations of an input by a few runs: the code that they cover, their noise, their outputs.

None of these runs is a sample. They use the same few streams of random numbers on every input, so
that what differs between two inputs is due to these.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.data import is_real, kind_of, rebuilt, records_of
from pytest_dp.data.equality import digest
from pytest_dp.data.relations import WithParams
from pytest_dp.outputs.leaves import as_float
from pytest_dp.outputs.outcome import Raised
from pytest_dp.pairs.unreached import Step
from pytest_dp.proposers.coverage import covered
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.running.generators import Runs
from pytest_dp.running.streams import Purpose, stream

MAX_NOISES = 8
"""Numbers of an output by whose noise behaviours are told apart. More: all are new; fewer: some
are missed."""
MANY_BYTES = 1_000_000
"""Number with which a mechanism is run to see whether it needs memory for each. Larger: a test
takes long; smaller: it is not seen."""
SLOW = 20.0
"""Times the quickest run from which an input is slow, and not proposed. More: searches take
longer; fewer: large inputs are left out."""
NOTICED_SECONDS = 0.25
"""Seconds of a run from which an input may be slow. More: searches take longer; fewer: large
inputs are left out."""
MAX_NUMBERS = 1_000
"""Numbers of an output that are compared. More take longer; fewer miss late ones."""
MAX_DEPTH = 5
"""Levels of an output in which numbers are compared. Fewer miss inner ones."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observation:
    """What runs show of an input."""

    coverage: frozenset[Step] = frozenset()
    """All instructions that were executed."""
    form: Any = ()
    """Types of the outputs, and the keys of dicts, or how they raised."""
    noise: tuple[float, ...] = ()
    """How far numbers of the outputs on two streams differ; empty where that is unknown."""
    numbers: Floats | None = None
    """Of the output on the first stream."""
    spread: float = 0.0
    """Their average distance from those on the second."""
    raised: bool = False
    """Whether any run raised."""


class Clock:
    """The time that a search has left."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: clocks.Stopwatch | None = None

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return self._seconds - (self._since.spent() if self._since is not None else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Spend the time that passes inside; where these are nested, it counts once."""
        if self._since is not None:
            yield
            return
        self._since = clocks.Stopwatch()
        try:
            yield
        finally:
            self._seconds, self._since = self.remaining, None

    def timed(self, items: Iterable[T]) -> Iterator[T]:
        """The same, made while the clock is running."""
        iterator, done = iter(items), object()
        while True:
            with self.running():
                item: Any = next(iterator, done)
            if item is done:
                return
            yield item


class Observer:
    """Runs a copy of the mechanism on inputs, and remembers what it showed.

    `call` is the copy that is observed; None where the mechanism cannot be copied.
    """

    def __init__(self, call: Call, seed: int, clock: Clock) -> None:
        self._clock, self._sequence = clock, stream(seed, Purpose.OBSERVE)
        self._observations: dict[Any, Observation | None] = {}
        self._quickest = math.inf
        self.call: Call | None = None
        try:
            copy, _ = Pristine((call.mechanism, call.params)).fresh()
            self.call = call.of(*copy)
        except CannotCopy:  # then nothing can be observed
            pass

    @property
    def blind(self) -> bool:
        """Whether nothing more can be observed: there is no copy, or no time."""
        return not self.sees or self._clock.remaining <= 0

    @property
    def sees(self) -> bool:
        """Whether the mechanism can be copied, and so observed."""
        return self.call is not None

    @property
    def steps(self) -> set[Step]:
        """All instructions that were executed in observed runs."""
        seen = (observation for observation in self._observations.values() if observation)
        return {step for observation in seen for step in observation.coverage}

    def observe(self, data: Any) -> Observation | None:
        """What runs on an input show; None if these take too much time or memory."""
        content = digest(data)
        if content not in self._observations:
            with self._clock.running():
                self._observations[content] = self._observed(data)
        return self._observations[content]

    def _observed(self, data: Any) -> Observation | None:
        assert self.call is not None
        copies, outputs = Input(data), []
        steps: set[Step] = set()
        with Runs(self._sequence, 2, self.call.captured, frozenset()) as streams:
            if is_too_large(data, lambda smaller: self._run(Input(smaller), streams, 0, set())):
                return None
            for number in range(2):
                started = clocks.Stopwatch()
                try:
                    outputs.append(self._run(copies, streams, number, steps))
                except OutOfTime:
                    return None
                except (ClaimError, MechanismError) as error:
                    outputs.append(Raised(type(error).__name__, "", ""))
                self._quickest = min(self._quickest, started.spent())
        raised = [isinstance(output, Raised) for output in outputs]
        numbers = [_numbers(output) for output in outputs]
        forms = frozenset(map(_form, outputs))
        if any(raised) or len(numbers[0]) != len(numbers[1]) or not len(numbers[0]):
            return Observation(frozenset(steps), forms, raised=any(raised))
        with np.errstate(all="ignore"):
            apart = np.abs(numbers[0] - numbers[1])
        noise = tuple(float(f"{distance:.3g}") for distance in apart[:MAX_NOISES])
        return Observation(frozenset(steps), forms, noise, numbers[0], float(np.mean(apart)))

    def _run(self, data: Input, streams: Runs, number: int, steps: set[Step]) -> Any:
        """An output, on the stream of this number; what it took to come to it is added to `steps`.

        Raises OutOfTime if it takes too long.
        """
        quickest = self._quickest if math.isfinite(self._quickest) else 1.0
        streams.restart(number)
        seconds = max(SLOW * quickest, NOTICED_SECONDS)
        return self._run_within(seconds, data.fresh(), streams.rng, steps)

    def _run_within(
        self, seconds: float, data: Any, generator: np.random.Generator, steps: set[Step]
    ) -> Any:
        call, taken = self.call, set[Step]()
        assert call is not None
        with (
            np.errstate(all="ignore"),
            interruptible(Deadline(seconds), None),
            covered(taken),
        ):
            draws = (
                call.draw(data, 1, generator)
                if call.size is None
                else call.rows(data, 2, generator)
            )
        steps |= taken
        return draws[0]


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
    return np.array(list(islice(_leaves(output, 0), MAX_NUMBERS)), dtype=float)


def _leaves(output: Any, depth: int) -> Iterator[float]:
    if depth > MAX_DEPTH:
        return
    if isinstance(output, dict):
        for name in sorted(output, key=repr):
            yield from _leaves(output[name], depth + 1)
    elif isinstance(output, list | tuple):
        for element in output:
            yield from _leaves(element, depth + 1)
    elif isinstance(output, np.ndarray):
        yield from _numbers(output)
    elif isinstance(output, int | float | np.number) and not isinstance(output, bool):
        yield as_float(output)


def is_too_large(data: Any, run: Callable[[Any], object]) -> bool:
    """Whether numbers of an input are sizes, of an array or a loop, for which there is no room."""
    if isinstance(data, WithParams):
        return is_too_large(data.data, lambda other: run(replace(data, data=other)))
    records = records_of(data) if kind_of(data) else [data]
    if not any(map(_is_large, records)):
        return False

    def memory(bound: int, repetitions: int) -> int:
        bounded = [_bounded(record, bound) for record in records]
        smaller = rebuilt(data, bounded) if kind_of(data) else bounded[0]
        # The least of several: other threads, and what is loaded once, take memory as well.
        return min(_memory(lambda: run(smaller)) for _ in range(repetitions))

    try:
        if memory(MANY_BYTES, 1) <= MANY_BYTES / 2:
            return False  # as nearly always: the difference is no more than that
        return memory(MANY_BYTES, 3) - memory(8, 3) > MANY_BYTES / 2
    except OutOfTime:
        return True


def _memory(run: Callable[[], object]) -> int:
    """The peak of bytes that a run takes, and whatever else runs meanwhile."""
    if tracemalloc.is_tracing():  # somebody else measures
        return 0
    tracemalloc.start()
    try:
        run()
    except (ClaimError, MechanismError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def _is_large(record: Any) -> bool:
    if isinstance(record, tuple):
        return any(map(_is_large, record))
    return is_real(record) and abs(record) > MANY_BYTES


def _bounded(record: Any, bound: int) -> Any:
    if isinstance(record, tuple):
        return tuple(_bounded(value, bound) for value in record)
    return type(record)(max(min(record, bound), -bound)) if is_real(record) else record
