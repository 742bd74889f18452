"""Running out of time, also inside a mechanism that never returns."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pytest_dp.sampling.calling import Call


class OutOfTime(Exception):  # noqa: N818  a way out, not an error
    """The deadline has passed; `stack` shows where the mechanism was if it hung."""

    def __init__(self, stack: str = "") -> None:
        super().__init__(stack)
        self.stack = stack


class _TimeUp(BaseException):
    """Raised by the alarm; not an `Exception`, so that mechanisms do not swallow it."""

    def __init__(self, frame: FrameType | None) -> None:
        super().__init__()
        self.in_draw = 0
        self.stack = ""
        frames: list[FrameType] = []
        while frame is not None:
            if frame.f_code in _DRAWS:
                self.in_draw = len(frame.f_locals.get("outputs") or ())
                self.stack = "".join(
                    line for inner in reversed(frames) for line in traceback.format_stack(inner, 1)
                ).rstrip()
                break
            frames.append(frame)
            frame = frame.f_back


_DRAWS = {Call.draw.__code__, Call._draw_vectorized.__code__}  # noqa: SLF001


class Deadline:
    """A point in time that many pieces of work share.

    Parameters
    ----------
    seconds : float
        From now.
    """

    def __init__(self, seconds: float) -> None:
        self.allowed = seconds
        self.started = time.monotonic()
        self.at = self.started + seconds

    def remaining(self) -> float:
        """Seconds left; negative once the deadline has passed."""
        return self.at - time.monotonic()

    def sooner(self, share: float) -> Deadline:
        """A deadline after `share` of the time of this one."""
        earlier = Deadline(self.allowed)
        earlier.started, earlier.at = self.started, self.started + share * self.allowed
        return earlier


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
    entered = time.monotonic()

    def ring(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise _TimeUp(frame)

    earlier = signal.signal(signal.SIGALRM, ring)
    # Rings again every second, should the mechanism swallow everything that is raised in it.
    signal.setitimer(signal.ITIMER_REAL, max(deadline.remaining(), 1e-3), 1.0)
    try:
        yield
    except _TimeUp as up:
        signal.setitimer(signal.ITIMER_REAL, 0)
        stuck = time.monotonic() - entered - up.in_draw * (seconds_a_run or 0.0)
        usual = seconds_a_run or 0.0
        hung = stuck > max(0.3 * deadline.allowed, 20 * usual) and (usual > 0 or not up.in_draw)
        raise OutOfTime(up.stack if hung else "") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


def _alarm_is_free() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN, None)
    )
