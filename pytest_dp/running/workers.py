"""Work in other processes, through joblib, which are kept from one audit to the next.

A generator that is copied into several processes deals the same numbers in each. `find_generators`
finds those of Python code. Those of compiled code show in a trial in each process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
import multiprocessing
import os
import pickle
import platform
import re
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
from joblib.externals.loky import reusable_executor

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.errors import MechanismError
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.basics.whose_code import is_installed
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import (
    Chunk,
    Input,
    Runner,
    Summary,
    Work,
    measure_chunks,
)
from pytest_dp.running.copies import CannotCopy, dumps
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import NO_GENERATORS

STARTING_SECONDS = 25.0
"""Seconds for a process to start, import and answer. Fewer: slow machines fail."""
COINCIDENCE_SURPRISE = 14.0
"""Negative log of the chance, one in a million, that independent outputs look copied."""
_NO_PROCESSES = "audited in one process, as no others could be started ({})"
_OUT_OF_REACH = (
    "keeps a random generator out of reach, which copies itself into every worker process with the "
    "same state: audited in one process"
)
_LONG_FLOAT = re.compile(r"\.\d{9}")


class CannotShare(Exception):  # noqa: N818  a way out, not an error
    """Raised if the work has to be done in one process; the message says why."""


def surprise(texts: list[str]) -> float:
    """Return the negative log of an estimate of how likely independent outputs repeat these texts.

    Frequencies give the estimate. A text with all digits of a float counts for more if it occurs
    once.
    """
    long = sum(n == 1 and bool(_LONG_FLOAT.search(text)) for text, n in Counter(texts).items())
    # From frequencies alone: no distribution makes the same independent outputs more likely.
    frequent = sum(-n * math.log(n / len(texts)) for n in Counter(texts).values())
    return frequent + long * max(0.0, 20.0 - math.log(len(texts) or 1))


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of one chunk, run twice in a row by a process that is new to the mechanism."""

    process: str
    """The name of the process."""
    digest: bytes
    """A hash of the texts of all outputs of the first run."""
    surprise: float
    """The negative logarithm of the chance of the same outputs in another process."""
    replays: bool
    """Whether both runs gave the same outputs."""


class Comparison:
    """A comparison of trials of processes with the `local` trial, which shows copied generators."""

    def __init__(self, local: Trial) -> None:
        self.local = local
        self._digests = {local.process: local.digest}

    def check(self, trial: Trial) -> None:
        """Raise CannotShare if a worker's outputs cannot be used beside those of other processes.

        A mechanism that replays in this process must give the same outputs in a worker. Another one
        must give other outputs in each process, and outputs that chance hardly repeats.
        """
        if self.local.replays:
            if not trial.replays:
                raise CannotShare(_OUT_OF_REACH)
            if trial.digest != self.local.digest:
                raise CannotShare(
                    "gives other outputs in a worker process (set order, patched modules, "
                    "environment variables): audited in one process"
                )
            return
        self._digests[trial.process] = trial.digest
        if trial.surprise < COINCIDENCE_SURPRISE + 2 * math.log(len(self._digests)):
            raise CannotShare("draws on randomness that may be a copy: audited in one process")
        if list(self._digests.values()).count(trial.digest) > 1:
            raise CannotShare(_OUT_OF_REACH)


@dataclass(frozen=True, slots=True)
class PickledMechanism:
    """A pickled mechanism, with the dataset and the chunk on which every worker tries it first."""

    mechanism: bytes
    module: str | None
    """The module whose functions and classes are pickled by value; None if all are by name."""

    def pickle_beside(self, obj: Any) -> bytes:
        """Pickle an object, with the classes of the mechanism; raise CannotShare if that fails."""
        try:
            return dumps(obj, self.module)
        except Exception as error:  # whatever pickling raises
            raise _cannot_travel(error) from None


def pickle_mechanism(call: Call, dataset: Input, chunk: Chunk) -> PickledMechanism:
    """Pickle a mechanism for workers, with the input and the chunk of the trial in each worker.

    The project's module of the mechanism is pickled by value, with patched variables; by name if
    that fails, or in ``__main__``. Raises whatever pickling raises if both fail.
    """
    # A worker looks for generators in its copy.
    trial = replace(call, captured=NO_GENERATORS), dataset, chunk
    module = sys.modules.get(getattr(call.mechanism, "__module__", None) or "")
    is_own = bool(getattr(module, "__file__", None)) and not is_installed(module)
    if module is not None and is_own and module.__name__ != "__main__":  # it may be patched
        with contextlib.suppress(Exception):  # most often of a module variable that cannot travel
            return PickledMechanism(dumps(trial, module.__name__), module.__name__)
    return PickledMechanism(dumps(trial), None)


