"""Stand-ins for generators, which pass every request for random numbers on to an instrument.

Nothing of ours is raised in a mechanism. Where an instrument has no answer, it notes the reason,
which refuses the run, and from then on the run has plain random numbers until it ends by itself.
The same holds for draws in another thread than the one in which the instrument was made, or in
another process: their order is not known, or what is drawn there does not come back.
"""

from __future__ import annotations

import base64
import functools
import inspect
import os
import random
import secrets
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from os import urandom
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.random import MT19937, PCG64, Generator, Philox, RandomState

from pytest_dp.basics.whose_code import OURS

PASSED_ON = {"seed", "get_state", "set_state", "getstate", "setstate", "spawn", "bit_generator"}
"""Public attributes of generators that do not draw."""


def _draws_of(cls: type) -> frozenset[str]:
    public = {name for name in dir(cls) if not name.startswith("_")}
    return frozenset(public - PASSED_ON - {"VERSION"})


_OF_SECRETS: dict[str, Callable[..., Any]] = {
    name: getattr(secrets, name)
    for name in ("randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")
} | {"urandom": os.urandom}
"""Functions of modules that are no methods of `random.SystemRandom`."""
GENERATOR, DRAWS_OF_RANDOM = _draws_of(Generator), _draws_of(random.Random)
SYSTEM = DRAWS_OF_RANDOM | _OF_SECRETS.keys()
_DRAWS: dict[type, frozenset[str]] = {
    Generator: GENERATOR,
    RandomState: _draws_of(RandomState),
    random.Random: DRAWS_OF_RANDOM,
    random.SystemRandom: SYSTEM,
}
"""Methods that draw, of each kind of generator; of `secrets` and ``os.urandom`` in the last."""
KINDS = tuple(_DRAWS)


@dataclass(frozen=True, slots=True)
class Source:
    """A generator, or a module that draws."""

    name: str
    """As in code: ``"rng"``, ``"np.random"``, ``"random"``, ``"secrets"``, ``"self.rng"``."""
    kind: type
    """The class whose methods it has; `random.SystemRandom` for the operating system."""
    number: int = 0
    """Of those that the mechanism made itself in a run, which one it is; else 0."""

    @property
    def draws(self) -> frozenset[str]:
        """Names of its methods that draw."""
        return _DRAWS[self.kind]


RNG = Source("rng", Generator)
"""The generator that is an argument of a mechanism."""


