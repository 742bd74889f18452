"""Chunks of work: some runs of the mechanism on one input, with randomness of their own.

Chunks are shared out between processes. How a draw is cut into chunks, and which stream each one
uses, depends on the draw alone, so the outputs are the same in any process. The outputs of a chunk
are measured where they are drawn, and a `Summary` stays.
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
"""Seconds of a job, about. More: processes wait for each other; fewer: sending takes longer."""
MAX_VECTORIZED = 32_768
"""Runs of one call of a vectorised mechanism. More take memory; fewer take longer."""
MAX_SCALAR = 4_096
"""Runs of a chunk of one output a call. More: processes wait for each other."""
MIN_CHUNK = 64
"""Runs of a chunk of a small draw, if it has so many. More: few processes have work."""
MIN_SHARED = 256
"""Runs of a chunk of a small draw with shared random numbers, which take time to set up."""
MAX_CHUNKS = 16
"""Chunks of a large draw, if none gets too large. More: overhead; fewer: processes wait."""
MAX_SLOW_CHUNKS = 32
"""Chunks of a large draw of a slow mechanism, whose runs take longer than the overhead."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A number of runs (`count`), with the stream of random numbers that `key` names.

    If it is `shared`, run i of the chunk draws on the same random numbers on every input.
    """

    count: int
    key: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a chunk, which is kept when its outputs are gone."""

    runs: int
    """Runs that were made, with those whose outputs served a check only."""
    seconds: float
    """Seconds of effort inside the mechanism; see `clocks.Stopwatch`."""
    changed_input: bool = False
    """Whether the mechanism changes its input, so that each run got a copy."""
    noise: bytes | None = None
    """A digest of the noise; None unless the chunk is shared and the mechanism vectorised."""
    unseeded: bool = False
    """Whether outputs vary, and no generator within reach was drawn from."""
    worked: int = 0
    """Runs that returned; 0 if the outputs are an array."""
    raised: int = 0
    """Runs that raised; 0 if the outputs are an array."""
    streak: int = 0
    """Runs at the end of the chunk that raised, without one between that returned."""
    last: Raised | None = None
    """The last output, if that run raised; else None."""
    kind: str = ""
    """What an array holds, such as ``"numbers"``; empty if the outputs are no array."""
    passed: float = 0.0
    """Seconds that have passed inside the mechanism: more than its effort if it waits."""


@dataclass(frozen=True, slots=True)
class ChunkOutput:
    """The outputs of a chunk, and their summary."""

    outputs: Outputs
    summary: Summary


_KINDS = {**dict.fromkeys("iufc", "numbers"), "b": "truths", "U": "texts", "S": "bytes"}


def summarise_outputs(outputs: Outputs, summary: Summary) -> ChunkOutput:
    """Return outputs with `summary`, completed by the kind of an array or by counts of errors."""
    if isinstance(outputs, np.ndarray):
        kind = _KINDS.get(outputs.dtype.kind, "objects")
        return ChunkOutput(outputs, replace(summary, kind=kind))
    if Raised not in set(map(type, outputs)):
        return ChunkOutput(outputs, replace(summary, worked=len(outputs)))
    raised = [isinstance(output, Raised) for output in outputs]
    streak = sum(1 for _ in takewhile(bool, reversed(raised)))
    worked, last = len(outputs) - sum(raised), outputs[-1] if streak else None
    summary = replace(summary, worked=worked, raised=sum(raised), streak=streak, last=last)
    return ChunkOutput(outputs, summary)


LEAF_BYTES = 32
"""Bytes for a number in a list, about: the object and the reference to it. Given by Python."""


