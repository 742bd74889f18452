"""Chunks of work: some runs of the mechanism on one input, with randomness of their own.

Chunks are the unit that is shared out between processes. How a draw is cut into chunks, and which
stream each one uses, depends on nothing but the draw itself, so the outputs are the same whichever
process runs them. Chunks are measured where they are drawn: of each, only what the guards need
remains.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs, copy_data
from pytest_dp.data.equality import key
from pytest_dp.outputs.raised import Raised, all_equal
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import dumps
from pytest_dp.running.coupling import CannotCouple, draw_per_run, draw_row_aligned
from pytest_dp.running.deadline import Deadline, OutOfTime, interruptible, within
from pytest_dp.running.generators import seed_randomness, states, stream

MAX_BYTES = 2**25
"""Bytes of outputs drawn at a time. More take memory; fewer take longer."""
MIN_JOB_SECONDS = 0.1
"""Seconds of a job of a process, about. More: processes wait for each other; fewer: sending jobs
takes longer than running them."""
MAX_VECTORIZED = 32_768
"""Runs of one call of a vectorised mechanism. More take memory; fewer take longer."""
MAX_SCALAR = 4_096
"""Runs of a chunk of a mechanism that gives one output a call. More: processes wait for each other;
fewer: each chunk's overhead counts."""
MIN_CHUNK = 64
"""Runs of a chunk of a small draw, if it has so many. More: few processes have work; fewer: each
chunk's overhead counts."""
MIN_SHARED = 256
"""The same where runs share their random numbers: the sources of each chunk are set up first."""
MAX_CHUNKS = 16
"""Chunks of a large draw, if none gets too large. More: overhead; fewer: processes wait."""
MAX_SLOW_CHUNKS = 32
"""The same of a slow mechanism."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """So many runs, with the stream of this key.

    If it is shared, run i of the chunk draws on the same random numbers on every input.
    """

    count: int
    key: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a chunk, which is kept when its outputs are gone."""

    runs: int
    """With those whose outputs were only looked at."""
    seconds: float
    """Of effort, inside the mechanism."""
    changed_input: bool = False
    noise: bytes | None = None
    """Of a shared vectorised chunk: a digest, to be the same on every input."""
    unseeded: bool = False
    """Whether outputs vary, and no generator within reach was drawn from."""
    worked: int = 0
    """Runs that returned; none in an array, like `raised`."""
    raised: int = 0
    streak: int = 0
    """Runs at the end that raised."""
    last: Raised | None = None
    """The last output, if it raised."""
    kind: str = ""
    """Of an array: whether it holds numbers, truths, texts or objects."""
    passed: float = 0.0
    """Seconds that have passed inside the mechanism: of one that waits, more than its effort."""


@dataclass(frozen=True, slots=True)
class Done:
    """The outputs of a chunk, and what is told of it."""

    outputs: Outputs
    told: Summary


_KINDS = {**dict.fromkeys("iufc", "numbers"), "b": "truths", "U": "texts", "S": "bytes"}


def finish_chunk(outputs: Outputs, told: Summary) -> Done:
    """Return a chunk of these outputs, with its summary completed."""
    if isinstance(outputs, np.ndarray):
        return Done(outputs, replace(told, kind=_KINDS.get(outputs.dtype.kind, "objects")))
    if Raised not in set(map(type, outputs)):
        return Done(outputs, replace(told, worked=len(outputs)))
    raised = [isinstance(output, Raised) for output in outputs]
    streak = sum(1 for _ in takewhile(bool, reversed(raised)))
    worked, last = len(outputs) - sum(raised), outputs[-1] if streak else None
    told = replace(told, worked=worked, raised=sum(raised), streak=streak, last=last)
    return Done(outputs, told)


LEAF_BYTES = 32
"""Bytes for a number in a list, about: the object and the reference to it. Given by Python."""


