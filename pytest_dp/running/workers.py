"""Work in other processes, through joblib, which are kept from one audit to the next."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import multiprocessing
import sys
import threading
import traceback
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
    Done,
    Group,
    Input,
    Summary,
    Work,
    measure_groups,
)
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import NO_GENERATORS
from pytest_dp.running.pickling import cloudpickle, dumps
from pytest_dp.running.runner import Runner
from pytest_dp.running.sharing import (
    CannotShare,
    Fingerprint,
    Left,
    Sent,
    Trial,
    digest_of_texts,
    surprise,
    this_process,
)

STARTING_SECONDS = 25.0
"""Seconds in which a process or a cluster has to start, import and answer. More: hangs are found
later; fewer: slow machines fail."""

_NO_PROCESSES = "audited in one process, as no others could be started ({})"


@dataclass(frozen=True, slots=True)
class Packed:
    """A mechanism that is ready to travel, with what every worker tries it on first."""

    mechanism: bytes
    module: str | None
    """The module whose functions and classes travel by value, not by name."""

    def beside(self, obj: Any) -> bytes:
        """Pickle what is to meet the mechanism in a worker: both then have the same classes.

        Raises CannotShare if it cannot be pickled.
        """
        try:
            return _pickle_by_value(obj, self.module)
        except Exception as error:  # whatever pickling raises
            raise _cannot_travel(error) from None


def pack(call: Call, dataset: Input, chunk: Chunk) -> Packed:
    """Pickle a mechanism, by value if possible: patched module variables then travel with it.

    Raises whatever pickling raised, if it can be pickled neither by value nor by reference.
    """
    # A worker looks for generators in its copy.
    trial = replace(call, captured=NO_GENERATORS), dataset, chunk
    module = sys.modules.get(getattr(call.mechanism, "__module__", None) or "")
    if module is not None and module.__name__ != "__main__" and _travels(module):
        try:
            return Packed(_pickle_by_value(trial, module.__name__), module.__name__)
        except Exception:  # most often a module variable that cannot travel
            if not _importable(module):
                raise
    return Packed(_pickle_by_value(trial, None), None)


def _pickle_by_value(obj: Any, module: str | None) -> bytes:
    if module is None:
        return dumps(obj)
    cloudpickle.register_pickle_by_value(sys.modules[module])
    try:
        return dumps(obj)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[module])


@dataclass(frozen=True, slots=True)
class Order:
    """A description of all jobs of one call: the properties that they share."""

    packed: Packed
    function: bytes
    """What measures the outputs, pickled."""
    runner: Runner


@dataclass(frozen=True, slots=True)
class JobResult:
    """A result of a job."""

    trial: Trial | None
    """None if it could not be run."""
    chunks: list[Summary]
    values: list[Any]
    """What the function said of every group."""
    error: Exception | None = None
    """What ended the job early: raised by the function, by a vectorised mechanism, for lack of
    time, or because something cannot be pickled."""


def share_out(
    order: Order, jobs: list[Work], n_jobs: int, deadline: Deadline
) -> Generator[JobResult, None, None]:
    """Do jobs in `n_jobs` processes; results as they come, in the order of the jobs.

    When the iterator is closed, no more jobs are begun, and those that are under way are awaited.

    Raises OutOfTime if the deadline passed long ago and a worker has not noticed (it is ended),
    MechanismError if a worker died, and CannotShare if an input, or what comes back, cannot be
    pickled, or no process can be started.
    """
    if joblib.effective_n_jobs(n_jobs) == 1 < n_jobs:
        raise CannotShare(_NO_PROCESSES.format("joblib finds no place for its semaphores"))
    processes = min(n_jobs, len(jobs))
    inputs = {id(dataset): order.packed.beside(dataset) for dataset, _ in jobs}
    work, wanted = joblib.delayed(_work), True
    sent = _results(
        n_jobs,
        (
            work(order, inputs[id(dataset)], groups, Left.of(deadline, processes))
            for dataset, groups in itertools.takewhile(lambda _: wanted, jobs)
        ),
        deadline,
    )
    for result in sent:
        try:
            yield _unpickle(result.counted())
        except GeneratorExit:  # joblib would kill the processes, with a warning
            wanted = False
            with contextlib.suppress(Exception):
                list(sent)
            raise


def _results(n_jobs: int, work: Iterator[Any], deadline: Deadline) -> Iterator[Sent]:
    """Yield the results of jobs, in their order; raise their errors as errors of ours."""
    try:
        parallel = _parallel(n_jobs)
        parallel.timeout = _patience(deadline)
        for sent in parallel(work):
            yield sent
            parallel.timeout = _patience(deadline)  # for the next job
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


def _patience(deadline: Deadline) -> float:
    """Return the seconds that joblib waits for a job."""
    return clocks.WALL_FACTOR * max(deadline.to_the_last(), 0.1) + STARTING_SECONDS


_KEPT: list[tuple[Any, int, joblib.Parallel]] = []
"""At most one pool of processes that joblib would otherwise start for every call."""


def _parallel(n_jobs: int) -> joblib.Parallel:
    """Return the processes of the backend in use: results come one by one where it knows how to."""
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
    while _KEPT:
        with contextlib.suppress(Exception):
            _KEPT.pop()[-1].__exit__(None, None, None)


def stop() -> None:
    """End the worker processes that joblib keeps, if there are any: it starts others when asked."""
    _close()
    executor = reusable_executor._executor  # noqa: SLF001  asking for one would start one
    if executor is not None:
        with contextlib.suppress(Exception):
            executor.shutdown(wait=True, kill_workers=True)


_LOADED: dict[bytes, tuple[Call, Trial]] = {}
"""In a worker: mechanisms it has unpacked, by digest, so that each is unpacked once."""


_ONE_AT_A_TIME = threading.Lock()
"""Workers of some clusters have several threads, and a process has one global random generator."""


def _work(order: Order, sent: bytes, groups: list[Group], left: Left) -> Sent:
    """Run one job in a worker.

    Errors are sent back, as joblib would end the worker if they were raised.
    """
    with _ONE_AT_A_TIME:
        started = clocks.process_seconds()
        shared = _run_job(order, sent, groups, left.deadline())
        return Sent(this_process(), clocks.process_seconds() - started, shared)


def _run_job(order: Order, sent: bytes, groups: list[Group], deadline: Deadline) -> bytes:
    trial: Trial | None = None
    told: list[Summary] = []
    values: list[Any] = []

    def heed(done: Done) -> None:
        told.append(done.told)

    if deadline.to_the_last() < 0:  # what hung before would hang again
        return _pickle_to_send(JobResult(None, [], [], OutOfTime()))
    try:
        call, trial = _load_mechanism(order, deadline)
        function, dataset = _function(order.function), _unpickle(sent)
        chunks = list(itertools.chain.from_iterable(groups))
        ran = order.runner.run(call, dataset, chunks, deadline)
        values.extend(measure_groups(ran, groups, function, heed, deadline))
        return _pickle_to_send(JobResult(trial, told, values))
    except CannotShare as reason:
        return _pickle_to_send(JobResult(trial, told, [], reason))
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return _sent_error(JobResult(trial, told, values, error))


def _sent_error(shared: JobResult) -> bytes:
    try:
        sent = _pickle_to_send(shared)
        _unpickle(sent)  # errors of some classes fall apart only there
    except CannotShare as reason:
        return _pickle_to_send(replace(shared, values=[], error=reason))
    return sent


def _load_mechanism(order: Order, deadline: Deadline) -> tuple[Call, Trial]:
    packed = order.packed.mechanism
    # By the seed too: two claims on one mechanism are tried on different random numbers.
    key = hashlib.sha256(packed + str(order.runner.seed).encode()).digest()
    if key not in _LOADED:
        _LOADED.clear()
        call, dataset, chunk = _unpickle(packed)
        call = call.of(call.mechanism, call.params)
        _LOADED[key] = call, trial_of(order.runner, call, dataset, chunk, deadline)
    return _LOADED[key]


@functools.lru_cache(maxsize=1)
def _function(sent: bytes) -> Callable[[Outputs], Any]:
    """Return the function that a worker was sent, kept if the last job had the same."""
    return _unpickle(sent)  # type: ignore[no-any-return]


def _pickle_to_send(obj: Any) -> bytes:
    try:
        return dumps(obj)
    except Exception as error:  # whatever pickling raises
        raise _cannot_travel(error) from None


def _unpickle(sent: bytes) -> Any:
    try:
        return cloudpickle.loads(sent)
    except Exception as error:
        raise _cannot_travel(error) from None


def _cannot_travel(error: Exception) -> CannotShare:
    return CannotShare(
        "audited in one process, as inputs, outputs or what is measured of them cannot be pickled "
        f"({type(error).__name__}: {error})"
    )


def trial_of(runner: Runner, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline) -> Trial:
    """Run a chunk twice in this process, on a copy, and compare."""
    with contextlib.suppress(CannotCopy):
        call, (data,) = call.copied(dataset.live)
        dataset = dataset.like(data)
    once, twice = (
        [
            safe_repr(o)
            for done in runner.run(call, dataset, [chunk], deadline)
            for o in done.outputs
        ]
        for _ in range(2)
    )
    return Trial(this_process(), Fingerprint(digest_of_texts(once), surprise(once)), once == twice)


def _travels(module: Any) -> bool:
    """Return whether a module is the user's own code, which may have been patched."""
    return bool(getattr(module, "__file__", None)) and not is_installed(module)


def _importable(module: Any) -> bool:
    """Return whether another process would find the same file under this module's name."""
    try:
        spec = importlib.util.find_spec(module.__name__)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin == getattr(module, "__file__", None)
