"""Python functions that native code calls: an exception that is raised in one goes nowhere.

Python prints what a callback of ctypes or cffi raises, drops it, and the native code goes on with
a null result, which it may follow. Native code that uses Python's own interface, such as `sorted`
or NumPy, passes exceptions on.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

MAX_WRAPPERS = 4
"""Levels of objects around a callback, such as a cache around a partial around a function.

With fewer, the function inside of such objects is not found; more take longer to walk.
"""


def above_native_code(frames: Sequence[FrameType]) -> Sequence[FrameType]:
    """Return the frames, which begin with the innermost, that are above all native callbacks.

    They are all of the frames where no native code is below. A function that is a callback counts
    as called by native code, even where Python has called it.
    """
    codes = callback_codes()
    inside = [at for at, frame in enumerate(frames) if frame.f_code in codes]
    return frames[inside[-1] + 1 :] if inside else frames


def callback_codes() -> set[CodeType]:
    """Return the code of all functions that ctypes and cffi have made callbacks of."""
    return {code for callback in _callbacks() for code in _entry_codes(callback, MAX_WRAPPERS)}


def _callbacks() -> Iterator[Any]:
    """Yield what callbacks call.

    The collector knows all callbacks: one that it does not know would have been freed.
    """
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    pointer = ctypes.PYFUNCTYPE(None).__base__ if ctypes else None
    described = cffi.CType if cffi else None
    if pointer is None and described is None:
        return
    for held in gc.get_objects():
        kind = type(held)
        if pointer is not None and issubclass(kind, pointer):
            yield from (of for of in gc.get_referents(held) if of is not kind)
        elif kind is tuple and len(held) == 4 and type(held[0]) is described:  # what cffi keeps
            yield from (held[1], held[3])


def _entry_codes(called: Any, levels: int) -> Iterator[CodeType]:
    """Yield the code that calling an object may enter first."""
    if type(called) is FunctionType:
        yield called.__code__
    elif type(called) in (MethodType, staticmethod, classmethod):
        yield from _entry_codes(called.__func__, levels)
    elif isinstance(called, type):
        for made in ("__new__", "__init__"):
            yield from _entry_codes(
                next(vars(of)[made] for of in called.__mro__ if made in vars(of)), 0
            )
    elif levels and callable(called):
        method = getattr(type(called), "__call__", None)  # noqa: B004
        if type(method) is FunctionType:
            yield method.__code__
        for part in gc.get_referents(called):
            if not isinstance(part, type):
                yield from _entry_codes(part, levels - 1)
