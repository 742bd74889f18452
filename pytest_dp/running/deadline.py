"""Deadlines that also interrupt a run or a computation, where alarms can be set (see `alarm`)."""

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
"""Times `max_seconds` that a whole audit may take. Fewer: slow mechanisms count as hung."""
SECONDS_IN_ALL = 60.0
"""Seconds that a whole audit may take besides, to start processes and explain violations."""
PATIENCE_SECONDS = 10.0
"""Further seconds until a process ends whose native code hangs. Fewer cut long calls off."""


class OutOfTime(Exception):  # noqa: N818  a way out, not an error
    """The deadline has passed; `stack` has the mechanism's lines if it hung, else ""."""

    def __init__(self, stack: str = "") -> None:
        super().__init__(stack)
        self.stack = stack


class Deadline:
    """A time after which no work is begun, and a time when runs are interrupted.

    In seconds of effort: no work is begun `seconds` after the stopwatch was started, which is now
    by default. Runs are interrupted `last` seconds after that start, by default the same. `allowed`
    are the seconds that the work was given in all, if it started earlier.
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

    def effort_seconds(self) -> float:
        """Return the seconds of effort since the stopwatch was started."""
        return self._watch.effort_seconds()

    def remaining(self) -> float:
        """Return the seconds left to begin work; negative once the deadline has passed."""
        return self._at - self.effort_seconds()

    def seconds_to_interrupt(self) -> float:
        """Return the seconds until a run that is under way is interrupted; may be negative."""
        return self._last - self.effort_seconds()

    def remaining_times(self) -> tuple[float, float, float]:
        """Return the arguments that make this deadline in another process, by its own clock."""
        return self.remaining(), self.seconds_to_interrupt(), self.allowed

    def with_reserve(self, share: float) -> Deadline:
        """Return a deadline that begins no work after a `share` of the time, but lets work end."""
        at = self._last - (1 - share) * self.allowed if self.allowed < math.inf else math.inf
        return Deadline(at, self._last, self.allowed, self._watch)


@contextmanager
def interruptible(deadline: Deadline, seconds_a_run: float | None) -> Iterator[None]:
    """Raise `OutOfTime` in the middle of a run in the block once the deadline has passed.

    Runs are not interrupted where no alarm can be set (see `alarm.is_free`). The exception has the
    mechanism's stack if the run looks hung, not just slow: `seconds_a_run` are the usual seconds of
    a run, None if unknown.
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
    """Write the stack of a process whose native code hangs to this open file, within the block."""
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

    Raises MechanismError, with the line, if Python code hangs, and errors of the audit. If native
    code never returns, the stack is written and the process is ended. Without alarms, inside of
    another such audit, or if `max_seconds` is infinite or not positive, the audit is just run.
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
    """Return a function of a mechanism that `end_if_hung` runs within its keyword `max_seconds`."""

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
    """Return whether an interrupted run hangs, rather than being slow.

    It hangs if it took `HUNG_SECONDS`, or 0.3 of the time that was allowed, and 50 times as long as
    usual. Earlier runs of the same call do not count. False if they exist and the usual time is
    unknown.
    """
    usual = seconds_a_run or 0.0
    stuck = up.watch.effort_seconds() - up.runs_done * usual
    long = max(min(HUNG_SECONDS, 0.3 * deadline.allowed), 50 * usual)
    return stuck > long and (usual > 0 or not up.runs_done)


def within(seconds: float, compute: Callable[[], T]) -> T:
    """Run a computation and return its value; interrupt it after some `seconds` of effort.

    Raises OutOfTime if it takes longer, or if `seconds` is not positive. Without alarms it is not
    interrupted. It should change nothing that is used later, or all at once and at its end.
    """
    if seconds <= 0:
        raise OutOfTime
    with interruptible(Deadline(seconds), None):
        return compute_interruptibly(compute)
