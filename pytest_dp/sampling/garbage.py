"""Code that runs only because Python collects garbage: what is raised in it goes nowhere."""

from __future__ import annotations

import _weakrefset
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import CodeType, FrameType
from typing import Any

FILES = {
    function.__code__.co_filename
    for function in (weakref.finalize.__call__, _weakrefset.WeakSet.add)
}
"""Where the standard library's callbacks of weak references are written."""


@contextmanager
def watched_collections() -> Iterator[Callable[[], bool]]:
    """A function that says whether garbage is being collected in this thread.

    It counts the finalizers of what is collected, and the callbacks of others, such as Dask's,
    which measures how long a collection takes. Our own callbacks are all C's: where they were
    Python's, a Ctrl-C in the middle of a collection would be raised in one of them, and dropped.
    """
    here = threading.local()
    first, last = dict[str, Any](), dict[str, Any]()  # the phase that was told last is at the end
    begun: list[Any] = [partial(setattr, here), first.pop, first.__setitem__]
    ended: list[Any] = [last.pop, last.__setitem__]

    def under_way() -> bool:
        told = [item for phases in (first, last) for item in list(phases.items())[-1:]]
        mine = getattr(here, "start", None)
        return any(phase == "start" and collection is mine for phase, collection in told)

    gc.callbacks[:0], gc.callbacks[len(gc.callbacks) :] = begun, ended
    try:
        yield under_way
    finally:
        for callback in (*begun, *ended):
            with suppress(ValueError):  # somebody has cleared the list
                gc.callbacks.remove(callback)


def called_by_collector(frame: FrameType) -> bool:
    """Return whether a frame is a finalizer, or a callback of the collector or a weak reference."""
    code = frame.f_code
    return (
        code.co_name == "__del__"
        or code.co_filename in FILES
        or any(code is _code_of(callback) for callback in gc.callbacks)
    )


def _code_of(callback: object) -> CodeType | None:
    """The code that calling it runs, if it is written in Python."""
    for attribute in ("__func__", "func"):  # of a method, and of a partial
        callback = getattr(callback, attribute, callback)
    function = callback if hasattr(callback, "__code__") else type(callback).__call__
    return getattr(function, "__code__", None)
