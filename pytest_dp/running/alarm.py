"""An alarm that interrupts a mechanism's run, a computation, or what hangs somewhere else.

Nothing is raised in what finalizes an object, as Python prints and drops it there, nor below a
native callback (see `native`): the exception waits until Python has returned from
it. Whatever becomes of an exception once it is raised, the run that it has interrupted is given up.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from pytest_dp.basics import clocks
from pytest_dp.running.calling import Call
from pytest_dp.running.native import above_native_code
from pytest_dp.running.supervisor import current

HUNG_SECONDS = 5.0
"""Seconds for a run that stands still, or a worker beyond its deadline. More: hangs are found
later; fewer: slow runs count as hangs."""

RETRY_SECONDS = 0.01
"""Seconds until an alarm rings again that could not raise; more wait longer, less load the run."""
MIN_SECONDS = 1e-3
"""Seconds until an alarm rings whose time has passed; 0 would switch it off."""

T = TypeVar("T")

_HOUSE = str(Path(__file__).parent.parent) + os.sep


_FINALIZING = {
    function.__code__.co_filename for function in (weakref.finalize.__call__, weakref.WeakSet.add)
}
"""Where the standard library's callbacks of weak references are written."""
_WAITING = set[CodeType]()
"""The code of functions that wait for other processes."""


class TimeUp(BaseException):
    """Raised by the alarm; not an `Exception`, so that mechanisms do not swallow it."""

    def __init__(self, frame: FrameType | None) -> None:
        super().__init__()
        self.inside = self.computing = self.waited = self.delicate = False
        self.in_draw = 0
        self.frames = frames = list[FrameType]()
        self.caller: FrameType | None = None
        """The frame of ours that has begun the run or the computation."""
        self.foreign: FrameType | None = None
        importing = in_house = False
        while frame is not None:
            if not in_house and _of_ours(frame):
                in_house = True
                if frame.f_code in _WAITING:
                    self.foreign = None
            if not in_house:
                self.foreign = frame
            if frame.f_code in _DRAWS:
                self.inside, self.caller = True, frame
                if frame.f_code is Call._collect.__code__:  # noqa: SLF001  others read the last
                    self.in_draw = len(frame.f_locals.get("outputs") or ())
                break
            if frame.f_code is compute_interruptibly.__code__:
                self.inside = self.computing = True
                self.caller = frame
                break
            self.delicate |= _finalizes(frame)
            importing |= frame.f_code.co_filename == "<frozen importlib._bootstrap>"
            frames.append(frame)
            frame = frame.f_back
        if not in_house:  # nothing that we have called
            self.foreign = None
        # Half an import is worth less than none, but a mechanism may hang in one.
        self.delicate |= importing and self.computing

    def safe_frames(self) -> Sequence[FrameType]:
        """Return the frames in which it may be raised: those that are above native callbacks."""
        frames = self.frames
        if self.caller is None and self.foreign is not None:  # who has called us is not concerned
            frames = frames[: frames.index(self.foreign) + 1]
        safe = above_native_code(frames)
        return safe if self.caller is None else [*safe, self.caller]

    @property
    def stack(self) -> str:
        """Where somebody else's code was, with those who had called it inside of a run."""
        theirs = [frame for frame in self.frames if not _of_ours(frame)]
        if not self.inside and self.foreign is not None:
            theirs = theirs[: theirs.index(self.foreign) + 1]
        lines = (traceback.format_stack(frame, 1) for frame in reversed(theirs))
        return "".join(itertools.chain.from_iterable(lines)).rstrip()


Waits = TypeVar("Waits", bound=Callable[..., Any])


def waits_for_others(function: Waits) -> Waits:
    """Mark a function of ours that waits for other processes, and has a limit of its own.

    What it calls in order to wait does not hang.
    """
    _WAITING.add(function.__code__)
    return function


def _finalizes(frame: FrameType) -> bool:
    """Return whether a frame is a finalizer of an object, or of a weak reference to one."""
    return frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _FINALIZING


def _of_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HOUSE)


def compute_interruptibly(compute: Callable[[], T]) -> T:
    """Compute, where an alarm may interrupt."""
    return compute()


_DRAWS = {
    function.__code__
    for function in (Call.draw, Call._collect, Call._draw_vectorized)  # noqa: SLF001
}
"""What runs mechanisms, and reads what they return."""


class _Theirs:
    """The alarm that somebody else has set, which rings in time while ours is set."""

    def __init__(self) -> None:
        self.handler: Any = signal.getsignal(signal.SIGALRM)
        left, self.interval = signal.getitimer(signal.ITIMER_REAL)
        self.at = clocks.seconds() + left if left else math.inf

    def ring(self, signum: int, frame: FrameType | None) -> None:
        """Call the handler if it is time; it may raise."""
        now = clocks.seconds()
        if now < self.at:
            return
        self.at = now + self.interval if self.interval else math.inf
        self.handler(signum, frame)

    def left(self) -> float:
        """Return the seconds until it rings."""
        return max(self.at - clocks.seconds(), MIN_SECONDS)


