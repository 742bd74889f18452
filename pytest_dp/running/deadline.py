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
"""How many times `max_seconds` a whole audit or estimate may take, with pairs, runs and the report.
With fewer, slow mechanisms look as if they hung."""
SECONDS_IN_ALL = 60.0
"""Seconds that a whole audit may take besides: to start processes, and to explain a violation. With
fewer, short audits of slow mechanisms look as if they hung; more keep a build waiting."""
PATIENCE_SECONDS = 10.0
"""Further seconds after which a process is ended whose native code does not return. Fewer end a
process during a long native call that returns; more keep a build waiting."""


class OutOfTime(Exception):  # noqa: N818  a way out, not an error
    """The deadline has passed; `stack` shows where the mechanism was if it hung."""

    def __init__(self, stack: str = "") -> None:
        super().__init__(stack)
        self.stack = stack


class Deadline:
    """When no more work is begun, and when runs are interrupted, in seconds of effort.

    No work is begun `seconds` after the stopwatch was started, which is now by default. A run that
    is under way is interrupted `last` seconds after that start, by default the same. `allowed` are
    the seconds that the work was given in all, if it started earlier.
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

    def seconds_to_interrupt(self) -> float:
        """Return the seconds until whatever still runs is interrupted."""
        return self._last - self.spent()

    def remaining_times(self) -> tuple[float, float, float]:
        """Return the arguments that make this deadline in another process, with its own clocks."""
        return self.remaining(), self.seconds_to_interrupt(), self.allowed

    def with_reserve(self, share: float) -> Deadline:
        """Return a deadline that begins no work after a `share` of this time, but lets work end."""
        at = self._last - (1 - share) * self.allowed if self.allowed < math.inf else math.inf
        return Deadline(at, self._last, self.allowed, self._watch)


@contextmanager
def interruptible(deadline: Deadline, seconds_a_run: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the middle of a mechanism's run once the deadline has passed.

    It does so in the main thread, where the system has interval timers; elsewhere, runs are not
    interrupted. The exception has the mechanism's stack if the run looks hung, not just slow:
    `seconds_a_run` are what a run takes usually, None if that is unknown.
    """
    if not is_free():
        yield
        return
    with Alarm(deadline.seconds_to_interrupt).set() as raised:
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
"""The open file to which the stack of a hanging process is written; None: the stderr of Python."""


@contextmanager
def writing_to(file: int | None) -> Iterator[None]:
    """Write the stack of a process whose native code never returns to this open file, in the block.

    The number of the file is forgotten afterwards, as another file may get it.
    """
    global stderr
    before, stderr = stderr, file
    try:
        yield
    finally:
        stderr = before


_watched: list[str] = []
"""Names of the audits that are watched in this process: inner ones are not watched again."""


def end_if_hung(name: str, max_seconds: float, audit: Callable[[], T]) -> T:
    """Run an audit or an estimate and return its value; interrupt it if it hangs.

    Raises MechanismError, with the line, where Python code hangs. Native code that never returns
    to Python cannot be interrupted: the stack is written, and the process is ended. Without alarms
    (see `interruptible`), or with no limit, the audit is just run.
    """
    if not is_free() or _watched or not 0 < max_seconds < math.inf:
        return audit()
    deadline = Deadline(TIMES_IN_ALL * max_seconds + SECONDS_IN_ALL)
    seconds = clocks.WALL_FACTOR * deadline.remaining() + PATIENCE_SECONDS
    _watched.append(name)
    faulthandler.dump_traceback_later(seconds, exit=True, file=stderr or sys.__stderr__ or 2)
    try:
        with Alarm(deadline.seconds_to_interrupt, of_audit=True).set():
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
    """Wrap a function of a mechanism so that `end_if_hung` runs it within its `max_seconds`."""

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
    """Return whether the interrupted run hangs, rather than being slow.

    A run hangs if it took `HUNG_SECONDS`, or 0.3 of the time that was allowed, and 50 times as
    long as runs usually do. The time of earlier runs in the same call is taken off.
    """
    usual = seconds_a_run or 0.0
    stuck = up.watch.spent() - up.runs_done * usual
    long = max(min(HUNG_SECONDS, 0.3 * deadline.allowed), 50 * usual)
    return stuck > long and (usual > 0 or not up.runs_done)


def within(seconds: float, compute: Callable[[], T]) -> T:
    """Run a computation and return its value; interrupt it after so many seconds if possible.

    It should change nothing that is used afterwards, or all at once and at its end. Raises
    OutOfTime if it takes longer, or if `seconds` is not positive.
    """
    if seconds <= 0:
        raise OutOfTime
    with interruptible(Deadline(seconds), None):
        return compute_interruptibly(compute)