@dataclass(frozen=True, slots=True)
class Site:
    """A line of code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a method that draws."""

    source: Source
    method: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments by their names, with defaults.

        Raises TypeError if the method does not take them.
        """
        bound = _signature(self.source.kind, self.method).bind(*self.args, **self.keywords)
        bound.apply_defaults()
        return bound.arguments

    def __str__(self) -> str:
        arguments = [repr(value) for value in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"{self.source.name}.{self.method}({', '.join(arguments)})"


@functools.cache
def _signature(kind: type, method: str) -> inspect.Signature:
    function = getattr(kind, method, None)
    if function is None:
        return inspect.signature(_OF_SECRETS[method])
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled, by an older numpy: it stands in the first line of the docstring
        line = (function.__doc__ or "").strip().partition("\n")[0]
        listed = line.partition("(")[2].rpartition(")")[0]
        names: dict[str, Any] = {}
        exec(f"def function(self, {listed}): pass", {"np": np}, names)
        signature = inspect.signature(names["function"])
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    return signature.replace(parameters=parameters)


_NUMPY = str(Path(np.__file__).parent) + os.sep
_MODULES = {random.__file__, secrets.__file__, functools.__file__}


def stack() -> tuple[Site, ...]:
    """Return the lines that lead to the current draw, innermost first; no lines of libraries.

    Ends where the mechanism was called.
    """
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    sites = []
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        code = frame.f_code
        if code.co_filename not in _MODULES and not code.co_filename.startswith(
            (_NUMPY, "<frozen")
        ):
            sites.append(Site(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(sites)


def plain_generator(kind: type, words: bytes) -> Any:
    """Return a generator of a kind, with 32 bytes as its seed."""
    if kind is Generator:
        return Generator(Philox(np.frombuffer(words, np.uint32)))
    if kind is RandomState:
        return RandomState(MT19937(np.frombuffer(words, np.uint32)))
    return SystemFunctions(words)


class SystemFunctions(random.Random):
    """A generator with the functions of `secrets` and ``os.urandom`` as well."""

    def randbelow(self, bound: int) -> int:
        return self.randrange(bound)

    def randbits(self, k: int) -> int:
        return self.getrandbits(k)

    def urandom(self, size: int) -> bytes:
        return self.randbytes(size)

    def token_bytes(self, size: int | None = None) -> bytes:
        return self.randbytes(size or 32)

    def token_hex(self, size: int | None = None) -> str:
        return self.token_bytes(size).hex()

    def token_urlsafe(self, size: int | None = None) -> str:
        return base64.urlsafe_b64encode(self.token_bytes(size)).rstrip(b"=").decode()


def answer_request(generator: Any, request: Request) -> Any:
    """Answer a request by a generator."""
    return getattr(generator, request.method)(*request.args, **request.keywords)


COPYING = {
    "__copy__",
    "__deepcopy__",
    "__dict__",
    "__getstate__",
    "__reduce__",
    "__reduce_ex__",
    "__setstate__",
}
"""Attributes by which objects are copied and pickled."""


ELSEWHERE = "it draws in another thread or process"


def here() -> tuple[int, int]:
    """Return a key that differs between threads, and between processes."""
    return os.getpid(), threading.get_ident()


class CannotInstrument(BaseException):
    """A mechanism does with draws what no instrument supports; the message says what.

    It ends what an instrument was about to do, and is never raised in the mechanism itself.
    """


class Instrument:
    """Answers the requests to stand-ins. To be subclassed.

    `refusal` says why a request was refused; it is empty as long as none was.
    """

    words = b""
    """What plain generators are seeded with; others each time if it is empty."""

    def __init__(self) -> None:
        self.refusal = ""
        self._home = here()
        self._threads = frozenset(sys._current_frames())  # noqa: SLF001  those of others
        self._plain: dict[type, Any] = {}
        self._made = 0

    def note(self, reason: str) -> None:
        """Note why the run is refused, unless there is a reason already."""
        self.refusal = self.refusal or reason

    def note_thread(self) -> None:
        """Note that this thread draws, unless it is older than the run."""
        if threading.get_ident() not in self._threads:
            self.note(ELSEWHERE)

    def refuse(self, reason: str) -> NoReturn:
        """Give up what is being done."""
        self.note(reason)
        raise CannotInstrument(self.refusal)

    def is_over(self) -> bool:
        """Return whether the run is refused, so that real generators give its further numbers.

        A call from another thread or process is noted, which refuses the run.
        """
        if self._home != here():
            self.note(ELSEWHERE)
        return bool(self.refusal)

    def plain(self, kind: type) -> Any:
        """Return a real generator of a kind, for runs that are refused."""
        if kind not in self._plain:
            self._plain[kind] = plain_generator(kind, self.words or urandom(32))
        return self._plain[kind]

    def draw(self, request: Request) -> Any:
        """Return random numbers for a request; raise CannotInstrument if there are none."""
        raise NotImplementedError

    def other(self, source: Source, name: str) -> Any:
        """Return any attribute that does not draw; by default, refuse it."""
        copies = name in COPYING
        self.refuse(f"it copies {source.name}" if copies else f"it uses {source.name}.{name}")

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Note that a mechanism makes or seeds a generator; a new one has no `seed`."""

    def attribute(self, source: Source, name: str) -> Any:
        """Return the stand-in for an attribute of a generator."""
        if name in source.draws:
            return lambda *args, **keywords: self._answer(Request(source, name, args, keywords))
        return self._unless_over(
            lambda: partial(self.make, source) if name == "seed" else self.other(source, name),
            lambda: getattr(self.plain(source.kind), name),
        )

    def _answer(self, request: Request) -> Any:
        return self._unless_over(
            lambda: self.draw(request),
            lambda: answer_request(self.plain(request.source.kind), request),
        )

    def _unless_over(self, ours: Callable[[], Any], plainly: Callable[[], Any]) -> Any:
        if not self.is_over():
            try:
                return ours()
            except CannotInstrument as refused:
                if not self.is_over():
                    self.note(str(refused))
        return plainly()

    def add_generator(self, source: Source) -> Source:
        """Return the source of one more generator that the mechanism makes."""
        self._made += 1
        return replace(source, number=self._made)

    def make(self, source: Source, *args: Any, **keywords: Any) -> None:
        """Record that a generator is made, or seeded, with these arguments."""
        seed = tuple(value for value in (*args, *keywords.values()) if value is not None)
        self.created(source, seed)


class _StandIn:
    """Passes every request on to its instrument."""

    _asked: tuple[Instrument, Source]

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name not in COPYING:
            return super().__getattribute__(name)
        instrument, source = super().__getattribute__("_asked")
        return instrument.attribute(source, name)

    def __repr__(self) -> str:
        return f"<instrumented {super().__getattribute__('_asked')[1].name}>"

    __str__ = __repr__


_CLASSES = {kind: type(kind.__name__, (_StandIn, kind), {}) for kind in KINDS}
_UNUSED = PCG64(0)
"""The bit generator of all stand-ins, from which nothing draws but compiled code (see below)."""
_UNUSED_STATE = _UNUSED.state


def stand_in(instrument: Instrument, source: Source) -> Any:
    """Return an object that is a generator of the kind of `source` to `isinstance`."""
    cls: Any = _CLASSES[source.kind]
    generator = cls.__new__(cls)
    object.__setattr__(generator, "_asked", (instrument, source))
    if not issubclass(cls, random.Random):
        super(_StandIn, generator).__init__(_UNUSED)
    return generator


def was_drawn_unasked() -> bool:
    """Return whether compiled code drew from a stand-in since the last call, without asking."""
    moved: bool = _UNUSED.state != _UNUSED_STATE
    _UNUSED.state = _UNUSED_STATE
    return moved
