"""Worker processes: started through joblib, kept from one audit to the next, and ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import joblib
from joblib.externals.loky import reusable_executor

STARTING: list[tuple[joblib.Parallel, Iterator[None]]] = []
"""Processes that are starting up: joblib would kill them if what comes back were dropped."""
_KEPT: list[tuple[Any, int, joblib.Parallel]] = []
"""At most one pool of processes that joblib would otherwise start for every call."""


def parallel(n_jobs: int) -> joblib.Parallel:
    """The processes of the backend in use: results come one by one where it knows how to."""
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


def start(n_jobs: int, ready: Callable[[], None]) -> None:
    """Start so many processes, which meanwhile load what a function of another module needs."""
    if not STARTING:
        job = joblib.delayed(ready)
        with contextlib.suppress(OSError):  # said where they are needed
            pool = parallel(n_jobs)
            if pool.return_generator:
                STARTING.append((pool, called(pool, (job() for _ in range(n_jobs)))))


_OURS: list[Any] = []
"""The executor that joblib has started for us; in that of others, users have work."""


def called(pool: joblib.Parallel, work: Iterator[Any]) -> Any:
    """What joblib returns, with its executor as ours if there was none before."""
    before = reusable_executor._executor  # noqa: SLF001  asking for one would start one
    results = pool(work)
    if before is not reusable_executor._executor:  # noqa: SLF001
        _OURS[:] = [reusable_executor._executor]  # noqa: SLF001
    return results


def stop() -> None:
    """End the worker processes that were started here, if there are any."""
    _close()
    executor = reusable_executor._executor  # noqa: SLF001
    if executor is not None and executor in _OURS:
        with contextlib.suppress(Exception):
            executor.shutdown(wait=True, kill_workers=True)
