"""Stand-ins for generators, which pass every request for random numbers on to an instrument.

An instrument raises nothing in a mechanism. If it has no answer, or if another thread or process
draws, it notes a reason, and the run is *refused*: from then on, real generators give its random
numbers until it ends by itself.
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

NON_DRAWING_ATTRIBUTES = {
    "seed",
    "get_state",
    "set_state",
    "getstate",
    "setstate",
    "spawn",
    "bit_generator",
}
"""Public attributes of generators that do not draw."""


def _drawing_methods(cls: type) -> frozenset[str]:
    """Return the names of the methods of a class of generators that draw."""
    public = {name for name in dir(cls) if not name.startswith("_")}
    return frozenset(public - NON_DRAWING_ATTRIBUTES - {"VERSION"})


class SystemFunctions(random.Random):
    """A generator that has the functions of `secrets` and ``os.urandom`` as methods, too."""

    def randbelow(self, exclusive_upper_bound: int) -> int:
        """Return a random integer from 0 to below the bound."""
        return self.randrange(exclusive_upper_bound)

    def randbits(self, k: int) -> int:
        """Return a random integer of `k` bits."""
        return self.getrandbits(k)

    def urandom(self, size: int) -> bytes:
        """Return `size` random bytes."""
        return self.randbytes(size)

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        """Return `nbytes` random bytes; 32 for None or 0."""
        return self.randbytes(nbytes or 32)

    def token_hex(self, nbytes: int | None = None) -> str:
        """Return `nbytes` random bytes as hexadecimal digits; 32 bytes for None or 0."""
        return self.token_bytes(nbytes).hex()

    def token_urlsafe(self, nbytes: int | None = None) -> str:
        """Return `nbytes` random bytes as text for URLs; 32 bytes for None or 0."""
        return base64.urlsafe_b64encode(self.token_bytes(nbytes)).rstrip(b"=").decode()


KINDS: tuple[type, ...] = Generator, RandomState, random.Random, SystemFunctions
"""Kinds of generators; the last one stands for whatever draws on the operating system."""
DRAWING_METHODS = {kind: _drawing_methods(kind) for kind in KINDS}
"""Names of the methods that draw, of each kind of generator."""


@dataclass(frozen=True, slots=True)
class Source:
    """A generator, or a module that draws."""

    name: str
    """As in code: ``"rng"``, ``"np.random"``, ``"random"``, ``"secrets"``, ``"self.rng"``."""
    kind: type
    """The class of `KINDS` whose methods it has."""
    number: int = 0
    """Its number among the generators that the mechanism made in a run, from 1; else 0."""

    @property
    def draws(self) -> frozenset[str]:
        """Names of its methods that draw."""
        return DRAWING_METHODS[self.kind]


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
        """All arguments by their names, with defaults; TypeError if the method takes others."""
        bound = _signature(self.source.kind, self.method).bind(*self.args, **self.keywords)
        bound.apply_defaults()
        return bound.arguments

    def __str__(self) -> str:
        arguments = [repr(value) for value in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"{self.source.name}.{self.method}({', '.join(arguments)})"


@functools.cache
def _signature(kind: type, method: str) -> inspect.Signature:
    """Return the signature of a method of a kind of generators, without ``self``."""
    function = getattr(kind, method)
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
    """Return the lines of the mechanism that lead to the current draw, innermost first.

    Lines of this package, of numpy, `random`, `secrets` and `functools` are left out.
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


def make_generator(kind: type, words: bytes) -> Any:
    """Return a real generator of a class in `KINDS`, seeded with `words`, 32 bytes.

    Classes of Python's generators get one with the functions of `secrets` and ``os.urandom``, too.
    """
    if kind is Generator:
        return Generator(Philox(np.frombuffer(words, np.uint32)))
    if kind is RandomState:
        return RandomState(MT19937(np.frombuffer(words, np.uint32)))
    return SystemFunctions(words)


def answer_request(generator: Any, request: Request) -> Any:
    """Call the method of a request on a generator, and return its random numbers."""
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
"""A reason to refuse a run."""


def here() -> tuple[int, int]:
    """Return the numbers of this process and this thread."""
    return os.getpid(), threading.get_ident()


class CannotInstrument(BaseException):
    """Raised in an instrument, never in a mechanism, if it does not support a use of draws."""


