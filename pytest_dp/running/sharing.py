"""Sharing runs out among processes: in which jobs, and whether what comes back can be used.

A generator that is copied into several processes deals the same numbers in each. `captured.find`
finds those that Python code holds, also where nothing of them is pickled: in a module that workers
import, in an object that makes its generator anew. Those of compiled code, of which a pickle would
show bytes at most, are told by what they give: a trial in each process.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
from collections import Counter
from dataclasses import dataclass

from pytest_dp.basics import clocks
from pytest_dp.running.deadline import Deadline

OUT_OF_REACH = (
    "keeps a random generator out of reach, which copies itself into every worker process with the "
    "same state: audited in one process"
)


class CannotShare(Exception):  # noqa: N818  a way out, not an error
    """The work has to be done in one process; the message says why."""


COINCIDENCE_SURPRISE = 14.0
"""Derived: the negative logarithm of the chance, one in a million, of a coincidence that is taken
for a copied generator."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint of some outputs."""

    digest_of_texts: bytes
    surprise: float
    """How unlikely the same outputs would be by chance, as a negative logarithm."""


def digest_of_texts(texts: list[str]) -> bytes:
    """Return a digest of texts."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).digest()


_LONG_FLOAT = re.compile(r"\.\d{9}")


def surprise(texts: list[str]) -> float:
    """Return the negative logarithm of the chance that independent outputs read like these again.

    Outputs that show all digits of a float are worth more than their frequency says, as those
    hardly ever come twice; unless one of them did.
    """
    long = sum(n == 1 and bool(_LONG_FLOAT.search(text)) for text, n in Counter(texts).items())
    # From frequencies alone: no distribution makes the same independent outputs more likely.
    frequent = sum(-n * math.log(n / len(texts)) for n in Counter(texts).values())
    return frequent + long * max(0.0, 20.0 - math.log(len(texts) or 1))


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of one chunk, run twice in a row by a process that is new to the mechanism."""

    process: str
    outputs: Fingerprint
    """Of all outputs of the first run."""
    replays: bool
    """Whether the second run gave the same."""


class Comparison:
    """A comparison of processes: whether they drew the same random numbers.

    `local` is the trial of this process.
    """

    def __init__(self, local: Trial) -> None:
        self.local = local
        self._trials = {local.process: local}

    def check(self, trial: Trial) -> None:
        """Refuse a worker's outputs if they cannot be used beside those of other processes.

        What replays in this process must give the same in a worker. What does not must give
        something else in each: system entropy does, a generator that was copied does not.
        """
        if self.local.replays:
            if not trial.replays:
                raise CannotShare(OUT_OF_REACH)
            if trial.outputs != self.local.outputs:
                raise CannotShare(
                    "gives other outputs in a worker process (set order, patched modules, "
                    "environment variables): audited in one process"
                )
        else:
            elsewhere = [t for t in self._trials.values() if t.process != trial.process]
            self._trials[trial.process] = trial
            enough = COINCIDENCE_SURPRISE + 2 * math.log(len(self._trials))
            if trial.outputs.surprise < enough:
                raise CannotShare("draws on randomness that may be a copy: audited in one process")
            if any(t.outputs == trial.outputs for t in elsewhere):
                raise CannotShare(OUT_OF_REACH)


@dataclass(frozen=True, slots=True)
class Left:
    """The time that is left for a job when it is sent: other machines have other clocks."""

    seconds: float
    last: float
    allowed: float
    processes: int
    """Those that work at the same time, all of whose processor time counts."""

    @classmethod
    def of(cls, deadline: Deadline, processes: int) -> Left:
        return cls(deadline.remaining(), deadline.to_the_last(), deadline.allowed, processes)

    def deadline(self) -> Deadline:
        """Return a deadline with the same time left, from now on."""
        watch = clocks.Stopwatch(self.processes)
        return Deadline(self.seconds, self.last, self.allowed, watch)


@dataclass(frozen=True, slots=True)
class Sent:
    """A message from a worker: a pickled `workers.JobResult`, and its processor seconds."""

    process: str
    seconds: float
    shared: bytes

    def counted(self) -> bytes:
        """Return the pickled result.

        Count its seconds for this process, unless it was the worker.
        """
        if self.process != this_process():
            clocks.add_process_seconds(self.seconds)
        return self.shared


def this_process() -> str:
    """Return the name of this process, on whichever machine."""
    return f"{platform.node()}:{os.getpid()}"
