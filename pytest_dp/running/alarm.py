"""An alarm that interrupts a mechanism's run, a computation, or a whole audit.

Nothing is raised in finalizers of objects, or below callbacks of ctypes and cffi: Python would
print the exception and drop it. The alarm waits until such code has returned. Native code that uses
Python's own interface, such as `sorted` or NumPy, passes exceptions on. The interrupted run is
given up, even if the exception is swallowed.
"""

from __future__ import annotations

import gc
import itertools
import math
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, TypeVar

from pytest_dp.basics import clocks
from pytest_dp.basics.whose_code import OURS
from pytest_dp.running.calling import Call

HUNG_SECONDS = 5.0
"""Seconds after which a run counts as hung. More: hangs are found later."""
AGAIN_SECONDS = 1.0
"""Seconds until an alarm rings again. Fewer interrupt code that cleans up more often."""
RETRY_SECONDS = 0.01
"""Seconds until an alarm rings again that could not raise. More wait longer, fewer load the run."""
LOOK_TIMES = 4.0
"""Durations of a look at frames until the alarm rings again. Fewer keep code from going on."""
MIN_SECONDS = 1e-3
"""Seconds until an alarm rings whose time has passed; 0 would switch it off."""
MAX_WRAPPERS = 4
"""Levels of objects around a callback, such as a cache around a partial. More take longer."""
T = TypeVar("T")

_FINALIZING = {
    function.__code__.co_filename for function in (weakref.finalize.__call__, weakref.WeakSet.add)
}
"""Where the standard library's callbacks of weak references are written."""


class TimeUp(BaseException):
    """Raised by the alarm; not an `Exception`, so that mechanisms do not swallow it.

    `frames` are those of other code than ours, the innermost first. `is_delicate` says that nothing
    may be raised there now; `waited`, that it waited for native code; `computing` and `auditing`,
    that no run was interrupted, but a computation or a whole audit. `runs_done` are the runs of the
    same call that had ended, and `watch` has the call's effort.
    """

    def __init__(self, frame: FrameType | None) -> None:
        super().__init__()
        self.waited = self.is_delicate = importing = False
        self.runs_done, self.watch = 0, clocks.Stopwatch()
        self.frames = frames = list[FrameType]()
        self.caller: FrameType | None = None
        """The frame of ours that has begun the run, the computation or the audit."""
        while frame is not None:
            if frame.f_code in _CALLERS:
                self.caller = frame
                break
            self.is_delicate |= _finalizes(frame)
            importing |= frame.f_code.co_filename == "<frozen importlib._bootstrap>"
            frames.append(frame)
            frame = frame.f_back
        code = None if frame is None else frame.f_code
        if frame is not None and code is Call._collect.__code__:  # noqa: SLF001  others read the last
            self.runs_done = len(frame.f_locals.get("outputs") or ())
        if frame is not None and isinstance(frame.f_locals.get("self"), Call):
            self.watch = frame.f_locals["self"].made.watch
        self.computing = code is compute_interruptibly.__code__
        self.auditing = code is audit_interruptibly.__code__
        # Half an import is worth less than none, but a mechanism may hang in one.
        self.is_delicate |= importing and self.computing

    def safe_frames(self) -> Sequence[FrameType]:
        """Return the frames in which the alarm may raise: outside of all native callbacks."""
        safe = above_native_code(self.frames)
        return safe if self.caller is None else [*safe, self.caller]

    @property
    def stack(self) -> str:
        """The interrupted lines outside of this package, as in a traceback; may be empty."""
        theirs = [frame for frame in self.frames if not frame.f_code.co_filename.startswith(OURS)]
        lines = (traceback.format_stack(frame, 1) for frame in reversed(theirs))
        return "".join(itertools.chain.from_iterable(lines)).rstrip()


def _finalizes(frame: FrameType) -> bool:
    """Return whether a frame is a finalizer of an object or weak reference, or the collector's."""
    if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _FINALIZING:
        return True
    return any(frame.f_code is getattr(each, "__code__", None) for each in gc.callbacks)


def compute_interruptibly(compute: Callable[[], T]) -> T:
    """Run a computation and return its value; an alarm may raise `TimeUp` in it."""
    return compute()


def audit_interruptibly(audit: Callable[[], T]) -> T:
    """Run a whole audit and return its value; an alarm of audits may raise `TimeUp` in it."""
    return audit()


_CALLERS = {
    function.__code__
    for function in (
        *(Call.draw, Call._collect, Call._draw_vectorized),  # noqa: SLF001
        compute_interruptibly,
        audit_interruptibly,
    )
}
"""Functions in whose frames an alarm may raise: they run mechanisms, computations and audits."""


def above_native_code(frames: Sequence[FrameType]) -> Sequence[FrameType]:
    """Return the frames that called the outermost native callback; all frames if there is none.

    `frames` begins with the innermost. A function that is a callback counts as called by native
    code, even where Python has called it.
    """
    codes = callback_codes()
    inside = [at for at, frame in enumerate(frames) if frame.f_code in codes]
    return frames[inside[-1] + 1 :] if inside else frames


def callback_codes() -> set[CodeType]:
    """Return the code of all functions that callbacks of ctypes and cffi may enter first."""
    return {
        code for callback in _callback_objects() for code in _entry_codes(callback, MAX_WRAPPERS)
    }


