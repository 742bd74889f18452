"""Deadlines that also interrupt a mechanism that never returns, or a long computation.

Nothing is raised in code that runs only because Python collects garbage: it is no part of a
mechanism's way through its own lines, and Python prints and drops what it raises.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _weakrefset
import gc
import itertools
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from pytest_dp import clocks
from pytest_dp.limits import HUNG_SECONDS
from pytest_dp.sampling.calling import Call

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


T = TypeVar("T")

_HOUSE = str(Path(__file__).parent.parent) + os.sep


class OutOfTime(Exception):  # noqa: N818  a way out, not an error
    """The deadline has passed; `stack` shows where the mechanism was if it hung."""

    def __init__(self, stack: str = "") -> None:
        super().__init__(stack)
        self.stack = stack


class _TimeUp(BaseException):
    """Raised by the alarm; not an `Exception`, so that mechanisms do not swallow it."""

    def __init__(self, frame: FrameType | None, *, collecting: bool) -> None:
        super().__init__()
        self.inside = self.computing = False
        self.delicate = collecting
        self.in_draw = 0
        self.frames = frames = list[FrameType]()
        self.foreign: FrameType | None = None
        importing = in_house = False
        while frame is not None:
            in_house = in_house or _of_ours(frame)
            if not in_house:
                self.foreign = frame
            if frame.f_code in _DRAWS:
                self.inside = True
                if frame.f_code is Call._collect.__code__:  # noqa: SLF001  others read the last
                    self.in_draw = len(frame.f_locals.get("outputs") or ())
                break
            if frame.f_code is _compute.__code__:
                self.inside = self.computing = True
                break
            self.delicate |= called_by_collector(frame)
            importing |= frame.f_code.co_filename == "<frozen importlib._bootstrap>"
            frames.append(frame)
            frame = frame.f_back
        if not in_house:  # nothing that we have called
            self.foreign = None
        # Python would print what is raised while it collects garbage, and go on; half an import is
        # worth less than none, but a mechanism may hang in one.
        self.delicate |= importing and self.computing

    @property
    def stack(self) -> str:
        """Where somebody else's code was, with those who had called it inside of a run."""
        theirs = [frame for frame in self.frames if not _of_ours(frame)]
        if not self.inside and self.foreign is not None:
            theirs = theirs[: theirs.index(self.foreign) + 1]
        lines = (traceback.format_stack(frame, 1) for frame in reversed(theirs))
        return "".join(itertools.chain.from_iterable(lines)).rstrip()


def _of_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HOUSE)


def _compute(compute: Callable[[], T]) -> T:
    return compute()


_DRAWS = {
    function.__code__
    for function in (Call.draw, Call._collect, Call._draw_vectorized)  # noqa: SLF001
}
"""What runs mechanisms, and reads what they return."""
_INTERRUPTED = {*_DRAWS, _compute.__code__}


class Deadline:
    """A point in time after which no more work is begun, and one at which it is interrupted.

    It is `seconds` from now, and a run that is under way is interrupted `last` seconds from now,
    which is the same by default. `allowed` is what the work was given in all, if it started
    earlier.
    """

    def __init__(
        self, seconds: float, last: float | None = None, allowed: float | None = None
    ) -> None:
        now = clocks.seconds()
        self.allowed = seconds if allowed is None else allowed
        self.at = now + seconds
        self.last = self.at if last is None else now + last

    def remaining(self) -> float:
        """Seconds left to begin work; negative once the deadline has passed."""
        return self.at - clocks.seconds()

    def to_the_last(self) -> float:
        """Seconds until whatever still runs is interrupted."""
        return self.last - clocks.seconds()

    def sooner(self, share: float) -> Deadline:
        """After `share` of this time no more work is begun; what is under way may go on."""
        left = share * self.allowed - (self.allowed - self.to_the_last())
        return Deadline(left, self.to_the_last(), self.allowed)