class Alarm:
    """An alarm that raises `TimeUp` in what it interrupts, beginning when no time is `left`.

    That is what hangs beyond the deadline, and any run or computation if it is for those
    (`in_runs`). It rings again, should the mechanism swallow everything that is raised in it.
    `raised` is what it has raised so far.
    """

    def __init__(self, left: Callable[[], float], allowed: float, *, in_runs: bool) -> None:
        self.raised = list[TimeUp]()
        self._left, self._in_runs, self._watch = left, in_runs, _Watch(allowed)
        # What hangs is looked for earlier, to see since when a call goes on.
        self._early, self._again = 0.0, 1.0
        if not in_runs:
            self._early = 1.5 * self._watch.long
            self._again = max(0.2 * self._watch.long, 2 * RETRY_SECONDS)
        self._at, self._is_traced = 0.0, False
        earlier = getattr(signal.getsignal(signal.SIGALRM), "__self__", None)
        self._outer = earlier if isinstance(earlier, Alarm) else None
        self._theirs: _Theirs = self._outer._theirs if self._outer else _Theirs()  # noqa: SLF001

    @contextmanager
    def set(self) -> Iterator[list[TimeUp]]:
        """Ring in the block; an alarm from before rings on after it."""
        tracer = sys.gettrace()
        earlier = signal.signal(signal.SIGALRM, self._ring)
        self._next(self._left() - self._early)
        try:
            yield self.raised
        finally:
            self.stop()
            signal.signal(signal.SIGALRM, earlier)
            if self._outer is not None:
                self._outer._next(self._outer._at - clocks.seconds())  # noqa: SLF001
            elif self._theirs.at < math.inf:
                left = self._theirs.left()
                signal.setitimer(signal.ITIMER_REAL, left, self._theirs.interval)
            if self._is_traced:
                sys.settrace(tracer)

    @staticmethod
    def stop() -> None:
        """Ring no more."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _next(self, seconds: float) -> None:
        """Ring after so many seconds, or earlier if somebody else's alarm does."""
        self._at = clocks.seconds() + seconds
        left = max(min(seconds, self._theirs.left()), MIN_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, left if left < math.inf else 0)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        self._next(self._again)
        self._theirs.ring(signum, frame)
        early = self._left() - self._early
        if early > 0:
            self._next(early)
            return
        up = TimeUp(frame)
        supervisor = current()
        in_one = self._in_runs and up.inside
        is_over = in_one or self._watch.hangs(up, self._left())
        if is_over and up.delicate:
            self._next(RETRY_SECONDS)
            return
        safe = up.safe_frames() if is_over else ()
        if is_over and frame not in safe:
            self._wait_for_native_code(up, safe)
            return
        if supervisor is not None:
            supervisor.is_alive()
        if not is_over:  # between runs the deadline is seen anyway
            return
        if self.raised and in_one:
            self._raise_on_next_line(up, safe)
        self.raised.append(up)
        raise up

    def _wait_for_native_code(self, up: TimeUp, safe: Sequence[FrameType]) -> None:
        up.waited = True
        supervisor = current()
        if supervisor is not None:
            supervisor.is_below_native(up.stack)
        self._raise_on_next_line(up, safe)
        self._next(RETRY_SECONDS)

    def _raise_on_next_line(self, up: TimeUp, frames: Sequence[FrameType]) -> None:
        """Raise as soon as one of these frames goes on with another line.

        That gets out of a handler that swallows everything, and waits for native code to return.
        """

        def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
            if event == "line":
                self.raised.append(up)
                raise up
            return trace

        self._is_traced = True
        for frame in frames:
            frame.f_trace = trace
        sys.settrace(lambda *_: None)  # in frames that are there already, nowhere else


class _Watch:
    """A watch on one call of somebody else's code: notices that it runs far beyond the deadline."""

    def __init__(self, allowed: float) -> None:
        self.long = min(HUNG_SECONDS, 0.3 * allowed)
        self.since = 0.0
        self.called: FrameType | None = None

    def hangs(self, up: TimeUp, left: float) -> bool:
        """Return whether a call goes on for long, where so many seconds are left."""
        now = clocks.seconds()
        if up.foreign is None or up.foreign is not self.called:
            self.since, self.called = now, up.foreign
        return now - self.since > self.long and left < 0


def is_free() -> bool:
    """Return whether an alarm can be set here; one of somebody else has to be callable."""
    if not hasattr(signal, "setitimer"):
        return False
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGALRM)
    if handler in (signal.SIG_DFL, signal.SIG_IGN):
        return signal.getitimer(signal.ITIMER_REAL)[0] == 0  # it would end this process
    return handler is not None  # None: C's own
