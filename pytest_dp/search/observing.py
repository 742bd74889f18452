"""Observations of an input by a few runs: the code that they cover, their noise, their outputs.

None of these runs is a sample. They use the same few streams of random numbers on every input, so
that what differs between two inputs is due to these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp import clocks
from pytest_dp.arrays import Floats
from pytest_dp.datasets.equality import digest
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.limits import NESTED, NOTICED_SECONDS, SEVERAL, SLOW, THOUSAND
from pytest_dp.outputs.columns import as_float
from pytest_dp.outputs.outcome import Raised
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.captured import Captured, reseed, restore, state_of
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy, Pristine
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.keys import Purpose
from pytest_dp.sampling.streams import child, stream
from pytest_dp.search.coverage import Step, Tracer
from pytest_dp.search.sizes import is_too_large


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
        self._seconds, self._since = seconds, math.inf

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return self._seconds - max(clocks.seconds() - self._since, 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Spend the time that passes inside; where these are nested, it counts once."""
        if self._since < math.inf:
            yield
            return
        self._since = clocks.seconds()
        try:
            yield
        finally:
            self._seconds, self._since = self.remaining, math.inf


class Observer:
    """Runs a copy of the mechanism on inputs, and remembers what it showed.

    `call` is the copy that is observed; None where the mechanism cannot be copied.
    """

    def __init__(self, call: Call, seed: int, clock: Clock) -> None:
        self._clock = clock
        self._observations: dict[Any, Observation | None] = {}
        self._tracer = Tracer()
        self._quickest, self._waits = math.inf, False
        self.call: Call | None = None
        try:
            copy, _ = Pristine((call.mechanism, call.params)).fresh()
            self.call = call.of(*copy)
            self._streams = _Streams(seed, self.call.captured)
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
        with self._streams.entered():
            if is_too_large(data, lambda smaller: self._run(Input(smaller), 0)):
                return None
            for number in range(2):
                started = clocks.seconds()
                try:
                    outputs.append(self._run(copies, number))
                except OutOfTime:
                    return None
                except (ClaimError, MechanismError) as error:
                    outputs.append(Raised(type(error).__name__, "", ""))
                self._quickest = min(self._quickest, clocks.seconds() - started)
                steps |= self._tracer.steps or set()
        raised = [isinstance(output, Raised) for output in outputs]
        numbers = [_numbers(output) for output in outputs]
        forms = frozenset(map(_form, outputs))
        if any(raised) or len(numbers[0]) != len(numbers[1]) or not len(numbers[0]):
            return Observation(frozenset(steps), forms, raised=any(raised))
        with np.errstate(all="ignore"):
            apart = np.abs(numbers[0] - numbers[1])
        noise = tuple(float(f"{distance:.3g}") for distance in apart[:SEVERAL])
        return Observation(frozenset(steps), forms, noise, numbers[0], float(np.mean(apart)))

    def _run(self, data: Input, number: int) -> Any:
        """An output, on the stream of this number.

        Raises OutOfTime if it takes too long, by the processor's clock as far as the mechanism does
        not wait.
        """
        quickest = self._quickest if math.isfinite(self._quickest) else 1.0
        seconds = max(SLOW * quickest, NOTICED_SECONDS)
        for times in (1, 2, 4):
            before = clocks.processor_seconds()
            try:
                return self._run_within(seconds * times, data.fresh(), number)
            except OutOfTime:
                is_slow = clocks.processor_seconds() - before >= 0.8 * seconds
                if is_slow or self._waits or self._clock.remaining < seconds:
                    raise
        self._waits = True  # the mechanism itself waits, as for an answer: no further attempts
        raise OutOfTime

    def _run_within(self, seconds: float, data: Any, number: int) -> Any:
        call = self.call
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
    """The same few streams for every observation, for all sources of random numbers."""

    def __init__(self, seed: int, captured: Captured) -> None:
        global_sources = np.random.mtrand._rand, random._inst  # noqa: SLF001
        self._sources = (*global_sources, *captured.generators)
        self._seed = seed
        self._starts: dict[int, list[Any]] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Restore the states of all sources in the end."""
        before = [state_of(source) for source in self._sources]
        try:
            yield
        finally:
            for source, state in zip(self._sources, before, strict=True):
                restore(source, state)

    def restarted(self, number: int) -> np.random.Generator:
        """A generator at the start of a stream, where all other sources are put as well."""
        sequence = stream(self._seed, Purpose.OBSERVE, number)
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
        flat = np.ravel(np.asarray(output))[:THOUSAND]
        return flat.astype(float) if flat.dtype.kind in "iuf" else np.empty(0)
    return np.array(list(islice(_leaves(output, 0), THOUSAND)), dtype=float)


def _leaves(output: Any, depth: int) -> Iterator[float]:
    if depth > NESTED:
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