def count_fitting(outputs: Outputs) -> int:
    """Return how many outputs as large as the first four fit into `MAX_BYTES`; at least 1."""
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
    """Cut a draw into chunks, each with its own stream; `slow` mechanisms get smaller chunks.

    No chunk has more than ``limit + 1`` runs, or one more than `MAX_VECTORIZED` or `MAX_SCALAR`.
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
    """An input of the mechanism: a copy of the data (`live`), with a pickle that restores it."""

    frozen: bytes | None = None
    """The pickle; None if the input cannot be pickled."""

    def __init__(self, data: Any) -> None:
        try:
            self._load(pickle_data(data))
        except Exception:  # an input that cannot be pickled is used as it is
            self.live = copy_data(data)

    def _load(self, frozen: bytes) -> None:
        """Set the input to the value of a pickle, and pickle it again, to compare with later."""
        self.live = pickle.loads(frozen)  # what `pickle_data` made
        # Pickles of one value can differ (shared references); those of one object agree.
        self.frozen = pickle_data(self.live)

    def __getstate__(self) -> Any:
        return self.live

    def __setstate__(self, state: Any) -> None:
        self._load(pickle_data(state))

    def with_data(self, data: Any) -> Input:
        """Return an input of these data; this input if its data are the very same object."""
        return self if data is self.live else Input(data)

    def fresh(self) -> Any:
        """Return a copy of the data, which a run may change; the data if they cannot be copied."""
        return copy_data(self.live) if self.frozen is None else pickle.loads(self.frozen)

    def restore_if_changed(self) -> bool:
        """Restore the input if a run has changed its content; return whether it had.

        False also if the input cannot be pickled. A data frame may keep its values in another way
        once it was read, such as by ``.values``: the content is what it holds.
        """
        if self.frozen is None or pickle_data(self.live) == self.frozen:
            return False
        changed, self.live = self.live, self.fresh()
        if _content_key(changed) != _content_key(self.live):
            return True
        self.live, self.frozen = changed, pickle_data(changed)
        return False


def _content_key(data: Any) -> Any:
    """Return a key that is equal for inputs with the same content."""
    return key(data), key(getattr(data, "attrs", None))


def pickle_data(data: Any) -> bytes:
    """Pickle data, by `copies.dumps` if the standard library cannot; raise if neither can."""
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
    """Numbers of the sources that a trial found unused; see `generators.RunStreams`."""
    seconds_a_run: float | None = None
    """Seconds of effort of one run, as measured so far; None before the first."""

    def with_inputs(self, call: Call, dataset: Input) -> Call:
        """Return the call, with a fresh input for every run if `copies` is set."""
        return replace(call, input=dataset.fresh) if self.copies else call

    def run(
        self, call: Call, dataset: Input, chunks: list[Chunk], deadline: Deadline
    ) -> Iterator[ChunkOutput]:
        """Run chunks in order, and yield the outputs of each.

        A chunk that has changed its input is run once more, with a copy of the input for each run,
        as are later chunks. Raises OutOfTime if the deadline passes first, CannotCouple if a shared
        chunk turns out not to be a function of its input and its streams, and the errors of
        `Call.draw`.
        """
        runner, runs, spent = self, 0, 0.0
        for chunk in chunks:
            made = call.made.runs
            try:
                done = runner.run_chunk(call, dataset, chunk, deadline)
                is_changed = not runner.copies and dataset.restore_if_changed()
            except CannotCouple:
                if runner.copies or not dataset.restore_if_changed():
                    raise
                is_changed = True
            if is_changed:  # the outputs cannot be trusted
                wasted = call.made.runs - made
                runner = replace(runner, copies=True)
                done = runner.run_chunk(call, dataset, chunk, deadline)
                summary = replace(done.summary, runs=wasted + done.summary.runs)
                done = replace(done, summary=summary)
            runs, spent = runs + chunk.count, spent + done.summary.seconds
            runner = replace(runner, seconds_a_run=spent / runs)
            yield done

    def run_chunk(
        self, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline
    ) -> ChunkOutput:
        """Run one chunk and return its outputs; runs may change the input. Errors as `run`."""
        if deadline.remaining() <= 0:
            raise OutOfTime
        sequence = stream(self.seed, *chunk.key)
        used, noise, made = self.with_inputs(call, dataset), None, call.made.runs
        started, unseeded = clocks.Stopwatch(), False
        if chunk.shared:
            with interruptible(deadline, self.seconds_a_run):
                if used.size is None:
                    outputs = draw_per_run(used, dataset.live, chunk.count, sequence, self.idle)
                else:
                    outputs, noise = draw_row_aligned(used, dataset.live, chunk.count, sequence)
            seconds, passed = started.effort_seconds(), started.wall_seconds()
        else:
            with seed_randomness(sequence, call.captured) as generator:
                before = states(generator, call.captured)
                started = clocks.Stopwatch()
                with interruptible(deadline, self.seconds_a_run):
                    outputs = used.draw(dataset.live, chunk.count, generator)
                seconds, passed = started.effort_seconds(), started.wall_seconds()
                untouched = states(generator, call.captured) == before
                unseeded = untouched and not all_equal(outputs)
        counts = call.made.runs - made, seconds, self.copies
        return summarise_outputs(outputs, Summary(*counts, noise, unseeded, passed=passed))


T = TypeVar("T")

Work = tuple[Input, list[Chunk]]


def cut_jobs(
    works: list[Work], n_jobs: int, seconds_a_run: float | None
) -> list[tuple[int, list[Chunk]]]:
    """Cut works into jobs, several for every process; return each job's work and chunks."""
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
    ran: Iterator[ChunkOutput],
    function: Callable[[Outputs], T],
    account: Callable[[Summary], None],
    deadline: Deadline,
) -> Iterator[T]:
    """Yield the function's value for the outputs of each chunk, as chunks come in.

    `account` is called with the summary of each chunk first; it may raise. Raises OutOfTime if the
    function still runs when the deadline interrupts it, and errors of the function.
    """
    for each in ran:
        account(each.summary)
        yield within(deadline.seconds_to_interrupt(), partial(function, each.outputs))
