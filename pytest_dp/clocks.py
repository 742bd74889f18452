"""Clocks that go on when tests freeze or move the time, as they do with freezegun or time-machine.

Those replace `time.time` and its like, in all modules that hold them or inside of the interpreter;
a deadline by such a clock would never pass. So the functions are those of a second module `time`,
of which nobody knows, and all go by the one clock that nobody has a reason to move.
"""

from __future__ import annotations

import time as _time
from datetime import UTC, datetime
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec
from types import ModuleType


def _second(module: ModuleType) -> ModuleType:
    """A module of the interpreter, loaded once more."""
    spec = BuiltinImporter.find_spec(module.__name__)
    if spec is None or spec.loader is None:  # an interpreter that is built in another way
        return module
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


_clock = _second(_time)
_START = float(_clock.time()) - float(_clock.perf_counter())
"""When the clock was at 0, in seconds since 1970: by the time at which this module is loaded, which
is when pytest starts."""


def seconds() -> float:
    """Seconds that pass, from some point in time on."""
    return float(_clock.perf_counter())


def processor_seconds() -> float:
    """Seconds for which this thread has computed."""
    return float(_clock.thread_time())


def since_1970() -> float:
    """Seconds since 1970: a clock that processes share."""
    return _START + seconds()


def now() -> datetime:
    """The time in UTC."""
    return datetime.fromtimestamp(since_1970(), UTC)