def at_a_time(outputs: Outputs) -> int:
    """Return how many outputs such as these there should be in memory at a time."""
    sizes = [
        output.nbytes
        if isinstance(output, np.ndarray | np.generic)
        else LEAF_BYTES * _length(output)
        for output in outputs[:4]
    ]
    return max(1, MAX_BYTES // max(*sizes, 1))


def _length(output: Any) -> int:
    return len(output) if isinstance(output, list | tuple | dict | set) else 1


def cut_draw(
    draw: Chunk, vectorized: bool, *, slow: bool = False, limit: int = MAX_VECTORIZED
) -> list[Chunk]:
    """Cut a draw into chunks: as few as pays, or as many as go round for slow mechanisms.

    No chunk has more than ``limit + 1`` runs.
    """
    count = draw.count
    limit = min(limit, MAX_VECTORIZED if vectorized else MAX_SCALAR)
    enough = MIN_SHARED if draw.shared else MIN_CHUNK
    size = max(2, -(-count // MAX_SLOW_CHUNKS))
    if not slow:
        size = max(min(count, enough), -(-count // MAX_CHUNKS), 1)
    size = min(limit, size)
    sizes, left = [size] * (count // size), count % size
    if left == 1 and sizes:  # a run alone shows too little
        sizes[-1] += 1
    elif left:
        sizes.append(left)
    return [Chunk(runs, (*draw.key, i), draw.shared) for i, runs in enumerate(sizes)]


class Input:
    """An input of the mechanism, kept safe from a mechanism that changes what it is given."""

    frozen: bytes | None = None

    def __init__(self, data: Any) -> None:
        try:
            self._load(pickle_data(data))
        except Exception:  # an input that cannot be pickled is used as it is
            self.live = copy_data(data)

    def _load(self, frozen: bytes) -> None:
        self.live = pickle.loads(frozen)  # what `pickle_data` made
        # Pickles of one value can differ (shared references); those of one object agree.
        self.frozen = pickle_data(self.live)

    def __getstate__(self) -> Any:
        return self.live

    def __setstate__(self, state: Any) -> None:
        self._load(pickle_data(state))

    def like(self, data: Any) -> Input:
        """Return an input of such data; itself if it is the very same."""
        return self if data is self.live else Input(data)

    def fresh(self) -> Any:
        """Return a copy that may be changed."""
        return copy_data(self.live) if self.frozen is None else pickle.loads(self.frozen)

    def unchanged(self) -> bool:
        """Return whether the run left the input unchanged; restore it if not.

        A data frame may keep its values in another way once it was read, such as by ``.values``:
        what counts is what it holds.
        """
        if self.frozen is None or pickle_data(self.live) == self.frozen:
            return True
        changed, self.live = self.live, self.fresh()
        if _content_key(changed) != _content_key(self.live):
            return False
        self.live, self.frozen = changed, pickle_data(changed)
        return True


def _content_key(data: Any) -> Any:
    """Return a key that is equal for inputs with the same content."""
    return key(data), key(getattr(data, "attrs", None))


def pickle_data(data: Any) -> bytes:
    """Pickle data, classes by their names where they have some."""
    try:
        return pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
    except Exception:  # lambdas, classes of a notebook
        return dumps(data)


@dataclass(frozen=True, slots=True)
class Runner:
    """How a mechanism is run; the same in every process."""

    seed: int
    copies: bool = False
    """Whether every run gets a copy of its input, as the mechanism changes what it is given."""
    idle: frozenset[int] = frozenset()
    """Sources of random numbers that a trial found unused; see `generators.RunStreams`."""
    seconds_a_run: float | None = None
    """Measured so far."""

    def on(self, call: Call, dataset: Input) -> Call:
        """Return the call, with a fresh input for every run if the mechanism changes it."""
        return replace(call, input=dataset.fresh) if self.copies else call

    def run(
        self, call: Call, dataset: Input, chunks: list[Chunk], deadline: Deadline
    ) -> Iterator[Done]:
        """Run chunks in order; a chunk that has changed its input again, on copies of it.

        Raises OutOfTime if the deadline passes first, and CannotCouple if a shared chunk turns out
        not to be a function of its input and its streams.
        """
        runner, runs, spent = self, 0, 0.0
        for chunk in chunks:
            made = call.made.runs
            try:
                done = runner.once(call, dataset, chunk, deadline)
                is_changed = not runner.copies and not dataset.unchanged()
            except CannotCouple:
                if runner.copies or dataset.unchanged():
                    raise
                is_changed = True
            if is_changed:  # the outputs cannot be trusted
                wasted = call.made.runs - made
                runner = replace(runner, copies=True)
                done = runner.once(call, dataset, chunk, deadline)
                done = replace(done, told=replace(done.told, runs=wasted + done.told.runs))
            runs, spent = runs + chunk.count, spent + done.told.seconds
            runner = replace(runner, seconds_a_run=spent / runs)
            yield done

    def once(self, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline) -> Done:
        """Return a chunk, whatever becomes of the input."""
        if deadline.remaining() <= 0:
            raise OutOfTime
        sequence = stream(self.seed, *chunk.key)
        used, noise, made = self.on(call, dataset), None, call.made.runs
        started, unseeded = clocks.Stopwatch(), False
        if chunk.shared:
            with interruptible(deadline, self.seconds_a_run):
                if used.size is None:
                    outputs = draw_per_run(used, dataset.live, chunk.count, sequence, self.idle)
                else:
                    outputs, noise = draw_row_aligned(used, dataset.live, chunk.count, sequence)
            seconds, passed = started.spent(), started.passed()
        else:
            with seed_randomness(sequence, call.captured) as generator:
                before = states(generator, call.captured)
                started = clocks.Stopwatch()
                with interruptible(deadline, self.seconds_a_run):
                    outputs = used.draw(dataset.live, chunk.count, generator)
                seconds, passed = started.spent(), started.passed()
                untouched = states(generator, call.captured) == before
                unseeded = untouched and not all_equal(outputs)
        told = Summary(call.made.runs - made, seconds, self.copies, noise, unseeded, passed=passed)
        return finish_chunk(outputs, told)


T = TypeVar("T")

Work = tuple[Input, list[Chunk]]


def jobs_of(
    works: list[Work], n_jobs: int, seconds_a_run: float | None
) -> list[tuple[int, list[Chunk]]]:
    """Cut works into jobs, each with the number of its work: several for every process."""
    runs = sum(chunk.count for _, chunks in works for chunk in chunks)
    a_job = min(MIN_JOB_SECONDS / (seconds_a_run or MIN_JOB_SECONDS), runs / (4 * n_jobs))
    jobs: list[tuple[int, list[Chunk]]] = []
    for index, (_, chunks) in enumerate(works):
        size = a_job
        for chunk in chunks:
            if size >= a_job:
                jobs.append((index, []))
                size = 0.0
            jobs[-1][1].append(chunk)
            size += chunk.count
    return jobs


def measure_chunks(
    ran: Iterator[Done],
    function: Callable[[Outputs], T],
    heed: Callable[[Summary], None],
    deadline: Deadline,
) -> Iterator[T]:
    """Yield what the function returns for the outputs of each chunk, as chunks come in.

    The summary of each is given to `heed` first, which may raise. Raises OutOfTime if the deadline
    passed, and whatever still runs is to be interrupted.
    """
    for each in ran:
        heed(each.told)
        yield within(deadline.to_the_last(), partial(function, each.outputs))
