"""Clocks that go on when tests freeze or move the time, as they do with freezegun or time-machine.

Such packages replace `time.time` and similar functions in all modules. The functions here are those
of a second module `time`, which no package knows.
"""

from __future__ import annotations

import time as _time
from datetime import UTC, datetime
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec
from types import ModuleType

QUIET_SECONDS = 2.0
"""Seconds before progress is shown. More: people wonder; fewer: quick runs are noisy."""


def _second(module: ModuleType) -> ModuleType:
    """Load a built-in module once more and return it; the old module if it is not built in."""
    spec = BuiltinImporter.find_spec(module.__name__)
    if spec is None or spec.loader is None:  # an interpreter that is built in another way
        return module
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


_clock = _second(_time)
_START = float(_clock.time()) - float(_clock.perf_counter())
"""Seconds since 1970 at which the clock was at 0, measured when this module was loaded."""
WALL_FACTOR = 4.0
"""Seconds that may pass in a second of effort. Less cuts audits off; more: code waits on."""
_ELSEWHERE = [0.0]
"""Processor seconds of other processes."""


def seconds() -> float:
    """Return the seconds since a fixed point in time, by a clock that tests cannot move."""
    return float(_clock.perf_counter())


def process_seconds() -> float:
    """Return the processor seconds of this process, plus those given to `add_process_seconds`."""
    return float(_clock.process_time()) + _ELSEWHERE[0]


def add_process_seconds(seconds: float) -> None:
    """Add processor seconds of a worker process to those that `process_seconds` returns."""
    _ELSEWHERE[0] += seconds


class Stopwatch:
    """A stopwatch of the effort since it was made, in seconds.

    Effort is the processor seconds, once for each of `processes` that work at the same time; or a
    quarter of the seconds that have passed, if that is more, so that code that waits ends, too.
    """

    def __init__(self, processes: int = 1) -> None:
        self._processes, self._processor, self._wall = processes, process_seconds(), seconds()

    def effort_seconds(self) -> float:
        """Return the seconds of effort: see the class."""
        computed = (process_seconds() - self._processor) * self._processes
        return max(computed, self.wall_seconds() / WALL_FACTOR)

    def wall_seconds(self) -> float:
        """Return the seconds that have passed since the stopwatch was made."""
        return seconds() - self._wall


def processor_seconds() -> float:
    """Return the processor seconds of this thread so far."""
    return float(_clock.thread_time())


def since_1970() -> float:
    """Return the seconds since 1970, as a number that can be compared between processes."""
    return _START + seconds()


def now() -> datetime:
    """Return the current time in UTC, by `since_1970`."""
    return datetime.fromtimestamp(since_1970(), UTC)
