"""Outputs are measured where they are drawn; of each chunk, only what the guards need remains.

What is measured together depends on nothing but the draw, like the chunks, so that the results are
the same whichever process gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import TypeVar

import numpy as np

from pytest_dp.arrays import Outputs, joined
from pytest_dp.limits import CHUNK
from pytest_dp.outputs.outcome import Raised
from pytest_dp.sampling.chunks import Chunk, Done, Input
from pytest_dp.sampling.deadline import Deadline, within
from pytest_dp.sampling.fingerprint import Fingerprint

T = TypeVar("T")

Group = list[Chunk]
"""Consecutive chunks of a draw, whose outputs are measured together."""
Work = tuple[Input, list[Group]]


def grouped(chunks: list[Chunk], vectorized: bool, limit: int = 8 * CHUNK) -> list[Group]:
    """Divide the chunks of a draw into groups, several even for small draws.

    No group has more than `limit` runs, unless a single chunk has.
    """
    size = 1  # in chunks
    if chunks and not vectorized:
        runs = sum(chunk.count for chunk in chunks)
        size = max(1, min(8 * CHUNK, limit, -(-runs // 16)) // chunks[0].count)
    return [chunks[start : start + size] for start in range(0, len(chunks), size)]


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of a chunk when its outputs are gone."""

    runs: int
    """With those whose outputs were only looked at."""
    seconds: float
    """Inside the mechanism."""
    changed_input: bool
    worked: int = 0
    """Runs that returned; none in an array, like `raised`."""
    raised: int = 0
    streak: int = 0
    """Runs at the end that raised."""
    last: Raised | None = None
    """The last output, if it raised."""
    fingerprint: Fingerprint | None = None
    noise: bytes | None = None
    """Of a shared vectorised chunk: a digest, to be the same on every input."""
    kind: str = ""
    """Of an array: whether it holds numbers, truths, texts or objects."""


_KINDS = {**dict.fromkeys("iufc", "numbers"), "b": "truths", "U": "texts", "S": "bytes"}


def summarised(done: Done, fingerprint: Fingerprint | None = None) -> Summary:
    """The summary of a chunk."""
    outputs = done.outputs
    cost = done.runs, done.seconds, done.changed_input
    if isinstance(outputs, np.ndarray):
        kind = _KINDS.get(outputs.dtype.kind, "objects")
        return Summary(*cost, fingerprint=fingerprint, noise=done.noise, kind=kind)
    if Raised not in set(map(type, outputs)):
        return Summary(*cost, worked=len(outputs), fingerprint=fingerprint, noise=done.noise)
    raised = [isinstance(output, Raised) for output in outputs]
    streak = sum(1 for _ in takewhile(bool, reversed(raised)))
    return Summary(
        *cost,
        worked=len(outputs) - sum(raised),
        raised=sum(raised),
        streak=streak,
        last=outputs[-1] if streak else None,
        fingerprint=fingerprint,
    )


def measured(
    ran: Iterator[Done],
    groups: list[Group],
    function: Callable[[Outputs], T],
    heed: Callable[[Done], None],
    deadline: Deadline,
) -> Iterator[T]:
    """What the function says of the outputs of each group, as chunks come in.

    `ran` has the chunks of all groups, in order. Each is shown to `heed` first, which may raise.
    Raises OutOfTime if the deadline passed, and whatever still runs is to be interrupted.
    """
    for group in groups:
        parts: list[Outputs] = []
        for done in islice(ran, len(group)):
            heed(done)
            parts.append(done.outputs)
        outputs = joined(parts)
        yield within(deadline.to_the_last(), partial(function, outputs))
