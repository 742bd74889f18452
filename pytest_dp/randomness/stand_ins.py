"""Stand-ins for generators, which pass every request on to an instrument."""

from __future__ import annotations

import random
from functools import partial
from typing import Any, NoReturn

from numpy.random import PCG64

from pytest_dp.randomness.plain import plain
from pytest_dp.randomness.requests import KINDS, Request, Source

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


class CannotInstrument(BaseException):
    """A mechanism uses its generators in a way that no stand-in supports; the message says how.

    It is no `Exception`, because these are outputs of a mechanism, or are caught by it.
    """


class Instrument:
    """Answers the requests to stand-ins. To be subclassed.

    Attributes
    ----------
    refusal : str
        Why a request was refused; empty as long as none was.
    """

    def __init__(self) -> None:
        self.refusal = ""

    def refuse(self, reason: str) -> NoReturn:
        """Give up. The refusal is recorded, as the mechanism may catch the exception.

        Raises
        ------
        CannotInstrument
        """
        self.refusal = self.refusal or reason
        raise CannotInstrument(self.refusal)

    def draw(self, request: Request) -> Any:
        """The answer to a request for random numbers.

        Raises
        ------
        CannotInstrument
            If there is none.
        """
        raise NotImplementedError

    def other(self, source: Source, name: str) -> Any:
        """Any attribute that does not draw: by default, it is refused.

        Raises
        ------
        CannotInstrument
        """
        copies = name in COPYING
        self.refuse(f"it copies {source.name}" if copies else f"it uses {source.name}.{name}")

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Called where a mechanism makes a generator, or seeds one; a new one has no `seed`."""

    def attribute(self, source: Source, name: str) -> Any:
        """The stand-in for an attribute of a generator.

        After a refusal, that of a real generator: the run is discarded, but has to end.
        """
        if self.refusal:
            return getattr(plain(source.kind, bytes(32)), name)
        if name in source.draws:
            return lambda *args, **keywords: self.draw(Request(source, name, args, keywords))
        if name == "seed":
            return partial(self.make, source)
        return self.other(source, name)

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
    """An object that is a generator of the kind of `source` to `isinstance`."""
    cls: Any = _CLASSES[source.kind]
    generator = cls.__new__(cls)
    object.__setattr__(generator, "_asked", (instrument, source))
    if not issubclass(cls, random.Random):
        super(_StandIn, generator).__init__(_UNUSED)
    return generator


def drawn_past_methods() -> bool:
    """Whether compiled code drew from a stand-in since the last time, without asking."""
    moved: bool = _UNUSED.state != _UNUSED_STATE
    _UNUSED.state = _UNUSED_STATE
    return moved
