"""Pieces of work in other processes, through joblib."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from pytest_dp.errors import MechanismError
from pytest_dp.sampling import hidden
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.pickling import cloudpickle
from pytest_dp.sampling.pieces import Done, Input, Piece, run

Task = tuple[Input, list[Piece]]

GRACE = 5.0
"""Seconds that a worker gets, beyond the deadline, to notice it by itself."""


def pack(call: Call) -> bytes:
    """Pickle a mechanism, by value if possible: patched module variables then travel with it.

    Raises
    ------
    Exception
        Whatever pickling raised, if it cannot be pickled by value nor by reference.
    """
    module = sys.modules.get(getattr(call.mechanism, "__module__", None) or "")
    if module is not None and module.__name__ != "__main__" and _is_own_code(module):
        cloudpickle.register_pickle_by_value(module)
        try:
            return bytes(cloudpickle.dumps(call))
        except Exception:  # most often a module variable that cannot travel
            if not _importable(module):
                raise
        finally:
            cloudpickle.unregister_pickle_by_value(module)
    return bytes(cloudpickle.dumps(call))


def share_out(
    packed: bytes, tasks: list[Task], seed: int, copies: bool, n_jobs: int, deadline: Deadline
) -> list[list[Done]]:
    """Run tasks in `n_jobs` processes; results in the order of the tasks.

    Raises
    ------
    OutOfTime
        If the deadline passed first. No worker is left running.
    MechanismError
        If a worker died.
    """
    remaining = deadline.remaining()
    parallel = joblib.Parallel(n_jobs=n_jobs, timeout=max(remaining, 0.1) + GRACE)
    try:
        return list(
            parallel(
                joblib.delayed(_work)(packed, given, pieces, seed, copies, remaining)
                for given, pieces in tasks
            )
        )
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


_LOADED: dict[bytes, tuple[Call, hidden.Hidden]] = {}
"""In a worker: mechanisms it has unpacked, by digest, so that each is unpacked once."""


def _work(
    packed: bytes, given: Input, pieces: list[Piece], seed: int, copies: bool, seconds: float
) -> list[Done]:
    digest = hashlib.sha256(packed).digest()
    if digest not in _LOADED:
        _LOADED.clear()
        call = cloudpickle.loads(packed)
        _LOADED[digest] = call, hidden.find(call.mechanism, call.params)
    call, generators = _LOADED[digest]
    done: list[Done] = []
    deadline = Deadline(seconds)
    runs, spent = 0, 0.0
    for piece in pieces:
        if deadline.remaining() <= 0:
            raise OutOfTime
        with interruptible(deadline, spent / runs if runs else None):
            done.append(run(call, given, piece, seed, generators, copies))
        runs, spent = runs + piece.count, spent + done[-1].seconds
    return done


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
