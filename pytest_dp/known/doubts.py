"""What a mechanism does beside drawing that may make later runs differ from those that were traced.

The clock, files, threads, the environment, and whatever it keeps from run to run: where a mechanism
reaches for any of that, its loss is not told by traced runs alone. What is asked for here can only
make an audit longer.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.limits import FEW
from pytest_dp.randomness.modules import are_originals
from pytest_dp.reach import functions_of, names_in, reach
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.copies import Pristine
from pytest_dp.sampling.deadline import Deadline, interruptible
from pytest_dp.sampling.generators import seeded

_CLOCKS = """
asctime clock_gettime clock_gettime_ns ctime datetime64 fromtimestamp get_clock_info gmtime
localtime mktime monotonic monotonic_ns now perf_counter perf_counter_ns process_time
process_time_ns strftime thread_time thread_time_ns time time_ns Timestamp today utcnow uuid1
"""
_WORLD = """
environ environb exists getctime getenv getloadavg getmtime getpid getppid getrusage getsize glob
iterdir listdir loadavg lstat open path popen read_bytes read_csv read_parquet read_text scandir
socket stat subprocess system urlopen walk
"""
_INSIDES = """
Pool Process ProcessPoolExecutor Thread ThreadPoolExecutor __dict__ __import__ __setattr__
_getframe ctypes currentframe delattr eval exec fork gc get_ident getprofile getrefcount gettrace
globals hash id import_module inspect locals modules setattr setprofile settrace
start_new_thread sysconf threading vars weakref
"""
NAMES = frozenset(f"{_CLOCKS} {_WORLD} {_INSIDES}".split())
"""Names of what may give another answer in another run: a name of the code is enough."""
MODULES = frozenset(
    ["time", "posix", "nt", "io", "_io", "_thread", "_socket", "_ctypes", "gc", "signal"]
)
"""Modules of which a function that is called is enough."""
_QUIET = frozenset(["pytest_dp", "importlib", "copyreg", "copy", "pickle", "random", "secrets"])
"""Callers that say nothing of it: what copies it, and generators whose draws are traced."""
_STORES = frozenset(["STORE_GLOBAL", "DELETE_GLOBAL"])


def doubt_about(call: Call, data: Any, deadline: Deadline) -> str:
    """Why traced runs may not tell what later ones do; empty if nothing speaks for it.

    Raises what the mechanism raises, and OutOfTime if the deadline passes.
    """
    if not are_originals():
        return "functions that draw were replaced"
    for name in _named(call):
        return f"its code names {name}"
    copied, (on_copy,) = call.copied(data)
    before, around = content_of(copied), _around(copied)
    called: list[str] = []
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seeded(sequence, copied.captured) as rng:
        copied.one(on_copy, rng)
        with _watched(called):
            copied.one(on_copy, rng)
    if called:
        return f"it calls {called[0]}"
    if any(map(_has_cached, _caches(copied))) or content_of(copied) != before:
        return "it keeps something from run to run"
    if _around(copied) != around:
        return "it keeps something from run to run"
    return ""


def content_of(call: Call) -> bytes:
    """What a mechanism and its parameters hold, as text: the same as long as nothing changes."""
    return Pristine((call.mechanism, call.params)).content


def _named(call: Call) -> Iterator[str]:
    """Names of `NAMES` in code that a mechanism reaches, and variables that it sets."""
    for function in functions_of(call.mechanism, *call.params.values()):
        yield from sorted(names_in(function.__code__) & NAMES)
        yield from _stored(function.__code__)


def _stored(code: types.CodeType, around: Sequence[str] | None = None) -> Iterator[str]:
    """Variables `around` a function that it sets, or a function inside of it: its free ones."""
    import dis  # loaded where it is of use

    around = code.co_freevars if around is None else around
    for step in dis.get_instructions(code):
        outer = step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in around
        if step.opname in _STORES or outer:
            yield f"{step.argval} to set it"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _stored(constant, around)


def _around(call: Call) -> dict[str, dict[str, int]]:
    """What stands in modules that the mechanism's code names, and may write into."""
    named = {
        id(module): module
        for function in functions_of(call.mechanism)
        for name in names_in(function.__code__)
        if isinstance(module := function.__globals__.get(name), types.ModuleType)
    }
    return {
        module.__name__: {name: id(value) for name, value in vars(module).items()}
        for module in named.values()
    }


def _caches(call: Call) -> Iterator[Any]:
    for value, _ in reach((call.mechanism, "")):
        if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001
            yield value


def _has_cached(cache: Any) -> bool:
    return bool(cache.cache_info().currsize)


class _watched:  # noqa: N801  a context manager
    """Notes calls of what may differ between runs, while it is entered, in this thread."""

    def __init__(self, called: list[str]) -> None:
        self._called, self._before = called, sys.getprofile()

    def __enter__(self) -> None:
        sys.setprofile(self._see)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _see(self, frame: types.FrameType, event: str, function: Any) -> None:
        if event != "c_call" or len(self._called) >= FEW:
            return
        caller = frame.f_globals.get("__name__", "")
        if caller.partition(".")[0] in _QUIET:
            return
        module = getattr(function, "__module__", None) or ""
        clock = module in MODULES or (
            isinstance(getattr(function, "__self__", None), type)
            and function.__name__ in ("now", "today", "utcnow")
        )
        if clock and not _is_quiet(caller):
            self._called.append(f"{module}.{function.__name__}".strip("."))


def _is_quiet(caller: str) -> bool:
    """Whether code is of a large library, which looks at the clock for reasons of its own."""
    return caller.partition(".")[0] in ("numpy", "scipy", "pandas", "sklearn", "joblib")
