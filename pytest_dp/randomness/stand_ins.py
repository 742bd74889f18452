"""Generators that are none: what is asked of them goes to an instrument."""

from __future__ import annotations

import random
from functools import partial
from typing import Any, NoReturn

from numpy.random import PCG64, Generator, RandomState

from pytest_dp.randomness.plain import plain
from pytest_dp.randomness.requests import Request, Source

COPYING = {
    "__copy__",
    "__deepcopy__",
    "__dict__",
    "__getstate__",
    "__reduce__",
    "__reduce_ex__",
    "__setstate__",
}
"""By which copies are made, and written down."""


class CannotInstrument(BaseException):
    """A mechanism does with its generators what no stand-in can do; the message says what.

    No `Exception`, as those of a mechanism are outputs, or are caught by it.
    """


class Instrument:
    """Answers what is asked of stand-ins. To be subclassed.

    Attributes
    ----------
    refusal : str
        Why what it was asked cannot be answered; empty as long as it could.
    """

    def __init__(self) -> None:
        self.refusal = ""

    def refuse(self, reason: str) -> NoReturn:
        """Give up; known to whoever runs the mechanism, though this may be caught by it.

        Raises
        ------
        CannotInstrument
        """
        self.refusal = self.refusal or reason
        raise CannotInstrument(self.refusal)

    def draw(self, request: Request) -> Any:
        """What a mechanism is given for a draw.

        Raises
        ------
        CannotInstrument
            If there is no answer.
        """
        raise NotImplementedError

    def other(self, source: Source, name: str) -> Any:
        """What it is given for any other attribute: by default, nothing.

        Raises
        ------
        CannotInstrument
        """
        copies = name in COPYING
        self.refuse(f"it copies {source.name}" if copies else f"it uses {source.name}.{name}")

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Called where a mechanism makes a generator, or seeds one; a new one has no `seed`."""

    def attribute(self, source: Source, name: str) -> Any:
        """What stands for an attribute of a generator.

        After a refusal, that of one which draws: what is run is thrown away, but has to end.
        """
        if self.refusal:
            return getattr(plain(source.kind, bytes(32)), name)
        if name in source.draws:
            return lambda *args, **keywords: self.draw(Request(source, name, args, keywords))
        if name == "seed":
            return partial(self.make, source)
        return self.other(source, name)

    def make(self, source: Source, *args: Any, **keywords: Any) -> None:
        """Take note of a generator that is made, or seeded, with these arguments."""
        given = tuple(seed for seed in (*args, *keywords.values()) if seed is not None)
        self.created(source, given)


class _StandIn:
    """Whatever is asked of an instance goes to its instrument."""

    _asked: tuple[Instrument, Source]

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name not in COPYING:
            return super().__getattribute__(name)
        instrument, source = super().__getattribute__("_asked")
        return instrument.attribute(source, name)

    def __repr__(self) -> str:
        return f"<instrumented {super().__getattribute__('_asked')[1].name}>"

    __str__ = __repr__


class _Generator(_StandIn, Generator):
    pass


class _RandomState(_StandIn, RandomState):
    pass


class _Random(_StandIn, random.Random):
    pass


class _SystemRandom(_StandIn, random.SystemRandom):
    pass


_CLASSES: dict[type, type] = {
    Generator: _Generator,
    RandomState: _RandomState,
    random.Random: _Random,
    random.SystemRandom: _SystemRandom,
}


_UNUSED = PCG64(0)
"""Of all stand-ins: what they give comes from elsewhere."""
_UNUSED_STATE = _UNUSED.state


def stand_in(instrument: Instrument, source: Source) -> Any:
    """What looks like a generator of the kind of `source`, also to `isinstance`."""
    cls: Any = _CLASSES[source.kind]
    made = cls.__new__(cls)
    object.__setattr__(made, "_asked", (instrument, source))
    if not issubclass(cls, random.Random):
        super(_StandIn, made).__init__(_UNUSED)
    return made


def drawn_past_methods() -> bool:
    """Whether compiled code drew from a stand-in since the last time, without asking."""
    moved: bool = _UNUSED.state != _UNUSED_STATE
    _UNUSED.state = _UNUSED_STATE
    return moved