class Instrument:
    """An object that answers the requests to stand-ins in one run. To be subclassed.

    `refusal` says why the run is refused, and is empty if it is not. In a refused run, real
    generators give the random numbers.
    """

    words = b""
    """The 32 bytes that seed real generators in refused runs; if empty, random ones."""

    def __init__(self) -> None:
        self.refusal = ""
        self._home = here()
        self._threads = frozenset(sys._current_frames())  # noqa: SLF001  threads before the run
        self._plain: dict[type, Any] = {}
        self._made = 0

    def note(self, reason: str) -> None:
        """Refuse the run from now on, for this reason, unless it is refused already."""
        self.refusal = self.refusal or reason

    def note_thread(self) -> None:
        """Refuse the run as this thread draws, unless the thread is older than the run."""
        if threading.get_ident() not in self._threads:
            self.note(ELSEWHERE)

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the run, and raise CannotInstrument to end the instrument's work."""
        self.note(reason)
        raise CannotInstrument(self.refusal)

    def is_over(self) -> bool:
        """Return whether the run is refused; refuse it first if another thread or process calls."""
        if self._home != here():
            self.note(ELSEWHERE)
        return bool(self.refusal)

    def real_generator(self, kind: type) -> Any:
        """Return the real generator of a kind that gives the numbers of a refused run."""
        if kind not in self._plain:
            self._plain[kind] = make_generator(kind, self.words or urandom(32))
        return self._plain[kind]

    def draw(self, request: Request) -> Any:
        """Return random numbers for a request; raise CannotInstrument if there are none."""
        raise NotImplementedError

    def other(self, source: Source, name: str) -> Any:
        """Return an attribute that does not draw; by default, call `refuse`, which raises."""
        copies = name in COPYING
        self.refuse(f"it copies {source.name}" if copies else f"it uses {source.name}.{name}")

    def note_creation(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Do nothing by default; a subclass notes that the mechanism makes or seeds a generator.

        `seed` are the arguments; empty for a generator that is new each time.
        """

    def attribute(self, source: Source, name: str) -> Any:
        """Return the stand-in for an attribute; a real generator's attribute in a refused run.

        Methods that draw call `draw`, `seed` calls `make`, and others are looked up by `other`.
        """
        if name in source.draws:
            return lambda *args, **keywords: self._answer(Request(source, name, args, keywords))
        return self._unless_refused(
            lambda: partial(self.make, source) if name == "seed" else self.other(source, name),
            lambda: getattr(self.real_generator(source.kind), name),
        )

    def _answer(self, request: Request) -> Any:
        """Return random numbers by `draw`, or from a real generator in a refused run."""
        return self._unless_refused(
            lambda: self.draw(request),
            lambda: answer_request(self.real_generator(request.source.kind), request),
        )

    def _unless_refused(self, ours: Callable[[], Any], plainly: Callable[[], Any]) -> Any:
        """Return `ours()`; or `plainly()` if the run is refused, or if `ours()` refuses it.

        `ours()` refuses by CannotInstrument. If it only notes a refusal, its value is still
        returned. A call from another thread or process refuses the run first.
        """
        if not self.is_over():
            try:
                return ours()
            except CannotInstrument as refused:
                if not self.is_over():
                    self.note(str(refused))
        return plainly()

    def add_generator(self, source: Source) -> Source:
        """Count one more generator that the mechanism makes, and return it with its number."""
        self._made += 1
        return replace(source, number=self._made)

    def make(self, source: Source, *args: Any, **keywords: Any) -> None:
        """Call `note_creation` for a generator that is made or seeded with these arguments."""
        seed = tuple(value for value in (*args, *keywords.values()) if value is not None)
        self.note_creation(source, seed)


class _StandIn:
    """A base class of generators that pass every use of an attribute on to an instrument."""

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
"""The bit generator of all stand-ins, from which only compiled code draws directly."""
_UNUSED_STATE = _UNUSED.state


def stand_in(instrument: Instrument, source: Source) -> Any:
    """Return a generator, by `isinstance` of the kind of `source`, that asks an instrument."""
    cls: Any = _CLASSES[source.kind]
    generator = cls.__new__(cls)
    object.__setattr__(generator, "_asked", (instrument, source))
    if not issubclass(cls, random.Random):
        super(_StandIn, generator).__init__(_UNUSED)
    return generator


def was_drawn_unasked() -> bool:
    """Return whether compiled code drew from a stand-in itself since the last call; forget it."""
    moved: bool = _UNUSED.state != _UNUSED_STATE
    _UNUSED.state = _UNUSED_STATE
    return moved