@contextmanager
def interruptible(deadline: Deadline, seconds_a_run: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the middle of a mechanism's run once the deadline has passed.

    Works in the main thread where the system has interval timers and nobody else uses them;
    elsewhere the deadline is only seen between runs. The exception carries the mechanism's stack
    if the run that was interrupted looks hung, not just slow.
    """
    if not _alarm_is_free():
        yield
        return
    with _alarm(deadline, in_runs=True):
        entered, on_interrupt = clocks.seconds(), _signal.getsignal(signal.SIGINT)
        try:
            yield
        except _TimeUp as up:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if on_interrupt is not None:  # as asyncio.run would have, given time; by C, as Python
                _signal.signal(signal.SIGINT, on_interrupt)  # writes down what the old one holds
            is_hung = not up.computing and _is_hung(up, entered, deadline, seconds_a_run)
            raise OutOfTime(up.stack if is_hung else "") from None


@contextmanager
def watched(deadline: Deadline) -> Iterator[None]:
    """Raise `OutOfTime` where code of somebody else hangs, wherever we have called it.

    Such as a `__repr__` of what a mechanism returned, or a module that is imported. One call is
    interrupted that began before the deadline, and so long ago that it hangs; what takes its time
    is bounded where it is done. Works where `interruptible` does, which can be used in it.
    """
    if not _alarm_is_free():
        yield
        return
    with _alarm(deadline, in_runs=False):
        try:
            yield
        except _TimeUp as up:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise OutOfTime(up.stack) from None


@contextmanager
def _alarm(deadline: Deadline, *, in_runs: bool) -> Iterator[None]:
    """An alarm that raises `_TimeUp` in what it interrupts; one of ours from before rings on after.

    That is what hangs beyond the deadline, and any run or computation if it is for those. It rings
    again, should the mechanism swallow everything that is raised in it.
    """
    rings, watch = 0, _Watch(deadline)
    seconds, again = deadline.to_the_last(), 1.0
    if not in_runs:  # early, to see since when a call goes on
        seconds, again = seconds - 1.5 * watch.long, max(0.2 * watch.long, 0.02)

    def ring(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal rings
        up = _TimeUp(frame, collecting=collecting())
        in_one = in_runs and up.inside
        if not in_one and not watch.hangs(up):  # between runs the deadline is seen anyway
            return
        if up.delicate:
            signal.setitimer(signal.ITIMER_REAL, 0.01, again)
            return
        rings += 1
        if rings > 1 and in_one:
            _raise_again(up, frame)
        raise up

    tracer, entered = sys.gettrace(), clocks.seconds()
    with watched_collections() as collecting:
        earlier = signal.signal(signal.SIGALRM, ring)
        left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), again)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, earlier)
            if left:
                left -= clocks.seconds() - entered
                signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), interval)
            if rings > 1:
                sys.settrace(tracer)


class _Watch:
    """Whether one call of somebody else's code has gone on for long, beyond the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.long = min(HUNG_SECONDS, 0.3 * deadline.allowed)
        self.since = 0.0
        self.called: FrameType | None = None

    def hangs(self, up: _TimeUp) -> bool:
        now = clocks.seconds()
        if up.foreign is None or up.foreign is not self.called:
            self.since, self.called = now, up.foreign
        return now - self.since > self.long and self.deadline.to_the_last() < 0


def _is_hung(up: _TimeUp, entered: float, deadline: Deadline, seconds_a_run: float | None) -> bool:
    """Whether the run that was interrupted is not just slow.

    That is: it took seconds, and many times what runs usually take.
    """
    usual = seconds_a_run or 0.0
    stuck = clocks.seconds() - entered - up.in_draw * usual
    long = max(min(HUNG_SECONDS, 0.3 * deadline.allowed), 50 * usual)
    return stuck > long and (usual > 0 or not up.in_draw)


def within(seconds: float, compute: Callable[[], T]) -> T:
    """The outcome of a computation, which is interrupted after so many seconds if possible.

    It should change nothing that is used afterwards, or all at once and at its end. Raises
    OutOfTime if it takes longer, or if there was no time to begin with.
    """
    if seconds <= 0:
        raise OutOfTime
    with interruptible(Deadline(seconds), None):
        return _compute(compute)


def _raise_again(up: _TimeUp, frame: FrameType | None) -> None:
    """Raise once more on the next line: in a handler that swallows everything, that gets out."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        if event == "line":
            raise up
        return trace

    while frame is not None and frame.f_code not in _INTERRUPTED:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(lambda *_: None)  # in frames that are there already, nowhere else


def _alarm_is_free() -> bool:
    """Whether nobody else uses it; alarms of ours may stand in each other."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and (
            getattr(signal.getsignal(signal.SIGALRM), "__module__", "") == __name__
            or (
                signal.getitimer(signal.ITIMER_REAL)[0] == 0
                # None: C's own
                and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
            )
        )
    )