Sent = tuple[str, float, bytes]
"""What a worker sends: its name, its processor seconds, and a pickled `JobResult`."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A description of all jobs of one call: mechanism, function of the outputs, and runner."""

    packed: PickledMechanism
    function: bytes
    """The function that measures the outputs, pickled."""
    runner: Runner


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job in a worker."""

    trial: Trial | None
    """The trial of the worker; None if it could not be run."""
    chunks: list[Summary]
    values: list[Any]
    """The value of the function for the outputs of each chunk."""
    error: Exception | None = None
    """The error that ended the job early; None if the job was done."""


def share_out(
    order: JobSpec, jobs: list[Work], n_jobs: int, deadline: Deadline
) -> Generator[JobResult, None, None]:
    """Run jobs in `n_jobs` processes, and yield the results in the order of the jobs.

    A job's error is in its result. If the iterator is closed, no more jobs begin, and those under
    way are awaited. Raises OutOfTime if the deadline passed long ago and a worker has not noticed
    (it is ended), MechanismError if a worker died, and CannotShare if an input or a result cannot
    be pickled, or no process can be started.
    """
    if joblib.effective_n_jobs(n_jobs) == 1 < n_jobs:
        raise CannotShare(_NO_PROCESSES.format("joblib finds no place for its semaphores"))
    processes = min(n_jobs, len(jobs))
    inputs = {id(dataset): order.packed.pickle_beside(dataset) for dataset, _ in jobs}
    work, wanted = joblib.delayed(_do_job), True
    sent = _run_by_joblib(
        n_jobs,
        (
            work(order, inputs[id(dataset)], chunks, deadline.remaining_times(), processes)
            for dataset, chunks in itertools.takewhile(lambda _: wanted, jobs)
        ),
        deadline,
    )
    for process, seconds, result in sent:
        if process != this_process():
            clocks.add_process_seconds(seconds)
        try:
            yield _unpickle(result)
        except GeneratorExit:  # joblib would kill the processes, with a warning
            wanted = False
            with contextlib.suppress(Exception):
                list(sent)
            raise


def _run_by_joblib(n_jobs: int, work: Iterator[Any], deadline: Deadline) -> Iterator[Sent]:
    """Run jobs by joblib and yield their results; raise errors of processes as `share_out` says."""
    try:
        parallel = _worker_pool(n_jobs)
        parallel.timeout = _timeout_seconds(deadline)
        for sent in parallel(work):
            yield sent
            parallel.timeout = _timeout_seconds(deadline)  # for the next job
    except (TimeoutError, multiprocessing.TimeoutError):
        raise OutOfTime("(in a worker process, in compiled code or in an import)") from None
    except KeyboardInterrupt:
        stop()
        raise
    except Exception as error:  # of the backend: errors of jobs are sent back
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):  # a full disk
            raise CannotShare(_NO_PROCESSES.format(error)) from None
        reason = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        raise MechanismError(
            "A worker process died while it ran the mechanism: os._exit, a crash in compiled code, "
            f"or out of memory ({reason}). Run with one process to see where: --dp-jobs=1, or "
            "audit(..., n_jobs=1)."
        ) from None


def _timeout_seconds(deadline: Deadline) -> float:
    """Return the seconds that pass before joblib gives a job up."""
    return clocks.WALL_FACTOR * max(deadline.seconds_to_interrupt(), 0.1) + STARTING_SECONDS


_KEPT: list[tuple[Any, int, joblib.Parallel]] = []
"""At most one pool of processes: joblib's backend, the number of processes, the pool."""


def _worker_pool(n_jobs: int) -> joblib.Parallel:
    """Return worker processes of joblib's active backend, which are started if none are kept."""
    try:
        return joblib.Parallel(n_jobs, batch_size=1, return_as="generator")
    except ValueError:  # joblib refuses: backends that gather results also start for every call
        backend = joblib.parallel.get_active_backend()[0]
    if not any(kept is backend and size == n_jobs for kept, size, _ in _KEPT):
        _close()
        pool = joblib.Parallel(n_jobs, batch_size=1).__enter__()
        _KEPT.append((backend, n_jobs, pool))
    return _KEPT[0][-1]


def _close() -> None:
    """End the kept pool of processes, if there is one; ignore its errors."""
    while _KEPT:
        with contextlib.suppress(Exception):
            _KEPT.pop()[-1].__exit__(None, None, None)


