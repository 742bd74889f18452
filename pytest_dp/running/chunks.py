"""Chunks of work: some runs of the mechanism on one input, with randomness of their own.

Chunks are the unit that is shared out between processes. How a draw is cut into chunks, and which
stream each one uses, depends on nothing but the draw itself, so the outputs are the same whichever
process runs them. Groups of chunks are measured where they are drawn: of each chunk, only what the
guards need remains.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, takewhile
from typing import Any, TypeVar

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.data.equality import key
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.deadline import Deadline, within
from pytest_dp.running.pickling import dumps
from pytest_dp.running.reuse import copy_data

MAX_BYTES = 2**25
"""Bytes of outputs drawn at a time. More take memory; fewer take longer."""
MIN_JOB_SECONDS = 0.1
"""Seconds of a job of a process, about. More: processes wait for each other; fewer: sending jobs
takes longer than running them."""
MAX_VECTORIZED = 32_768
"""Runs of one call of a vectorised mechanism. More take memory; fewer take longer."""
MAX_GROUP = 4_096
"""Runs of a group of chunks. More: processes wait for each other; fewer: sending groups takes
longer."""
CHUNK = 512
"""Runs that one process makes at a time. More: processes wait for each other; fewer: each chunk's
overhead counts."""


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
    limit = min(limit, MAX_VECTORIZED if vectorized else CHUNK)
    enough = CHUNK // 2 if draw.shared else CHUNK // 8
    size = min(limit, max(min(count, enough), -(-count // 16), 1))
    if slow:
        size = min(limit, max(2, -(-count // 32)))
    sizes, left = [size] * (count // size), count % size
    if left == 1 and sizes:  # a run alone shows too little
        sizes[-1] += 1
    elif left:
        sizes.append(left)
    return [Chunk(runs, (*draw.key, i), draw.shared) for i, runs in enumerate(sizes)]


class Input:
    """An input of the mechanism, kept safe from a mechanism that changes what it is given."""

    frozen: bytes | None = None
    cost = 0.0

    def __init__(self, data: Any) -> None:
        try:
            self._load(pickle_data(data))
        except Exception:  # an input that cannot be pickled is used as it is
            self.live = copy_data(data)

    def _load(self, frozen: bytes) -> None:
        self.live = pickle.loads(frozen)  # what `pickle_data` made
        # Pickles of one value can differ (shared references); those of one object agree.
        started = clocks.Stopwatch()
        self.frozen = pickle_data(self.live)
        self.cost = started.spent()

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


T = TypeVar("T")

Group = list[Chunk]
"""Consecutive chunks of a draw, whose outputs are measured together."""
Work = tuple[Input, list[Group]]


def group_chunks(chunks: list[Chunk], vectorized: bool, limit: int = MAX_GROUP) -> list[Group]:
    """Divide the chunks of a draw into groups, several even for small draws.

    No group has more than `limit` runs, unless a single chunk has.
    """
    size = 1  # in chunks
    if chunks and not vectorized:
        runs = sum(chunk.count for chunk in chunks)
        size = max(1, min(MAX_GROUP, limit, -(-runs // 16)) // chunks[0].count)
    return [chunks[start : start + size] for start in range(0, len(chunks), size)]


def jobs_of(
    works: list[Work], n_jobs: int, seconds_a_run: float | None
) -> list[tuple[int, list[Group]]]:
    """Cut works into jobs, each with the number of its work: several for every process."""
    runs = sum(chunk.count for _, groups in works for group in groups for chunk in group)
    a_job = min(MIN_JOB_SECONDS / (seconds_a_run or MIN_JOB_SECONDS), runs / (4 * n_jobs))
    jobs: list[tuple[int, list[Group]]] = []
    for index, (_, groups) in enumerate(works):
        size = a_job
        for group in groups:
            if size >= a_job:
                jobs.append((index, []))
                size = 0.0
            jobs[-1][1].append(group)
            size += sum(chunk.count for chunk in group)
    return jobs


def measure_groups(
    ran: Iterator[Done],
    groups: list[Group],
    function: Callable[[Outputs], T],
    heed: Callable[[Done], None],
    deadline: Deadline,
) -> Iterator[T]:
    """Yield what the function returns for the outputs of each group, as chunks come in.

    `ran` has the chunks of all groups, in order. Each is shown to `heed` first, which may raise.
    Raises OutOfTime if the deadline passed, and whatever still runs is to be interrupted.
    """
    for group in groups:
        parts: list[Outputs] = []
        for each in islice(ran, len(group)):
            heed(each)
            parts.append(each.outputs)
        outputs = join_outputs(parts)
        yield within(deadline.to_the_last(), partial(function, outputs))
