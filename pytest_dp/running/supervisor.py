"""A process beside this one that ends it where native code never returns to Python.

No handler of a signal runs then, and no other thread if the native code keeps Python's lock.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pytest_dp.basics import clocks

PATIENCE_SECONDS = 10.0
"""Seconds since Python was last seen to run, and beyond the wall time, that native code may take.

Fewer end processes in the middle of a long native call that returns; more keep a build waiting.
"""
LATER_SECONDS = 2.0
"""Seconds by which a signal handler ends this process earlier than the other process, if it can.

A handler exits with a status that is no signal. With less, a slow machine gets the signal.
"""
_WATCH = """\
import json, os, select, signal, sys, time
parent, until, said, rest = int(sys.argv[1]), None, "", b""
while True:
    wait = None if until is None else min(max(until - time.monotonic(), 0.0), 60.0)
    if select.select([0], [], [], wait)[0]:
        read = os.read(0, 1 << 16)
        if not read:
            break
        *lines, rest = (rest + read).split(b"\\n")
        for line in lines:
            seconds, said = json.loads(line)
            until = None if seconds is None else time.monotonic() + seconds
    elif os.getppid() != parent:
        break
    elif until <= time.monotonic():
        os.write(2, said.encode())
        os.kill(parent, signal.SIGKILL)
        break
"""


class Supervisor:
    """Ends this process unless it is told in time that Python still runs."""

    def __init__(self, name: str, max_seconds: float, pipe: int) -> None:
        self._name, self._max_seconds, self._pipe = name, max_seconds, pipe
        self.owner = os.getpid()
        self._until = clocks.seconds() + clocks.WALL_FACTOR * max_seconds + PATIENCE_SECONDS
        self.is_below_native("")

    def is_alive(self) -> None:
        """Tell that Python runs, where it can be interrupted."""
        soonest = clocks.seconds() + PATIENCE_SECONDS
        if soonest > self._until:
            self._until = soonest
            self.is_below_native("")

    def is_below_native(self, stack: str) -> None:
        """Tell where Python runs, below native code; end this process if that takes too long."""
        said, left = self._error(stack), self._until - clocks.seconds()
        if left < 0:
            self.close()
            os.write(2 if stderr is None else stderr, said.encode())
            os._exit(1)
        self._tell(left + LATER_SECONDS, said)

    def _error(self, stack: str) -> str:
        where = f" Python was last seen here:\n{stack}" if stack else ""
        return (
            f"\npytest-dp: {self._name} did not return from native code: a native call, or a "
            f"callback of one, has not ended within {clocks.WALL_FACTOR:g} times "
            f"max_seconds={self._max_seconds:g}. An exception would crash the native code, so this "
            f"process ({os.getpid()}) was ended.{where}\nWith pytest-xdist (pytest -n 2) only the "
            "worker ends that runs this claim.\n"
        )

    def close(self) -> None:
        """Tell that there is nothing to watch any more."""
        self._tell(None, "")

    def _tell(self, seconds: float | None, said: str) -> None:
        with suppress(OSError):  # somebody has ended it
            os.write(self._pipe, json.dumps([seconds, said]).encode() + b"\n")


stderr: int | None = None
"""Where to write what a person has to know, if not where this process writes errors now."""
_CURRENT: list[Supervisor] = []
"""The supervisor of the audit that runs in this process, if there is one."""
_STARTED: list[tuple[int, subprocess.Popen[bytes]]] = []
"""The process that watches, after the process that has started it: forked ones have none."""


def current() -> Supervisor | None:
    """Return the supervisor of this process."""
    return _CURRENT[0] if _CURRENT and _CURRENT[0].owner == os.getpid() else None


@contextmanager
def writing_to(file: int | None) -> Iterator[None]:
    """Let a process that watches, and starts in the block, write to this open file.

    Its number is forgotten afterwards: once the file is closed, the number may be that of another.
    """
    global stderr
    before, stderr = stderr, file
    try:
        yield
    finally:
        stderr = before


@contextmanager
def supervise(name: str, max_seconds: float) -> Iterator[None]:
    """End this process if native code does not return in the block, within a multiple of the time.

    Only where an alarm rings and tells that Python still runs.
    """
    pipe = None if current() else _pipe()
    if pipe is None:
        yield
        return
    supervisor = Supervisor(name, max_seconds, pipe)
    _CURRENT[:] = [supervisor]
    try:
        yield
    finally:
        _CURRENT.clear()
        supervisor.close()


def _pipe() -> int | None:
    """Return the pipe to the process that watches, which is started if there is none."""
    if not hasattr(signal, "SIGKILL"):
        return None
    if not _STARTED or _STARTED[0][0] != os.getpid() or _STARTED[0][1].poll() is not None:
        stop()
        command = [sys.executable, "-I", "-S", "-c", _WATCH, str(os.getpid())]
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(command, bufsize=0, stdin=pipe, stderr=stderr)
        except OSError:
            return None
        _STARTED.append((os.getpid(), process))
        atexit.register(stop)
    stdin = _STARTED[0][1].stdin
    return stdin.fileno() if stdin else None


def stop() -> None:
    """End the process that watches, if this process has started one."""
    atexit.unregister(stop)
    while _STARTED:
        owner, process = _STARTED.pop()
        if owner == os.getpid():
            process.kill()
            process.communicate()
