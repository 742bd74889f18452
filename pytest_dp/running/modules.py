"""Stand-ins for functions and classes of modules: ``np.random.laplace``, `secrets`, ...

They serve the thread of a run only: other threads call the originals. An audit hook of Python sees
files that a run opens to read, and other processes that it asks.
"""

from __future__ import annotations

import functools
import os
import random
import secrets
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.running.generator_stand_ins import (
    DRAWING_METHODS,
    Instrument,
    Source,
    SystemFunctions,
    stand_in,
    was_drawn_unasked,
)

NUMPY, PYTHONS = Source("np.random", RandomState), Source("random", random.Random)
SECRETS, OS = Source("secrets", SystemFunctions), Source("os", SystemFunctions)
SYSTEMS = Source("SystemRandom", SystemFunctions)
"""The global generators of modules, and sources that draw on the operating system."""
_GLOBAL: Any = (
    (np.random, np.random.mtrand._rand, NUMPY),  # noqa: SLF001
    (random, random._inst, PYTHONS),  # noqa: SLF001
)
"""Modules, the generators whose methods are functions of these modules, and their sources."""
Place = tuple[Any, str, Any]
"""A module or class, the name of an attribute, and its stand-in."""
_RUNNING: dict[int, list[Instrument]] = {}
"""The instruments in place, by the number of the thread; the last one is asked."""
_OUTSIDE = {
    **dict.fromkeys(["os.fork", "os.forkpty", "os.posix_spawn", "os.system"], "starts a process"),
    "subprocess.Popen": "starts a process",
    "socket.connect": "asks a service",
}
"""Events by which a run leaves this process: draws elsewhere are not seen."""
LISTED = "os.listdir", "os.scandir"
"""Events by which folders are read: the name of a file may hold an answer, too."""
ASKED = "another process"
"""Recorded in place of a file's name if a run connects to a process, or starts one."""
ASKING = "socket.connect", "subprocess.Popen", "os.posix_spawn"
"""Events by which other processes are asked, and started."""
OF_SYSTEM = "/proc/", "/sys/"
"""Beginnings of files about the machine, which keep nothing and are read all the time."""
_OPENED: list[tuple[list[str], set[str]]] = []
"""For each block that records files: the names of those opened to read, and of those made anew."""


@functools.cache
def _install_audit_hook() -> None:
    """Install the audit hook, once, as hooks cannot be removed."""
    sys.addaudithook(_note_event)


def _note_event(event: str, args: tuple[Any, ...]) -> None:
    """Handle an event of the audit hook: refuse runs that leave the process, record files."""
    if event in _OUTSIDE:
        _refuse_current_run(event)
    if _OPENED:
        _note_opened_file(*_OPENED[-1], event, args)


@contextmanager
def record_opened_files() -> Iterator[list[str]]:
    """Record the names of files that any thread opens to read within the block, in a list.

    Also folders that are listed, and `ASKED` if a process is started or connected to. Bytecode,
    files about the machine, and files that were made in the block are left out.
    """
    files: list[str] = []
    _install_audit_hook()
    _OPENED.append((files, set()))
    try:
        yield files
    finally:
        _OPENED.pop()


def _note_opened_file(files: list[str], made: set[str], event: str, args: tuple[Any, ...]) -> None:
    """Add a file that is opened to read to `files`, and one that is made or emptied to `made`.

    Adds folders and `ASKED` to `files`, too. Bytecode, `made` files and those `OF_SYSTEM` are left
    out.
    """
    if event == "sqlite3.connect" or event in LISTED:
        folder = "" if isinstance(args[0], int) else os.fsdecode(args[0] or ".")
        if folder and not folder.startswith(OF_SYSTEM):  # no number of a folder that is open
            files.append(folder)
    elif event in ASKING:
        files.append(ASKED)
    elif event == "open" and not isinstance(args[0], int):
        path, mode, flags = args
        file = os.fsdecode(path)
        if set(mode) & {"w", "x"} if mode else flags & (os.O_TRUNC | os.O_EXCL):
            made.add(file)
        reads = set(mode) & {"r", "+"} if mode else flags & (os.O_RDWR | os.O_WRONLY) != os.O_WRONLY
        kept = not file.startswith(OF_SYSTEM) and not file.endswith(".pyc")
        if reads and kept and file not in made:
            files.append(file)


def _refuse_current_run(event: str) -> None:
    """Mark the run of this thread as refused, as an event may draw in another process.

    Neither raises nor stops the run. In a thread without an instrument, marks the runs during which
    the thread was started. `event` is a key of `_OUTSIDE`.
    """
    instrument = current_instrument() if _RUNNING else None
    if instrument is not None:
        instrument.note(f"it {_OUTSIDE[event]} that may draw ({event})")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RUNNING.clear)


@contextmanager
def modules_replaced(instrument: Instrument) -> Iterator[None]:
    """Let all that draws, or makes a generator, in this thread ask an instrument in the block."""
    with _apply_to_thread(instrument), _replacements().in_place():
        yield


def current_instrument() -> Instrument | None:
    """Return the instrument of this thread; None if it has none.

    Without one, refuses each run in other threads during which this thread was started: it may draw
    for that run.
    """
    mine = _RUNNING.get(threading.get_ident())
    if mine:
        return mine[-1]
    for instruments in list(_RUNNING.values()):
        for instrument in instruments:
            instrument.note_thread()
    return None


