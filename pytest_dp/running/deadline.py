"""Deadlines that also interrupt a mechanism that never returns, or a long computation.

Where alarms can be set (see `alarm`); elsewhere a deadline is only seen between runs.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import faulthandler
import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import MechanismError
from pytest_dp.running.alarm import (
    HUNG_SECONDS,
    Alarm,
    TimeUp,
    audit_interruptibly,
    compute_interruptibly,
    is_free,
)

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_SECONDS = 60.0
"""Seconds of functions whose user gives none: the default of audits."""
TIMES_IN_ALL = 2.0
"""How many times `max_seconds` all that an audit or an estimate does may take: pairs, what is known
without samples, runs, and what is shown. With fewer, slow mechanisms look as if they hung."""
SECONDS_IN_ALL = 60.0
"""Seconds beside: to start other processes, and to explain a violation. With fewer, short audits of
slow mechanisms look as if they hung; more keep a build waiting."""
PATIENCE_SECONDS = 10.0
"""Seconds beyond, in which native code may return before its process is ended. Fewer end processes
in the middle of a long native call that returns; more keep a build waiting."""


class OutOfTime(Exception):  # noqa: N818  a way out, not an error
    """The deadline has passed; `stack` shows where the mechanism was if it hung."""

    def __init__(self, stack: str = "") -> None:
        super().__init__(stack)
        self.stack = stack


class Deadline:
    """An effort after which no more work is begun, and one at which it is interrupted.

    It is `seconds` from when the stopwatch was started, which is now by default, and a run that is
    under way is interrupted `last` seconds from then, which is the same by default. `allowed` is
    what the work was given in all, if it started earlier.
    """

    def __init__(
        self,
        seconds: float,
        last: float | None = None,
        allowed: float | None = None,
        watch: clocks.Stopwatch | None = None,
    ) -> None:
        self._watch = clocks.Stopwatch() if watch is None else watch
        self.allowed = seconds if allowed is None else allowed
        self._at, self._last = seconds, seconds if last is None else last

    def spent(self) -> float:
        """Return the seconds of effort since the stopwatch was started."""
        return self._watch.spent()

    def remaining(self) -> float:
        """Return the seconds left to begin work; negative once the deadline has passed."""
        return self._at - self.spent()

    def to_the_last(self) -> float:
        """Return the seconds until whatever still runs is interrupted."""
        return self._last - self.spent()

    def left(self) -> tuple[float, float, float]:
        """Return what another process, which has clocks of its own, makes this deadline of."""
        return self.remaining(), self.to_the_last(), self.allowed

    def sooner(self, share: float) -> Deadline:
        """Return a deadline that begins no work after `share` of this time, but lets it end."""
        at = self._last - (1 - share) * self.allowed if self.allowed < math.inf else math.inf
        return Deadline(at, self._last, self.allowed, self._watch)


@contextmanager
def interruptible(deadline: Deadline, seconds_a_run: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the middle of a mechanism's run once the deadline has passed.

    Works in the main thread where the system has interval timers and nobody else uses them;
    elsewhere the deadline is only seen between runs. The exception carries the mechanism's stack
    if the run that was interrupted looks hung, not just slow.
    """
    if not is_free():
        yield
        return
    with Alarm(deadline.to_the_last).set() as raised:
        on_interrupt = _signal.getsignal(signal.SIGINT)
        try:
            yield
        except TimeUp:
            if not raised:  # by an alarm of the whole audit
                raise
        except Exception:  # native code has made another exception of it
            if not raised:
                raise
        if raised:
            Alarm.stop()
            if on_interrupt is not None:  # as asyncio.run would have, given time; by C, as Python
                _signal.signal(signal.SIGINT, on_interrupt)  # writes down what the old one holds
            up = raised[0]
            is_hung = not (up.computing or up.waited) and _is_hung(up, deadline, seconds_a_run)
            raise OutOfTime(up.stack if is_hung else "") from None


stderr: int | None = None
"""Where to write what a person has to know, if not where this process writes errors now."""


@contextmanager
def writing_to(file: int | None) -> Iterator[None]:
    """Let what is written where native code never returns go to this open file.

    Its number is forgotten afterwards: once the file is closed, the number may be that of another.
    """
    global stderr
    before, stderr = stderr, file
    try:
        yield
    finally:
        stderr = before


_watched: list[str] = []
"""What is watched in this process, so that what it calls is not watched again."""


def end_if_hung(name: str, max_seconds: float, audit: Callable[[], T]) -> T:
    """Return what an audit returns, or an estimate; end it where something hangs in it.

    Python code is interrupted, wherever it was called; MechanismError says where it was. Native
    code that never returns to Python cannot be: its process is ended, once the stack is written.
    Works where `interruptible` does, which can be used in it.
    """
    if not is_free() or _watched or not 0 < max_seconds < math.inf:
        return audit()
    deadline = Deadline(TIMES_IN_ALL * max_seconds + SECONDS_IN_ALL)
    seconds = clocks.WALL_FACTOR * deadline.remaining() + PATIENCE_SECONDS
    _watched.append(name)
    faulthandler.dump_traceback_later(seconds, exit=True, file=stderr or sys.__stderr__ or 2)
    try:
        with Alarm(deadline.to_the_last, of_audit=True).set():
            return audit_interruptibly(audit)
    except TimeUp as up:
        Alarm.stop()
        raise MechanismError(
            f"{name} hangs: it did not end within {TIMES_IN_ALL:g} times max_seconds="
            f"{max_seconds:g} and {SECONDS_IN_ALL:g} s. It was here:\n{up.stack}"
        ) from None
    finally:
        faulthandler.cancel_dump_traceback_later()
        _watched.clear()


def ended_if_hung(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function of a mechanism that is ended if it hangs; see `end_if_hung`.

    The limit is the keyword `max_seconds`.
    """

    @wraps(function)
    def watched(*args: P.args, **keywords: P.kwargs) -> T:
        seconds = keywords.get("max_seconds", DEFAULT_SECONDS)
        if not isinstance(seconds, int | float):
            return function(*args, **keywords)  # which refuses it, or has no limit
        mechanism = args[0] if args else keywords.get("mechanism")
        name = getattr(mechanism, "__qualname__", type(mechanism).__qualname__)
        return end_if_hung(name, seconds, lambda: function(*args, **keywords))

    return watched


def _is_hung(up: TimeUp, deadline: Deadline, seconds_a_run: float | None) -> bool:
    """Return whether the run that was interrupted hangs, rather than being slow.

    A run hangs if it took seconds, or a large share of the time that was allowed, and many times
    what runs usually take. Runs that had ended before in the same call are taken off.
    """
    usual = seconds_a_run or 0.0
    stuck = up.watch.spent() - up.runs_done * usual
    long = max(min(HUNG_SECONDS, 0.3 * deadline.allowed), 50 * usual)
    return stuck > long and (usual > 0 or not up.runs_done)


def within(seconds: float, compute: Callable[[], T]) -> T:
    """Return the outcome of a computation, which is interrupted after so many seconds if possible.

    It should change nothing that is used afterwards, or all at once and at its end. Raises
    OutOfTime if it takes longer, or if there was no time to begin with.
    """
    if seconds <= 0:
        raise OutOfTime
    with interruptible(Deadline(seconds), None):
        return compute_interruptibly(compute)