def stop() -> None:
    """End the worker processes that joblib keeps, if there are any; later jobs start others."""
    _close()
    executor = reusable_executor._executor  # noqa: SLF001  asking for one would start one
    if executor is not None:
        with contextlib.suppress(Exception):
            executor.shutdown(wait=True, kill_workers=True)


_LOADED: dict[bytes, tuple[Call, Trial]] = {}
"""In a worker: the last mechanism that was unpickled and its trial, by the digest of its pickle."""
_ONE_AT_A_TIME = threading.Lock()
"""Workers of some clusters have several threads, and a process has one global random generator."""


def _do_job(
    order: JobSpec,
    sent: bytes,
    chunks: list[Chunk],
    left: tuple[float, float, float],
    processes: int,
) -> Sent:
    """Run one job in a worker, and return the worker's name, processor seconds and result.

    Errors are part of the result. `left` are the arguments of a `Deadline`, and `processes` is how
    many work at the same time.
    """
    with _ONE_AT_A_TIME:
        started = clocks.process_seconds()
        deadline = Deadline(*left, clocks.Stopwatch(processes))
        result = _run_job(order, sent, chunks, deadline)
        return this_process(), clocks.process_seconds() - started, result


def this_process() -> str:
    """Return a name of this process that no other running process has, on any machine."""
    return f"{platform.node()}:{os.getpid()}"


def _run_job(order: JobSpec, sent: bytes, chunks: list[Chunk], deadline: Deadline) -> bytes:
    """Run chunks on a pickled dataset; return a pickled `JobResult`, with any error in it."""
    trial: Trial | None = None
    summaries: list[Summary] = []
    values: list[Any] = []
    if deadline.seconds_to_interrupt() < 0:  # what hung before would hang again
        return _pickle_to_send(JobResult(None, [], [], OutOfTime()))
    try:
        call, trial = _load_mechanism(order, deadline)
        function, dataset = _load_function(order.function), _unpickle(sent)
        ran = order.runner.run(call, dataset, chunks, deadline)
        values.extend(measure_chunks(ran, function, summaries.append, deadline))
        return _pickle_to_send(JobResult(trial, summaries, values))
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            return _pickle_to_send(JobResult(trial, summaries, values, error))
        except CannotShare as reason:
            return _pickle_to_send(JobResult(trial, summaries, [], reason))


def _load_mechanism(order: JobSpec, deadline: Deadline) -> tuple[Call, Trial]:
    """Unpickle the mechanism and run its trial, or return both from the job before."""
    packed = order.packed.mechanism
    # By the seed too: two claims on one mechanism are tried on different random numbers.
    key = hashlib.sha256(packed + str(order.runner.seed).encode()).digest()
    if key not in _LOADED:
        _LOADED.clear()
        call, dataset, chunk = _unpickle(packed)
        call = call.with_mechanism(call.mechanism, call.params)
        _LOADED[key] = call, trial_of(order.runner, call, dataset, chunk, deadline)
    return _LOADED[key]


@functools.lru_cache(maxsize=1)
def _load_function(sent: bytes) -> Callable[[Outputs], Any]:
    """Unpickle the function of outputs, once for equal jobs; raise CannotShare if that fails."""
    return _unpickle(sent)  # type: ignore[no-any-return]


def _pickle_to_send(obj: Any) -> bytes:
    """Pickle an object for another process; raise CannotShare if that fails."""
    try:
        return dumps(obj)
    except Exception as error:  # whatever pickling raises
        raise _cannot_travel(error) from None


def _unpickle(sent: bytes) -> Any:
    """Return a pickled object; raise CannotShare if that fails."""
    try:
        return pickle.loads(sent)
    except Exception as error:
        raise _cannot_travel(error) from None


def _cannot_travel(error: Exception) -> CannotShare:
    """Return the CannotShare for an error of pickling."""
    return CannotShare(
        "audited in one process, as inputs, outputs or what is measured of them cannot be pickled "
        f"({type(error).__name__}: {error})"
    )


def trial_of(runner: Runner, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline) -> Trial:
    """Run a chunk twice in this process, on a copy if there can be one, and compare the outputs.

    Raises OutOfTime if the deadline passes first.
    """
    with contextlib.suppress(CannotCopy):
        call, (data,) = call.copy(dataset.live)
        dataset = dataset.with_data(data)
    once, twice = (
        [
            safe_repr(o)
            for done in runner.run(call, dataset, [chunk], deadline)
            for o in done.outputs
        ]
        for _ in range(2)
    )
    digest = hashlib.sha256("\0".join(once).encode("utf-8", "replace")).digest()
    return Trial(this_process(), digest, surprise(once), once == twice)