def _callback_objects() -> Iterator[Any]:
    """Yield the objects that callbacks of ctypes and cffi refer to, if these are loaded."""
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
    """Yield the code that a call of an object may enter first, inside of `levels` wrappers."""
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


class _OtherAlarm:
    """The alarm that other code has set, which rings in time while ours is set."""

    def __init__(self) -> None:
        self.handler: Any = signal.getsignal(signal.SIGALRM)
        left, self.interval = signal.getitimer(signal.ITIMER_REAL)
        self.at = clocks.seconds() + left if left else math.inf

    def ring(self, signum: int, frame: FrameType | None) -> None:
        """Call the handler of the other alarm if its time has come; the handler may raise."""
        now = clocks.seconds()
        if now < self.at:
            return
        self.at = now + self.interval if self.interval else math.inf
        self.handler(signum, frame)

    def seconds_left(self) -> float:
        """Return the seconds until the other alarm rings; infinite if it never does."""
        return max(self.at - clocks.seconds(), MIN_SECONDS)


class Alarm:
    """An alarm that raises `TimeUp` in a run or a computation once `seconds_left()` is 0 or less.

    It rings again, should the mechanism swallow the exception. `raised` are the exceptions so far.
    An alarm `of_audit` interrupts a whole audit, too.
    """

    def __init__(self, seconds_left: Callable[[], float], *, of_audit: bool = False) -> None:
        self.raised = list[TimeUp]()
        self._seconds_left, self._of_audit = seconds_left, of_audit
        self._at, self._is_traced, self._is_ringing = 0.0, False, False
        earlier = getattr(signal.getsignal(signal.SIGALRM), "__self__", None)
        self._outer = earlier if isinstance(earlier, Alarm) else None
        self._theirs: _OtherAlarm = self._outer._theirs if self._outer else _OtherAlarm()  # noqa: SLF001

    @contextmanager
    def set(self) -> Iterator[list[TimeUp]]:
        """Set the alarm in the block, and yield its exceptions; restore an earlier alarm."""
        tracer = sys.gettrace()
        earlier = signal.signal(signal.SIGALRM, self._ring)
        self._next(self._seconds_left())
        try:
            yield self.raised
        finally:
            self.stop()
            signal.signal(signal.SIGALRM, earlier)
            if self._outer is not None:
                self._outer._next(self._outer._at - clocks.seconds())  # noqa: SLF001
            elif self._theirs.at < math.inf:
                left = self._theirs.seconds_left()
                signal.setitimer(signal.ITIMER_REAL, left, self._theirs.interval)
            if self._is_traced:
                sys.settrace(tracer)

    @staticmethod
    def stop() -> None:
        """Switch the timer of this process off: no alarm rings any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _next(self, seconds: float) -> None:
        """Set the timer to some `seconds`, or to fewer if the alarm of other code rings earlier."""
        self._at = clocks.seconds() + seconds
        left = max(min(seconds, self._theirs.seconds_left()), MIN_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, left if left < math.inf else 0)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        """Interrupt if due; only set the timer if another signal is being handled."""
        if self._is_ringing:
            self._next(AGAIN_SECONDS)
            return
        self._is_ringing = True
        try:
            self._interrupt_if_due(signum, frame)
        finally:
            self._is_ringing = False

    def _interrupt_if_due(self, signum: int, frame: FrameType | None) -> None:
        """Raise `TimeUp` if no time is left and the frame is safe; else set the timer again.

        Below native code, it is raised once that has returned. A signal in other code than runs is
        passed to the alarm that was set before. Errors of the handler of another alarm are passed
        on.
        """
        started = clocks.seconds()
        self._next(AGAIN_SECONDS)
        self._theirs.ring(signum, frame)
        if (left := self._seconds_left()) > 0:
            self._next(left)
            return
        up = TimeUp(frame)
        if up.caller is None or (up.auditing and not self._of_audit):
            if self._outer is not None:  # the deadline is seen between runs, but not what hangs
                self._outer._ring(signum, frame)  # noqa: SLF001
                self._next(AGAIN_SECONDS)
            return
        if up.is_delicate:
            self._next(RETRY_SECONDS)
            return
        safe = up.safe_frames()
        if frame not in safe:  # native code is to return first
            up.waited = True
            self._raise_on_next_line(up, safe)
            self._next(max(RETRY_SECONDS, LOOK_TIMES * (clocks.seconds() - started)))
            return
        if self.raised:
            self._raise_on_next_line(up, safe)
        self.raised.append(up)
        raise up

    def _raise_on_next_line(self, up: TimeUp, frames: Sequence[FrameType]) -> None:
        """Trace `frames`, so that `up` is raised once one of them goes on with another line."""

        def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
            if event == "line":
                self.raised.append(up)
                raise up
            return trace

        self._is_traced = True
        for frame in frames:
            frame.f_trace = trace
        sys.settrace(lambda *_: None)  # in frames that are there already, nowhere else


def is_free() -> bool:
    """Return whether an alarm can be set: in the main thread, where the system has interval timers.

    False also if the handler of the signal is not Python's, or if a timer runs without a handler.
    """
    if not hasattr(signal, "setitimer"):
        return False
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGALRM)
    if handler in (signal.SIG_DFL, signal.SIG_IGN):
        return signal.getitimer(signal.ITIMER_REAL)[0] == 0  # it would end this process
    return handler is not None  # None: C's own
