"""Draws outputs of a mechanism, in this process or in several, with the same outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.sampling import hidden, workers
from pytest_dp.sampling.calling import Call, Outputs, Raised, same, shown
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pieces import (
    MOST_A_PIECE,
    Done,
    Input,
    Piece,
    cut,
    joined,
    run_all,
)
from pytest_dp.sampling.workers import Task

START_WORKERS = 5.0
"""Estimated seconds of work from which starting processes, with their imports, pays."""
USE_WORKERS = 0.25
"""Estimated seconds of work from which handing it to running processes pays."""

SURPRISE = 14.0
"""Negative logarithm of the chance of a coincidence that is not taken for one."""
OUT_OF_REACH = (
    "keeps a random generator out of reach, which copies itself into every worker process with the "
    "same state: audited in one process"
)

STREAK = 200
"""Runs in a row that raise, after many that did not, before a mechanism counts as used up."""

Progress = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Draw:
    """A wish for `count` outputs on `given`, from the stream that `key` names."""

    given: Input
    count: int
    key: tuple[int, ...]


class Sampler:
    """Draws outputs of one mechanism until the deadline.

    Parameters
    ----------
    call : Call
    seed : int
    n_jobs : int
        Processes at most.
    explicit_jobs : bool
        Whether `n_jobs` was asked for; if so, a mechanism that cannot be sent to another process
        is an error, else it just runs in this one.
    progress : callable, optional
        ``progress(runs, seconds)``, called now and then.
    """

    def __init__(
        self,
        call: Call,
        seed: int,
        n_jobs: int = 1,
        explicit_jobs: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.call, self.seed, self.n_jobs = call, seed, n_jobs
        self.explicit_jobs, self.progress = explicit_jobs, progress
        self.hidden = hidden.find(call.mechanism, call.params)
        self.runs = self._timed_runs = 0
        self.seconds = 0.0
        self.replayable = True
        self.notes: list[str] = []
        self._packed: bytes | None = None
        self._copies = False
        self._worked: dict[Input, tuple[int, int, int]] = {}
        self._trial: workers.Trial | None = None
        self._trials: dict[int, workers.Trial] = {}
        self._fingerprints: set[tuple[str, ...]] = set()
        self._reported = self._started = time.monotonic()
        if self.hidden.places:
            self.note(f"draws from a generator kept in {', '.join(self.hidden.places)}: reseeded")

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return getattr(self.call.mechanism, "__name__", None) or "the mechanism"

    def note(self, text: str) -> None:
        """Remember something that the reader of the result should know, once."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def seconds_a_run(self) -> float | None:
        """Measured cost of one run in one process; None before the first."""
        return self.seconds / self._timed_runs if self._timed_runs else None

    def warm_up(self, given: Input, deadline: Deadline, most: int = 1_000) -> None:
        """Find out what a run costs and whether it can be replayed: a few runs, twice each."""
        counts = (64, 64) if self.call.size else (1, 1, 2, 4, 8, 16, 32)
        self._in_process([(given, [Piece(counts[0], (0,))])], deadline)  # first calls are slow
        self._timed_runs, self.seconds = 0, 0.0
        for k, count in enumerate(counts, 1):
            if k > 1 and self.runs + 2 * count > most:
                return
            once = self._in_process([(given, [Piece(count, (k,))])], deadline)
            twice = self._in_process([(given, [Piece(count, (k,))])], deadline)
            if not all(map(same, once[0][0].outputs, twice[0][0].outputs)):
                self.replayable = False
                return
            if self.seconds > 0.2:
                return

    def draw(self, draws: list[Draw], deadline: Deadline) -> list[Outputs]:
        """The outputs of each draw.

        Raises
        ------
        OutOfTime
            If the deadline passed before all of them were done.
        MechanismError
            If the mechanism hangs or takes its process down.
        """
        vectorized = self.call.size is not None
        tasks = [(d.given, cut(d.count, d.key, vectorized)) for d in draws]
        estimate = (self.seconds_a_run or 0.0) * sum(d.count for d in draws)
        if self._worth_sharing(estimate):
            done = self._in_workers(tasks, deadline)
        else:
            done = self._in_process(tasks, deadline)
        return [joined([piece.outputs for piece in pieces]) for pieces in done]

    def _in_process(self, tasks: list[Task], deadline: Deadline) -> list[list[Done]]:
        results: list[list[Done]] = []
        for given, pieces in tasks:
            results.append([])
            for piece, done in run_all(
                self.call,
                given,
                pieces,
                self.seed,
                self.hidden,
                self._copies,
                deadline,
                self.seconds_a_run,
            ):
                self._account(done, piece)
                self._usable(given, done.outputs)
                results[-1].append(done)
        return results

    def _in_workers(self, tasks: list[Task], deadline: Deadline) -> list[list[Done]]:
        packed = self._pack(tasks[0][0], deadline)
        if packed is None:
            return self._in_process(tasks, deadline)
        # About a fifth of a second a job: little overhead, and progress that can be seen.
        a_job = max(1.0, 0.2 / (self.seconds_a_run or 1.0))
        jobs: list[tuple[int, Input, list[Piece]]] = []
        for index, (given, pieces) in enumerate(tasks):
            size = 0.0
            for piece in pieces:
                if not jobs or jobs[-1][0] != index or size >= a_job:
                    jobs.append((index, given, []))
                    size = 0.0
                jobs[-1][2].append(piece)
                size += piece.count
        results: list[list[Done]] = [[] for _ in tasks]
        step = 16 * self.n_jobs
        for start in range(0, len(jobs), step):
            some = jobs[start : start + step]
            if deadline.remaining() <= 0:
                raise OutOfTime
            try:
                shared = workers.share_out(
                    packed,
                    [job[1:] for job in some],
                    self.seed,
                    self._copies,
                    self.n_jobs,
                    deadline,
                    self.seconds_a_run,
                )
            except workers.CannotTravel as error:
                self.n_jobs = 1
                self.note(
                    f"audited in one process, as inputs or outputs cannot be pickled ({error})"
                )
                return self._in_process(tasks, deadline)
            for (index, _, pieces), (trial, done) in zip(some, shared, strict=True):
                reason = self._cannot_share(trial, done)
                if reason:
                    self.note(reason)
                    self.n_jobs = 1
                    return self._in_process(tasks, deadline)
                for piece, one in zip(pieces, done, strict=True):
                    self._account(one, piece)
                    self._usable(tasks[index][0], one.outputs)
                    results[index].append(one)
        return results

    def _cannot_share(self, trial: workers.Trial, done: list[Done]) -> str:
        """Why a worker's outputs cannot be used beside those of other processes; else empty.

        What replays in this process must give the same in a worker. What does not must give
        something else in each: system entropy does, a generator that was copied does not.
        """
        assert self._trial is not None
        if self._trial.replays:
            if not trial.replays:
                return OUT_OF_REACH
            if trial.outputs != self._trial.outputs:
                return (
                    "gives other outputs in a worker process (set order, patched modules, "
                    "environment variables): audited in one process"
                )
        else:
            self.replayable = False
            others = [t for t in self._trials.values() if t.process != trial.process]
            self._trials[trial.process] = trial
            enough = SURPRISE + 2 * math.log(len(self._trials))
            if trial.surprise < enough:
                return "draws on randomness that cannot be told from a copy: audited in one process"
            if any(other.outputs == trial.outputs for other in others):
                return OUT_OF_REACH
        seen = [self._was_seen(one.outputs) for one in done]  # all of them: it remembers
        return OUT_OF_REACH if any(seen) else ""

    def _was_seen(self, outputs: Outputs) -> bool:
        """Whether another piece held the very same outputs, beyond coincidence."""
        texts = tuple(map(shown, outputs[:MOST_A_PIECE]))
        enough = SURPRISE + 2 * math.log(len(self._fingerprints) + 1)
        if workers.surprise(list(texts)) < enough:
            return False
        seen = texts in self._fingerprints
        self._fingerprints.add(texts)
        return seen

    def _worth_sharing(self, estimate: float) -> bool:
        if self.n_jobs == 1:
            return False
        return estimate > (START_WORKERS if self._packed is None else USE_WORKERS)

    def _pack(self, given: Input, deadline: Deadline) -> bytes | None:
        if self._packed is None:
            cost = self.seconds_a_run or 0.0
            count = min(MOST_A_PIECE, max(3, int(0.05 / cost) if cost else MOST_A_PIECE))
            task = given, [Piece(count, (0, 0))]
            try:
                self._packed = workers.pack(self.call, task)
            except Exception as error:  # whatever pickling raises
                reason = f"{type(error).__name__}: {error}"
                if self.explicit_jobs:
                    raise ClaimError(
                        f"The mechanism cannot be sent to {self.n_jobs} processes, because its "
                        f"state cannot be pickled ({reason}). Ask for one process (--dp-jobs=1, "
                        "n_jobs=1), or keep locks, files and connections out of its reach."
                    ) from None
                self.n_jobs = 1
                self.note(f"audited in one process, as its state cannot be pickled ({reason})")
                return None
            self._trial = workers.tried(
                self.call, task, self.seed, self.hidden, deadline, self.seconds_a_run
            )
            self._trials[self._trial.process] = self._trial
        return self._packed

    def _usable(self, given: Input, outputs: Outputs) -> None:
        """Refuse a mechanism that worked and then stopped: its runs are not independent."""
        if isinstance(outputs, np.ndarray):
            return
        worked, raised, streak = self._worked.get(given, (0, 0, 0))
        if Raised not in set(map(type, outputs)):
            self._worked[given] = worked + len(outputs), raised, 0
            return
        for output in outputs:
            if isinstance(output, Raised):
                raised, streak = raised + 1, streak + 1
            else:
                worked, streak = worked + 1, 0
        self._worked[given] = worked, raised, streak
        # Half of the runs worked before: independent runs would end like this once in 1e10 audits.
        if streak >= STREAK and worked >= max(50, raised - streak):
            last = outputs[-1]
            raise MechanismError(
                f"{self.name} worked {worked:,} times and then raised {last.kind} in every run: it "
                "keeps state between runs, such as a privacy budget that is used up. Claim a "
                f"function that starts afresh each time it is called.\n{last.trace}".rstrip()
            )

    def _account(self, done: Done, piece: Piece) -> None:
        self.runs += piece.count
        self._timed_runs += piece.count
        self.seconds += done.seconds
        if done.changed_input and not self._copies:
            self._copies = True
            self.note("changes its input: every run was given a fresh copy")
        now = time.monotonic()
        if self.progress is not None and now - self._reported > 0.1:
            self._reported = now
            self.progress(self.runs, now - self._started)
