"""Pieces of work in other processes, through joblib."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import math
import os
import re
import sys
import sysconfig
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from pytest_dp.errors import MechanismError
from pytest_dp.sampling import hidden
from pytest_dp.sampling.calling import Call, shown
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pickling import cloudpickle
from pytest_dp.sampling.pieces import Done, Input, Piece, run_all

Task = tuple[Input, list[Piece]]

GRACE = 5.0
"""Seconds that a worker gets, beyond the deadline, to notice it by itself."""


class CannotTravel(Exception):  # noqa: N818  a way out, not an error
    """An input or an output cannot be pickled; the message says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The same piece, run twice in a row by a process that is new to the mechanism.

    Attributes
    ----------
    process : int
    outputs : bytes
        A digest of the first outputs.
    surprise : float
        How unlikely the same outputs would be by chance, as a negative logarithm.
    replays : bool
        Whether the second run gave the same.
    """

    process: int
    outputs: bytes
    surprise: float
    replays: bool


def pack(call: Call, trial: Task) -> bytes:
    """Pickle a mechanism, by value if possible: patched module variables then travel with it.

    `trial` is what every worker tries the mechanism on first.

    Raises
    ------
    Exception
        Whatever pickling raised, if it cannot be pickled by value nor by reference.
    """
    module = sys.modules.get(getattr(call.mechanism, "__module__", None) or "")
    if module is not None and module.__name__ != "__main__" and _is_own_code(module):
        cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps((call, trial)))
        except Exception:  # most often a module variable that cannot travel
            if not _importable(module):
                raise
        finally:
            cloudpickle.unregister_pickle_by_value(module)
    return bytes(cloudpickle.dumps((call, trial)))


def share_out(
    packed: bytes,
    tasks: list[Task],
    seed: int,
    copies: bool,
    n_jobs: int,
    deadline: Deadline,
    seconds_a_run: float | None,
) -> list[tuple[Trial, list[Done]]]:
    """Run tasks in `n_jobs` processes; results in the order of the tasks.

    Raises
    ------
    OutOfTime
        If the deadline passed first. No worker is left running.
    MechanismError
        If a worker died.
    CannotTravel
        If an input, or an output of the mechanism, cannot be pickled.
    """
    timeout = max(deadline.to_the_last(), 0.1) + GRACE
    now = time.time()  # processes share this clock
    until = now + deadline.remaining(), now + deadline.to_the_last()
    inputs = {id(given): _sent(given) for given, _ in tasks}
    parallel = joblib.Parallel(n_jobs=n_jobs, timeout=timeout)
    try:
        shared = parallel(
            joblib.delayed(_work)(
                packed,
                inputs[id(given)],
                pieces,
                seed,
                copies,
                until,
                deadline.allowed,
                seconds_a_run,
            )
            for given, pieces in tasks
        )
        return [_received(done) for done in shared]
    except BrokenProcessPool as error:
        reason = str(error).strip().partition("\n")[0]
        raise MechanismError(
            "A worker process died while it ran the mechanism: os._exit, a crash in compiled code, "
            f"or out of memory ({reason}). Run with one process to see where: --dp-jobs=1, or "
            "audit(..., n_jobs=1)."
        ) from None
    except TimeoutError:
        raise OutOfTime("(in compiled code, in a worker process)") from None
    except KeyboardInterrupt:
        stop()
        raise


def stop() -> None:
    """End the worker processes, if there are any."""
    from joblib.externals.loky import reusable_executor

    executor = reusable_executor._executor  # noqa: SLF001  asking for one would start one
    if executor is not None:
        with contextlib.suppress(Exception):
            executor.shutdown(wait=True, kill_workers=True)


_LOADED: dict[bytes, tuple[Call, hidden.Hidden, Trial]] = {}
"""In a worker: mechanisms it has unpacked, by digest, so that each is unpacked once."""


def _work(
    packed: bytes,
    sent: bytes,
    pieces: list[Piece],
    seed: int,
    copies: bool,
    until: tuple[float, float],
    allowed: float,
    seconds_a_run: float | None,
) -> bytes:
    digest = hashlib.sha256(packed).digest()
    now = time.time()
    deadline = Deadline(until[0] - now, until[1] - now, allowed)
    if digest not in _LOADED:
        _LOADED.clear()
        call, task = _received(packed)
        generators = hidden.find(call.mechanism, call.params)
        first = tried(call, task, seed, generators, deadline, seconds_a_run)
        _LOADED[digest] = call, generators, first
    call, generators, trial = _LOADED[digest]
    given = _received(sent)
    done = run_all(call, given, pieces, seed, generators, copies, deadline, seconds_a_run)
    return _sent((trial, [one for _, one in done]))


def _sent(thing: Any) -> bytes:
    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:  # whatever pickling raises
        raise CannotTravel(f"{type(error).__name__}: {error}") from None


def _received(sent: bytes) -> Any:
    try:
        return cloudpickle.loads(sent)
    except Exception as error:
        raise CannotTravel(f"{type(error).__name__}: {error}") from None


_LONG_FLOAT = re.compile(r"\.\d{9}")


def tried(
    call: Call,
    task: Task,
    seed: int,
    generators: hidden.Hidden,
    deadline: Deadline,
    seconds_a_run: float | None,
) -> Trial:
    """Run a task twice in this process and compare."""
    once, twice = (
        [
            shown(output)
            for _, done in run_all(call, *task, seed, generators, False, deadline, seconds_a_run)
            for output in done.outputs
        ]
        for _ in range(2)
    )
    digest = hashlib.sha256("\0".join(once).encode("utf-8", "replace")).digest()
    return Trial(os.getpid(), digest, surprise(once), once == twice)


def surprise(texts: list[str]) -> float:
    """The negative logarithm of the chance that independent outputs read like these again.

    From their frequencies; outputs that show all digits of a float are worth more, as those hardly
    ever come twice.
    """
    counts = Counter(texts)
    return sum(
        n * (20.0 if _LONG_FLOAT.search(text) else -math.log(n / len(texts)))
        for text, n in counts.items()
    )


def _is_own_code(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    if not file:
        return False
    installed = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return not any(Path(file).is_relative_to(place) for place in installed)


def _importable(module: Any) -> bool:
    """Whether another process would find the same file under this module's name."""
    try:
        spec = importlib.util.find_spec(module.__name__)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin == getattr(module, "__file__", None)
