"""Runs of copies of a mechanism, in which an instrument answers every draw, such as a tape.

A tape records every draw of a run, and draws can be replaced. Each line of code draws from its own
stream, so two runs on the same streams have the same noise wherever the same lines draw in the same
order. Generators that a run seeds with equal seeds give equal numbers, as real ones do.
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
    make_generator,
    stack,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.modules import modules_replaced


def run_instrumented(call: Call, data: Any, instrument: Instrument, deadline: Deadline) -> Any:
    """Run a new copy on a copy of the input, and return the output; `Raised` if the copy raises.

    A vectorised mechanism is asked for one row. The instrument answers all draws of the copy: by
    the generator that it gets, generators that it keeps, and functions of `random`, `secrets`, `os`
    and ``np.random``. Raises CannotInstrument if the run was refused, CannotCopy if there can be no
    copy, OutOfTime if the deadline passes first, and MechanismError if a vectorised copy raises.
    """
    with apply_instrument(instrument, deadline):
        output = run_copy(call, data, instrument)
    if instrument.refusal:  # and the mechanism went on
        raise CannotInstrument(instrument.refusal)
    return output


@contextmanager
def apply_instrument(instrument: Instrument, deadline: Deadline) -> Iterator[None]:
    """Let an instrument answer all draws of this thread in the block; OutOfTime may be raised."""
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
    """Copy the mechanism and the data, run the copy once, and return its output.

    The caller puts the instrument in place first, by `apply_instrument`, and looks at
    `instrument.refusal` afterwards: a refused run may return as usual. A copy that raises gives a
    `Raised`. A vectorised mechanism is asked for one row.

    `data` may be an `Input`, which is copied faster. `params` replace parameters of the same names.
    Raises CannotCopy if there can be no copy, CannotInstrument if compiled code draws from the
    generator, and MechanismError if a vectorised mechanism raises.
    """
    item = data if isinstance(data, Input) else Input(data)
    copied, (data,) = call.copy_unseeded(item.fresh())
    # These are no samples, as nothing is drawn.
    copied = replace(copied, params={**copied.params, **(params or {})}, made=RunCounter())
    output = copied.draw_one(data, stand_in(instrument, RNG))
    if was_drawn_unasked():
        raise CannotInstrument("compiled code draws from its generator")
    return output


class StandsFor(type):
    """A class of stand-ins for the type `plain`, `float` or `int`, which call `__converted__`."""

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
    """Add global variables (`names`) to the functions of a copy, and to the functions they use.

    A function whose module has a variable of that name keeps it. Functions that the copy shares
    with the original, or with a library, are left as they are.
    """
    for function in functions_of(mechanism):
        module = sys.modules.get(function.__module__ or "")
        if module is None or vars(module) is not function.__globals__:
            for name, value in names.items():
                function.__globals__.setdefault(name, value)


Replacement = Callable[["Draw", "Draws"], Any]
"""``replacement(draw, other)`` returns another value for a draw; `other` are streams for that."""
Replaced = Callable[["Draw"], Replacement | None]
"""Returns the replacement of a draw; None if the draw is kept."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw of a run."""

    number: int
    """The number of the draw in its run, from 0."""
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
    """The arguments; empty if the generator is another one in each run."""
    stack: tuple[Site, ...]


class Draws:
    """A family of streams of random numbers, one for each line of code and source."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[tuple[Any, ...], Any] = {}

    def of(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Draw the next random numbers from the stream of a line, and return them."""
        return answer_request(self.generator(request, where), request)

    def generator(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Return the generator that is the stream of a line, for the source of a request."""
        key = (request.source.name, request.source.kind, where)
        if key not in self._generators:
            # The same on every machine, wherever the files are.
            lines = [(Path(site.file).name, site.line, site.function) for site in where]
            words = hashlib.sha256(repr((self._seed, request.source.name, lines)).encode())
            self._generators[key] = make_generator(request.source.kind, words.digest())
        return self._generators[key]


class _Seeds:
    """The seeds of generators in a run, and how many draws each generator made.

    The first generator with a seed draws from streams of lines; a later one repeats its draws.
    """

    def __init__(self) -> None:
        self._places: dict[Source, tuple[str, int]] = {}
        self._drawn: dict[tuple[type, str, int], Any] = {}

    def start(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Note that a generator begins anew with a seed; forget its old seed if there is none."""
        self._places.pop(source, None)
        if seed:
            self._places[source] = repr(seed), 0

    def generator(self, source: Source, stream: Any) -> Any:
        """Return the generator for the next draw of a source, and count the draw.

        That is `stream`, or a copy of the stream that an earlier source with an equal seed used.
        """
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
    """An instrument that answers draws from streams of the lines of code, and records them.

    Tapes with equal seeds give equal noise in equal lines. `replaced` returns the replacement of a
    draw, or None. `draws` and `seeded` are records in the order of the run.
    """

    def __init__(self, seed: int, replaced: Replaced | None = None) -> None:
        super().__init__()
        self._streams, self._other = Draws(seed), Draws(~seed)
        self._replaced = replaced
        self._seeds = _Seeds()
        self.draws: list[Draw] = []
        self.seeded: list[Seeded] = []

    def draw(self, request: Request) -> Any:
        """Draw from the stream of the line that asks, record the draw, and return its value.

        If there is a replacement, that value is recorded and returned instead.
        """
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

    def note_creation(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Record that a generator was made or seeded, and at which line."""
        self._seeds.start(source, seed)
        self.seeded.append(Seeded(source, seed, stack()))


def _copy_value(value: Any) -> Any:
    return value if isinstance(value, float | int | str | bytes | None) else copy.deepcopy(value)