@contextmanager
def _apply_to_thread(instrument: Instrument) -> Iterator[None]:
    """Make an instrument the current one of this thread within the block."""
    _install_audit_hook()
    was_drawn_unasked()  # by what ran before
    mine = _RUNNING.setdefault(threading.get_ident(), [])
    mine.append(instrument)
    try:
        yield
    finally:
        mine.remove(instrument)
        if not mine:
            _RUNNING.pop(threading.get_ident(), None)


class Replacements:
    """Stand-ins for variables of modules and attributes of classes, for as long as one is in use.

    Threads may enter and leave `in_place` in any order.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self._lock, self._users = threading.RLock(), 0
        self._places = list(places)
        self._before: list[Place] = []

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Have the stand-ins in place within the block, for all threads."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._install()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._uninstall()

    def _install(self) -> None:
        """Put the stand-ins in place, except where other code has replaced the original."""
        for owner, name, replacement in self._places:
            current = getattr(owner, name)
            if getattr(replacement, "__wrapped__", current) is current:  # else it is of others
                self._before.append((owner, name, vars(owner).get(name)))
                setattr(owner, name, replacement)

    def _uninstall(self) -> None:
        """Restore the originals."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _wrap_function(
    source: Source, name: str, function: Callable[..., Any], *, of_class: bool = False
) -> Callable[..., Any]:
    """Wrap a function, or a method `of_class`: it asks the thread's instrument, if there is one."""

    @functools.wraps(function)
    def ask(*args: Any, **keywords: Any) -> Any:
        instrument = current_instrument()
        if instrument is None:
            return function(*args, **keywords)
        return instrument.attribute(source, name)(*args[of_class:], **keywords)

    return ask


@functools.cache
def _replacements() -> Replacements:
    """Return the stand-ins for all functions that draw, or make a generator; made once."""
    of_generators = (
        (module, name, _wrap_function(source, name, function))
        for module, owner, source in _GLOBAL
        for name, function in list(vars(module).items())
        if getattr(function, "__self__", None) is owner
    )
    return Replacements((*of_generators, *_system_stand_ins(), *_generator_makers()))


def _system_stand_ins() -> tuple[Place, ...]:
    """Return stand-ins for functions that draw on the system, and for aliases in ``np.random``."""
    places: list[Place] = [
        (secrets, name, _wrap_function(SECRETS, name, vars(secrets)[name]))
        for name in sorted(DRAWING_METHODS[SystemFunctions] & vars(secrets).keys())
    ]
    places.append((os, "urandom", _wrap_function(OS, "urandom", os.urandom)))
    for name, method in (("sample", "random_sample"), ("ranf", "random_sample"), ("seed", "seed")):
        function = vars(np.random)[name]  # no methods of its global generator, as the others are
        places.append((np.random, name, _wrap_function(NUMPY, method, function)))
    cls = random.SystemRandom
    methods = {
        **{name: name for name in sorted(DRAWING_METHODS[random.Random])},
        "_randbelow": "randbelow",
    }
    places += [
        (cls, name, _wrap_function(SYSTEMS, asked, getattr(cls, name), of_class=True))
        for name, asked in methods.items()
    ]
    return tuple(places)


class _GeneratorClass(type):
    """A class of generators whose instances are stand-ins while an instrument is in place."""

    original: type
    name: str

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        instrument = current_instrument()
        if instrument is None:
            return cls.original(*args, **keywords)
        return _make_stand_in(instrument, Source(cls.name, cls.original), args, keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.original)


def _make_stand_in(instrument: Instrument, source: Source, args: Any, keywords: Any) -> Any:
    """Report a new generator with these arguments to an instrument, and return its stand-in."""
    source = instrument.add_generator(source)
    instrument.make(source, *args, **keywords)
    return stand_in(instrument, source)


def _generator_makers() -> tuple[Place, ...]:
    """Return stand-ins for classes and functions that make generators."""
    classes: tuple[tuple[Any, str, str], ...] = (
        (np.random, "Generator", "np.random.Generator"),
        (np.random, "RandomState", "np.random.RandomState"),
        (random, "Random", "random.Random"),
    )
    places: list[Place] = []
    for module, name, shown_name in classes:
        attributes = {"original": getattr(module, name), "name": shown_name}
        places.append((module, name, _GeneratorClass(name, (), attributes)))
    places.append((np.random, "default_rng", _default_rng))
    inner = np.random._generator  # noqa: SLF001  by "from numpy.random import"
    places.append((inner, "default_rng", _default_rng))
    return tuple(places)


_original_default_rng = np.random.default_rng


@functools.wraps(np.random.default_rng)
def _default_rng(seed: Any = None) -> Any:
    """Return a generator as numpy does; a stand-in while an instrument is in place."""
    instrument = current_instrument()
    if isinstance(seed, Generator):
        return seed
    if instrument is None:
        return _original_default_rng(seed)
    source = Source("np.random.default_rng()", Generator)
    return _make_stand_in(instrument, source, () if seed is None else (seed,), {})
