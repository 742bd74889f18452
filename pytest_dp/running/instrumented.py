"""Runs of copies of a mechanism, in which an instrument answers every draw, such as a tape.

A tape records every draw of a run, and draws can be replaced. Each line of code draws from a stream
of its own. So two runs on the same streams, on other inputs or with another value for a draw, have
the same noise wherever they draw in the same lines, and in each line as long as they make the same
requests there. Generators that are seeded alike within a run give the same numbers, as they would.
"""

from __future__ import annotations

import copy
import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dp.basics.reach import functions_of
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    Instrument,
    Request,
    Site,
    Source,
    answer_request,
    plain_generator,
    stack,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.modules import modules_replaced


def run_instrumented(call: Call, data: Any, instrument: Instrument, deadline: Deadline) -> Any:
    """Return the output of a run of a new copy on a copy of the input; `Raised` if it raises.

    Of a vectorised mechanism, one row is asked for. The instrument is asked for whatever the copy
    draws with what it is given, with generators that it keeps, and with functions of `random`,
    `secrets`, `os` and ``np.random``.

    Raises CannotInstrument if the copy asks for what the instrument has not, CannotCopy if there is
    no copy, and OutOfTime if the deadline passes first.
    """
    with apply_instrument(instrument, deadline):
        output = run_copy(call, data, instrument)
    if instrument.refusal:  # and the mechanism went on
        raise CannotInstrument(instrument.refusal)
    return output


@contextmanager
def apply_instrument(instrument: Instrument, deadline: Deadline) -> Iterator[None]:
    """Put an instrument in place for one or more runs; raises OutOfTime in the middle of a run."""
    with (
        modules_replaced(instrument),  # also while it is copied: names are looked up then
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
        interruptible(deadline, None),
    ):
        warnings.simplefilter("ignore")
        yield


def run_copy(
    call: Call,
    data: Any,
    instrument: Instrument,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """Return the output of a run of a new copy, with the instrument already in place.

    An `Input` in place of data is copied faster. Its parameters are changed to those of `params`.
    """
    item = data if isinstance(data, Input) else Input(data)
    copied, (data,) = call.copy_alone(item.fresh())
    # These are no samples, as nothing is drawn.
    copied = replace(copied, params={**copied.params, **(params or {})}, made=RunCounter())
    output = copied.draw_one(data, stand_in(instrument, RNG))
    if was_drawn_unasked():
        raise CannotInstrument("compiled code draws from its generator")
    return output


class StandsFor(type):
    """Makes classes that stand for a type of numbers: what has `__converted__` says how it is.

    Instances are made by `of`. All but calls of them is that of the type.
    """

    plain: type

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and hasattr(type(args[0]), "__converted__"):
            return args[0].__converted__(cls.plain)
        return cls.plain(*args, **keywords)

    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, cls.plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls.plain)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.plain

    def __hash__(cls) -> int:
        return hash(cls.plain)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.plain, name)

    @classmethod
    def of(cls, plain: type) -> Any:
        """Make a stand-in for a type, which is also a dtype of numpy."""
        return cls(plain.__name__, (), {"plain": plain, "dtype": np.dtype(plain)})


def shadow(mechanism: Any, names: Mapping[str, Any]) -> None:
    """Let the functions of a copy, and those they use, find other objects under some names.

    They find them unless they have a variable of that name themselves. Whatever the copy shares
    with the original, or with a library, is left as it is.
    """
    for function in functions_of(mechanism):
        module = sys.modules.get(function.__module__ or "")
        if module is None or vars(module) is not function.__globals__:
            for name, value in names.items():
                function.__globals__.setdefault(name, value)


Replacement = Callable[["Draw", "Draws"], Any]
"""``replacement(draw, other)``: another value for a draw; `other` are streams for this alone."""
Replaced = Callable[["Draw"], Replacement | None]
"""The replacement of a draw, if it is replaced."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw that was made."""

    number: int
    """Of the draw, in its run."""
    request: Request
    stack: tuple[Site, ...]
    """The line that draws, and those that lead to it."""
    value: Any
    """A copy of the answer; for methods that work in place, of what they changed."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """A generator that was made, or seeded, by the mechanism."""

    source: Source
    seed: tuple[Any, ...]
    """The arguments; empty if it is new each time."""
    stack: tuple[Site, ...]


class Draws:
    """Streams of random numbers, one for each line of code."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[tuple[Any, ...], Any] = {}

    def of(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Return the next draw in a line, from the stream of this line."""
        return answer_request(self.generator(request, where), request)

    def generator(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Return the stream of a line."""
        key = (request.source.name, request.source.kind, where)
        if key not in self._generators:
            # The same on every machine, wherever the files are.
            lines = [(Path(site.file).name, site.line, site.function) for site in where]
            words = hashlib.sha256(repr((self._seed, request.source.name, lines)).encode())
            self._generators[key] = plain_generator(request.source.kind, words.digest())
        return self._generators[key]


class _Seeds:
    """Where generators with a seed are in their streams, and what the first with a seed drew from.

    The first one draws from the streams of lines; a later one with an equal seed repeats it.
    """

    def __init__(self) -> None:
        self._places: dict[Source, tuple[str, int]] = {}
        self._drawn: dict[tuple[type, str, int], Any] = {}

    def start(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Note that a generator begins anew with a seed; one without a seed is left alone."""
        self._places.pop(source, None)
        if seed:
            self._places[source] = repr(seed), 0

    def generator(self, source: Source, stream: Any) -> Any:
        """Return what the next draw of a generator is from: the stream, or what it repeats."""
        if source not in self._places:
            return stream
        seed, number = self._places[source]
        self._places[source] = seed, number + 1
        key = source.kind, seed, number
        if key in self._drawn:
            return copy.deepcopy(self._drawn[key])
        self._drawn[key] = copy.deepcopy(stream)
        return stream


class Tape(Instrument):
    """Answers draws from streams of the lines of code, and records them.

    Equal seeds give equal noise in equal lines. `replaced` tells the replacement of a draw, if it
    is replaced. The draws are recorded in the order in which they were made.
    """

    def __init__(self, seed: int, replaced: Replaced | None = None) -> None:
        super().__init__()
        self._streams, self._other = Draws(seed), Draws(~seed)
        self._replaced = replaced
        self._seeds = _Seeds()
        self.draws: list[Draw] = []
        self.seeded: list[Seeded] = []

    def draw(self, request: Request) -> Any:
        """Return the next number in the stream of the line that asks, or its replacement."""
        where = stack()
        stream = self._streams.generator(request, where)
        value = answer_request(self._seeds.generator(request.source, stream), request)
        number = len(self.draws)
        in_place = request.args[0] if value is None and request.args else None
        draw = Draw(number, request, where, _copy_value(in_place if value is None else value))
        replacement = None if self._replaced is None else self._replaced(draw)
        if replacement is not None:
            value = replacement(draw, self._other)
            draw = Draw(number, request, where, _copy_value(value))
        self.draws.append(draw)
        return value

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Record where a generator was made or seeded."""
        self._seeds.start(source, seed)
        self.seeded.append(Seeded(source, seed, stack()))


def _copy_value(value: Any) -> Any:
    return value if isinstance(value, float | int | str | bytes | None) else copy.deepcopy(value)
