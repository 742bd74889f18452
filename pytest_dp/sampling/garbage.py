"""Whether code runs only because Python collects garbage: not when, nor because, anybody called it.

Such code is no part of a mechanism's way through its own lines, and Python prints and drops what it
raises.
"""

from __future__ import annotations

import _weakrefset
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType

FILES = {
    function.__code__.co_filename
    for function in (weakref.finalize.__call__, _weakrefset.WeakSet.add)
}
"""Where the standard library's callbacks of weak references are written."""


@contextmanager
def watched_collections() -> Iterator[Callable[[], bool]]:
    """A function that says whether garbage is being collected in this thread.

    It counts the finalizers of what is collected, and the callbacks of others, such as Dask's,
    which measures how long a collection takes.
    """
    thread, under_way = threading.get_ident(), False

    def begun(phase: str, _: dict[str, int]) -> None:
        nonlocal under_way
        under_way |= phase == "start" and threading.get_ident() == thread

    def ended(phase: str, _: dict[str, int]) -> None:
        nonlocal under_way
        under_way &= phase != "stop" or threading.get_ident() != thread

    gc.callbacks.insert(0, begun)
    gc.callbacks.append(ended)
    try:
        yield lambda: under_way
    finally:
        for callback in (begun, ended):
            with suppress(ValueError):  # somebody has cleared the list
                gc.callbacks.remove(callback)


def called_by_collector(frame: FrameType) -> bool:
    """Whether a frame is a finalizer, or a callback of the collector or of weak references."""
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
