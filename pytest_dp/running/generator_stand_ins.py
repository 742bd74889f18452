"""Stand-ins for generators, which pass every request on to an instrument.

Nothing of ours is raised in a mechanism. Where an instrument has no answer, it notes the reason,
which refuses the run, and from then on the run has plain random numbers until it ends by itself.
The same holds for draws in another thread than the one in which the instrument was made, or in
another process: their order is not known, or what is drawn there does not come back.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import urandom
from typing import Any, NoReturn

from numpy.random import PCG64

from pytest_dp.running.requests import KINDS, Request, Source, answer_request, plain_generator

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
        """Return whether the run is refused, so that all its numbers are plain ones from now on."""
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
